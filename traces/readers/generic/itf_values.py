"""States of the Informal Trace Format (ITF) as events observe them: by leaf, in plain values.

The format: https://apalache-mc.org/docs/adr/015adr-trace.html. What it writes is known by its form alone, so that
runs of other tools are read like our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

# A member of an uninterpreted type, as Apalache writes it: `1_OF_NODE`.
_MEMBER = re.compile(r"(\w+)_OF_([A-Za-z_]\w*)", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,40}", re.ASCII)
_UNIT = ("U_OF_UNIT", "UNIT")


class WrongValueError(Exception):
    """A value that no machine has."""


def leaves_of(name: str, value: object) -> Iterator[tuple[str, object]]:
    """The leaves of a variable's value, named as events name them: `learned[node0]`, `row.present`."""
    match value:
        case {"#map": pairs}:
            for pair in _list(pairs, name):
                if not (isinstance(pair, list) and len(cast("list[object]", pair)) == 2):
                    raise WrongValueError(f"`{name}` has a pair that is none: {_shown(pair)}")
                key, inner = cast("list[object]", pair)
                yield from leaves_of(f"{name}[{_key(key, name)}]", inner)
        case {"#unserializable": _}:
            return  # what the tool could not write is not observed
        case {"tag": "Some", "value": inner}:
            yield from leaves_of(name, inner)
        case {"tag": _} | {"#bigint": _} | {"#set": _} | {"#tup": _}:
            yield name, plain(value, name)
        case dict():
            for field, inner in cast("dict[str, object]", value).items():
                if not field.startswith("#"):
                    yield from leaves_of(f"{name}.{field}", inner)
        case _:
            yield name, plain(value, name)


def plain(value: object, name: str) -> object:
    """A value without fields as plain JSON: members by name, sets as lists of them."""
    match value:
        case bool() | int() | None:
            return value
        case str():
            return _member(value)
        case {"#bigint": str(digits)} if _INTEGER.fullmatch(digits):
            return int(digits)
        case {"#set": members} | {"#tup": members}:
            return [plain(member, name) for member in _list(members, name)]
        case {"tag": "None"}:
            return None
        case {"tag": "Some", "value": inner}:
            return plain(inner, name)
        case {"tag": str(tag), **rest} if _is_unit(rest.get("value")):
            return tag
        case _:
            raise WrongValueError(f"`{name}` is {_shown(value)}")


def _is_unit(value: object) -> bool:
    return value in (None, *_UNIT) or value in ({}, {"#tup": []})


def _member(text: str) -> str:
    """A member's name in our form: `1_OF_NODE` is `node1`; of another name only the type is dropped."""
    found = _MEMBER.fullmatch(text)
    if found is None:
        return text
    return f"{found[2].lower()}{found[1]}" if found[1].isdigit() else found[1]


def _key(key: object, name: str) -> str:
    found = plain(key, name)
    if isinstance(found, str):
        return found
    if isinstance(found, bool) or not isinstance(found, int):
        raise WrongValueError(f"`{name}` has the key {_shown(key)}")
    return str(found)


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise WrongValueError(f"`{name}` is {_shown(value)}, not a list")
    return cast("list[object]", value)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def picks_of(picks: object) -> dict[str, object]:
    """The values that were picked for a step, by the name of the parameter."""
    found: dict[str, object] = {}
    if isinstance(picks, Mapping):
        for name, pick in cast("Mapping[str, object]", picks).items():
            match pick:
                case {"tag": "Some", "value": inner}:
                    found[name] = plain(inner, name)
                case {"tag": "None"}:
                    pass
                case _ if not name.startswith("#"):
                    found[name] = plain(pick, name)
                case _:
                    pass
    return found
