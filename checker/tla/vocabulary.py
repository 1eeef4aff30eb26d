"""What everything in a definition is called in its module: the user's names first, ours give way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from stagewright.checker.tla.names import Names, identifier, model_value, unused
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import (
    Apply,
    Bound,
    Column,
    Literal,
    Node,
    Op,
    Quantified,
    children,
)
from stagewright.spec.scope import BUDGET_PREFIX, Scope
from stagewright.spec.sorts import (
    EntitySort,
    EnumSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.text.words import column_name, members_where
from stagewright.spec.values import Value

# The index's enum, what the column holds (1 equals True), and its values.
ColumnKey = tuple[type[Enum], type[Sort], tuple[Value, ...]]


@dataclass(frozen=True)
class Own:
    """The operators that every module has, as far as it needs them."""

    variables: str
    none: str
    put: str
    total: str
    least: str
    greatest: str
    sequences: str
    elements: str
    item: str
    without: str
    inserted: str
    bounds: str
    first: str
    following: str
    final: str
    no_deadlock: str
    idle: str
    fairness: str
    whole: str


@dataclass(frozen=True)
class Vocabulary:
    """Identifiers by what they stand for; `columns` in the order of their first mention."""

    module: str
    entities: dict[type[Entity], str]
    records: dict[type, str]  # those of which there are sets, bags, sequences or parameters
    record_sorts: dict[type, RecordSort]
    standing_for_none: frozenset[type[Entity]]  # the first member may stand for a lacking element
    sizes: dict[type[Entity], str]  # of ordered entities, which are numbers: how many there are
    members: dict[type[Entity], tuple[str, ...]]
    enums: dict[type[Enum], str]
    variables: dict[str, str]
    actions: dict[str, str]
    guards: dict[str, str]
    properties: dict[str, str]
    constraints: dict[str, str]
    fairness: dict[str, str]  # of those that are shared, by name
    never: dict[str, str]  # of what is sometimes so: that it never is
    standing: dict[str, str]  # of step properties: their part that is an invariant
    columns: dict[ColumnKey, str]
    own: Own
    taken: frozenset[str]

    @property
    def distinguished(self) -> tuple[str, ...]:
        """The members that have names of their own, which expressions may mention."""
        return tuple(
            name
            for kind, members in self.members.items()
            if not kind.is_ordered
            for name in members[: max(len(kind.member_names), int(kind in self.standing_for_none))]
        )

    def single_values(self, mentioned: frozenset[str]) -> tuple[str, ...]:
        """The constants that are no sets, as far as they are mentioned."""
        return tuple(n for n in (*self.distinguished, self.own.none) if n in mentioned)

    def local(self, name: str, others: frozenset[str]) -> str:
        """A name for a bound variable that hides nothing."""
        return unused(identifier(name), self.taken | others)


def vocabulary_of(definition: Definition, scope: Scope) -> Vocabulary:
    """The names of a definition whose budgets are spelled out."""
    names = Names()
    nodes = list(nodes_of(definition))
    module = names.give(definition.name)
    variables = {v.name: names.give(_variable_name(v.name)) for v in definition.variables}
    actions = {a.name: names.give(a.name) for a in definition.actions}
    properties = {p.name: names.give(p.name) for p in definition.properties}
    enums = {kind: names.give(kind.__name__) for kind in _enums_of(definition, nodes)}
    entities = {kind: names.give(kind.__name__) for kind in definition.entities}
    records = _records_of(definition, nodes)
    return Vocabulary(
        module=module,
        entities=entities,
        records={kind: names.give(kind.__name__) for kind in records},
        record_sorts=records,
        standing_for_none=frozenset(_entities_of_items(nodes)),
        sizes={kind: names.give(f"{kind.__name__}Count") for kind in entities if kind.is_ordered},
        members={kind: _members_of(kind, scope.sizes[kind], names) for kind in entities},
        enums=enums,
        variables=variables,
        actions=actions,
        guards={a: names.give(f"can_{a}") for a in actions},
        properties=properties,
        constraints={c.name: names.give(c.name) for c in definition.constraints},
        fairness={
            name: names.give(name)
            for name in dict.fromkeys(f.name for a in definition.actions for f in a.fair)
            if name
        },
        never={
            p.name: names.give(f"Never_{properties[p.name]}")
            for p in definition.properties
            if p.kind in (PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP)
        },
        standing={
            p.name: names.give(f"{properties[p.name]}_standing")
            for p in definition.properties
            if p.kind is PropertyKind.STEP
        },
        columns=_columns_of(nodes, enums, names),
        own=_own(names),
        taken=names.taken,
    )


def _own(names: Names) -> Own:
    return Own(
        variables=names.give("vars"),
        none=names.give("NONE"),
        put=names.give("Put"),
        total=names.give("Total"),
        least=names.give("Least"),
        greatest=names.give("Greatest"),
        sequences=names.give("SeqUpTo"),
        elements=names.give("Elements"),
        item=names.give("ItemOr"),
        without=names.give("Without"),
        inserted=names.give("Inserted"),
        bounds=names.give("TypeOK"),
        first=names.give("Init"),
        following=names.give("Next"),
        final=names.give("Final"),
        no_deadlock=names.give("NoDeadlock"),
        idle=names.give("MayChangeNothing"),
        fairness=names.give("Fairness"),
        whole=names.give("Spec"),
    )


def _records_of(definition: Definition, nodes: list[Node]) -> dict[type, RecordSort]:
    """The records that are members, keys, elements or parameters, in the order of their first mention."""
    found: dict[type, RecordSort] = {}
    sorts = [v.sort for v in definition.variables]
    sorts += [node.sort for node in nodes]
    for sort in sorts:
        for record in _records_within(sort):
            found.setdefault(record.kind, record)
    for node in nodes:
        if isinstance(node, Bound) and isinstance(node.sort, RecordSort):
            found.setdefault(node.sort.kind, node.sort)
    return found


def _records_within(sort: Sort) -> Iterator[RecordSort]:
    match sort:
        case SetSort(RecordSort() as record) | SeqSort(RecordSort() as record):
            yield record
        case MapSort(key, value):
            if isinstance(key, RecordSort):
                yield key
            yield from _records_within(value)
        case RecordSort(_, fields):
            for _, inner in fields:
                yield from _records_within(inner)
        case _:
            return


def _entities_of_items(nodes: list[Node]) -> Iterator[type[Entity]]:
    for node in nodes:
        if isinstance(node, Apply) and node.op is Op.ITEM:
            fields = node.sort.fields if isinstance(node.sort, RecordSort) else (("", node.sort),)
            yield from (s.kind for _, s in fields if isinstance(s, EntitySort))


def _members_of(kind: type[Entity], size: int, names: Names) -> tuple[str, ...]:
    if kind.is_ordered:
        return tuple(map(str, range(size)))
    unnamed = (model_value(kind.__name__, i) for i in range(len(kind.member_names), size))
    return tuple(map(names.give, (*kind.member_names, *unnamed)))


def _variable_name(name: str) -> str:
    if name.startswith(BUDGET_PREFIX):
        return f"{name.removeprefix(BUDGET_PREFIX)}_left"
    return name


def member_names(kind: type[Enum]) -> dict[Enum, str]:
    """The strings that stand for an enum's members; identifiers, so that they may be a record's fields."""
    names = Names()
    return {member: names.give(member.name) for member in kind}


def field_names(sort: RecordSort) -> dict[str, str]:
    """What a record's fields are called."""
    names = Names()
    return {name: names.give(name) for name, _ in sort.fields}


def nodes_of(definition: Definition) -> Iterator[Node]:
    """Every expression of the definition, each before its parts."""
    todo: list[Node] = [definition.final, *definition.initially]
    todo += [c.condition for c in definition.constraints]
    for action in definition.actions:
        todo += [*action.params, *(r.condition for r in action.requirements)]
        for assignment in action.assignments:
            todo += [*assignment.binders, assignment.place, assignment.value]
    for prop in definition.properties:
        todo += [*prop.params, prop.condition]
        todo += [prop.premise] if prop.premise is not None else []
    todo.reverse()
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(children(node))
        if isinstance(node, Quantified):
            todo.append(node.bound)


def _enums_of(definition: Definition, nodes: list[Node]) -> dict[type[Enum], None]:
    found: dict[type[Enum], None] = {}
    for variable in definition.variables:
        found.update(dict.fromkeys(_enums_in(variable.sort)))
    for node in nodes:
        if isinstance(node, Bound | Literal | Column):
            found.update(dict.fromkeys(_enums_in(node.sort)))
        if isinstance(node, Column):
            found.update(dict.fromkeys(_enums_in(node.index.sort)))
    return found


def _enums_in(sort: Sort) -> Iterator[type[Enum]]:
    match sort:
        case EnumSort(kind):
            yield kind
        case OptionalSort(element) | SetSort(element) | SeqSort(element):
            yield from _enums_in(element)
        case MapSort(key, value):
            yield from _enums_in(key)
            yield from _enums_in(value)
        case RecordSort(_, fields):
            for _, inner in fields:
                yield from _enums_in(inner)
        case _:
            return


def column_key(column: Column) -> ColumnKey:
    """What makes two columns the same table."""
    assert isinstance(column.index.sort, EnumSort)
    return column.index.sort.kind, type(column.sort), column.values


def is_choice(column: Column) -> bool:
    """Whether a column only says that its index is one of some members: `stage.any_of(...)`."""
    return members_where(column) is not None and column_name(column) is None


def _columns_of(
    nodes: list[Node], enums: dict[type[Enum], str], names: Names
) -> dict[ColumnKey, str]:
    found: dict[ColumnKey, str] = {}
    for node in nodes:
        if isinstance(node, Column) and not is_choice(node) and column_key(node) not in found:
            kind = column_key(node)[0]
            found[column_key(node)] = names.give(f"{enums[kind]}_{column_name(node) or 'column'}")
    return found
