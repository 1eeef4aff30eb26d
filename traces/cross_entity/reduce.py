"""From a system's invariant to a formula over the atoms of single entities: `Reduction`.

Quantifiers over the members of a family stay; those over other sorts are written out, as a scope says how
many members these have. What reads variables that no trace has has no formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import assert_never

from stagewright.spec.definition import Property
from stagewright.spec.derived.open_ended import LARGEST
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.encoding import encode_scalar
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Column,
    Field,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Read,
    Select,
    children,
    free_bounds,
)
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import Value
from stagewright.traces.cross_entity.families import Family
from stagewright.traces.replay.related.formula import (
    FALSE,
    TRUE,
    Among,
    Atom,
    Const,
    Formula,
    Made,
    Make,
    Over,
    Same,
    not_,
)


class NotTracedError(Exception):
    """The traces cannot decide a property; the text says what is missing."""


@dataclass(frozen=True)
class AtomNode:
    """An atom in terms of its own machine, with the values of what it does not quantify itself."""

    node: Node
    values: tuple[tuple[Bound, Value], ...]


@dataclass(frozen=True)
class _Entity:
    """What a bound variable stands for: an entity of a family, by the name that the formula gives it."""

    name: int
    family: int


_Env = Mapping[Bound, "_Entity | Value"]

_OPS = {
    Op.NOT: Make.NOT,
    Op.AND: Make.AND,
    Op.OR: Make.OR,
    Op.LT: Make.LT,
    Op.LE: Make.LE,
    Op.ADD: Make.ADD,
    Op.SUB: Make.SUB,
    Op.IF: Make.IF,
}
_OVER = {Quantity.EVERY: Over.EVERY, Quantity.SOME: Over.SOME, Quantity.COUNT: Over.COUNT}


@dataclass
class Reduction:
    """Reduces the properties of one system at a scope; gathers the atoms of each family.

    `variables` are those that each family's machine has.
    """

    families: Sequence[Family]
    variables: Sequence[frozenset[str]]
    scope: Scope
    atoms: list[dict[AtomNode, int]] = field(init=False)  # by family, with their numbers

    def __post_init__(self) -> None:
        self.atoms = [{} for _ in self.families]
        self._names = count()
        self._single: dict[int, _Entity] = {}

    def formula(self, prop: Property) -> Formula:
        """What the invariant says.

        Raises:
            NotTracedError: it reads what no trace has.
        """
        self._names = count()
        self._single = {}
        found = self._over(prop.params, prop.condition, {})
        for family, entity in self._single.items():
            found = Among(Over.EVERY, entity.name, family, found)
        return found

    def _over(self, params: Sequence[Bound], body: Node, env: _Env) -> Formula:
        for bound in reversed(params):
            body = Quantified(Quantity.EVERY, bound, body, BOOL)
        return self._reduce(body, env)

    # -- expressions that read one entity -------------------------------------------------------------

    def _reduce(self, node: Node, env: _Env) -> Formula:
        """The formula of a scalar expression."""
        owners = self._owners(node, env)
        if owners is not None and not owners:
            return self._constant(node, env)
        if owners is not None and len(owners) == 1:
            (entity,) = owners
            if _is_scalar(node.sort) and (atom := self._atom(node, entity, env)) is not None:
                return atom
        match node:
            case Quantified(quantity, bound, body) if quantity in _OVER:
                return self._quantified(quantity, bound, body, env)
            case Apply(Op.EQ, (left, right)):
                return self._equal(left, right, env)
            case Apply(Op.MEMBER, (element, container)):
                return self._is_member(element, container, env)
            case Apply(op, args) if op in _OPS:
                return _made(_OPS[op], [self._reduce(a, env) for a in args])
            case Column(values, index, sort) if _is_scalar(sort):
                codes = tuple(encode_scalar(v, sort, self.scope) for v in values)  # type: ignore[arg-type]
                return Made(Make.TABLE, (self._reduce(index, env),), codes)
            case _:
                raise NotTracedError(
                    f"relates entities in a way that is not counted: {_text(node)}"
                )

    def _owners(self, node: Node, env: _Env) -> set[_Entity] | None:
        """The entities whose variables an expression reads; None where it names or quantifies entities.

        Raises:
            NotTracedError: it reads what no trace has.
        """
        found: set[_Entity] = set()
        whole = True
        stack: list[Node] = [node]
        while stack:
            one = stack.pop()
            match one:
                case Select(Read(variable), Bound() as key) if self._family(variable, keyed=True):
                    found.add(self._owner(variable, key, env))
                case Read(variable):
                    found.add(self._owner_of_part(variable))
                case Bound():
                    whole = whole and not isinstance(env.get(one), _Entity)
                case Quantified(_, bound, body):
                    whole = whole and not self._of_family(bound.sort)
                    if not self._of_family(bound.sort):
                        stack.append(body)
                    else:  # reads within are looked at when the quantifier is
                        self._check_reads(body)
                case Literal():
                    pass
                case Select(base, key):
                    stack += [base, key]
                case Field(base):
                    stack.append(base)
                case Apply(_, args):
                    stack += args
                case Column(_, index):
                    stack.append(index)
                case _:
                    assert_never(one)
        return found if whole else None

    def _check_reads(self, node: Node) -> None:
        from stagewright.spec.nodes import variables_in

        for variable in variables_in(node):
            if self._family(variable, keyed=None) is None:
                raise NotTracedError(f"reads `{variable}`, which no trace has")

    def _family(self, variable: str, *, keyed: bool | None) -> int | None:
        """The family that a variable of the system belongs to."""
        for number, family in enumerate(self.families):
            fits = keyed is None or (family.sort is not None) == keyed
            own = variable.removeprefix(family.prefix)
            if fits and own != variable and own in self.variables[number]:
                return number + 1  # true in any case
        return None

    def _owner(self, variable: str, key: Bound, env: _Env) -> _Entity:
        number = self._family(variable, keyed=True)
        assert number is not None
        entity = env.get(key)
        if not isinstance(entity, _Entity):
            raise NotTracedError(f"reads `{variable}` of a {key.sort} that is no entity of a trace")
        if entity.family != number - 1:
            one, other = self.families[entity.family].name, self.families[number - 1].name
            raise NotTracedError(
                f"reads `{one}` and `{other}` of one {key.sort}: their traces do not say who is who"
            )
        return entity

    def _owner_of_part(self, variable: str) -> _Entity:
        number = self._family(variable, keyed=False)
        if number is None:
            known = self._family(variable, keyed=True) is not None
            why = "at a key that is computed" if known else "which no trace has"
            raise NotTracedError(f"reads `{variable}`, {why}")
        family = number - 1
        if family not in self._single:
            self._single[family] = _Entity(next(self._names), family)
        return self._single[family]

    def _of_family(self, sort: Sort) -> bool:
        return any(f.sort == sort for f in self.families)

    def _atom(self, node: Node, entity: _Entity, env: _Env) -> Formula | None:
        if any(isinstance(env.get(b), _Entity) for b in free_bounds(self._own(node, entity, env))):
            return None
        own = self._own(node, entity, env)
        values = tuple(
            sorted(
                ((b, v) for b in free_bounds(own) if not isinstance(v := env[b], _Entity)),
                key=lambda pair: (pair[0].serial, pair[0].name),
            )
        )
        numbers = self.atoms[entity.family]
        number = numbers.setdefault(AtomNode(own, values), len(numbers))
        low, high = _range(own, self.scope)
        return Atom(entity.name, number, low, high)

    def _own(self, node: Node, entity: _Entity, env: _Env) -> Node:
        """An expression in terms of the entity's own machine."""

        def own(one: Node) -> Node:
            match one:
                case Select(Read(variable, sort) as read, Bound() as key) if env.get(key) == entity:
                    assert isinstance(sort, MapSort)
                    name = variable.removeprefix(self.families[entity.family].prefix)
                    return replace(read, variable=name, sort=sort.value)
                case Read(variable):
                    name = variable.removeprefix(self.families[entity.family].prefix)
                    return replace(one, variable=name)
                case Select(base, key):
                    return replace(one, base=own(base), key=own(key))
                case Field(base):
                    return replace(one, base=own(base))
                case Apply(_, args):
                    return replace(one, args=tuple(own(a) for a in args))
                case Column(_, index):
                    return replace(one, index=own(index))
                case Quantified(_, _, body):
                    return replace(one, body=own(body))
                case _:
                    return one

        return own(node)

    # -- expressions that relate entities --------------------------------------------------------------

    def _constant(self, node: Node, env: _Env) -> Formula:
        from stagewright.spec.definition import Definition
        from stagewright.spec.interpreter import Interpreter
        from stagewright.spec.values import FrozenMap

        nothing = Definition("", "", "", (), (), (), (), (), node, ())
        known = {b: v for b, v in env.items() if not isinstance(v, _Entity)}
        value = Interpreter(nothing, self.scope).evaluate(node, FrozenMap({}), None, known)
        if not _is_scalar(node.sort):
            raise NotTracedError(f"compares sets in a way that is not counted: {_text(node)}")
        return Const(_code(value, node.sort, self.scope))

    def _quantified(self, quantity: Quantity, bound: Bound, body: Node, env: _Env) -> Formula:
        if self._of_family(bound.sort):
            family = self._family_of(bound, body)
            entity = _Entity(next(self._names), family)
            inner = self._reduce(body, {**env, bound: entity})
            return Among(_OVER[quantity], entity.name, family, inner)
        bodies = [
            self._reduce(body, {**env, bound: value}) for value in values_of(bound.sort, self.scope)
        ]
        match quantity:
            case Quantity.EVERY:
                return _made(Make.AND, bodies)
            case Quantity.SOME:
                return _made(Make.OR, bodies)
            case Quantity.COUNT:
                total: Formula = Const(0)
                for one in bodies:
                    total = one if total == Const(0) else Made(Make.ADD, (total, one))
                return total
            case Quantity.TOTAL | Quantity.LEAST | Quantity.GREATEST:
                raise AssertionError(f"{quantity} is no part of a formula")
        assert_never(quantity)

    def _family_of(self, bound: Bound, body: Node) -> int:
        """The family that a quantifier ranges over: that of the variables it is the key of."""
        fitting = [n for n, f in enumerate(self.families) if f.sort == bound.sort]
        used = {self._family(v, keyed=True) for v in _keyed_by(body, bound)}
        chosen = [n for n in fitting if n + 1 in used]
        if len(chosen) > 1:
            names = " and ".join(f"`{self.families[n].name}`" for n in chosen)
            raise NotTracedError(
                f"reads {names} of one {bound.sort}: their traces do not say who is who"
            )
        if len(fitting) > 1 and not chosen:
            raise NotTracedError(f"counts each {bound.sort}, of which several machines have traces")
        return (chosen or fitting)[0]

    def _equal(self, left: Node, right: Node, env: _Env) -> Formula:
        one, other = (env.get(n) if isinstance(n, Bound) else None for n in (left, right))
        if isinstance(one, _Entity) and isinstance(other, _Entity):
            if one.family != other.family:
                raise NotTracedError("compares entities of different machines")
            return TRUE if one == other else Same(one.name, other.name)
        if isinstance(left.sort, SetSort):
            elements = self._elements(left.sort)
            return _made(
                Make.AND,
                [
                    Made(Make.EQ, (self._has(k, left, env), self._has(k, right, env)))
                    for k in elements
                ],
            )
        if isinstance(left.sort, MapSort | RecordSort):
            raise NotTracedError(f"compares whole records of two entities: {_text(left)}")
        sorts = _element(left.sort), _element(right.sort)
        if sorts[0] != sorts[1] and not all(isinstance(s, IntSort) for s in sorts):
            raise NotTracedError(f"compares what cannot be compared: {_text(left)}")
        values = [self._reduce(n, env) for n in (left, right)]
        wide = [isinstance(n.sort, OptionalSort) for n in (left, right)]
        if any(wide):
            if sorts[0] != sorts[1]:
                raise NotTracedError("compares numbers of different bounds that may be none")
            shift = 1 - (sorts[0].low if isinstance(sorts[0], IntSort) else 0)
            values = [
                v if w else Made(Make.ADD, (v, Const(shift)))
                for v, w in zip(values, wide, strict=True)
            ]
        return Made(Make.EQ, tuple(values))

    def _is_member(self, element: Node, container: Node, env: _Env) -> Formula:
        if isinstance(element, Bound) and isinstance(env.get(element), _Entity):
            raise NotTracedError(
                f"asks for a {element.sort} in a set: traces do not say who is who"
            )
        assert isinstance(container.sort, SetSort)
        cases: list[Formula] = []
        for key in self._elements(container.sort):
            value = encode_scalar(key, element.sort, self.scope)  # type: ignore[arg-type]
            same = Made(Make.EQ, (self._reduce(element, env), Const(value)))
            cases.append(_made(Make.AND, [same, self._has(key, container, env)]))
        return _made(Make.OR, cases)

    def _elements(self, sort: SetSort) -> Sequence[Value]:
        if self._of_family(sort.element):
            raise NotTracedError(
                f"asks for a {sort.element} in a set: traces do not say who is who"
            )
        return values_of(sort.element, self.scope)

    def _has(self, key: Value, container: Node, env: _Env) -> Formula:
        """Whether a set has an element."""
        match container:
            case Apply(Op.UNION, (left, right)):
                return _made(Make.OR, [self._has(key, s, env) for s in (left, right)])
            case Apply(Op.INTERSECTION, (left, right)):
                return _made(Make.AND, [self._has(key, s, env) for s in (left, right)])
            case Apply(Op.DIFFERENCE, (left, right)):
                return _made(
                    Make.AND, [self._has(key, left, env), not_(self._has(key, right, env))]
                )
            case Apply(Op.IF, (condition, then, otherwise)):
                parts = [self._has(key, s, env) for s in (then, otherwise)]
                return Made(Make.IF, (self._reduce(condition, env), *parts))
            case _:
                assert isinstance(container.sort, SetSort)
                element = Bound("element", container.sort.element, -1_000)
                asked = Apply(Op.MEMBER, (element, container), BOOL)
                inner: _Env = {**env, element: key}
                owners = self._owners(asked, inner)
                if owners is None or len(owners) > 1:
                    raise NotTracedError(
                        f"compares sets in a way that is not counted: {_text(container)}"
                    )
                return self._reduce(asked, inner)


def _keyed_by(node: Node, bound: Bound) -> Iterable[str]:
    match node:
        case Select(Read(variable), key) if key == bound:
            yield variable
        case _:
            for child in children(node):
                yield from _keyed_by(child, bound)


def _made(how: Make, args: Sequence[Formula]) -> Formula:
    if how in (Make.AND, Make.OR):
        neutral, absorbing = (TRUE, FALSE) if how is Make.AND else (FALSE, TRUE)
        left = [a for a in args if a != neutral]
        if absorbing in left:
            return absorbing
        if len(left) < 2:
            return left[0] if left else neutral
        return Made(how, tuple(dict.fromkeys(left)))
    if how is Make.NOT and isinstance(args[0], Const):
        return Const(1 - args[0].value)
    return Made(how, tuple(args))


def _is_scalar(sort: Sort) -> bool:
    return isinstance(sort, BoolSort | IntSort | EnumSort | EntitySort | OptionalSort)


def _element(sort: Sort) -> Sort:
    return sort.element if isinstance(sort, OptionalSort) else sort


def _code(value: Value, sort: Sort, scope: Scope) -> int:
    if isinstance(sort, IntSort):
        assert isinstance(value, int)
        return int(value)
    return encode_scalar(value, sort, scope)  # type: ignore[arg-type]


def _range(node: Node, scope: Scope) -> tuple[int, int]:
    """The codes that a scalar may have; a number that is made of others may be larger than it is declared."""
    sort = node.sort
    if isinstance(sort, IntSort):
        return (-LARGEST, LARGEST) if _reads_number(node) else (sort.low, sort.high)
    return 0, len(values_of(sort, scope)) - 1  # type: ignore[arg-type,unused-ignore]


def _reads_number(node: Node) -> bool:
    if isinstance(node, Read | Select | Field) and isinstance(node.sort, IntSort):
        return True
    return any(map(_reads_number, children(node)))


def _text(node: Node) -> str:
    where = node.where
    return f"{where.file}:{where.line}" if where is not None else str(node.sort)
