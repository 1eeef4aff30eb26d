"""Orbits by slow and obvious means: every permutation of every sort, on the definition's own values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import permutations, product
from pathlib import Path
from typing import Any

from tests.checker.symmetry import machines

from stagewright.checker.explicit.exploration import Exploration, Watch, Watched
from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.checker.explicit.search import explore
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.symmetry.groups import Permutation, Symmetry
from stagewright.checker.symmetry.permutations.detection import Detected, detect
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.spec import define, scope_of
from stagewright.spec.definition import Definition
from stagewright.spec.entities import Entity
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.loading import load
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EntitySort, EnumSort
from stagewright.spec.values import FrozenMap, State, Value

Ints = tuple[int, ...]
MODELS = Path(__file__).resolve().parents[2] / "models"


def model_of(
    name: str, *, profile: str = "", sizes: Mapping[str, int] | None = None
) -> GroundModel:
    """The ground form of a machine of this folder (`Gossip`) or of the models (`turnstile.py`)."""
    machine = getattr(machines, name, None)
    definition = load(str(MODELS / name), profile) if machine is None else define(machine, profile)
    return ground(definition, scope_of(definition, sizes))


def all_permutations(symmetry: Symmetry) -> Iterator[Permutation]:
    """Every permutation of every group."""
    return product(*(permutations(range(group.size)) for group in symmetry.groups))


def unnamed(kind: type[Entity] | type[Enum], scope: Scope) -> Sequence[Value]:
    """The members that may be exchanged: those of an entity that have no name."""
    if not issubclass(kind, Entity):
        return values_of(EnumSort(kind), scope)
    return values_of(EntitySort(kind), scope)[len(kind.member_names) :]


class Renamed:
    """A permutation as a function on values: members are exchanged wherever they occur."""

    def __init__(self, scope: Scope, symmetry: Symmetry, permutation: Permutation) -> None:
        self._images: dict[tuple[type, object], Any] = {}
        for group, images in zip(symmetry.groups, permutation, strict=True):
            members = unnamed(group.kind, scope)
            for member, image in zip(members, images, strict=True):
                self._images[group.kind, member] = members[image]

    def __call__(self, value: Any) -> Any:
        """What becomes of a value."""
        if isinstance(value, Mapping):
            return FrozenMap({self(key): self(part) for key, part in value.items()})
        if isinstance(value, frozenset):
            return frozenset(self(member) for member in value)
        if isinstance(value, tuple):
            return tuple(self(member) for member in value)
        return self._images.get((type(value), value), value)


def orbits(model: GroundModel, symmetry: Symmetry, states: Set[Ints]) -> list[frozenset[Ints]]:
    """The states, split into orbits by trying every permutation on every state."""
    decoded: dict[Ints, State] = {state: model.decode(state) for state in states}
    renamings = [Renamed(model.scope, symmetry, p) for p in all_permutations(symmetry)]
    found: list[frozenset[Ints]] = []
    left = set(states)
    while left:
        state = decoded[left.pop()]
        orbit = frozenset(model.encode(rename(state)) for rename in renamings)
        assert orbit <= states, "permutations lead from reachable states to reachable states"
        found.append(orbit)
        left -= orbit
    return found


@dataclass
class Compared:
    """A model searched in full and by orbits."""

    model: GroundModel

    @cached_property
    def detected(self) -> Detected:
        return detect(self.model)

    @property
    def symmetry(self) -> Symmetry:
        return self.detected.symmetry

    @property
    def definition(self) -> Definition:
        return self.model.definition

    @cached_property
    def watch(self) -> Watch:
        return Watch(
            states=Watched([p.condition for p in self.model.invariants]),
            steps=Watched([p.condition for p in self.model.step_properties]),
        )

    @cached_property
    def full(self) -> Exploration:
        return explore(numpy_engine(self.model), self.watch, Stop(Limits()))

    @cached_property
    def engine(self) -> Reduced:
        return Reduced(numpy_engine(self.model), self.symmetry)

    @cached_property
    def reduced(self) -> Exploration:
        return explore(self.engine, self.watch, Stop(Limits()))

    def states(self, found: Exploration) -> list[Ints]:
        """The explored states, by id."""
        return [found.engine.layout.unpack(found.words, i) for i in range(found.states)]

    def depths(self, found: Exploration) -> dict[str, int | None]:
        """How many steps each promise's nearest violation is away; None if there is none."""
        nearest: dict[str, int | None] = {"deadlock": None, "overflow": None}
        if found.deadlock is not None:
            nearest["deadlock"] = found.depth_of(found.deadlock)
        if found.overflow is not None:
            nearest["overflow"] = found.depth_of(found.overflow[0])
        named = [
            (p.property.name, None if state is None else found.depth_of(state))
            for p, state in zip(self.model.invariants, found.first_false, strict=True)
        ] + [
            (p.property.name, None if edge is None else found.depth_of(edge.source))
            for p, edge in zip(self.model.step_properties, found.bad_edges, strict=True)
        ]
        for name, depth in named:
            known = nearest.get(name)
            if known is None or (depth is not None and depth < known):
                nearest[name] = depth
        return nearest
