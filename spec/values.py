"""Concrete values and states: what the interpreter computes with, and what people and files see."""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from enum import Enum
from typing import Protocol, TypeVar, cast

from stagewright.spec.entities import Entity

K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)

_KEY = re.compile(r"\[[^\]]*\]")


class Printer(Protocol):
    """What Hypothesis and notebooks give to an object that shows itself."""

    def text(self, text: str) -> object:
        """Show text."""

    def pretty(self, obj: object) -> object:
        """Show another object."""


class FrozenMap(Mapping[K, V_co]):
    """An immutable, hashable mapping that keeps its order."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[K, V_co]) -> None:
        self._items = dict(items)
        self._hash: int | None = None

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """How Hypothesis and notebooks show it: as a dictionary."""
        assert not cycle, "what is immutable does not contain itself"
        printer.pretty(self._items)

    def __getitem__(self, key: K) -> V_co:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    # What `Mapping` makes of the three above, at once.

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[K]:
        return self._items.keys()

    def values(self) -> ValuesView[V_co]:
        return self._items.values()

    def items(self) -> ItemsView[K, V_co]:
        return self._items.items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self._items == cast("FrozenMap[object, object]", other)._items
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


Scalar = bool | int | Enum | Entity | None
Value = (
    bool
    | int
    | Enum
    | Entity
    | None
    | frozenset["Value"]
    | tuple["Value", ...]
    | FrozenMap["Value | str", "Value"]
    | str
)
State = FrozenMap[str, Value]


def show(value: Value) -> str:
    """A value as a person reads it: `write_both_read_old`, `node1`, `yes`, `{node0, node2}`, `none`."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Enum():
            return value.name
        case frozenset():
            return "{" + ", ".join(sorted(map(show, value))) + "}"
        case tuple():
            return "[" + ", ".join(map(show, value)) + "]"
        case FrozenMap():
            return "{" + ", ".join(f"{show(k)}: {show(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)


def path_name(path: tuple[Value, ...]) -> str:
    """A place as a person writes it: `learned[node0]`."""
    name, *keys = path
    return str(name) + "".join(f".{k}" if isinstance(k, str) else f"[{show(k)}]" for k in keys)


def flatten(name: str, value: Value) -> Iterator[tuple[str, Value]]:
    """The leaves of a variable's value, named as a person writes them: `learned[node0]`, `row.present`."""
    if isinstance(value, FrozenMap):
        for key, inner in value.items():
            yield from flatten(
                f"{name}.{key}" if isinstance(key, str) else f"{name}[{show(key)}]", inner
            )
    else:
        yield name, value


def summarised(leaves: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Leaves and their values as texts; `learned[*]` where all keys have one value."""
    families: dict[str, dict[str, str]] = {}
    for place, value in leaves.items():
        families.setdefault(_KEY.sub("[*]", place), {})[place] = value
    for pattern, values in families.items():
        if len(values) > 1 and len(set(values.values())) == 1:
            yield pattern, next(iter(values.values()))
        else:
            yield from values.items()


def plain(value: Value) -> object:
    """The value as JSON can hold it; enum members and entities become their names."""
    match value:
        case None | bool() | int() | str():
            return value
        case frozenset():
            return sorted(map(show, value))
        case tuple():
            return [plain(part) for part in value]
        case FrozenMap():
            return {k if isinstance(k, str) else show(k): plain(v) for k, v in value.items()}
        case _:
            return show(value)
