"""On orbits every promise gets the verdict that the full search gives it, with a run as short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.checker.symmetry import machines as own
from tests.checker.symmetry.by_hand import MODELS

from stagewright.checker.check import watch_for
from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.checker.explicit.search import explore
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.symmetry.permutations.detection import detect
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.checker.vacuity import premises_of
from stagewright.checker.verdicts import verdicts_of
from stagewright.spec import define, scope_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.loading import load
from stagewright.spec.verdict import Outcome

DECIDED = {PropertyKind.INVARIANT, PropertyKind.STEP}
MACHINES = Path(__file__).resolve().parents[3] / "machines"

Summary = dict[str, tuple[Outcome, bool, int | None]]
"""By promise: the outcome, whether it is vacuous, and how long the run is."""


def summary(definition: Definition, engine: Engine) -> Summary:
    stop = Stop(Limits())
    found = explore(engine, watch_for(engine.model, deadlock=True), stop)
    return {
        v.name: (v.outcome, "vacuous" in v.note, None if v.run is None else len(v.run.steps))
        for v in verdicts_of(definition, found, stop)
    }


def both(definition: Definition, sizes: dict[str, int]) -> tuple[Summary, Summary]:
    """What is told of the promises that are decided on orbits: by the full and by the reduced search."""
    decided = tuple(p for p in definition.properties if p.kind in DECIDED)
    definition = replace(definition, properties=decided)
    model = ground(definition, scope_of(definition, sizes), premises_of(definition))
    detected = detect(model)
    assert detected.symmetry.groups
    engine = numpy_engine(model)
    return summary(definition, engine), summary(definition, Reduced(engine, detected.symmetry))


@pytest.mark.parametrize(
    ("path", "sizes"),
    [
        ("two_phase_commit.py", {"manager": 4}),
        ("tablet_barrier.py", {"tablet": 2, "node": 3}),
        ("turnstile.py", {"gate": 2}),
        ("lease.py", {"node": 3}),
        ("user_machine.py", {"node": 3}),
        ("broken.py:Migration", {"node": 3}),
        ("broken.py:Workers", {"node": 3, "task": 3}),
    ],
)
def test_models_get_the_same_verdicts(path: str, sizes: dict[str, int]) -> None:
    full, reduced = both(load(str(MODELS / path)), sizes)
    assert reduced == full


@pytest.mark.parametrize("machine", [own.Gossip, own.Market, own.Amount, own.Hoping])
def test_machines_with_references_between_members_get_the_same_verdicts(machine: type) -> None:
    full, reduced = both(define(machine), {})
    assert reduced == full


def test_broken_promises_and_vacuous_ones_are_among_them() -> None:
    seen: Summary = {}
    for path in ("turnstile.py", "broken.py:Migration", "broken.py:Workers"):
        seen |= both(load(str(MODELS / path)), {})[1]
    assert {outcome for outcome, _, _ in seen.values()} == {Outcome.HOLDS, Outcome.VIOLATED}
    assert {vacuous for _, vacuous, _ in seen.values()} == {False, True}
    assert max(steps for _, _, steps in seen.values() if steps is not None) >= 4


def test_the_shipped_machine_gets_the_same_verdicts() -> None:
    """At a scope with three nodes and nothing that goes wrong."""
    definition = load(f"{MACHINES / 'scylladb/tablets/tablet.py'}:TabletCluster", "seed")
    scope = scope_of(
        definition, {"node": 3}, {b.name: 0 for b in definition.budgets} | {"migrations": 1}
    )
    decided = tuple(p for p in definition.properties if p.kind in DECIDED)
    definition = replace(definition, properties=decided)
    model = ground(definition, scope, premises_of(definition))
    symmetry = detect(model).symmetry
    assert {g.kind.__name__: g.size for g in symmetry.groups} == {"Node": 3}
    engine = numpy_engine(model)
    assert summary(definition, Reduced(engine, symmetry)) == summary(definition, engine)
