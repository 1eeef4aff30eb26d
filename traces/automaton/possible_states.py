"""A set of possible states of a machine, as any process understands it."""

from __future__ import annotations

from typing import NamedTuple

from stagewright.traces.automaton.step_code import State


class OfCandidate(NamedTuple):
    """The set of possible states of one of several candidates for a machine."""

    number: int
    states: tuple[State, ...] = ()

    def possible(self, machine: tuple[str, str, str]) -> PossibleStates:
        """The same as a set of the machine."""
        return PossibleStates(machine, self.number, self.states)


class PossibleStates(NamedTuple):
    """A set of possible states of a machine that any process understands.

    `number` is one of the special sets of `determinised`, or -1: then `states` lists the states or, where
    the machine has several candidates, `candidates` has the set of each.
    """

    machine: tuple[str, str, str]
    number: int
    states: tuple[State, ...] = ()
    candidates: tuple[OfCandidate, ...] = ()
