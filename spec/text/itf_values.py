"""Single values in the Informal Trace Format, and back; the sort says what a JSON value means."""

from __future__ import annotations

import re
from enum import Enum
from typing import NoReturn, assert_never, cast

from stagewright.spec.entities import Entity, member_of_name
from stagewright.spec.errors import InputError
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, Value, show

Json = bool | int | str | list["Json"] | dict[str, "Json"] | None

_NOTHING: Json = {"tag": "None", "value": {"#tup": []}}
_INTEGER = re.compile(r"-?[0-9]{1,40}", re.ASCII)


def to_json(value: Value, sort: Sort) -> Json:
    """The value as ITF writes it: enum members and entities by name, integers as `#bigint`."""
    match sort:
        case BoolSort():
            return bool(value)
        case IntSort():
            return {"#bigint": str(value)}
        case EnumSort() | EntitySort():
            return show(value)
        case OptionalSort(element):
            return _NOTHING if value is None else {"tag": "Some", "value": to_json(value, element)}
        case SetSort(element):
            assert isinstance(value, frozenset)
            return {"#set": [to_json(v, element) for v in sorted(value, key=_order)]}
        case MapSort(key, inner):
            assert isinstance(value, FrozenMap)
            return {"#map": [[to_json(k, key), to_json(v, inner)] for k, v in value.items()]}
        case RecordSort(_, fields):
            assert isinstance(value, FrozenMap)
            return {name: to_json(value[name], inner) for name, inner in fields}
        case SeqSort(element):
            assert isinstance(value, tuple)
            return [to_json(v, element) for v in value]
        case _:
            assert_never(sort)


def from_json(value: object, sort: Sort, where: str) -> Value:
    """The value of a sort that ITF's JSON stands for.

    Raises:
        InputError: it is not a value of the sort; `where` names the place in the document.
    """
    match sort:
        case BoolSort():
            return value if isinstance(value, bool) else _refuse(value, sort, where)
        case IntSort():
            return _integer(value, sort, where)
        case EnumSort(kind):
            member = kind.__members__.get(value) if isinstance(value, str) else None
            return member if isinstance(member, Enum) else _refuse(value, sort, where)
        case EntitySort(kind):
            found = member_of_name(kind, value) if isinstance(value, str) else None
            return found or _refuse(value, sort, where)
        case OptionalSort(element):
            return _optional(value, sort, element, where)
        case SetSort(element):
            listed = expect_list(_tagged(value, "#set", sort, where), where)
            return frozenset(from_json(v, element, where) for v in listed)
        case SeqSort(element, capacity):
            items = expect_list(value, where)
            if len(items) > capacity:
                _refuse(value, sort, where)
            return tuple(from_json(v, element, f"{where}[{i}]") for i, v in enumerate(items))
        case MapSort():
            return _map(value, sort, where)
        case RecordSort(_, fields):
            body = expect_object(value, where)
            if set(body) != {name for name, _ in fields}:
                _refuse(value, sort, where)
            read: dict[Value | str, Value] = {
                name: from_json(body[name], inner, f"{where}.{name}") for name, inner in fields
            }
            return FrozenMap(read)
        case _:
            assert_never(sort)


def type_name(sort: Sort) -> str:
    """The sort in Apalache's type syntax."""
    match sort:
        case BoolSort():
            return "Bool"
        case IntSort():
            return "Int"
        case EnumSort() | EntitySort():
            return "Str"
        case OptionalSort(element):
            return f"None({{}}) | Some({type_name(element)})"
        case SetSort(element):
            return f"Set({type_name(element)})"
        case MapSort(key, value):
            return f"{type_name(key)} -> {type_name(value)}"
        case RecordSort(_, fields):
            return "{ " + ", ".join(f"{n}: {type_name(s)}" for n, s in fields) + " }"
        case SeqSort(element):
            return f"Seq({type_name(element)})"
        case _:
            assert_never(sort)


def expect_object(value: object, where: str) -> dict[str, object]:
    """A JSON object, or an error that names the place."""
    found = as_object(value)
    if found is None:
        raise InputError(f"{where} is no JSON object", help="see ADR-015 of Apalache for ITF")
    return found


def as_object(value: object) -> dict[str, object] | None:
    """A JSON object; None if it is something else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _as_list(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def expect_list(value: object, where: str) -> list[object]:
    """A JSON array, or an error that names the place."""
    found = _as_list(value)
    if found is None:
        raise InputError(f"{where} is no JSON array", help="see ADR-015 of Apalache for ITF")
    return found


def _integer(value: object, sort: IntSort, where: str) -> int:
    tagged = as_object(value)
    text = value if tagged is None else tagged.get("#bigint")
    if isinstance(text, str) and _INTEGER.fullmatch(text):
        text = int(text)
    if isinstance(text, bool) or not isinstance(text, int) or not sort.low <= text <= sort.high:
        _refuse(value, sort, where)
    return text


def _optional(value: object, sort: OptionalSort, element: Sort, where: str) -> Value:
    tagged = as_object(value) or {}
    if tagged.get("tag") == "None":
        return None
    if tagged.get("tag") == "Some" and "value" in tagged:
        return from_json(tagged["value"], element, where)
    return _refuse(value, sort, where)


def _map(value: object, sort: MapSort, where: str) -> Value:
    pairs: dict[Value | str, Value] = {}
    for listed in expect_list(_tagged(value, "#map", sort, where), where):
        pair = _as_list(listed)
        if pair is None or len(pair) != 2:
            _refuse(value, sort, where)
        key = from_json(pair[0], sort.key, where)
        if key in pairs:
            raise InputError(f"{where} has the key {show(key)} twice")
        pairs[key] = from_json(pair[1], sort.value, f"{where}[{show(key)}]")
    if isinstance(sort.key, EnumSort) and set(pairs) != set(sort.key.members):
        raise InputError(f"{where} does not have every key", help=f"it is {sort}: a total map")
    return FrozenMap(pairs)


def _tagged(value: object, tag: str, sort: Sort, where: str) -> object:
    tagged = as_object(value)
    if tagged is None or tag not in tagged:
        _refuse(value, sort, where)
    return tagged[tag]


def _order(value: Value) -> tuple[int, str]:
    return (value.index, "") if isinstance(value, Entity) else (0, show(value))


def _refuse(value: object, sort: Sort, where: str) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:58] + "…"
    raise InputError(f"{where} is {shown}", help=f"it must be {sort}")
