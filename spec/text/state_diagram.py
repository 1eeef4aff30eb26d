"""The state diagram of an enum variable, and the edges that the guards by themselves allow.

For each member, what an action requires and assigns is evaluated with the variable known and
everything else unknown. There is an edge unless a requirement is certainly false: more than any run
takes. Those that runs take are found by searching (`checker/reached_edges.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from stagewright.spec.definition import Action, AnyValue, Assignment, Definition, Variable
from stagewright.spec.errors import InputError
from stagewright.spec.nodes import Apply, Column, Literal, Node, Op, Read, root_variable
from stagewright.spec.sorts import EnumSort, MapSort, Sort

_UNKNOWN = object()

Edge = tuple[Enum, Enum, str]
"""From one member to another, by an action."""


@dataclass(frozen=True)
class Diagram:
    """The edges of one enum variable: (source, target, action), in definition order.

    `undrawn` are actions that assign it a value that is not known from the variable alone. `basis` says what
    the edges are, and `notes` more of it. Where runs were searched for, `elsewhere` are those edges that none
    takes at the scope that the diagram is of, but some run takes at another; `untaken` are no edges: the
    guards allow them, and no run takes them.
    """

    variable: str
    members: tuple[Enum, ...]
    initial: tuple[Enum, ...]
    final: tuple[Enum, ...]
    edges: tuple[Edge, ...]
    undrawn: tuple[str, ...]
    basis: str = "edges read off the guards; runs may take fewer"
    notes: tuple[str, ...] = ()
    elsewhere: frozenset[Edge] = frozenset()
    untaken: tuple[Edge, ...] = ()


def drawn_variables(definition: Definition) -> dict[str, tuple[Enum, ...]]:
    """The variables that have a diagram, with their members: enums, also by key."""
    sorts = {v.name: _enum_of(v.sort) for v in definition.variables}
    return {name: sort.members for name, sort in sorts.items() if sort is not None}


def has_diagram(definition: Definition) -> bool:
    """Whether a machine has an enum variable to draw."""
    return bool(drawn_variables(definition))


def diagram_of(definition: Definition, variable: str = "") -> Diagram:
    """The diagram of a variable; by default of the one whose edges touch most members.

    Raises:
        InputError: there is no such enum variable.
    """
    enums = drawn_variables(definition)
    if variable and variable not in enums:
        known = ", ".join(enums) or "it has none"
        raise InputError(
            f"{definition.name} has no enum variable `{variable}`", help=f"known: {known}"
        )
    if not enums:
        raise InputError(
            f"{definition.name} has no enum variable to draw",
            help="a state diagram shows the members of an enum and the actions between them",
        )
    if variable:
        return _diagram(definition, definition.variable(variable))
    return max(diagrams_of(definition), key=lambda d: len(_touched(d)))


def diagrams_of(definition: Definition) -> tuple[Diagram, ...]:
    """The diagrams of all enum variables, in their order."""
    return tuple(_diagram(definition, definition.variable(v)) for v in drawn_variables(definition))


def _touched(diagram: Diagram) -> set[Enum]:
    return {member for source, target, _ in diagram.edges for member in (source, target)}


def shown_members(diagram: Diagram) -> list[Enum]:
    """The members that an edge touches, or that it starts or may stop in, in their order."""
    used = _touched(diagram).union(diagram.initial, diagram.final)
    return [m for m in diagram.members if m in used]


def labels_of(diagram: Diagram) -> dict[tuple[Enum, Enum, bool], list[str]]:
    """The actions between each two members, in the order of the definition; apart those that go elsewhere only."""
    labels: dict[tuple[Enum, Enum, bool], list[str]] = {}
    for edge in diagram.edges:
        source, target, action = edge
        labels.setdefault((source, target, edge in diagram.elsewhere), []).append(action)
    return labels


def _enum_of(sort: Sort) -> EnumSort | None:
    match sort:
        case EnumSort():
            return sort
        case MapSort(_, value):
            return _enum_of(value)
        case _:
            return None


def _diagram(definition: Definition, variable: Variable) -> Diagram:
    sort = _enum_of(variable.sort)
    assert sort is not None
    edges: list[Edge] = []
    undrawn: dict[str, None] = {}
    for action in definition.actions:
        for assignment in action.assignments:
            if root_variable(assignment.place) != variable.name:
                continue
            if not isinstance(assignment.place.sort, EnumSort):
                undrawn[action.name] = None
                continue
            for source, target in _moves(action, assignment, sort.members):
                if isinstance(target, Enum):
                    edges.append((source, target, action.name))
                else:
                    undrawn[action.name] = None
    return Diagram(
        variable.name,
        sort.members,
        _initial(variable, sort.members),
        _final(definition, variable, sort.members),
        tuple(dict.fromkeys(edges)),
        tuple(undrawn),
    )


def _initial(variable: Variable, members: tuple[Enum, ...]) -> tuple[Enum, ...]:
    if isinstance(variable.initial, AnyValue):
        return members
    return tuple(m for m in members if m is variable.initial)


def _final(
    definition: Definition, variable: Variable, members: tuple[Enum, ...]
) -> tuple[Enum, ...]:
    if isinstance(variable.sort, MapSort):
        return ()  # one key's value does not decide whether the whole may stop
    place = Read(variable.name, variable.sort)
    return tuple(m for m in members if _known(definition.final, place, m) is True)


def _moves(
    action: Action, assignment: Assignment, members: tuple[Enum, ...]
) -> Iterator[tuple[Enum, object]]:
    place = assignment.place
    for member in members:
        conditions = (_known(r.condition, place, member) for r in action.requirements)
        if all(condition is not False for condition in conditions):
            yield member, _known(assignment.value, place, member)


def _known(node: Node, place: Node, member: Enum) -> object:
    """The value of an expression where `place` is `member`, if that decides it; else _UNKNOWN."""
    if node == place:
        return member
    match node:
        case Literal(value):
            return value
        case Column(values, index):
            found = _known(index, place, member)
            sort = index.sort
            if not isinstance(found, Enum) or not isinstance(sort, EnumSort):
                return _UNKNOWN
            return values[sort.members.index(found)]
        case Apply(Op.IF, (condition, then, otherwise)):
            return _chosen(_known(condition, place, member), then, otherwise, place, member)
        case Apply(Op.NOT | Op.AND | Op.OR | Op.EQ | Op.MEMBER as op, args):
            return _decided(op, [_known(a, place, member) for a in args])
        case _:
            return _UNKNOWN


def _chosen(condition: object, then: Node, otherwise: Node, place: Node, member: Enum) -> object:
    if condition is _UNKNOWN:
        one, other = _known(then, place, member), _known(otherwise, place, member)
        return one if one == other else _UNKNOWN
    return _known(then if condition else otherwise, place, member)


def _decided(op: Op, args: list[object]) -> object:
    decisive = {Op.AND: False, Op.OR: True}.get(op)
    if decisive is not None:
        if any(a is decisive for a in args):
            return decisive
        return _UNKNOWN if _UNKNOWN in args else not decisive
    if _UNKNOWN in args:
        return _UNKNOWN
    if op is Op.NOT:
        return not args[0]
    if op is Op.MEMBER:
        return isinstance(args[1], frozenset) and args[0] in args[1]
    return args[0] == args[1]
