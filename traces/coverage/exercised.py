"""What production exercised of a definition, and what never: values, actions, edges, requirements.

The input is what the replay did: from which possible states which event was explained, and how often. An
event exercises a thing certainly if it does so in whatever way it is explained, and possibly if in one of
them. What is reachable at all is looked up where that is cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from stagewright.spec.definition import Definition
from stagewright.spec.grounding.coverable import (
    ActionOf,
    Edge,
    RequirementOf,
    Thing,
    parts_of,
    things_of,
    value_names,
)
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.nodes import Node
from stagewright.spec.sorts import EnumSort
from stagewright.spec.text.state_diagram import diagrams_of
from stagewright.spec.values import State as FullState
from stagewright.traces.automaton.automaton_cache import beside
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.event_constraints import Constraint
from stagewright.traces.automaton.horizon import Horizon
from stagewright.traces.automaton.possible_states import OfCandidate, PossibleStates
from stagewright.traces.automaton.step_code import State
from stagewright.traces.automaton.subset_automaton import (
    START,
    Determinised,
    SpentError,
)
from stagewright.traces.replay.exact_verdicts import MachineKey

REACHED_MAX = 5_000  # states that are looked at to know what is reachable
STEPS_MAX = 50_000  # steps from these: a parameter over many numbers has many in each state
TRIES_MAX = 2_000_000  # steps that are tried there, enabled or not: one of many members has many, most of them not
STATES_MAX = 200_000  # states in all; of events beyond them nothing is known

Whose = tuple[MachineKey, int]  # a machine that events name, and which of its candidates
_Key = TypeVar("_Key", bound=Hashable)

# The possible states before an event (none: it is the first one), its symbol, and how often that was so.
Exercised = tuple[tuple[State, ...], str, int]

_Taken = tuple[int, int, int]  # state, step (-1: none), state after it


class Seen(Enum):
    """How sure it is that production exercised a thing."""

    CERTAINLY = "certainly"
    POSSIBLY = "possibly"
    NEVER = "never"


@dataclass(frozen=True)
class Count:
    """In how many events a thing was so certainly, and possibly (also certainly).

    `reachable`: whether the definition ever does it at the scope that evaluated; None: not known.
    """

    certain: int = 0
    possible: int = 0
    reachable: bool | None = None

    @property
    def seen(self) -> Seen:
        """How sure it is."""
        if self.certain:
            return Seen.CERTAINLY
        return Seen.POSSIBLY if self.possible else Seen.NEVER


T = TypeVar("T")


@dataclass(frozen=True)
class MachineCoverage:
    """All things that one definition has, in its order, with how often production exercised each."""

    definition: Definition
    scope: str
    events: int
    counts: Mapping[Thing, Count]
    states: int  # that were looked at to know what is reachable
    exhausted: bool

    def of(self, kind: type[T]) -> dict[T, Count]:
        """The things of one kind."""
        return {thing: count for thing, count in self.counts.items() if isinstance(thing, kind)}


def exercised_of(
    taken: Mapping[tuple[PossibleStates, str], int], members: Mapping[MachineKey, int]
) -> dict[Whose, list[Exercised]]:
    """What a replay has taken, by machine and candidate; `members`: how many candidates it has."""
    found: dict[Whose, list[Exercised]] = {}
    for (possible, symbol), count in taken.items():
        alone = OfCandidate(possible.number, possible.states)
        parts = possible.candidates or (alone,) * members.get(possible.machine, 1)
        for member, part in enumerate(parts):
            if part.number in (-1, START):
                whose = possible.machine, member
                found.setdefault(whose, []).append((part.states, symbol, count))
    return {whose: found[whose] for whose in sorted(found)}


def coverage_of(
    evaluators: Mapping[_Key, Evaluator], exercised: Mapping[_Key, Iterable[Exercised]]
) -> tuple[MachineCoverage, ...]:
    """What the replay of all traces exercised, by definition and scope."""
    tallies: dict[tuple[str, str], _Tally] = {}
    for key, pairs in exercised.items():
        evaluator = evaluators[key]
        where = evaluator.definition.fingerprint(), str(evaluator.scope)
        tally = tallies.setdefault(where, _Tally(evaluator))
        tally.add(evaluator, pairs)
    return tuple(tally.result() for tally in tallies.values())


@dataclass
class _Tally:
    """Counts of one definition at one scope."""

    evaluator: Evaluator
    certain: Counter[Thing] = field(default_factory=Counter[Thing])
    possible: Counter[Thing] = field(default_factory=Counter[Thing])
    events: int = 0

    def add(self, evaluator: Evaluator, pairs: Iterable[Exercised]) -> None:
        """Count events; `evaluator` knows how they were recorded."""
        running = beside(evaluator.automaton, "coverage", STATES_MAX)
        things = _Things(evaluator, running)
        for before, symbol, count in pairs:
            constraint = running.constraint(symbol)
            if not isinstance(constraint, Constraint) or constraint.end:
                continue
            try:
                own, between = _explaining(running, before, constraint)
            except SpentError:
                continue
            found = {things.of(taken) for taken in own}
            if not found:
                continue  # nothing explains it: it exercised nothing
            self.events += count
            for number in frozenset.intersection(*found):
                self.certain[things.named[number]] += count
            for number in frozenset().union(*found, *{things.of(taken) for taken in between}):
                self.possible[things.named[number]] += count

    def result(self) -> MachineCoverage:
        """Everything that the definition has, and everything that was seen."""
        reached, states, exhausted = _reachable(self.evaluator)
        every = dict.fromkeys(
            [
                *things_of(
                    self.evaluator.definition, self.evaluator.scope, self.evaluator.model.cells
                ),
                *sorted(self.possible, key=str),
            ]
        )
        counts = {
            thing: Count(
                self.certain[thing],
                self.possible[thing],
                _is_reachable(thing, thing in reached or self.possible[thing] > 0, exhausted),
            )
            for thing in every
        }
        scope = str(self.evaluator.scope)
        return MachineCoverage(
            self.evaluator.definition, scope, self.events, counts, states, exhausted
        )


def _is_reachable(thing: Thing, found: bool, exhausted: bool) -> bool | None:
    if isinstance(thing, RequirementOf) and thing.part:
        return True if found else None  # parts are not looked up
    return True if found else (False if exhausted else None)


def _explaining(
    running: Determinised, before: tuple[State, ...], constraint: Constraint
) -> tuple[list[_Taken], list[_Taken]]:
    """The steps that an event may be of, and the hidden ones that may have led to those."""
    if not before:
        first = running.matching(running.before_observation(START, constraint), constraint)
        return [(-1, -1, state) for state in first], []
    starts = [running.state_number(state) for state in before]
    if not running.source.recording.hidden.exist:
        return [
            (state, step, after)
            for state in starts
            for step, after in running.taken(constraint.steps, state)
            if _fits(running, after, constraint)
        ], []
    return _with_hidden(running, starts, constraint)


def _with_hidden(
    running: Determinised, starts: list[int], constraint: Constraint
) -> tuple[list[_Taken], list[_Taken]]:
    reached, waiting = set(starts), list(starts)
    own: list[_Taken] = []
    into: dict[int, list[_Taken]] = {}
    for state in waiting:
        if constraint.steps is None and _fits(running, state, constraint):
            own.append((state, -1, state))  # it was only looked at
        for step, after in running.steps_from(state):
            unseen = running.is_hidden(step, state, after)
            mine = not unseen if constraint.steps is None else step in constraint.steps
            if mine and _fits(running, after, constraint):
                own.append((state, step, after))
            if unseen:
                into.setdefault(after, []).append((state, step, after))
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)
    # Of the hidden steps only those on a way to the event may have happened.
    useful = {state for state, _, _ in own}
    waiting = list(useful)
    between: list[_Taken] = []
    for state in waiting:
        for taken in into.get(state, ()):
            between.append(taken)
            if taken[0] not in useful:
                useful.add(taken[0])
                waiting.append(taken[0])
    return own, between


def _fits(running: Determinised, state: int, constraint: Constraint) -> bool:
    codes = running.states[state]
    return all(codes[cell] == code for cell, code in constraint.cells)


class _Things:
    """What a step and the state after it exercise; each is worked out once.

    The things are named by their numbers in `named`: these are put together much faster.
    """

    def __init__(self, evaluator: Evaluator, running: Determinised, *, parts: bool = True) -> None:
        self._evaluator = evaluator
        self._running = running
        self._parts = parts_of(evaluator.definition) if parts else {}
        self._interpreter = Interpreter(evaluator.definition, evaluator.scope, bounded=False)
        self.named: list[Thing] = []
        self._numbers: dict[Thing, int] = {}
        self._values = value_names(evaluator.model.cells, evaluator.scope)
        self._always = {
            a.name: self._all(
                [ActionOf(a.name), *(RequirementOf(a.name, r.name) for r in a.requirements)]
            )
            for a in evaluator.definition.actions
        }
        drawn = {d.variable for d in diagrams_of(evaluator.definition)}
        self._drawn = {
            cell.index: (cell.variable, [member.name for member in cell.sort.members])
            for cell in evaluator.model.cells
            if cell.variable in drawn and isinstance(cell.sort, EnumSort)
        }
        self._decoded: dict[int, FullState] = {}
        self._moves: dict[tuple[int, int, int, str], frozenset[int]] = {}
        self._of_states: dict[int, frozenset[int]] = {}
        self._of_steps: dict[tuple[int, int], frozenset[int]] = {}

    def _number(self, thing: Thing) -> int:
        number = self._numbers.setdefault(thing, len(self.named))
        if number == len(self.named):
            self.named.append(thing)
        return number

    def _all(self, things: Iterable[Thing]) -> frozenset[int]:
        return frozenset(self._number(thing) for thing in things)

    def all_named(self, numbers: Iterable[int]) -> frozenset[Thing]:
        """The things behind some numbers."""
        return frozenset(self.named[number] for number in numbers)

    def of(self, taken: _Taken) -> frozenset[int]:
        """All of it."""
        state, step, after = taken
        if step < 0:
            return self._of_state(after)
        if (state, step) not in self._of_steps:
            found = self._of_step(state, step, after)
            self._of_steps[state, step] = found.union(self._of_state(after))
        return self._of_steps[state, step]

    def _of_state(self, state: int) -> frozenset[int]:
        if state not in self._of_states:
            codes = self._running.states[state]
            self._of_states[state] = self._all(
                names[codes[cell] - low] for cell, low, names in self._values
            )
        return self._of_states[state]

    def _of_step(self, state: int, number: int, after: int) -> frozenset[int]:
        step = self._evaluator.model.steps[number]
        action = step.action.name
        old, new = self._running.states[state], self._running.states[after]
        moves = [
            self._move(index, old[index], new[index], action)
            for index in self._evaluator.model.assigned(step)
            if index in self._drawn
        ]
        parts = [
            self._number(RequirementOf(action, requirement, part))
            for requirement, sides in self._parts.get(action, {}).items()
            for part in self._holding(sides, state, number)
        ]
        return self._always[action].union(parts, *moves)

    def _move(self, index: int, old: int, new: int, action: str) -> frozenset[int]:
        known = index, old, new, action
        if known not in self._moves:
            variable, members = self._drawn[index]
            edge = Edge(variable, members[old], members[new], action)
            self._moves[known] = self._all([edge.move, edge])
        return self._moves[known]

    def _holding(self, sides: Sequence[tuple[str, Node]], state: int, number: int) -> Iterable[str]:
        """Those sides of a requirement that hold where a step is taken."""
        step = self._evaluator.model.steps[number]
        environment = dict(step.arguments)
        bound = {p: environment[p.name] for p in step.action.params}
        if state not in self._decoded:
            self._decoded[state] = self._evaluator.model.decode(self._running.states[state])
        for part, side in sides:
            if self._interpreter.evaluate(side, self._decoded[state], environment=bound):
                yield part


_Reached = tuple[frozenset[Thing], int, bool]
_REMEMBERED_MAX = 16  # definitions at scopes; `--follow` asks for the same ones with each batch
_remembered: dict[tuple[str, str], _Reached] = {}


def _reachable(evaluator: Evaluator) -> _Reached:
    """The things that some run does, from how many states this is known, and whether these are all."""
    what = evaluator.definition.fingerprint(), str(evaluator.scope)
    if what not in _remembered:
        while len(_remembered) >= _REMEMBERED_MAX:
            _remembered.pop(next(iter(_remembered)))
        _remembered[what] = _looked_for(evaluator)
    return _remembered[what]


def _looked_for(evaluator: Evaluator) -> _Reached:
    running = beside(evaluator.automaton, "coverage", STATES_MAX)
    things = _Things(evaluator, running, parts=False)
    found: set[int] = set()
    within = Horizon(evaluator.automaton)
    try:
        waiting = sorted(running.initial)
        reached = set(waiting)
        looked_at = 0
        most = max(1, TRIES_MAX // max(1, len(evaluator.model.steps)))
        for state in waiting:
            if most == 0:
                return things.all_named(found), len(reached), False
            most -= 1
            found |= things.of((-1, -1, state))
            for step, after in running.steps_from(state):
                looked_at += 1
                if looked_at > STEPS_MAX:
                    return things.all_named(found), len(reached), False
                found |= things.of((state, step, after))
                if after not in reached and within(running.states[after]):
                    if len(reached) >= REACHED_MAX:
                        return things.all_named(found), len(reached), False
                    reached.add(after)
                    waiting.append(after)
    except SpentError:
        return things.all_named(found), len(running.states), False
    return things.all_named(found), len(reached), True
