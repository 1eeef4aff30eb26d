"""The kinds that random machines are made of, random sorts, and random initial values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto

from tests.random_machines.choices import Choices

from stagewright.spec import (
    Entity,
    Record,
    States,
    flag,
    named,
    number,
    one_of,
    optional,
    per,
    set_of,
)
from stagewright.spec.declarations.records import record_sort
from stagewright.spec.definition import AnyValue, Variable
from stagewright.spec.sorts import (
    BagSort,
    BasicSort,
    BoolSort,
    EntitySort,
    EnumSort,
    FiniteSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, Value

MOST_STATES = 2_000  # of the whole machine, before its actions restrict them


class Node(Entity):
    """One entity sort."""


class Task(Entity):
    """Another entity sort."""


class Peer(Entity):
    """One of whose members has a name."""

    chief = named()


class Seat(Entity, ring=True):
    """In a ring."""


class Rank(Entity, ordered=True):
    """In a row."""


class Colour(Enum):
    """A plain enum."""

    red = auto()
    green = auto()


class Stage(States):
    """An enum with a column of every kind."""

    rest = True, 0, Colour.red, None, {Colour.red}
    moving = False, 2, Colour.green, Colour.red, {Colour.red, Colour.green}
    done = False, -1, Colour.red, Colour.green, set[Colour]()

    def __init__(
        self, idle: bool, rank: int, shade: Colour, other: Colour | None, shades: set[Colour]
    ) -> None:
        self.idle, self.rank, self.shade = idle, rank, shade
        self.other, self.shades = other, shades


class Row(Record):
    """A record of scalars."""

    present = flag()
    owner = optional(Node)


class Mail(Record):
    """A record as it is sent: of scalars."""

    colour = one_of(Colour)
    sender = one_of(Node)


class Letter(Record):
    """Another, with a number and a flag, and somebody or nobody."""

    stamp = number(0, 1)
    torn = flag()
    to = optional(Seat)


class Cart(Record):
    """A record with parts of its own."""

    size = number(0, 2)
    marks = per(Colour, flag())
    colours = set_of(Colour)
    stage = one_of(Stage, init=Stage.rest)


BOOL = BoolSort()
NODE, TASK = EntitySort(Node), EntitySort(Task)
PEER, SEAT, RANK = EntitySort(Peer), EntitySort(Seat), EntitySort(Rank)
COLOUR, STAGE = EnumSort(Colour), EnumSort(Stage)
ENUMS = (COLOUR, STAGE)
ENTITIES = (NODE, TASK, SEAT, RANK, PEER)
FINITE: tuple[EnumSort | EntitySort, ...] = (COLOUR, NODE, STAGE, TASK, SEAT, RANK, PEER)
MAIL, LETTER = record_sort(Mail), record_sort(Letter)
RECORDS = (record_sort(Row), record_sort(Cart), MAIL, LETTER)
SENT: tuple[RecordSort, ...] = (MAIL, LETTER)
COUNTED: tuple[FiniteSort, ...] = (MAIL, COLOUR, NODE)

Sizes = Mapping[type[Entity], int]


def size_of(sort: Sort, sizes: Sizes) -> int:
    """How many values a sort has."""
    match sort:
        case BoolSort():
            return 2
        case IntSort(low, high):
            return high - low + 1
        case EnumSort():
            return len(sort.members)
        case EntitySort(kind):
            return sizes[kind]
        case OptionalSort(element):
            return 1 + size_of(element, sizes)
        case SetSort(element):
            return int(2 ** size_of(element, sizes))
        case MapSort(key, value):
            return int(size_of(value, sizes) ** size_of(key, sizes))
        case RecordSort(_, fields):
            product = 1
            for _, field in fields:
                product *= size_of(field, sizes)
            return product
        case SeqSort(element, capacity):
            one = size_of(element, sizes)
            return sum(one**length for length in range(capacity + 1))


def can_be_named(sort: EntitySort) -> bool:
    """Whether a definition can name a member: the first one, at every scope."""
    return sort.kind.is_ordered or bool(sort.kind.member_names)


def int_sort(choices: Choices) -> IntSort:
    """A range of two to four numbers, some of them below zero."""
    low = choices.pick((0, 1, -1))
    return IntSort(low, low + choices.number(1, 3))


def basic_sort(choices: Choices) -> BasicSort:
    """A sort without parts."""
    makers: tuple[Callable[[], BasicSort], ...] = (
        lambda: BOOL,
        lambda: choices.pick(ENUMS),
        lambda: int_sort(choices),
        lambda: choices.pick(ENTITIES),
    )
    return choices.pick(makers)()


def any_sort(choices: Choices, depth: int = 2) -> Sort:
    """Any sort that a variable can have; maps are nested up to `depth`."""
    kind = choices.number(0, 13 if depth else 10)
    if kind <= 3:
        return basic_sort(choices)
    if kind == 4:
        return OptionalSort(choices.pick(FINITE))
    if kind == 5:
        return SetSort(choices.pick(FINITE))
    if kind == 6:
        return choices.pick(RECORDS)
    if kind == 7:
        return SetSort(choices.pick(SENT))
    if kind == 8:
        return BagSort(choices.pick(COUNTED), IntSort(0, choices.number(1, 2)))
    if kind in {9, 10}:
        return SeqSort(sent_sort(choices), choices.pick((2, 1, 3)))
    key = int_sort(choices) if choices.chance(20) else choices.pick(FINITE)
    return MapSort(key, any_sort(choices, depth - 1))


def sent_sort(choices: Choices) -> BasicSort | RecordSort:
    """What stands in a queue."""
    makers: tuple[Callable[[], BasicSort | RecordSort], ...] = (
        lambda: basic_sort(choices),
        lambda: choices.pick(SENT),
    )
    return choices.pick(makers)()


def initial_value(choices: Choices, sort: Sort) -> Value | AnyValue:
    """What a variable may be declared to start with; below maps, as declarations are."""
    if choices.chance(25):
        return AnyValue.ANY
    match sort:
        case BoolSort():
            return choices.chance(50)
        case IntSort(low, high):
            return choices.number(low, high)
        case EnumSort():
            return choices.pick(sort.members)
        case EntitySort(kind):
            return kind(0) if can_be_named(sort) else AnyValue.ANY
        case OptionalSort(element):
            unnamed = isinstance(element, EntitySort) and not can_be_named(element)
            if unnamed or choices.chance(50):
                return None
            return initial_value(choices, element)
        case SetSort(element):
            if isinstance(element, EntitySort | RecordSort):
                return frozenset()
            return frozenset(m for m in element.members if choices.chance(50))
        case BagSort():
            return 0
        case MapSort(_, value):
            return initial_value(choices, value)
        case SeqSort():
            return ()
        case RecordSort(_, fields):
            parts = {name: initial_value(choices, field) for name, field in fields}
            return FrozenMap(parts)  # type: ignore[arg-type]  # a field may start with any value


def starts(sort: Sort, initial: Value | AnyValue, sizes: Sizes) -> int:
    """How many values a variable may start with."""
    match sort:
        case _ if initial is AnyValue.ANY:
            return size_of(sort, sizes)
        case MapSort(key, value):
            return int(starts(value, initial, sizes) ** size_of(key, sizes))
        case RecordSort(_, fields):
            assert isinstance(initial, FrozenMap)
            product = 1
            for name, field in fields:
                product *= starts(field, initial[name], sizes)
            return product
        case _:
            return 1


def variables(choices: Choices, sizes: Sizes) -> tuple[Variable, ...]:
    """One to four variables that together have no more than `MOST_STATES` values."""
    found: list[Variable] = []
    room, candidates = MOST_STATES, 40
    for index in range(choices.pick((3, 2, 4, 1, 3, 5))):
        sort = any_sort(choices)
        if size_of(sort, sizes) > room:
            sort = BOOL
        initial = initial_value(choices, sort)
        if starts(sort, initial, sizes) > candidates:
            sort, initial = BOOL, False
        room //= size_of(sort, sizes)
        candidates //= starts(sort, initial, sizes)
        constant = index > 0 and choices.chance(8)
        found.append(Variable(f"v{index}", sort, initial, constant))
    return tuple(found)
