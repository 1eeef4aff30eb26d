"""What a property says of several entities, when only the classes of the entities count.

The *atoms* of a property are its largest expressions that read one entity alone. Entities whose atoms have
the same values are of one class, and are interchangeable: a property depends on how many there are of each
class, and by `weight` only on whether there are fewer than so many.

A formula is plain data without the definition's own classes, so that any process can evaluate it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, assert_never


class Make(Enum):
    """How a value is made of others. Booleans are 0 and 1."""

    NOT = auto()
    AND = auto()
    OR = auto()
    EQ = auto()
    LT = auto()
    LE = auto()
    ADD = auto()
    SUB = auto()
    IF = auto()
    TABLE = auto()


class Over(Enum):
    """What is said of all entities of a family."""

    EVERY = auto()
    SOME = auto()
    COUNT = auto()


@dataclass(frozen=True)
class Const:
    """A number."""

    value: int


@dataclass(frozen=True)
class Atom:
    """The value of an atom of the entity that `entity` stands for; `low <= value <= high`."""

    entity: int
    number: int
    low: int
    high: int


@dataclass(frozen=True)
class Same:
    """Whether two names stand for one entity."""

    one: int
    other: int


@dataclass(frozen=True)
class Made:
    """A value made of others."""

    how: Make
    args: tuple[Formula, ...]
    table: tuple[int, ...] = ()


@dataclass(frozen=True)
class Among:
    """EVERY, SOME or COUNT of the entities of a family; in the body each is called `entity` in turn."""

    over: Over
    entity: int
    family: int
    body: Formula


Formula = Const | Atom | Same | Made | Among

TRUE, FALSE = Const(1), Const(0)


class ClassOf(NamedTuple):
    """A class of entities: their family, and the values of its atoms."""

    family: int
    values: tuple[int, ...]


class _One(NamedTuple):
    """An entity that a name stands for: the how-manieth distinct one of its class."""

    whose: ClassOf
    nth: int


def evaluate(
    formula: Formula, counts: Mapping[ClassOf, int], named: Mapping[int, _One] | None = None
) -> int:
    """The value where there are so many entities of each class."""
    named = named or {}
    match formula:
        case Const(value):
            return value
        case Atom(entity, number):
            return named[entity].whose.values[number]
        case Same(one, other):
            return int(named[one] == named[other])
        case Among(over, entity, family, body):
            total = 0
            for each, times in _entities(family, counts, named):
                holds = evaluate(body, counts, {**named, entity: each})
                if over is Over.EVERY and not holds:
                    return 0
                if over is Over.SOME and holds:
                    return 1
                total += times * bool(holds)
            return total if over is Over.COUNT else int(over is Over.EVERY)
        case Made(how, args, table):
            return _made(how, args, table, counts, named)
    assert_never(formula)


def _entities(
    family: int, counts: Mapping[ClassOf, int], named: Mapping[int, _One]
) -> list[tuple[_One, int]]:
    """The entities of a family that can be told apart, with how many are like each."""
    known = sorted({one for one in named.values() if one.whose.family == family})
    found = [(one, 1) for one in known]
    for whose, times in counts.items():
        used = sum(one.whose == whose for one in known)
        if whose.family == family and times > used:
            found.append((_One(whose, used), times - used))
    return found


def _made(
    how: Make,
    args: Sequence[Formula],
    table: Sequence[int],
    counts: Mapping[ClassOf, int],
    named: Mapping[int, _One],
) -> int:
    def value(index: int) -> int:
        return evaluate(args[index], counts, named)

    match how:
        case Make.NOT:
            return int(not value(0))
        case Make.AND:
            return int(all(value(i) for i in range(len(args))))
        case Make.OR:
            return int(any(value(i) for i in range(len(args))))
        case Make.EQ:
            return int(value(0) == value(1))
        case Make.LT:
            return int(value(0) < value(1))
        case Make.LE:
            return int(value(0) <= value(1))
        case Make.ADD:
            return value(0) + value(1)
        case Make.SUB:
            return value(0) - value(1)
        case Make.IF:
            return value(1) if value(0) else value(2)
        case Make.TABLE:
            return table[value(0)]
    assert_never(how)


# -- how many of a class count ---------------------------------------------------------------------------

WHATEVER = 1 << 40  # the weight of a formula to which every number may matter


def weight(formula: Formula) -> int:
    """How many entities of one class count: with more of them the formula has the same value.

    To see k entities takes k quantifiers; a formula whose nested quantifiers are w sees no difference
    between w entities of a class and more of them.
    """
    match formula:
        case Const() | Atom() | Same():
            return 0
        case Among(Over.COUNT, _, _, _):
            return WHATEVER  # not within a comparison that bounds it
        case Among(_, _, _, body):
            return min(1 + weight(body), WHATEVER)
        case Made(Make.EQ | Make.LT | Make.LE, (left, right)):
            return _weight_of_comparison(left, right)
        case Made(_, args):
            return max(map(weight, args), default=0)
    assert_never(formula)


@dataclass(frozen=True)
class _Sum:
    """Counts that are added, counts that are subtracted, and the bounds of all else."""

    plus: tuple[Among, ...] = ()
    minus: tuple[Among, ...] = ()
    low: int = 0
    high: int = 0
    rest: int = 0  # the weight of all else


def _weight_of_comparison(left: Formula, right: Formula) -> int:
    one, other = _sum(left), _sum(right)
    if one is None or other is None:
        return WHATEVER
    plus, minus = (*one.plus, *other.minus), (*one.minus, *other.plus)
    rest = max(one.rest, other.rest)
    if plus and minus:
        return WHATEVER
    # The counts are compared with a number between these two.
    numbers = (other.low - one.high, other.high - one.low)
    most = max(numbers) if plus else -min(numbers)
    bodies = max((weight(c.body) for c in (*plus, *minus)), default=0)
    seen = max(most + 1, 0) if plus or minus else 0
    return min(max(seen + bodies, rest), WHATEVER)


def _sum(formula: Formula) -> _Sum | None:
    """A number as a sum; None if it holds counts in another way."""
    match formula:
        case Const(value):
            return _Sum(low=value, high=value)
        case Atom(_, _, low, high):
            return _Sum(low=low, high=high)
        case Among(Over.COUNT, _, _, _):
            return _Sum(plus=(formula,))
        case Made(Make.ADD | Make.SUB as how, (left, right)):
            one, other = _sum(left), _sum(right)
            if one is None or other is None:
                return None
            if how is Make.SUB:
                other = _Sum(other.minus, other.plus, -other.high, -other.low, other.rest)
            return _Sum(
                (*one.plus, *other.plus),
                (*one.minus, *other.minus),
                one.low + other.low,
                one.high + other.high,
                max(one.rest, other.rest),
            )
        case Made(Make.IF, (condition, then, otherwise)):
            parts = _sum(then), _sum(otherwise)
            if any(p is None or p.plus or p.minus for p in parts):
                return None
            low = min(p.low for p in parts if p)
            high = max(p.high for p in parts if p)
            return _Sum(low=low, high=high, rest=weight(condition))
        case Made(Make.TABLE, (index,), table):
            return _Sum(low=min(table), high=max(table), rest=weight(index))
        case _:
            return _Sum(low=0, high=1, rest=weight(formula))


# -- properties of one entity alone ------------------------------------------------------------------------


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """The formulas that must all hold."""
    match formula:
        case Made(Make.AND, args):
            return tuple(c for a in args for c in conjuncts(a))
        case Made(Make.NOT, (Made(Make.OR, args),)):
            return tuple(c for a in args for c in conjuncts(not_(a)))
        case Made(Make.NOT, (Made(Make.NOT, (inner,)),)):
            return conjuncts(inner)
        case Made(Make.NOT, (Among(Over.SOME, entity, family, body),)):
            return conjuncts(Among(Over.EVERY, entity, family, not_(body)))
        case Among(Over.EVERY, entity, family, body):
            return tuple(Among(Over.EVERY, entity, family, c) for c in conjuncts(body))
        case _:
            return (formula,)


def is_local(formula: Formula) -> bool:
    """Whether the formula says something of each entity by itself."""
    return all(_of_one(c) for c in conjuncts(formula))


def _of_one(formula: Formula) -> bool:
    match formula:
        case Const():
            return True
        case Among(Over.EVERY, entity, _, body):
            return _reads_only(body, entity)
        case _:
            return False


def _reads_only(formula: Formula, entity: int) -> bool:
    match formula:
        case Const():
            return True
        case Atom(whose):
            return whose == entity
        case Made(_, args):
            return all(_reads_only(a, entity) for a in args)
        case _:
            return False


def not_(formula: Formula) -> Formula:
    """The contrary."""
    return Made(Make.NOT, (formula,))
