"""From a definition to what replays the traces of its entities: `automaton(definition, scope)`.

An `Automaton` is plain data that any process can use. `Determinised` runs it: the state of an entity is the
*set* of states it may be in, numbered, and the step from one set by one symbol is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.ground import Cell, GroundModel
from stagewright.spec.scope import BUDGET_PREFIX, Scope
from stagewright.spec.sorts import ScalarSort, SetSort, Sort
from stagewright.spec.values import plain
from stagewright.traces.recording import HiddenSteps, Recording
from stagewright.traces.stepcode import (
    Program,
    State,
    StepFunction,
    by_action,
    compile_step,
    program,
)
from stagewright.traces.symbols import Symbol, parse_symbol, value_key

MAX_STATES = 200_000  # of one machine in one process; about half a kilobyte each

# Numbers of sets with a meaning of their own; possible sets are numbered from LIVE.
DEAD = 0  # no run explains the events so far
UNDECIDED = 1  # the budget was spent
UNKNOWN = 2  # an event was not understood
ENDED = 3  # the end marker was read
START = 4  # nothing was read
LIVE = 5


@dataclass(frozen=True)
class Leaf:
    """Where an observed value is found: one cell and its codes by value, or one cell a member of a set."""

    cell: int | None
    codes: Mapping[str, int]  # scalar: code by `value_key`; set: cell by the member's name


@dataclass(frozen=True)
class Automaton:
    """One machine at one scope under one way of recording, without the definition's own classes."""

    machine: str
    profile: str
    program: Program
    initial: tuple[State, ...]
    parameters: Mapping[str, Mapping[str, frozenset[str]]]  # the values of each action's parameters
    leaves: Mapping[str, Leaf]
    ignored: frozenset[str]  # leaves of budgets that are without bound here
    recording: Recording
    max_states: int = MAX_STATES


def automaton(
    definition: Definition,
    scope: Scope,
    recording: Recording | None = None,
    *,
    max_states: int = MAX_STATES,
) -> Automaton:
    """What replays the traces of a definition's entities at a scope.

    Raises:
        DefinitionError, ScopeError: as `ground` does.
        InputError: `recording` names an action or a variable that the machine does not have.
    """
    from stagewright.spec.lowering import ground

    return of_model(ground(definition, scope), recording or Recording(), max_states=max_states)


def of_model(
    model: GroundModel, recording: Recording, *, max_states: int = MAX_STATES
) -> Automaton:
    """The automaton of a definition that was lowered already."""
    leaves = dict(_leaves(model))
    _check_hidden(model.definition, leaves, recording.hidden)
    budgets = {BUDGET_PREFIX + name for name in model.scope.budgets}
    return Automaton(
        model.definition.name,
        model.definition.profile,
        program(model),
        model.initial,
        {
            action.name: {p.name: _value_keys(p.sort, model.scope) for p in action.params}
            for action in model.definition.actions
        },
        leaves,
        frozenset(budgets - set(leaves)),
        recording,
        max_states,
    )


def _value_keys(sort: ScalarSort, scope: Scope) -> frozenset[str]:
    from stagewright.spec.domains import values_of

    return frozenset(value_key(plain(v)) for v in values_of(sort, scope))


def _leaves(model: GroundModel) -> Iterable[tuple[str, Leaf]]:
    """The leaves of a state as `observation` names them."""
    from stagewright.spec.domains import values_of
    from stagewright.spec.interpreter import path_name

    sets: dict[str, dict[str, int]] = {}
    sorts = {v.name: v.sort for v in model.definition.variables}
    for cell in model.cells:
        if _within_set(sorts[cell.variable], cell):
            name = path_name((cell.variable, *cell.path[:-1]))
            sets.setdefault(name, {})[str(plain(cell.path[-1]))] = cell.index
        else:
            values = values_of(cell.sort, model.scope)
            codes = {value_key(plain(v)): cell.low + i for i, v in enumerate(values)}
            yield cell.name, Leaf(cell.index, codes)
    for name, members in sets.items():
        yield name, Leaf(None, members)


def _within_set(sort: Sort, cell: Cell) -> bool:
    from stagewright.spec.sorts import MapSort, RecordSort

    for key in cell.path:
        match sort:
            case MapSort(_, value):
                sort = value
            case RecordSort():
                sort = sort.field(str(key))
            case _:
                break
    return isinstance(sort, SetSort)


def _check_hidden(definition: Definition, leaves: Mapping[str, Leaf], hidden: HiddenSteps) -> None:
    actions = {a.name for a in definition.actions}
    if wrong := sorted((hidden.actions or frozenset()) - actions):
        raise InputError(
            f"{definition.name} has no action `{wrong[0]}` that could be hidden",
            help=f"its actions: {', '.join(sorted(actions))}",
        )
    for name, values in hidden.visible.items():
        leaf = leaves.get(name)
        if leaf is None or leaf.cell is None:
            raise InputError(
                f"{definition.name} has no variable `{name}` whose changes could be visible",
                help=f"its variables: {', '.join(n for n, f in leaves.items() if f.cell is not None)}",
            )
        if values is not None and not any(value_key(v) in leaf.codes for v in values):
            raise InputError(
                f"`{name}` of {definition.name} takes none of the visible values "
                f"{', '.join(sorted(values))}",
                help="the log is of another machine, or of another version of it",
            )


@dataclass(frozen=True)
class Letter:
    """A symbol in terms of one automaton: what it asks of the step and of the state after it."""

    steps: tuple[int, ...] | None  # any step if None
    cells: tuple[tuple[int, int], ...] = ()  # (cell, code) after the step
    end: bool = False
    action: str | None = None


class Determinised:
    """Numbers the sets of possible states of one automaton, and finds each step between them once."""

    def __init__(self, source: Automaton) -> None:
        self.source = source
        self.states: list[State] = []
        self.sets: list[tuple[int, ...]] = [()] * LIVE  # state numbers, sorted, by set number
        self._state_numbers: dict[State, int] = {}
        self._set_numbers: dict[tuple[int, ...], int] = {}
        self._functions: dict[int, StepFunction] = {}
        self._by_action = by_action(source.program.steps)
        self._unseen: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self._closures: dict[tuple[int, ...], frozenset[int]] = {}
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
            self._letters[symbol] = self._understand(parse_symbol(symbol))
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

    @cached_property
    def _initial(self) -> frozenset[int]:
        first = frozenset(self._number(s) for s in self.source.initial)
        if self.source.recording.from_start:
            return first
        reached, frontier = set(first), list(first)
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
        try:
            chosen = self.matching(self.before_observation(number, letter), letter)
        except _SpentError:
            return UNDECIDED
        if not chosen:
            return DEAD
        if chosen not in self._set_numbers:
            if len(self.sets) > self.source.max_states:
                return UNDECIDED
            self._set_numbers[chosen] = len(self.sets)
            self.sets.append(chosen)
        return self._set_numbers[chosen]

    def _number(self, state: State) -> int:
        number = self._state_numbers.get(state)
        if number is None:
            if len(self.states) >= self.source.max_states:
                raise _SpentError
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

    def _understand(self, symbol: Symbol) -> Letter | str:
        if symbol.end:
            said = symbol.action is not None or symbol.parameters or symbol.observed
            return (
                "an end marker has no action and observes nothing" if said else Letter((), end=True)
            )
        steps = self._matching_steps(symbol)
        if isinstance(steps, str):
            return steps
        cells: list[tuple[int, int]] = []
        for name, value in symbol.observed.items():
            if name in self.source.ignored:
                continue
            found = self._observed(name, value)
            if isinstance(found, str):
                return found
            cells += found
        return Letter(steps, tuple(cells), action=symbol.action)

    def _matching_steps(self, symbol: Symbol) -> tuple[int, ...] | str | None:
        if symbol.action is None:
            return "parameters without an action" if symbol.parameters else None
        known = self.source.parameters.get(symbol.action)
        if known is None:
            return f"{self._machine} has no action `{symbol.action}`"
        wanted = {name: value_key(value) for name, value in symbol.parameters.items()}
        for name, value in wanted.items():
            if name not in known:
                return f"action `{symbol.action}` has no parameter `{name}`"
            if value not in known[name]:
                return f"parameter `{name}` of `{symbol.action}` cannot be {value}"
        steps = self.source.program.steps
        return tuple(
            i
            for i in self._by_action.get(symbol.action, ())
            if all(wanted.get(n, value_key(v)) == value_key(v) for n, v in steps[i].arguments)
        )

    def _observed(self, name: str, value: object) -> list[tuple[int, int]] | str:
        leaf = self.source.leaves.get(name)
        if leaf is None:
            return f"{self._machine} has nothing named `{name}` to observe"
        if leaf.cell is not None:
            code = leaf.codes.get(value_key(value))
            return f"`{name}` cannot be {value_key(value)}" if code is None else [(leaf.cell, code)]
        members = value if isinstance(value, list) else [value]
        if not isinstance(value, list) or any(str(m) not in leaf.codes for m in members):
            return f"`{name}` cannot be {value_key(value)}"
        return [(cell, int(m in members)) for m, cell in leaf.codes.items()]

    @property
    def _machine(self) -> str:
        profile = f" ({self.source.profile})" if self.source.profile else ""
        return f"{self.source.machine}{profile}"


class _SpentError(Exception):
    """There are more states than the budget allows."""
