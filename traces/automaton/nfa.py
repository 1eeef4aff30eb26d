"""From a definition to what replays the traces of its entities: `automaton(definition, scope)`.

An `Automaton` is plain data that any process can use; `determinised.Determinised` runs it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.ground import Cell, GroundModel
from stagewright.spec.scope import BUDGET_PREFIX, Scope
from stagewright.spec.sorts import BoundSort, IntSort, SetSort, Sort
from stagewright.spec.values import plain, show
from stagewright.traces.automaton.starts import Starts, starts_of
from stagewright.traces.automaton.step_code import Program, program
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.events.symbols import value_key

MAX_STATES = 50_000  # that one event may ask to look at; about a kilobyte each


@dataclass(frozen=True)
class Numbers(Mapping[str, int]):
    """The codes of whole numbers by `value_key`, without a list of them."""

    low: int
    high: int
    first: int  # the code of `low`

    def __getitem__(self, key: str) -> int:
        try:
            value = int(key)
        except ValueError:
            raise KeyError(key) from None
        if str(value) != key or not self.low <= value <= self.high:
            raise KeyError(key)
        return self.first + value - self.low

    def __iter__(self) -> Iterator[str]:
        return map(str, range(self.low, self.high + 1))

    def __len__(self) -> int:
        return self.high - self.low + 1


@dataclass(frozen=True)
class Leaf:
    """Where an observed value is found: one cell and its codes by value, or one cell a member of a set."""

    cell: int | None
    codes: Mapping[str, int]  # scalar: code by `value_key`; set: cell by the member's name


class Beyond(NamedTuple):
    """A number that only a check bounds: `low` to `declared`. Those with the same `among` are bounded together."""

    cell: int
    low: int
    declared: int
    among: str


@dataclass(frozen=True)
class Automaton:
    """One machine at one scope under one way of recording, without the definition's own classes."""

    machine: str
    profile: str
    program: Program
    starts: Starts
    # the values of each action's parameters
    parameters: Mapping[str, Mapping[str, Collection[str]]]
    leaves: Mapping[str, Leaf]
    cells: int  # of a state
    beyond: tuple[Beyond, ...]  # cells that may be larger than declared
    ignored: frozenset[str]  # leaves of budgets that are without bound here
    recording: Recording
    max_states: int = MAX_STATES
    identity: str = field(default_factory=lambda: uuid.uuid4().hex, compare=False)  # of all copies


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
    from stagewright.spec.grounding.lowering import ground

    return of_model(
        ground(definition, scope, bounded=False, wide=True),
        recording or Recording(),
        max_states=max_states,
    )


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
        starts_of(model),
        {
            action.name: {p.name: _value_keys(p.sort, model.scope) for p in action.params}
            for action in model.definition.actions
        },
        leaves,
        len(model.cells),
        tuple(
            Beyond(c.index, c.low, c.declared, f"{c.variable}: {c.sort}")
            for c in model.cells
            if c.declared < c.high
        ),
        frozenset(budgets - set(leaves)),
        recording,
        max_states,
    )


def _value_keys(sort: BoundSort, scope: Scope) -> Collection[str]:
    from stagewright.spec.grounding.domains import values_of

    if isinstance(sort, IntSort):
        return Numbers(sort.low, sort.high, 0)
    return frozenset(value_key(plain(v)) for v in values_of(sort, scope))


def _leaves(model: GroundModel) -> Iterable[tuple[str, Leaf]]:
    """The leaves of a state as `observation` names them."""
    from stagewright.spec.grounding.domains import values_of
    from stagewright.spec.values import path_name

    sets: dict[str, dict[str, int]] = {}
    sorts = {v.name: v.sort for v in model.definition.variables}
    for cell in model.cells:
        if _within_set(sorts[cell.variable], cell):
            name = path_name((cell.variable, *cell.path[:-1]))
            sets.setdefault(name, {})[show(cell.path[-1])] = cell.index
        elif isinstance(cell.sort, IntSort):
            yield cell.name, Leaf(cell.index, Numbers(cell.low, cell.high, cell.low))
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
                f"{', '.join(sorted(map(value_key, values)))}",
                help="the log is of another machine, or of another version of it",
            )
