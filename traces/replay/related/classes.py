"""What properties see of an entity: its class, by the values of the atoms of all of them.

Plain data and what runs on it in any process. An entity of which it is not known in which of several states
it is may have several values: then its class says all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from stagewright.traces.automaton.step_code import Instruction, State, compile_values
from stagewright.traces.replay.related.formula import Formula

POSSIBLE_MAX = 32  # values that an entity may have; with more it may have any


class Seen(NamedTuple):
    """The class of an entity of a machine: the values that its atoms may have; of none: whatever there is."""

    machine: str
    possible: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class View:
    """How the states of one machine, profile and definition are seen: the atoms as a program."""

    machine: str
    instructions: tuple[Instruction, ...]
    atoms: tuple[int, ...]  # the instructions that compute them
    ranges: tuple[tuple[int, int], ...]  # of the atoms' values
    from_start: bool  # the first event observes the initial state
    end_marked: bool

    def seen(self, states: Iterable[State]) -> Seen:
        """The class of an entity that is in one of some states."""
        found = {self._values(state) for state in states}
        return Seen(self.machine, tuple(sorted(found)) if len(found) <= POSSIBLE_MAX else ())

    @property
    def anything(self) -> Seen:
        """The class of an entity of which nothing is known."""
        return Seen(self.machine, ())

    def fingerprint(self) -> str:
        """What is the same for views that see the same changes."""
        asked = self.instructions, self.atoms, self.ranges, self.from_start, self.end_marked
        return hashlib.sha256(repr(asked).encode()).hexdigest()[:16]

    @cached_property
    def _compiled(self) -> object:
        return compile_values(self.instructions, self.atoms)

    def _values(self, state: State) -> tuple[int, ...]:
        return self._compiled(state)  # type: ignore[operator, no-any-return]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_compiled"}


@dataclass(frozen=True)
class Related:
    """A property that traces can evaluate.

    `families`: the machine of each family that the formula counts, with the atoms of it that the property
    reads: the numbers among all atoms of that machine, and the bounds of their values.
    """

    system: str
    name: str
    doc: str
    local: bool  # it says something of each entity by itself: no order of events is needed
    formula: Formula
    weight: int
    families: tuple[tuple[str, tuple[int, ...]], ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]

    def options(self, family: int, seen: Seen) -> tuple[tuple[int, ...], ...]:
        """The values that the property's own atoms may have for an entity of a family; of none: too many."""
        if seen.possible:
            chosen = self.families[family][1]
            return tuple(sorted({tuple(v[a] for a in chosen) for v in seen.possible}))
        size = 1
        for low, high in self.ranges[family]:
            size *= high - low + 1
            if size > POSSIBLE_MAX:
                return ()
        return tuple(product(*(range(low, high + 1) for low, high in self.ranges[family])))


def families_named(properties: Sequence[Related]) -> set[str]:
    """The machines that some properties speak of."""
    return {machine for p in properties for machine, _ in p.families}
