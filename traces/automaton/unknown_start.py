"""Where an entity may be whose earlier events were read elsewhere: `UnknownStart`.

Before the first event that is at hand it may be in any reachable state. Each of these leads through the events
to a set of possible states, or to none. As soon as all that are left lead to the same set it does not matter
any more where the entity came from: it is in that set, or no run explains its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple, Protocol

from stagewright.traces.automaton.step_code import State

_REACHED_MAX = 5_000  # reachable states; it is not tried with more
_FEW = 128  # possible states that are followed one by one
_WORK_MAX = 1_000_000  # states that are taken a step further, of one automaton in one process

FIRST = 0  # the number of what may be before the first event
LOST = -1  # in place of a number: there is too much to follow


class _Runs(Protocol):
    """What is needed of the automaton that follows single states: a `Determinised`."""

    sets: list[tuple[int, ...]]
    states: list[State]

    def advance(self, number: int, symbol: str) -> int: ...
    def anywhere(self) -> int: ...
    def number_of(self, states: Iterable[State]) -> int: ...
    def is_live(self, number: int) -> bool: ...


class _Family(NamedTuple):
    """Sets that an entity may be in: `whole`, any of the states of the only one; else in one of them."""

    whole: bool
    sets: tuple[int, ...]


class UnknownStart:
    """Numbers what is known of entities of one automaton after events in the middle of their traces."""

    def __init__(self, run: Callable[[int], _Runs]) -> None:
        self._run = run  # the automaton, in at most so many states
        self._families: list[_Family] = []
        self._numbers: dict[_Family, int] = {}
        self._work = 0

    def advance(self, number: int, symbol: str) -> int | tuple[State, ...]:
        """What is known after an event of this machine; or the only states that are left to be in, if any.

        `LOST` where that is not followed any further.
        """
        running = self._running
        if running is None:
            return LOST
        family = self._families[number]
        self._work += sum(len(running.sets[one]) for one in family.sets)
        if self._work > _WORK_MAX:
            return LOST
        dead = running.number_of(())
        after = {running.advance(one, symbol) for one in family.sets} - {dead}
        live = tuple(sorted(one for one in after if running.is_live(one)))
        if len(live) < len(after):
            return LOST  # a budget was spent
        return self._known(running, _Family(family.whole, live))

    @cached_property
    def _running(self) -> _Runs | None:
        """What follows the states, with `FIRST` known; None if there are too many."""
        running = self._run(_REACHED_MAX)
        number = running.anywhere()
        if not running.is_live(number):
            return None
        first = _Family(whole=True, sets=(number,))
        self._families.append(first)
        self._numbers[first] = FIRST
        return running

    def _known(self, running: _Runs, family: _Family) -> int | tuple[State, ...]:
        if family.whole and family.sets:
            states = running.sets[family.sets[0]]
            if len(states) <= _FEW:
                each = {running.number_of([running.states[state]]) for state in states}
                family = _Family(whole=False, sets=tuple(sorted(each)))
        if not family.sets:
            return ()
        if not family.whole and len(family.sets) == 1:
            return tuple(running.states[state] for state in running.sets[family.sets[0]])
        if family not in self._numbers:
            self._numbers[family] = len(self._families)
            self._families.append(family)
        return self._numbers[family]
