"""A definition as Python: for each action its guard, its effect, and what its parameters can be.

`s` are the columns of the old state, `L` the living entities by sort, `x` the buckets of indexed columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from stagewright.impl.runtime.beginnings import beginnings
from stagewright.impl.runtime.candidates import Bucket, Candidates, Exactly, Keys, Source, Sources
from stagewright.impl.runtime.columns import Column, Writes, columns_of, path_of
from stagewright.impl.runtime.normal import leaves, normal
from stagewright.impl.runtime.present import item, values_now
from stagewright.spec.definition import Action, Assignment, Definition
from stagewright.spec.entities import Entity
from stagewright.spec.grounding.domains import assigned_twice, record_of
from stagewright.spec.interpreter import in_order, of_sequence, operate
from stagewright.spec.nodes import (
    Apply,
    Bound,
    Column as Table,
    Field,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Select,
    free_bounds,
)
from stagewright.spec.sorts import (
    BoolSort,
    BoundSort,
    EntitySort,
    EnumSort,
    IntSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)

Guard = Callable[..., list[str]]
Effect = Callable[..., Writes]
Choices = Callable[..., Iterable[tuple[Any, ...]]]

_INFIX = {
    Op.EQ: "==",
    Op.LT: "<",
    Op.LE: "<=",
    Op.ADD: "+",
    Op.SUB: "-",
    Op.MUL: "*",
    Op.DIV: "//",
    Op.MOD: "%",
    Op.MEMBER: "in",
    Op.UNION: "|",
    Op.INTERSECTION: "&",
    Op.DIFFERENCE: "-",
    Op.AND: "and",
    Op.OR: "or",
}
_Names = dict[Bound, str]
_Target = tuple[Column, tuple[Node, ...], Node | None]


@dataclass(frozen=True)
class Compiled:
    """An action as functions of (columns, living entities, buckets, *arguments).

    `guard` gives the names of the requirements that fail, `effect` what the step writes, in the old state;
    `choices`, without arguments, those for which the action is enabled.
    """

    action: Action
    guard: Guard
    effect: Effect
    choices: Choices
    source: str


class Compiler:
    """The columns of a definition and its actions as functions; `indexed` are the columns with buckets."""

    def __init__(self, definition: Definition) -> None:
        self.columns = columns_of(definition)
        self.indexed: set[int] = set()
        self._at = {(c.variable.name, c.fields): c for c in self.columns}
        self._candidates = Candidates(self.column)
        self._names: dict[str, Any] = {
            "operate": operate,
            "in_order": in_order,
            "of_sequence": of_sequence,
            "item": item,
            "record_of": record_of,
            "values_now": values_now,
            "once": _once,
        }
        self._read: set[int] = set()  # columns that the function in the making reads by key
        self.actions = {a.name: self._action(a) for a in definition.actions}
        self.beginnings = {
            kind: tuple(map(self._action, begin)) for kind, begin in beginnings(definition).items()
        }

    def column(self, place: Node) -> Column | None:
        """The column that a place is in; None if it is more than a leaf, or no place."""
        path = path_of(place)
        return None if path is None else self._at.get(path[:2])

    def condition(self, condition: Node) -> Callable[..., bool]:
        """A condition on the state as a function of columns, living entities and buckets."""
        body = [f"    return {self._expr(normal(condition), {})}"]
        source = "\n".join(self._function("def holds(s, L, x):", body))
        return self._made(source, "a condition")["holds"]  # type: ignore[no-any-return]

    def _made(self, source: str, what: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        exec(compile(source, f"<{what}>", "exec"), self._names, made)  # noqa: S102
        return made

    # -- actions -------------------------------------------------------------------------------------

    def _action(self, action: Action) -> Compiled:
        names = {p: f"p{i}_{p.name}" for i, p in enumerate(action.params)}
        requirements = [(r.name, normal(r.condition)) for r in action.requirements]
        head = ", ".join(["s", "L", "x", *names.values()])
        guard = ["    failed = []"]
        for name, condition in requirements:
            guard.append(f"    if not {self._expr(condition, names)}: failed.append({name!r})")
        guard.append("    return failed")
        lines = self._function(f"def guard({head}):", guard)
        effects = ["    w = {}", *self._effects(action, names), "    return w"]
        lines += self._function(f"def effect({head}):", effects)
        choices = list(self._choices(action, [c for _, c in requirements], names))
        lines += self._function("def choices(s, L, x):", choices)
        source = "\n".join(lines)
        made = self._made(source, action.name)
        return Compiled(action, made["guard"], made["effect"], made["choices"], source)

    def _function(self, head: str, body: list[str]) -> list[str]:
        """A function of the columns, which looks up once how each that it reads by key is read."""
        reads = [f"    g{i} = s[{i}].get" for i in sorted(self._read)]
        self._read.clear()
        return [head, *reads, *body]

    def _effects(self, action: Action, names: _Names) -> Iterator[str]:
        written = [leaf for a in action.assignments for leaf in leaves(a)]
        targets = [self._target(leaf) for leaf in written]
        for leaf, target in zip(written, targets, strict=True):
            others = [t for t in targets if t is not target]
            several = any(_may_be_one(target, other) for other in others)
            yield from self._assignment(action, leaf, names, several=several)

    def _target(self, assignment: Assignment) -> _Target:
        """Column, keys and member (of a set) of a leaf's place."""
        match assignment.place:
            case Select(base, key) if isinstance(base.sort, SetSort):
                return *self._place(base), key
            case place:
                return *self._place(place), None

    def _assignment(
        self, action: Action, assignment: Assignment, outer: _Names, *, several: bool
    ) -> Iterator[str]:
        """`several`: other assignments of the action may write the same place."""
        pad, names = "    ", dict(outer)
        place, value = assignment.place, assignment.value
        for bound in assignment.binders:
            found: Sources = None
            if len(assignment.binders) == 1 and not several:
                found = self._candidates.changed(place, value, bound)
            names[bound] = f"b{len(names)}"
            yield f"{pad}for {names[bound]} in {self._over(found, bound.sort, names)}:"
            pad += "    "
        column, keys, member = self._target(assignment)
        inner = "" if member is None else f", {self._expr(member, names)}"
        where = f"({column.index}, {self._key(keys, names)}{inner})"
        if several:
            twice = self._constant((action.name, column, assignment))
            where = f"once(w, {where}, {twice})"
        yield f"{pad}w[{where}] = {self._expr(value, names)}"

    def _choices(self, action: Action, conditions: list[Node], names: _Names) -> Iterator[str]:
        """Nested loops over the parameters; each requirement is asked as soon as its own are chosen."""
        pad, chosen, due = "    ", set[Bound](), list(conditions)
        for step in range(len(action.params) + 1):
            ready = [c for c in due if free_bounds(c) <= chosen]
            due = [c for c in due if c not in ready]
            if ready:
                asked = " and ".join(self._expr(c, names) for c in ready)
                yield f"{pad}if {asked}:"
                pad += "    "
            if step == len(action.params):
                break
            bound = action.params[step]
            search = self._candidates.where_known(frozenset(chosen))
            whole = Apply(Op.AND, tuple(due), BoolSort())
            found = search.of(whole, bound) if due else None
            yield f"{pad}for {names[bound]} in {self._over(found, bound.sort, names)}:"
            pad += "    "
            chosen.add(bound)
        yield f"{pad}yield ({''.join(names[p] + ', ' for p in action.params)})"

    # -- expressions -----------------------------------------------------------------------------------

    def _expr(self, node: Node, names: _Names) -> str:
        match node:
            case Literal(value):
                return self._constant(value)
            case Bound():
                return names[node]
            case Table(values, index) if isinstance(index.sort, EnumSort):
                table = dict(zip(index.sort.members, values, strict=True))
                return f"{self._constant(table)}[{self._expr(index, names)}]"
            case Quantified():
                return self._quantified(node, names)
            case Apply():
                return self._applied(node, names)
            case Field(base, name) if path_of(node) is None:  # of a parameter, or an element
                return f"{self._expr(base, names)}[{name!r}]"
            case _ if isinstance(node.sort, RecordSort):  # leaves of the state, as one value
                fields = node.sort.fields
                places = tuple(Field(node, n, s) for n, s in fields)
                return self._record([n for n, _ in fields], places, names)
            case _:
                column, keys = self._place(node)
                if not keys:
                    return f"s[{column.index}]"
                default = self._constant(column.default)
                self._read.add(column.index)
                return f"g{column.index}({self._key(keys, names)}, {default})"

    def _applied(self, node: Apply, names: _Names) -> str:
        match node:
            case Apply(Op.IF, (condition, then, otherwise)):
                chosen = f"{self._expr(then, names)} if {self._expr(condition, names)}"
                return f"({chosen} else {self._expr(otherwise, names)})"
            case Apply(Op.NOT, (inner,)):
                return f"(not {self._expr(inner, names)})"
            case Apply(Op.AND | Op.OR as op, ()):
                return str(op is Op.AND)
            case Apply(Op.NEXT | Op.PREVIOUS | Op.LAST as op, args):
                kind = self._constant(_entity(node.sort))
                given = ", ".join(self._expr(a, names) for a in args)
                return f"in_order({self._constant(op)}, [{given}], {kind}, len(L[{kind}]))"
            case Apply(Op.ITEM, (sequence, index), sort):
                parts = [self._expr(a, names) for a in (sequence, index)]
                return f"item({', '.join(parts)}, {self._constant(sort)}, L)"
            case Apply(Op.RECORD, args, RecordSort(_, fields)):
                return self._record([n for n, _ in fields], args, names)
            case Apply(op, args):
                parts = [self._expr(a, names) for a in args]
                if op in {Op.LENGTH, Op.APPEND, Op.INSERT, Op.REMOVE}:
                    return f"of_sequence({self._constant(op)}, [{', '.join(parts)}])"
                if op in _INFIX:
                    return f"({f' {_INFIX[op]} '.join(parts)})"
                return f"operate({self._constant(op)}, [{', '.join(parts)}])"

    def _record(self, fields: list[str], values: tuple[Node, ...], names: _Names) -> str:
        given = "".join(self._expr(v, names) + ", " for v in values)
        return f"record_of({tuple(fields)!r}, ({given}))"

    def _folded(self, node: Quantified, names: _Names) -> str:
        """A sum or an extreme; of a set only the members are visited, as the others add nothing."""
        found: Sources = None
        match node.quantity, node.body:
            case Quantity.TOTAL, Apply(Op.IF, (condition, _, Literal(0))):
                found = self._candidates.of(condition, node.bound, want=True)
            case _:
                pass
        name = f"v{len(names)}"
        body = self._expr(node.body, {**names, node.bound: name})
        over = f"{body} for {name} in {self._over(found, node.bound.sort, names)}"
        match node.quantity:
            case Quantity.TOTAL:
                return f"sum({over})"
            case Quantity.LEAST:
                return f"min(({over}), default=0)"  # there may be no living entity
            case _:
                return f"max(({over}), default=0)"

    def _quantified(self, node: Quantified, names: _Names) -> str:
        if node.quantity in {Quantity.TOTAL, Quantity.LEAST, Quantity.GREATEST}:
            return self._folded(node, names)
        every = node.quantity is Quantity.EVERY
        found = self._candidates.of(node.body, node.bound, want=not every)
        over = self._over(found, node.bound.sort, names)
        name = f"v{len(names)}"
        body = self._expr(node.body, {**names, node.bound: name})
        if node.quantity is Quantity.COUNT:
            return f"sum(1 for {name} in {over} if {body})"
        return f"{'all' if every else 'any'}({body} for {name} in {over})"

    def _place(self, node: Node) -> tuple[Column, tuple[Node, ...]]:
        path = path_of(node)
        assert path is not None and path[:2] in self._at, f"no leaf of the state: {node}"  # noqa: PT018
        return self._at[path[:2]], path[2]

    def _key(self, keys: tuple[Node, ...], names: _Names) -> str:
        found = [self._expr(k, names) for k in keys]
        return "None" if not found else found[0] if len(found) == 1 else f"({', '.join(found)})"

    def _constant(self, value: Any) -> str:
        if value is None or type(value) in (bool, int):
            return repr(value)
        known = next((n for n, v in self._names.items() if v is value), None)
        if known is None:
            known = f"K{len(self._names)}"
            self._names[known] = value
        return known

    def _over(self, found: Sources, sort: BoundSort, names: _Names) -> str:
        match sort:
            case BoolSort():
                return "(False, True)"
            case IntSort(low, high):
                return f"range({low}, {high + 1})"
            case EnumSort():
                return self._constant(sort.members)
            case RecordSort() | SetSort() if found is None:
                return f"values_now({self._constant(sort)}, L)"
            case EntitySort() if found is None:
                return f"L[{self._constant(sort.kind)}]"
            case _:
                listed = [self._source(source, names) for source in found or ()]
        if len(listed) == 1:
            return listed[0]
        return "{" + ", ".join(f"*{one}" for one in listed) + "}" if listed else "()"

    def _source(self, source: Source, names: _Names) -> str:
        if isinstance(source, Keys):
            return f"s[{source.column}]"
        if isinstance(source, Bucket):
            self.indexed.add(source.column)
            return f"x[{source.column}].get({self._expr(source.value, names)}, ())"
        if isinstance(source, Exactly):
            return f"({self._expr(source.value, names)},)"
        group = self._expr(source.group, names)
        return f"dict.fromkeys({group})" if isinstance(source.group.sort, SeqSort) else group


def _entity(sort: Sort) -> type[Entity]:
    found = sort.element if isinstance(sort, OptionalSort) else sort
    assert isinstance(found, EntitySort)
    return found.kind


def _may_be_one(one: _Target, other: _Target) -> bool:
    """Whether two assignments may write one place: not if a key or a member differs whatever the state is."""
    if one[0] is not other[0]:
        return False
    pairs = [*zip(one[1], other[1], strict=True), (one[2], other[2])]
    return not any(
        isinstance(a, Literal) and isinstance(b, Literal) and a.value != b.value for a, b in pairs
    )


def _once(
    w: Writes, where: tuple[Any, ...], said: tuple[str, Column, Assignment]
) -> tuple[Any, ...]:
    """The place, or an error if this step has written it already."""
    action, column, assignment = said
    if where in w or where[:2] in w or any(other[:2] == where for other in w):
        path = (column.variable.name, *column.fields, *(k for k in where[1:] if k is not None))
        raise assigned_twice(action, path, assignment)
    return where
