"""Where a running state lives: one sparse column for each leaf of a variable, keyed by what its maps range over.

Without keys a column is its value; under maps it is a dictionary of what is not the default, so that its
keys are an index. Values are those of the definition: members, entities, numbers, sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagewright.impl.runtime.layout import Layout, spread
from stagewright.impl.runtime.present import Live
from stagewright.impl.runtime.shapes import entities_named
from stagewright.spec.definition import AnyValue, Definition, Variable
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import Field, Node, Read, Select
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    KeySort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
    entities_of,
)
from stagewright.spec.values import FrozenMap, State

# (column, key) → value, or (column, key, member of the set there) → whether it is in. Without maps above
# it a column's key is None; under one map it is the map's key, under several the tuple of their keys.
Writes = dict[tuple[Any, ...], Any]


@dataclass(frozen=True)
class Column:
    """A leaf of a variable: `fields` lead to it through records, `keys` are the sorts of its maps."""

    index: int
    variable: Variable
    fields: tuple[str, ...]
    keys: tuple[KeySort, ...]
    sort: Sort  # a scalar, or a set
    default: Any  # of a variable that may start as anything: some value, None of an entity
    is_set: bool  # what it holds is a set, of which single members are written

    @property
    def name(self) -> str:
        """As a definition writes it: `tasks.life`."""
        return ".".join((self.variable.name, *self.fields))


def columns_of(definition: Definition) -> tuple[Column, ...]:
    """The columns of all variables, in their order."""
    found: list[Column] = []
    for variable in definition.variables:
        for fields, keys, sort, start in _leaves(variable.sort, variable.initial):
            default = _some(sort) if isinstance(start, AnyValue) else start
            is_set = isinstance(sort, SetSort)
            found.append(Column(len(found), variable, fields, keys, sort, default, is_set))
    return tuple(found)


_Leaf = tuple[tuple[str, ...], tuple[KeySort, ...], Sort, Any]


def _leaves(sort: Sort, start: Any) -> Iterator[_Leaf]:
    match sort:
        case MapSort(key, value):
            for fields, keys, leaf, one in _leaves(value, start):
                yield fields, (key, *keys), leaf, one
        case RecordSort(_, inner):
            for name, part in inner:
                of_part = start if isinstance(start, AnyValue) else start[name]
                for fields, keys, leaf, one in _leaves(part, of_part):
                    yield (name, *fields), keys, leaf, one
        case _:
            yield (), (), sort, start


def _some(sort: Sort) -> Any:
    """What a leaf holds that may start with any value, until it is said."""
    match sort:
        case BoolSort():
            return False
        case IntSort(low):
            return low
        case EnumSort():
            return sort.members[0]
        case SetSort():
            return frozenset[Any]()
        case SeqSort():
            return ()
        case OptionalSort() | EntitySort():
            return None
        case _:
            raise AssertionError(f"{sort} is no leaf")


def path_of(place: Node) -> tuple[str, tuple[str, ...], tuple[Node, ...]] | None:
    """Variable, fields and keys of a place; None if the node is no part of the old state."""
    match place:
        case Read(variable, _, False):
            return variable, (), ()
        case Select(base, key) if (found := path_of(base)) is not None:
            return found[0], found[1], (*found[2], key)
        case Field(base, name) if (found := path_of(base)) is not None:
            return found[0], (*found[1], name), found[2]
        case _:
            return None


class Cells:
    """One state: its columns, the living entities of each sort, and buckets by value of the indexed columns."""

    __slots__ = ("_shown", "buckets", "columns", "held", "layout", "live")

    def __init__(self, layout: Layout, live: Live) -> None:
        self.layout = layout
        self.columns = columns = layout.columns
        self._shown: dict[str, Any] = {}  # values of variables that were read since they changed
        self.held: list[Any] = [
            {} if c.keys else set(c.default) if c.is_set else c.default for c in columns
        ]
        self.live: dict[type[Entity], dict[Entity, int]] = {}
        self.buckets: dict[int, dict[Any, dict[Any, None]]] = {i: {} for i in layout.indexed}
        for kind, entities in live.items():
            self.live[kind] = {}
            for entity in entities:
                self.add(entity)

    def copy(self) -> Cells:
        """The same state, which changes by itself from now on."""
        made = Cells.__new__(Cells)
        made.layout, made.columns, made._shown = self.layout, self.columns, dict(self._shown)
        made.held = [
            held.copy() if type(held) is dict or type(held) is set else held for held in self.held
        ]
        for column in self.layout.sets_by_key:
            made.held[column] = {k: set(group) for k, group in self.held[column].items()}
        made.live = {kind: dict(members) for kind, members in self.live.items()}
        made.buckets = {
            i: {value: dict(keys) for value, keys in of.items()} for i, of in self.buckets.items()
        }
        return made

    # -- values --------------------------------------------------------------------------------------

    def read(self, column: int, key: Any) -> Any:
        """What a column holds at a key."""
        held = self.held[column]
        return held if key is None else held.get(key, self.columns[column].default)

    def put(self, writes: Writes) -> Writes:
        """Let writes count; what undoes them."""
        undo: Writes = {}
        all_held, columns, buckets = self.held, self.columns, self.buckets
        names, shown = self.layout.names, self._shown
        for where, value in writes.items():
            i, key = where[0], where[1]
            shown.pop(names[i], None)
            column, held = columns[i], all_held[i]
            if len(where) == 3:
                undo[where] = self._put_member(i, key, where[2], value)
            elif key is None:
                undo[where] = held
                all_held[i] = set(value) if column.is_set else value
            else:
                default = column.default
                undo[where] = old = held.get(key, default)
                if i in buckets:
                    found = buckets[i]
                    found.get(old, {}).pop(key, None)
                    found.setdefault(value, {})[key] = None
                if value == default:
                    held.pop(key, None)
                else:
                    held[key] = set(value) if column.is_set else value
        return undo

    def _put_member(self, i: int, key: Any, member: Any, value: bool) -> bool:
        """Let a member be in a set, or not; whether it was."""
        held = self.held[i]
        if key is None:
            was = member in held
            (held.add if value else held.discard)(member)
            return was
        default = self.columns[i].default
        group = held.get(key)
        was = member in (default if group is None else group)
        if was != value:
            if group is None:
                group = held[key] = set(default)
            (group.add if value else group.discard)(member)
            if group == default:
                del held[key]
        return was

    def reset(self, column: Column) -> None:
        """Let a column be as it starts."""
        i = column.index
        self._shown.pop(column.variable.name, None)
        if not column.keys:
            self.held[i] = set(column.default) if column.is_set else column.default
            return
        self.put({(i, key): column.default for key in list(self.held[i])})

    # -- entities ------------------------------------------------------------------------------------

    def add(self, entity: Entity) -> None:
        """An entity comes: everything of it is as at the beginning."""
        kind = type(entity)
        self._shown.clear()
        members = self.live.setdefault(kind, {})
        members[entity] = next(reversed(members.values()), -1) + 1
        for i, buckets in self.buckets.items():
            if self.columns[i].keys[0] == EntitySort(kind):
                buckets.setdefault(self.columns[i].default, {})[entity] = None

    def remove(self, entity: Entity) -> None:
        """An entity goes, with all that was said of it."""
        self._shown.clear()
        del self.live[type(entity)][entity]
        for column, held in zip(self.columns, self.held, strict=True):
            if any(type(entity) in entities_of(key) for key in column.keys):
                for key in [k for k in held if entity in _parts(column, k)]:
                    del held[key]
                for bucket in self.buckets.get(column.index, {}).values():
                    bucket.pop(entity, None)

    def named_by(self, entity: Entity) -> Iterator[str]:
        """The columns in which something else has this entity as its value or a member of it."""
        kind = type(entity)
        for column, held in zip(self.columns, self.held, strict=True):
            if kind not in entities_of(column.sort):
                continue
            own = any(kind in entities_of(key) for key in column.keys)
            values = (
                (v for k, v in held.items() if not (own and entity in _parts(column, k)))
                if column.keys
                else (held,)
            )
            if any(entity in entities_named(v) for v in values):
                yield column.name

    # -- whole states --------------------------------------------------------------------------------

    def state(self) -> State:
        """The values of all variables, every map over what lives at present."""
        return FrozenMap({name: self.value_of(name) for name in self.layout.readers})

    def value_of(self, name: str) -> Any:
        """The value of one variable."""
        if name not in self._shown:
            self._shown[name] = self.layout.readers[name](self.held, self.live)
        return self._shown[name]

    def load(self, values: Mapping[str, Any]) -> None:
        """Take over values of variables, as `state` gives them; others stay as they are."""
        for name in values:
            self._shown.pop(name, None)
            for column in self.layout.of[name]:
                self._load(column, spread(values[name], column))

    def _load(self, column: Column, found: Iterable[tuple[Any, Any]]) -> None:
        i = column.index
        if i in self.buckets or not column.keys:
            self.put({(i, key): value for key, value in found})
            return
        held, default = self.held[i], column.default
        for key, value in found:
            if value == default:
                held.pop(key, None)
            else:
                held[key] = set(value) if column.is_set else value


def _parts(column: Column, key: Any) -> tuple[Any, ...]:
    """What a key consists of; of records their fields."""
    keys = (key,) if len(column.keys) == 1 else key
    return tuple(p for k in keys for p in (k.values() if isinstance(k, FrozenMap) else (k,)))
