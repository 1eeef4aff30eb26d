"""Runs an automaton on sets of possible states: each set is numbered, each step between two computed once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from stagewright.traces.automaton import Automaton
from stagewright.traces.letters import Alphabet, Letter
from stagewright.traces.replay.rows import PossibleStates
from stagewright.traces.stepcode import State, StepFunction, compile_step
from stagewright.traces.symbols import parse_symbol, value_key

# Numbers of sets with a meaning of their own; possible sets are numbered from LIVE.
DEAD = 0  # no run explains the events so far
UNDECIDED = 1  # the budget was spent
UNKNOWN = 2  # an event was not understood
ENDED = 3  # the end marker was read
START = 4  # nothing was read
ANY = 5  # some events were read elsewhere
LIVE = 6


class Determinised:
    """Numbers the sets of possible states of one automaton, and finds each step between them once."""

    def __init__(self, source: Automaton) -> None:
        self.source = source
        self.states: list[State] = []
        self.sets: list[tuple[int, ...]] = [()] * LIVE  # state numbers, sorted, by set number
        self._state_numbers: dict[State, int] = {}
        self._set_numbers: dict[tuple[int, ...], int] = {}
        self._functions: dict[int, StepFunction] = {}
        self._alphabet = Alphabet(source)
        self._unseen: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self._closures: dict[tuple[int, ...], frozenset[int]] = {}
        self._steps: dict[int, tuple[tuple[int, int], ...]] = {}
        self._known: dict[tuple[int, str], int] = {}
        self._letters: dict[str, Letter | str] = {}

    def advance(self, number: int, symbol: str) -> int:
        """The number of the set after an event, given its symbol's text."""
        if number in (DEAD, UNDECIDED, UNKNOWN):
            return number
        known = self._known.get((number, symbol))
        if known is None:
            known = self._known[number, symbol] = self._advance(number, symbol)
        return known

    def letter(self, symbol: str) -> Letter | str:
        """A symbol in this machine's terms, or why it is none of this machine's."""
        if symbol not in self._letters:
            self._letters[symbol] = self._alphabet.letter(parse_symbol(symbol))
        return self._letters[symbol]

    def refusal(self, number: int, symbol: str) -> str | None:
        """Why an event cannot be understood after the events so far; None if it can be."""
        letter = self.letter(symbol)
        if isinstance(letter, str):
            return letter
        if number != START:
            return None
        if letter.end:
            return "an end marker cannot be the first event"
        if letter.action is not None:
            return "the first event (seq 0) observes the initial state: it has no action"
        return None

    def before_observation(self, number: int, letter: Letter) -> frozenset[int]:
        """The states that an event may lead to, whatever was observed after it."""
        hidden = self.source.recording.hidden.exist
        if number == START:
            first = self._initial
            return self._closure(tuple(sorted(first))) if hidden else first
        here: Iterable[int] = self.sets[number]
        if hidden:
            here = self._closure(self.sets[number])
        if letter.steps is not None:
            return frozenset(n for s in here for i in letter.steps if (n := self._take(i, s)) >= 0)
        if not hidden:
            return frozenset(n for s in here for n in self._every_step(s))
        return frozenset(here).union(*(self._expand(s)[1] for s in here))

    def matching(self, states: Iterable[int], letter: Letter) -> tuple[int, ...]:
        """Those of the states in which everything that the letter observes is so."""
        if not letter.cells:
            return tuple(sorted(states))
        table = self.states
        return tuple(sorted(s for s in states if all(table[s][c] == v for c, v in letter.cells)))

    def steps_from(self, state: int) -> tuple[tuple[int, int], ...]:
        """The enabled steps of a state, by index, each with the state that it leads to.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        if state not in self._steps:
            every = range(len(self.source.program.steps))
            self._steps[state] = tuple((i, n) for i in every if (n := self._take(i, state)) >= 0)
        return self._steps[state]

    def state_number(self, state: State) -> int:
        """The number of a state.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        return self._number(state)

    def ended(self, number: int) -> bool:
        """Whether the end marker was read."""
        return number == ENDED

    def single(self, number: int) -> bool:
        """Whether the set has one state; a set that comes after `ANY` then depends on no earlier events."""
        return number >= LIVE and len(self.sets[number]) == 1

    def possible(self, key: tuple[str, str, str], number: int) -> PossibleStates:
        """A set as any process understands it."""
        if number < LIVE:
            return PossibleStates(key, number)
        return PossibleStates(key, -1, tuple(self.states[s] for s in self.sets[number]))

    def number_of_possible(self, possible: PossibleStates) -> int:
        """The number here of a set that was found elsewhere."""
        return possible.number if possible.number >= 0 else self.number_of(possible.states)

    def anywhere(self) -> int:
        """The number of the set of all reachable states."""
        try:
            return self._number_of_set(tuple(sorted(self._reachable)))
        except SpentError:
            return UNDECIDED

    def is_hidden(self, step: int, old: int, new: int) -> bool:
        """Whether a step between two states leaves no event of its own."""
        return self._is_hidden(self.source.program.steps[step].action, old, new)

    @cached_property
    def _initial(self) -> frozenset[int]:
        if not self.source.recording.from_start:
            return self._reachable
        return frozenset(self._number(s) for s in self.source.initial)

    @cached_property
    def _reachable(self) -> frozenset[int]:
        first = [self._number(s) for s in self.source.initial]
        reached, frontier = set(first), first
        while frontier:
            for n in self._every_step(frontier.pop()):
                if n not in reached:
                    reached.add(n)
                    frontier.append(n)
        return frozenset(reached)

    def _advance(self, number: int, symbol: str) -> int:
        if self.refusal(number, symbol) is not None:
            return UNKNOWN
        letter = self.letter(symbol)
        assert isinstance(letter, Letter)
        if number == ENDED:
            return DEAD
        if letter.end:
            return ENDED
        if number == ANY:
            return self._after_any(letter)
        try:
            chosen = self.matching(self.before_observation(number, letter), letter)
        except SpentError:
            return UNDECIDED
        return self._number_of_set(chosen)

    def number_of(self, states: Iterable[State]) -> int:
        """The number of a set of possible states that was found elsewhere."""
        try:
            return self._number_of_set(tuple(sorted(self._number(s) for s in states)))
        except SpentError:
            return UNDECIDED

    def _number_of_set(self, chosen: tuple[int, ...]) -> int:
        if not chosen:
            return DEAD
        if chosen not in self._set_numbers:
            if len(self.sets) > self.source.max_states:
                return UNDECIDED
            self._set_numbers[chosen] = len(self.sets)
            self.sets.append(chosen)
        return self._set_numbers[chosen]

    def _after_any(self, letter: Letter) -> int:
        """The set after an event of which it is not known what went before it.

        Whether anything can go before it is not asked: who knows the events before will ask.
        """
        seen = dict(letter.cells)
        if len(seen) < self.source.cells:
            return ANY
        try:
            state = tuple(seen[cell] for cell in range(self.source.cells))
            return self._number_of_set((self._number(state),))
        except SpentError:
            return UNDECIDED

    def _number(self, state: State) -> int:
        number = self._state_numbers.get(state)
        if number is None:
            if len(self.states) >= self.source.max_states:
                raise SpentError
            number = self._state_numbers[state] = len(self.states)
            self.states.append(state)
        return number

    def _take(self, step: int, state: int) -> int:
        """The number of the state after a step; -1 where it is not enabled."""
        function = self._functions.get(step)
        if function is None:
            code = self.source.program
            function = self._functions[step] = compile_step(code.instructions, code.steps[step])
        after = function(self.states[state])
        return -1 if after is None else self._number(after)

    def _every_step(self, state: int) -> frozenset[int]:
        hidden, visible = self._expand(state)
        return hidden | visible

    def _expand(self, state: int) -> tuple[frozenset[int], frozenset[int]]:
        """The states that hidden and that visible steps lead to."""
        if state not in self._unseen:
            hidden: set[int] = set()
            visible: set[int] = set()
            for index, step in enumerate(self.source.program.steps):
                after = self._take(index, state)
                if after >= 0:
                    (hidden if self._is_hidden(step.action, state, after) else visible).add(after)
            self._unseen[state] = frozenset(hidden), frozenset(visible)
        return self._unseen[state]

    def _is_hidden(self, action: str, old: int, new: int) -> bool:
        steps = self.source.recording.hidden
        if steps.actions is not None and action not in steps.actions:
            return False
        for name, values in steps.visible.items():
            leaf = self.source.leaves[name]
            assert leaf.cell is not None
            code = self.states[new][leaf.cell]
            seen = values is None or any(leaf.codes.get(value_key(v)) == code for v in values)
            if code != self.states[old][leaf.cell] and seen:
                return False
        return True

    def _closure(self, states: tuple[int, ...]) -> frozenset[int]:
        if states not in self._closures:
            reached, frontier = set(states), list(states)
            while frontier:
                for n in self._expand(frontier.pop())[0]:
                    if n not in reached:
                        reached.add(n)
                        frontier.append(n)
            self._closures[states] = frozenset(reached)
        return self._closures[states]


class SpentError(Exception):
    """There are more states than the budget allows."""
