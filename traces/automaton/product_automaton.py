"""Several candidates for the definition that recorded a trace, all replayed at once: `Product`.

Which release wrote a trace is often not known. A `Product` has the interface of a `Determinised`, but its
numbers stand for one set of possible states a candidate: so every event is read once, whatever the number of
candidates, and an entity is refused only when no run of any of them explains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stagewright.traces.automaton.nfa import Automaton
from stagewright.traces.automaton.possible_states import OfCandidate, PossibleStates
from stagewright.traces.automaton.subset_automaton import (
    ANY,
    DEAD,
    ENDED,
    LIVE,
    START,
    UNDECIDED,
    UNKNOWN,
    UNKNOWN_START,
    Determinised,
)
from stagewright.traces.events.observability import Recording


@dataclass(frozen=True)
class Candidates:
    """The automata of the candidates for one machine, profile and definition that events name."""

    members: tuple[Automaton, ...]

    @property
    def recording(self) -> Recording:
        """How the events were recorded: the same for all."""
        return self.members[0].recording

    @property
    def identity(self) -> str:
        """Differs from that of any other machine or candidates."""
        return " or ".join(member.identity for member in self.members) + "!"

    @property
    def max_states(self) -> int:
        """The budget of each."""
        return self.members[0].max_states


class Standing(Enum):
    """What a candidate is to an entity."""

    EXPLAINS = "explains"
    REFUSES = "refuses"
    UNDECIDED = "undecided"


class Product:
    """Numbers the tuples of sets of some candidates, and finds each step between them once.

    The numbers below `LIVE` mean what they mean for one machine: DEAD that all are dead, UNDECIDED that none
    lives and one has spent its budget, UNKNOWN that an event was none of any candidate's.
    A candidate that does not understand an event which another one does is dead from there on.
    """

    def __init__(self, source: Candidates, members: tuple[Determinised, ...]) -> None:
        self.source = source
        self.members = members
        self._tuples = [(special,) * len(self.members) for special in range(LIVE)]
        self._numbers: dict[tuple[int, ...], int] = {}
        self._known: dict[tuple[int, str], int] = {}

    @property
    def size(self) -> int:
        """About how many numbers are kept."""
        own = len(self._known) + len(self._tuples) * len(self.members)
        return own + sum(member.size for member in self.members)

    def advance(self, number: int, symbol: str) -> int:
        """The number of the tuple after an event, given its symbol's text."""
        if number in (DEAD, UNDECIDED, UNKNOWN):
            return number
        known = self._known.get((number, symbol))
        if known is None:
            known = self._known[number, symbol] = self._advance(number, symbol)
        return known

    @property
    def unknown_start(self) -> int:
        """The number to begin with where some events were read elsewhere."""
        return self._number((UNKNOWN_START,) * len(self.members))

    def refusal(self, number: int, symbol: str) -> str | None:
        """Why no candidate can understand an event after the events so far; None if one can."""
        reasons: list[str] = []
        for member, part in zip(self.members, self._tuples[number], strict=True):
            reason = member.refusal(part, symbol)
            if reason is None:
                return None
            reasons.append(reason)
        return reasons[0]

    def ended(self, number: int) -> bool:
        """Whether the end marker was read, and some candidate explains all that came before it."""
        return ENDED in self._tuples[number]

    def is_sure(self, number: int) -> bool:
        """Whether each candidate is in its part, or dead, whatever came before what was read of an entity."""
        return number >= LIVE and all(p > UNKNOWN_START and p != ANY for p in self._tuples[number])

    def standings(self, number: int) -> tuple[Standing, ...]:
        """What each candidate is to an entity in this tuple."""
        special = {DEAD: Standing.REFUSES, UNDECIDED: Standing.UNDECIDED}
        return tuple(special.get(part, Standing.EXPLAINS) for part in self._tuples[number])

    def possible(self, key: tuple[str, str, str], number: int) -> PossibleStates:
        """A tuple as any process understands it."""
        if number < LIVE:
            return PossibleStates(key, number)
        parts = zip(self.members, self._tuples[number], strict=True)
        sets = (member.possible(key, part) for member, part in parts)
        return PossibleStates(key, -1, (), tuple(OfCandidate(s.number, s.states) for s in sets))

    def number_of_possible(self, possible: PossibleStates) -> int:
        """The number here of a tuple that was found elsewhere."""
        if possible.number >= 0:
            return possible.number
        parts = zip(self.members, possible.candidates, strict=True)
        return self._number(
            tuple(m.number_of_possible(p.possible(possible.machine)) for m, p in parts)
        )

    def after_body(self, actual: int, entry: int, leaves: int) -> int:
        """Where events that lead from the tuple `entry` to the tuple `leaves` lead from the tuple `actual`.

        UNDECIDED where that cannot be decided without the events.
        """
        found: list[int] = []
        for is_, begins, ends in zip(
            self._tuples[actual], self._tuples[entry], self._tuples[leaves], strict=True
        ):
            if is_ in (DEAD, UNDECIDED):
                found.append(is_)  # for good
            elif is_ == begins:
                found.append(ends)
            else:
                return UNDECIDED
        return self._number(tuple(found))

    def _advance(self, number: int, symbol: str) -> int:
        if self.refusal(number, symbol) is not None:
            return UNKNOWN
        parts = (
            member.advance(part, symbol)
            for member, part in zip(self.members, self._tuples[number], strict=True)
        )
        return self._number(tuple(DEAD if part == UNKNOWN else part for part in parts))

    def _number(self, parts: tuple[int, ...]) -> int:
        distinct = set(parts)
        if distinct <= {DEAD, UNDECIDED}:
            return max(distinct)
        if distinct in ({START}, {ANY}):
            return distinct.pop()
        if parts not in self._numbers:
            self._numbers[parts] = len(self._tuples)
            self._tuples.append(parts)
        return self._numbers[parts]


Source = Automaton | Candidates
Running = Determinised | Product
