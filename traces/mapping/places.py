"""Where the keys of a TOML file stand, so that what is wrong with one can be reported with its line."""

from __future__ import annotations

import tomllib
from typing import cast

KeyPath = tuple[str | int, ...]  # keys; of an array of tables also the index, from 0


def lines_of_keys(text: str) -> dict[KeyPath, int]:
    """The line of each key and of each table's head, counted from 1."""
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    head: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("[["):
            name = _keys(stripped[2:].partition("]]")[0])
            counts[name] = counts.get(name, -1) + 1
            head = (*name, counts[name])
        elif stripped.startswith("["):
            head = _within_arrays(_keys(stripped[1:].partition("]")[0]), counts)
        elif keys := _key_before_equals(stripped):
            lines.setdefault((*head, *keys), number)
            continue
        else:
            continue
        lines.setdefault(head, number)
    return lines


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a key, or of the nearest one that it is part of."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


def named(path: KeyPath) -> str:
    """A key as a person writes it: `source.form`, `event 2, observed.stage`."""
    if len(path) > 1 and isinstance(path[1], int):
        rest = named(path[2:])
        return f"{path[0]} {path[1] + 1}" + (f", {rest}" if rest else "")
    return ".".join(str(part) for part in path)


def _within_arrays(name: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """The path of `[event.observed]`, which speaks of the last `[[event]]`."""
    if name[:1] in counts and len(name) > 1:
        return (*name[:1], counts[name[:1]], *name[1:])
    return name


def _key_before_equals(line: str) -> KeyPath:
    """The key of a line `key = value`; nothing if it is none."""
    end = line.find("=")
    while end > 0:
        if keys := _keys(line[:end]):
            return keys
        end = line.find("=", end + 1)
    return ()


def _keys(text: str) -> KeyPath:
    try:
        found: object = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str | int] = []
    while isinstance(found, dict):
        table = cast("dict[str, object]", found)
        key = next(iter(table))
        keys.append(key)
        found = table[key]
    return tuple(keys)
