"""Checks of the shipped test models in both ways: on one machine, and over shards."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stagewright.checker.check import check
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.sharded.check import check_sharded
from stagewright.checker.sharded.scheduler import InThisProcess, Scheduler
from stagewright.checker.sharded.search import Place
from stagewright.checker.sharded.tasks import LevelPart
from stagewright.spec.definition import NO_DEADLOCK, Definition, PropertyKind
from stagewright.spec.loading import load
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.verdict import Report

MODELS = Path(__file__).resolve().parents[2] / "models"


def model(name: str, **sizes: int) -> tuple[Definition, Scope]:
    """A test model, by its file and class, at a scope."""
    definition = load(f"{MODELS}/{name}")
    return definition, scope_of(definition, sizes)


def safety(definition: Definition) -> list[str]:
    """The names of all promises that shards can decide."""
    kinds = (PropertyKind.INVARIANT, PropertyKind.STEP)
    return [*(p.name for p in definition.properties if p.kind in kinds), NO_DEADLOCK]


def on_one_machine(
    definition: Definition, scope: Scope, limits: Limits | None = None, *, symmetry: bool = False
) -> Report:
    """The report of the search that is to be met."""
    names = safety(definition)
    return check(definition, scope, limits=limits, properties=names, workers=1, symmetry=symmetry)


def over_shards(
    definition: Definition,
    scope: Scope,
    folder: Path,
    shards: int,
    *,
    scheduler: Scheduler | None = None,
    limits: Limits | None = None,
    properties: Sequence[str] | None = None,
    alone: int = 0,
    lasting: bool = False,
    symmetry: bool = False,
    on_level: Callable[[int, list[LevelPart]], None] | None = None,
) -> Report:
    """The report of the search over shards."""
    place = Place(
        scheduler or InThisProcess(),
        folder,
        shards,
        at_once=2,
        lasting=lasting,
        alone=alone,
        on_level=on_level,
    )
    names = safety(definition) if properties is None else properties
    stop = Stop(limits or Limits())
    return check_sharded(definition, scope, place, stop, properties=names, symmetry=symmetry)


def timeless(report: Report) -> Report:
    """A report without what it says of time, and of states that orbits stand for."""
    verdicts = tuple(replace(verdict, seconds=0.0) for verdict in report.verdicts)
    reduction = report.reduction and replace(report.reduction, states=None)
    return replace(report, verdicts=verdicts, seconds=0.0, reduction=reduction)
