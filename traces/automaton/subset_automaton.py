"""Runs an automaton on sets of possible states: each set is numbered, each step between two computed once.

A step for which more states must be looked at than the automaton's budget allows leads to `UNDECIDED`. That
depends on the set and the event alone, and on nothing that was numbered before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice, product

from stagewright.spec.grounding.families import Families
from stagewright.traces.automaton.event_constraints import Alphabet, Constraint
from stagewright.traces.automaton.horizon import Horizon
from stagewright.traces.automaton.nfa import Automaton
from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.starts import TooManyStartsError
from stagewright.traces.automaton.step_code import (
    BeyondBoundsError,
    State,
    StepCode,
    StepFunction,
    compile_step,
)
from stagewright.traces.automaton.unknown_start import LOST, UnknownStart
from stagewright.traces.events.symbols import parse_symbol, value_key

# Numbers of sets with a meaning of their own; possible sets are numbered from LIVE.
DEAD = 0  # no run explains the events so far
UNDECIDED = 1  # too many states are possible
UNKNOWN = 2  # an event was not understood
ENDED = 3  # the end marker was read
START = 4  # nothing was read
ANY = 5  # some events were read elsewhere
LIVE = 6
UNKNOWN_START = -1  # the same, but what follows may show where they led; so is every number below


_TRIED = 1_000  # steps of one template that stand for all of them
_STATE_SIZE = 16  # in `Determinised.size`, beside what leads on from a state


class Determinised:
    """Numbers the sets of possible states of one automaton, and finds each step between them once.

    `most`: how many states are numbered in all, before `SpentError`; None: as many as come up. `size` is about
    how many numbers are kept. `functions`: steps that were compiled already.
    """

    def __init__(
        self,
        source: Automaton,
        *,
        most: int | None = None,
        functions: Mapping[int, StepFunction] | None = None,
    ) -> None:
        self.source = source
        self.size = 0
        self._most = most
        self.states: list[State] = []
        self.sets: list[tuple[int, ...]] = [()] * LIVE  # state numbers, sorted, by set number
        self._state_numbers: dict[State, int] = {}
        self._set_numbers: dict[tuple[int, ...], int] = {}
        self._functions: dict[int, StepFunction] = dict(functions or {})
        self._templates: dict[int, Callable[..., State | None]] = {}
        self._alphabet = Alphabet(source)
        self._unseen: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self._closures: dict[tuple[tuple[int, ...], int], frozenset[int]] = {}
        self._steps: dict[int, tuple[tuple[int, int], ...]] = {}
        self._known: dict[tuple[int, str], int] = {}
        self._constraints: dict[str, Constraint | str] = {}
        self._unknown_start = UnknownStart(lambda most: Determinised(source, most=most))

    def advance(self, number: int, symbol: str) -> int:
        """The number of the set after an event, given its symbol's text."""
        if number in (DEAD, UNDECIDED, UNKNOWN):
            return number
        known = self._known.get((number, symbol))
        if known is None:
            known = self._known[number, symbol] = self._advance(number, symbol)
        return known

    def renewed(self) -> Determinised:
        """The same automaton, of which nothing is numbered yet."""
        found = Determinised(self.source, most=self._most, functions=self._functions)
        found._unknown_start = self._unknown_start
        return found

    @property
    def unknown_start(self) -> int:
        """The number to begin with where some events were read elsewhere."""
        return UNKNOWN_START

    def constraint(self, symbol: str) -> Constraint | str:
        """A symbol in this machine's terms, or why it is none of this machine's."""
        if symbol not in self._constraints:
            self._constraints[symbol] = self._alphabet.constraint(parse_symbol(symbol))
        return self._constraints[symbol]

    def refusal(self, number: int, symbol: str) -> str | None:
        """Why an event cannot be understood after the events so far; None if it can be."""
        constraint = self.constraint(symbol)
        if isinstance(constraint, str):
            return constraint
        if number != START:
            return None
        if constraint.end:
            return "an end marker cannot be the first event"
        if constraint.action is not None:
            return "the first event (seq 0) observes the initial state: it has no action"
        return None

    def before_observation(self, number: int, constraint: Constraint) -> frozenset[int]:
        """The states that an event may lead to, whatever was observed after it.

        Raises:
            SpentError: these, or those on the way to them, are more than the budget allows.
        """
        if constraint.too_many and number != START:
            raise SpentError
        hidden = self.source.recording.hidden.exist
        if number == START:
            if not self.source.recording.from_start and self._beyond(constraint):
                raise SpentError  # what is reachable is looked for within the bounds of a check
            first = self._beginning(constraint)
            far = self._beyond(constraint)
            return self._closure(tuple(sorted(first)), far) if hidden else first
        here: Iterable[int] = self.sets[number]
        if hidden:
            here = self._closure(self.sets[number], self._beyond(constraint))
        if constraint.steps is not None:
            return self._few(
                n for s in here for i in constraint.steps if (n := self._own(i, s)) >= 0
            )
        if not hidden:
            return self._few(n for s in here for n in self._every_step(s))
        return frozenset(here).union(*(self._expand(s)[1] for s in here))

    def matching(self, states: Iterable[int], constraint: Constraint) -> tuple[int, ...]:
        """Those of the states in which everything that the constraint observes is so."""
        if not constraint.cells:
            return tuple(sorted(states))
        table = self.states
        return tuple(
            sorted(s for s in states if all(table[s][c] == v for c, v in constraint.cells))
        )

    def steps_from(self, state: int) -> tuple[tuple[int, int], ...]:
        """The enabled steps of a state, by index, each with the state that it leads to.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        if self.source.program.steps.wide:
            raise SpentError
        return self.tried_from(state)

    def tried_from(self, state: int) -> tuple[tuple[int, int], ...]:
        """The same; where a number may be one of very many, a few of these stand for all.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        if state not in self._steps:
            steps = self.source.program.steps
            every: Iterable[int] = range(len(steps))
            if steps.wide:
                known = frozenset(self.states[state])
                every = (i for t in range(len(steps.templates)) for i in _few_of(steps, t, known))
            self._steps[state] = tuple((i, n) for i in every if (n := self._take(i, state)) >= 0)
        return self._steps[state]

    def taken(self, steps: Iterable[int] | None, state: int) -> Iterable[tuple[int, int]]:
        """Of some steps (None: of all) those that a state enables, each with the state that it leads to.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        if steps is None or (state in self._steps and not self.source.program.steps.wide):
            wanted = None if steps is None else set(steps)
            return [p for p in self.steps_from(state) if wanted is None or p[0] in wanted]
        return [(i, n) for i in steps if (n := self._take(i, state)) >= 0]

    def state_number(self, state: State) -> int:
        """The number of a state.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        return self._number(state)

    def is_live(self, number: int) -> bool:
        """Whether it is a set of possible states."""
        return number >= LIVE

    def ended(self, number: int) -> bool:
        """Whether the end marker was read."""
        return number == ENDED

    def is_sure(self, number: int) -> bool:
        """Whether an entity is in this set, or dead, whatever came before what was read of it."""
        return number >= LIVE

    def possible(self, key: tuple[str, str, str], number: int) -> PossibleStates:
        """A set as any process understands it."""
        if number < LIVE:
            assert number > UNKNOWN_START, "known to this process alone"
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

    @property
    def initial(self) -> frozenset[int]:
        """All initial states.

        Raises:
            SpentError: there are more states than the budget allows.
        """
        if self._all_starts is None:
            raise SpentError
        return self._all_starts

    def _beginning(self, constraint: Constraint) -> frozenset[int]:
        """The states that a first event may find; of very many, those that agree with what it observes, if there are any."""
        recording = self.source.recording
        seen = dict(constraint.cells)
        if recording.hidden.exist or not recording.from_start:
            seen = {c: v for c, v in seen.items() if c not in self._changing}
        few = not self.source.starts.many and not self._beyond(constraint)
        first = self.initial if few else self._starting(seen)
        if few or (not first and self._all_starts is not None):
            return self.initial if recording.from_start else self._reachable
        return first if recording.from_start else self._reached(first)

    @cached_property
    def _all_starts(self) -> frozenset[int] | None:
        """All initial states; None if they are too many."""
        try:
            return self._starting({})
        except SpentError:
            return None

    def _starting(self, seen: Mapping[int, int]) -> frozenset[int]:
        try:
            found = self.source.starts.having(seen, self.source.max_states)
            return frozenset(self._number(s) for s in found)
        except TooManyStartsError:
            raise SpentError from None

    @cached_property
    def _changing(self) -> frozenset[int]:
        """The cells that some step assigns."""
        templates = self.source.program.steps.templates
        return frozenset(cell for step in templates for cell, _ in step.updates)

    @cached_property
    def _reachable(self) -> frozenset[int]:
        return self._reached(self.initial)

    def _reached(self, first: frozenset[int]) -> frozenset[int]:
        reached, frontier = set(first), sorted(first)
        within = Horizon(self.source)
        while frontier:
            for n in self._every_step(frontier.pop()):
                if n not in reached and within(self.states[n]):
                    reached.add(n)
                    frontier.append(n)
            self._check(reached)
        return frozenset(reached)

    def _advance(self, number: int, symbol: str) -> int:
        if self.refusal(number, symbol) is not None:
            return UNKNOWN
        constraint = self.constraint(symbol)
        assert isinstance(constraint, Constraint)
        if number == ENDED:
            return DEAD
        if constraint.end:
            return ENDED
        if number == ANY:
            return self._after_any(constraint)
        if number <= UNKNOWN_START:
            return self._after_unknown_start(number, symbol, constraint)
        try:
            chosen = self.matching(self.before_observation(number, constraint), constraint)
        except SpentError:
            anywhere = number == START and not self.source.recording.from_start
            found = self._after_any(constraint) if anywhere else ANY
            return UNDECIDED if found == ANY else found
        return self._number_of_set(chosen)

    def _beyond(self, constraint: Constraint) -> int:
        """The largest of the numbers that are observed and larger than declared; 0 if none is."""
        seen = dict(constraint.cells)
        codes = ((seen.get(one.cell, one.low), one.declared) for one in self.source.beyond)
        return max((code for code, declared in codes if code > declared), default=0)

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
            self.size += len(chosen) + _STATE_SIZE
            self._set_numbers[chosen] = len(self.sets)
            self.sets.append(chosen)
        return self._set_numbers[chosen]

    def _after_any(self, constraint: Constraint) -> int:
        """The set after an event of which it is not known what went before it.

        Whether anything can go before it is not asked: who knows the events before will ask.
        """
        seen = dict(constraint.cells)
        if len(seen) < self.source.cells:
            return ANY
        try:
            state = tuple(seen[cell] for cell in range(self.source.cells))
            return self._number_of_set((self._number(state),))
        except SpentError:
            return UNDECIDED

    def _after_unknown_start(self, number: int, symbol: str, constraint: Constraint) -> int:
        """The set after an event, as soon as it is the only one that may be, wherever the entity came from."""
        found = self._after_any(constraint)
        if found != ANY:
            return found
        left = self._unknown_start.advance(UNKNOWN_START - number, symbol)
        if isinstance(left, tuple):
            return self.number_of(left)
        return ANY if left == LOST else UNKNOWN_START - left

    def _number(self, state: State) -> int:
        number = self._state_numbers.get(state)
        if number is None:
            if self._most is not None and len(self.states) >= self._most:
                raise SpentError
            self.size += _STATE_SIZE
            number = self._state_numbers[state] = len(self.states)
            self.states.append(state)
        return number

    def _take(self, step: int, state: int) -> int:
        """The number of the state after a step; -1 where it is not enabled."""
        function = self._functions.get(step)
        if function is None:
            function = self._functions[step] = self._compiled(step)
        try:
            after = function(self.states[state])
        except BeyondBoundsError:
            return -1  # an event may say that it happened: then it is not known what comes of it
        return -1 if after is None else self._number(after)

    def _own(self, step: int, state: int) -> int:
        """The same of a step that an event says."""
        found = self._take(step, state)
        if found < 0 and self._within(step):
            try:
                self._functions[step](self.states[state])
            except BeyondBoundsError:
                raise SpentError from None
        return found

    def _within(self, step: int) -> bool:
        steps = self.source.program.steps
        return steps.templates[steps.located(step)[0]].within

    def _compiled(self, step: int) -> StepFunction:
        code = self.source.program
        number, inputs = code.steps.located(step)
        template = code.steps.templates[number]
        if not inputs:
            return compile_step(code.instructions, template)
        if number not in self._templates:
            self._templates[number] = compile_step(code.instructions, template)
        whole = self._templates[number]
        return lambda state: whole(state, *inputs)

    def _every_step(self, state: int) -> frozenset[int]:
        hidden, visible = self._expand(state)
        return hidden | visible

    def _expand(self, state: int) -> tuple[frozenset[int], frozenset[int]]:
        """The states that hidden and that visible steps lead to."""
        if state not in self._unseen:
            hidden: set[int] = set()
            visible: set[int] = set()
            steps = self.source.program.steps
            if steps.wide:
                raise SpentError
            for number, step in enumerate(steps.templates):
                for index in steps.of(number):
                    if (after := self._take(index, state)) >= 0:
                        unseen = self._is_hidden(step.action, state, after)
                        (hidden if unseen else visible).add(after)
            self._unseen[state] = frozenset(hidden), frozenset(visible)
            self.size += len(hidden) + len(visible) + _STATE_SIZE
        return self._unseen[state]

    def _is_hidden(self, action: str, old: int, new: int) -> bool:
        actions = self.source.recording.hidden.actions
        if actions is not None and action not in actions:
            return False
        before, after = self.states[old], self.states[new]
        return not any(
            before[cell] != after[cell] and (codes is None or after[cell] in codes)
            for cell, codes in self._visible
        )

    @cached_property
    def _visible(self) -> list[tuple[int, frozenset[int] | None]]:
        """The cells to which no hidden step gives one of these codes (None: any other one)."""
        found: list[tuple[int, frozenset[int] | None]] = []
        for name, values in self.source.recording.hidden.visible.items():
            leaf = self.source.leaves[name]
            assert leaf.cell is not None
            known = None if values is None else [leaf.codes.get(value_key(v)) for v in values]
            codes = None if known is None else frozenset(c for c in known if c is not None)
            found.append((leaf.cell, codes))
        return found

    def _closure(self, states: tuple[int, ...], far: int) -> frozenset[int]:
        if (states, far) not in self._closures:
            reached, frontier = set(states), list(states)
            looked_at = set(states)
            within = Horizon(self.source, [self.states[s] for s in states], far)
            while frontier:
                hidden, visible = self._expand(frontier.pop())
                new = {n for n in hidden - reached if within(self.states[n])}
                frontier += new
                reached |= new
                looked_at |= new | visible
                self._check(looked_at)
            self._closures[states, far] = frozenset(reached)
            self.size += len(states) + len(reached)
        return self._closures[states, far]

    def _few(self, states: Iterable[int]) -> frozenset[int]:
        found: set[int] = set()
        for state in states:
            found.add(state)
            self._check(found)
        return frozenset(found)

    def _check(self, states: set[int]) -> None:
        if len(states) > self.source.max_states:
            raise SpentError


def _few_of(steps: Families[StepCode], template: int, known: frozenset[int]) -> Iterator[int]:
    """Some steps of a template: with the ends of each range, and what is near to the numbers of a state."""
    inputs = steps.templates[template].inputs
    near = {value + step for value in known for step in (-1, 0, 1)}
    choices = [
        range(one.low, one.high + 1)
        if one.members
        else sorted(v for v in {one.low, one.low + 1, one.high, *near} if one.low <= v <= one.high)
        for one in inputs
    ]
    for values in islice(product(*choices), _TRIED):
        yield steps.index(template, values)


class SpentError(Exception):
    """There are more states than the budget allows."""
