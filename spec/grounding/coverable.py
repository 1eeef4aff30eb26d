"""What runs can cover of a definition: values, actions, moves, edges, requirements and their parts.

Recorded traces are counted by these, and conformance tests can aim at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from stagewright.spec.definition import Action, Definition
from stagewright.spec.entities import Entity
from stagewright.spec.grounding.ground import Cell
from stagewright.spec.nodes import Apply, Node, Op
from stagewright.spec.scope import BUDGET_PREFIX, Scope
from stagewright.spec.sorts import IntSort
from stagewright.spec.text.state_diagram import diagrams_of
from stagewright.spec.text.words import words
from stagewright.spec.values import Value, show

_VALUES_LISTED = 32  # of one place; of larger domains only those that were seen


@dataclass(frozen=True)
class ValueOf:
    """A value of a place of the state; entities are not told apart: `learned[Node]`, `a Node`."""

    place: str
    value: str


@dataclass(frozen=True)
class ActionOf:
    """An action that happened."""

    action: str


@dataclass(frozen=True)
class Move:
    """A variable going from one member of its enum to another, by whatever action."""

    variable: str
    source: str
    target: str


@dataclass(frozen=True)
class Edge:
    """The same by one action, as state diagrams have it."""

    variable: str
    source: str
    target: str
    action: str

    @property
    def move(self) -> Move:
        return Move(self.variable, self.source, self.target)


@dataclass(frozen=True)
class RequirementOf:
    """A requirement that let its action happen; so did each part of it that was true, if it has several.

    `part` is one side of an "or", in words; empty for the whole requirement.
    """

    action: str
    requirement: str
    part: str = ""


Thing = ValueOf | ActionOf | Move | Edge | RequirementOf


def kind_of(thing: Thing) -> str:
    """What kind of thing it is, in words."""
    match thing:
        case ValueOf():
            return "value"
        case ActionOf():
            return "action"
        case Move():
            return "move"
        case Edge():
            return "edge"
        case RequirementOf():
            return "part of a requirement" if thing.part else "requirement"


def name_of(thing: Thing) -> str:
    """What it is called."""
    match thing:
        case ValueOf(place, value):
            return f"{place} = {value}"
        case ActionOf(action):
            return action
        case Move(variable, source, target):
            return f"{variable}: {source} → {target}"
        case Edge(variable, source, target, action):
            return f"{variable}: {source} → {target} ({action})"
        case RequirementOf(action, requirement, part):
            return f"{action}: {part or requirement}"


def things_of(definition: Definition, scope: Scope, cells: Sequence[Cell]) -> Iterable[Thing]:
    """All things of a definition at a scope, in its order; without values of domains too large to list."""
    for _, _, names in value_names(cells, scope, declared=True):
        if len(names) <= _VALUES_LISTED:
            yield from names
    for action in definition.actions:
        yield ActionOf(action.name)
    for diagram in diagrams_of(definition):
        for source, target, action_name in diagram.edges:
            edge = Edge(diagram.variable, source.name, target.name, action_name)
            yield edge.move
            yield edge
    parts = parts_of(definition)
    for action in definition.actions:
        for requirement in action.guards:
            yield RequirementOf(action.name, requirement.name)
            for part, _ in parts.get(action.name, {}).get(requirement.name, ()):
                yield RequirementOf(action.name, requirement.name, part)


class Names(Sequence[Thing]):
    """What the values of a cell are called, made when it is asked for: numbers have very many."""

    def __init__(self, place: str, values: Sequence[Value]) -> None:
        self._place = place
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> Thing: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Thing]: ...
    def __getitem__(self, index: int | slice) -> Thing | Sequence[Thing]:
        if isinstance(index, slice):
            return Names(self._place, self._values[index])
        return ValueOf(self._place, _value(self._values[index]))


def value_names(
    cells: Sequence[Cell], scope: Scope, *, declared: bool = False
) -> list[tuple[int, int, Names]]:
    """For each cell its lowest code and what each code is called; `declared`: of numbers no larger ones."""
    from stagewright.spec.grounding.domains import values_of

    def values(cell: Cell) -> Sequence[Value]:
        is_open = isinstance(cell.sort, IntSort) and not declared
        return range(cell.low, cell.high + 1) if is_open else values_of(cell.sort, scope)

    return [
        (cell.index, cell.low, Names(_place(cell), values(cell)))
        for cell in cells
        if not cell.variable.startswith(BUDGET_PREFIX)
    ]


def _place(cell: Cell) -> str:
    keys = (
        f".{k}"
        if isinstance(k, str)
        else f"[{type(k).__name__ if isinstance(k, Entity) else show(k)}]"
        for k in cell.path
    )
    return cell.variable + "".join(keys)


def _value(value: Value) -> str:
    return f"a {type(value).__name__}" if isinstance(value, Entity) else show(value)


def parts_of(definition: Definition) -> dict[str, dict[str, list[tuple[str, Node]]]]:
    """By action and requirement: the sides of its "or", for those requirements that have one."""
    return {action.name: found for action in definition.actions if (found := _parts(action))}


def _parts(action: Action) -> dict[str, list[tuple[str, Node]]]:
    found: dict[str, list[tuple[str, Node]]] = {}
    for requirement in action.guards:
        sides = list(dict.fromkeys(_sides(requirement.condition)))
        if len(sides) > 1:
            found[requirement.name] = [(words(side), side) for side in sides]
    return found


def _sides(node: Node) -> Iterable[Node]:
    match node:
        case Apply(Op.OR, args):
            for arg in args:
                yield from _sides(arg)
        case _:
            yield node
