"""The columns of a definition, with how whole values of variables are read from them and spread over them.

It is made once a definition: what depends on sorts alone is decided here, not whenever an instance is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stagewright.impl.runtime.present import Live, values_now
from stagewright.spec.definition import Definition
from stagewright.spec.sorts import EntitySort, MapSort, RecordSort, Sort
from stagewright.spec.values import FrozenMap

if TYPE_CHECKING:
    from stagewright.impl.runtime.columns import Column

Reader = Callable[[list[Any], Live], Any]
"""A variable's value, of what all columns hold and the entities that live."""
_Part = Callable[[list[Any], Live, tuple[Any, ...]], Any]
_OfVariable = Mapping[tuple[str, ...], "Column"]  # by fields


class Layout:
    """The columns of a definition; `indexed` are those with buckets."""

    def __init__(
        self, definition: Definition, columns: tuple[Column, ...], indexed: Collection[int]
    ) -> None:
        self.columns = columns
        self.indexed = indexed
        self.names = tuple(c.variable.name for c in columns)  # of the variables, by column
        self.sets_by_key = tuple(c.index for c in columns if c.is_set and c.keys)
        self.of: dict[str, tuple[Column, ...]] = {
            v.name: tuple(c for c in columns if c.variable.name == v.name)
            for v in definition.variables
        }
        self.readers: dict[str, Reader] = {
            v.name: _reader(v.sort, {c.fields: c for c in self.of[v.name]})
            for v in definition.variables
        }


def _reader(sort: Sort, of: _OfVariable) -> Reader:
    match sort:
        case MapSort(EntitySort(kind), inner) if not isinstance(inner, MapSort | RecordSort):
            column = of[()]
            i, default, is_set = column.index, column.default, column.is_set

            def sets(held: list[Any], live: Live) -> Any:
                get = held[i].get
                return FrozenMap({k: frozenset(get(k, default)) for k in live.get(kind, ())})

            def values(held: list[Any], live: Live) -> Any:
                get = held[i].get
                return FrozenMap({k: get(k, default) for k in live.get(kind, ())})

            return sets if is_set else values
        case _:
            part = _part(sort, (), of)
            return lambda held, live: part(held, live, ())


def _part(sort: Sort, fields: tuple[str, ...], of: _OfVariable) -> _Part:
    """What lies below some fields, as a function of the keys above it, too."""
    match sort:
        case MapSort(key, inner):
            of_inner = _part(inner, fields, of)
            return lambda held, live, keys: FrozenMap(
                {k: of_inner(held, live, (*keys, k)) for k in values_now(key, live)}
            )
        case RecordSort(_, parts):
            inside = [(name, _part(one, (*fields, name), of)) for name, one in parts]
            return lambda held, live, keys: FrozenMap(
                {name: one(held, live, keys) for name, one in inside}
            )
        case _:
            return _leaf(of[fields])


def _leaf(column: Column) -> _Part:
    i, default, is_set = column.index, column.default, column.is_set

    def read(held: list[Any], _: Live, keys: tuple[Any, ...]) -> Any:
        found = held[i].get(key_of(keys), default) if keys else held[i]
        return frozenset(found) if is_set else found

    return read


def key_of(keys: tuple[Any, ...]) -> Any:
    """What a column has its value at, for these keys of its maps."""
    return None if not keys else keys[0] if len(keys) == 1 else keys


def spread(value: Any, column: Column) -> Iterator[tuple[Any, Any]]:
    """The values of one column in its variable's value, each with its key."""
    sort = column.variable.sort
    if not column.keys and not column.fields:
        return iter(((None, value),))
    if isinstance(sort, MapSort) and not isinstance(sort.value, MapSort | RecordSort):
        return iter(value.items())
    found = _spread(value, sort, column.fields, ())
    return ((key_of(keys), one) for keys, one in found)


def _spread(
    value: Any, sort: Sort, fields: tuple[str, ...], keys: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    match sort:
        case MapSort(_, inner):
            for key, one in value.items():
                yield from _spread(one, inner, fields, (*keys, key))
        case RecordSort():
            yield from _spread(value[fields[0]], sort.field(fields[0]), fields[1:], keys)
        case _:
            yield keys, value
