"""Random actions: parameters, requirements, and effects on cells, whole variables and all members at once."""

from __future__ import annotations

from tests.random_machines.choices import Choices
from tests.random_machines.expressions import Expressions
from tests.random_machines.sorts import BOOL as BOOLEANS, FINITE, SENT

from stagewright.spec.definition import Action, Assignment, Budget, Requirement, Variable
from stagewright.spec.nodes import BOOL, Apply, Bound, Field, Literal, Node, Op, Read, Select
from stagewright.spec.sorts import (
    BoolSort,
    BoundSort,
    EnumSort,
    IntSort,
    MapSort,
    RecordSort,
    SeqSort,
    SetSort,
)


def action(
    choices: Choices, name: str, variables: tuple[Variable, ...], budgets: tuple[Budget, ...]
) -> Action:
    """An action that assigns some of the variables."""
    outside = Expressions(choices, variables)
    params = tuple(_param(outside) for _ in range(choices.pick((0, 1, 1, 2))))
    scope = outside.within(*params)
    requirements = [
        Requirement(f"r{i}", _likely(scope), bound=choices.chance(20))
        for i in range(choices.pick((1, 0, 0, 2)))
    ]
    free = [v for v in variables if not v.constant]
    chosen = [v for v in free if choices.chance(70)] or [choices.pick(free)]
    assignments: list[Assignment] = []
    for variable in chosen:
        pair = _two_cells(scope, variable, params) if choices.chance(30) else None
        if pair is not None:
            differ, both = pair
            assignments += both
            requirements.append(Requirement(f"{variable.name} keys differ", differ))
        else:
            assignments.append(_assignment(scope, variable))
    spends = choices.pick(budgets).name if budgets and choices.chance(40) else None
    return Action(name, params, tuple(requirements), tuple(assignments), "", (), spends)


def _likely(scope: Expressions) -> Node:
    """A condition, more often one that many states satisfy."""
    one = scope.condition(2)
    if scope.choices.chance(50):
        return one
    return Apply(Op.OR, (one, scope.condition(1)), BOOL)


def _param(scope: Expressions) -> Bound:
    choices = scope.choices
    group = SetSort(choices.pick(FINITE))
    kinds: list[BoundSort] = [*FINITE, *SENT, BOOLEANS, IntSort(0, 1), group, group]
    return scope.bound(choices.pick(kinds), "p")


def _assignment(scope: Expressions, variable: Variable) -> Assignment:
    """One effect on a variable or a part of it; every other index is a loop's variable."""
    choices = scope.choices
    place: Node = Read(variable.name, variable.sort)
    binders: list[Bound] = []
    inner = scope
    while not isinstance(place.sort, BoolSort | IntSort) and choices.chance(85):
        match place.sort:
            case MapSort(key, value):
                index = None if choices.chance(35) else inner.key_of(key, 1)
                if index is None:
                    index = inner.bound(key, "l")
                    binders.append(index)
                    inner = inner.within(index)
                place = Select(place, index, value)
            case SetSort(element):
                member = None if choices.chance(35) else inner.of(element, 1)
                if member is None:
                    member = inner.bound(element, "l")
                    binders.append(member)
                    inner = inner.within(member)
                place = Select(place, member, BOOL)
            case RecordSort(_, fields):
                name, sort = choices.pick(fields)
                place = Field(place, name, sort)
            case _:
                break
    return Assignment(place, _new_value(inner, place, bool(binders)), tuple(binders))


def _new_value(scope: Expressions, place: Node, looping: bool) -> Node:
    choices = scope.choices
    value = _moved(scope, place) if choices.chance(60) else scope.value(place.sort, 2)
    if value is None:
        value = _old(place)
    if isinstance(value.sort, IntSort) and isinstance(place.sort, IntSort) and choices.chance(90):
        value = _kept_within(value, place.sort)
    if (
        isinstance(value.sort, SeqSort)
        and isinstance(place.sort, SeqSort)
        and value.sort.capacity > place.sort.capacity
        and choices.chance(90)
    ):
        value = _short_enough(value, place)
    # A loop over the members of a set, as the language writes it.
    if looping and choices.chance(40):
        value = Apply(Op.IF, (scope.condition(1), value, _old(place)), place.sort)
    return value


def _moved(scope: Expressions, place: Node) -> Node | None:
    """A value that is not the old one, at least where that is easy to say."""
    match place.sort:
        case BoolSort():
            return Apply(Op.NOT, (_old(place),), BOOL)
        case IntSort(low, high):
            by = scope.choices.pick((1, -1))
            one = Literal(by, IntSort(by, by))
            return Apply(Op.ADD, (place, one), IntSort(low + by, high + by))
        case EnumSort() as sort:
            return Literal(scope.choices.pick(sort.members), sort)
        case _:
            return scope.value(place.sort, 2)


def _old(place: Node) -> Node:
    """The value that a place has now."""
    if isinstance(place, Select) and isinstance(place.base.sort, SetSort):
        return Apply(Op.MEMBER, (place.key, place.base), BOOL)
    return place


def _kept_within(value: Node, sort: IntSort) -> Node:
    """The value where it is in bounds, else a bound."""

    def literal(number: int) -> Literal:
        return Literal(number, IntSort(number, number))

    low, high = literal(sort.low), literal(sort.high)
    fits = Apply(
        Op.AND, (Apply(Op.LE, (low, value), BOOL), Apply(Op.LE, (value, high), BOOL)), BOOL
    )
    assert isinstance(value.sort, IntSort)
    wide = IntSort(min(sort.low, value.sort.low), max(sort.high, value.sort.high))
    return Apply(Op.IF, (fits, value, low), wide)


def _short_enough(value: Node, place: Node) -> Node:
    """The sequence where there is room for it, else the old one."""
    assert isinstance(place.sort, SeqSort)
    assert isinstance(value.sort, SeqSort)
    length = Apply(Op.LENGTH, (value,), IntSort(0, value.sort.capacity))
    most = Literal(place.sort.capacity, IntSort(place.sort.capacity, place.sort.capacity))
    return Apply(Op.IF, (Apply(Op.LE, (length, most), BOOL), value, place), value.sort)


def _two_cells(
    scope: Expressions, variable: Variable, params: tuple[Bound, ...]
) -> tuple[Node, list[Assignment]] | None:
    """Two effects on one map: at two members, or at two parameters that a requirement keeps apart."""
    sort = variable.sort
    if not isinstance(sort, MapSort):
        return None
    keys: list[Node] = [p for p in params if p.sort == sort.key]
    if len(keys) < 2:
        if isinstance(sort.key, IntSort):
            low = sort.key.low
            keys = [Literal(n, IntSort(n, n)) for n in (low, low + 1)]
        elif isinstance(sort.key, EnumSort):
            keys = [Literal(m, sort.key) for m in sort.key.members]
        else:
            return None
    places = [Select(Read(variable.name, sort), key, sort.value) for key in keys[:2]]
    differ = Apply(Op.NOT, (Apply(Op.EQ, (keys[0], keys[1]), BOOL),), BOOL)
    return differ, [Assignment(p, _new_value(scope, p, looping=False)) for p in places]
