"""Keeps what readers of logs extracted, in Parquet: lines of logs mean something only together, in later runs too.

A record is a reader's own: a dataclass, a named tuple or an enum's member of plain values. Each is kept as JSON
that names its class and fields; what another version of a reader has kept is refused, not guessed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from stagewright.spec.errors import InputError
from stagewright.spec.values import FrozenMap
from stagewright.traces.mapping.plan import Plan

_OURS = "stagewright."  # no other module's classes are made of what a file says
_BEGIN_ANEW = "begin anew with an empty --state directory"

Records = dict[int, list[Any]]  # by part


def save_records(records: Mapping[int, Iterable[Any]], path: Path) -> None:
    """Write records to a file.

    Raises:
        OSError: there is no room.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    encode = _Encoder()
    parts: list[int] = []
    texts: list[str] = []
    for part, found in records.items():
        for record in found:
            parts.append(part)
            texts.append(json.dumps(encode(record), separators=(",", ":")))
    table = pa.table({"part": pa.array(parts, pa.int64()), "record": pa.array(texts, pa.string())})
    classes = json.dumps([[_name_of(c), _shape(c)] for c in encode.classes])
    table = table.replace_schema_metadata({"classes": classes})
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def load_records(path: Path, mapping: object = None) -> Records:
    """The records of a file that `save_records` wrote; `mapping` is the plan that those of mapped files have.

    Raises:
        InputError: the file is damaged, or of another version of a reader.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: Records = {}
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        classes = json.loads((table.schema.metadata or {})[b"classes"])
        decode = _Decoder([_class_of(name, shape, path) for name, shape in classes], mapping)
        pairs = zip(table["part"].to_pylist(), table["record"].to_pylist(), strict=True)
        for part, text in pairs:
            found.setdefault(part, []).append(decode(json.loads(text)))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, IndexError) as error:
        raise InputError(f"{path} cannot be read: {error}", help=_BEGIN_ANEW) from error
    return found


class _Encoder:
    """Makes JSON of records: lists and plain values are as they are, all else is an object with one key."""

    def __init__(self) -> None:
        self.classes: list[type] = []
        self._numbers: dict[type, int] = {}
        self._fields: dict[type, tuple[str, ...]] = {}

    def __call__(self, value: Any) -> Any:
        kind: type = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is bytes:
            return {"b": value.hex()}
        if kind is list:
            return [self(v) for v in value]
        if kind is tuple:
            return {"t": [self(v) for v in value]}
        if kind is frozenset:
            return {"f": sorted((self(v) for v in value), key=json.dumps)}
        if kind is FrozenMap:
            return {"m": self._pairs(value)}
        if isinstance(value, dict):
            return {"d": self._pairs(cast("dict[object, object]", value))}
        if kind is Plan:
            return {"p": 0}  # that of the mapping file, which is the same in all runs
        if isinstance(value, Enum):
            return {"e": [self._number(kind), value.name]}
        names = self._fields.get(kind) or self._fields.setdefault(kind, _field_names(kind))
        return {"c": [self._number(kind), *(self(getattr(value, name)) for name in names)]}

    def _pairs(self, items: Mapping[Any, Any]) -> list[list[Any]]:
        return [[self(k), self(v)] for k, v in items.items()]

    def _number(self, kind: type) -> int:
        number = self._numbers.setdefault(kind, len(self.classes))
        if number == len(self.classes):
            assert kind.__module__.startswith(_OURS), kind
            self.classes.append(kind)
        return number


class _Decoder:
    """The way back."""

    def __init__(self, classes: list[Any], mapping: object) -> None:
        self._classes = classes
        self._mapping = mapping

    def __call__(self, found: Any) -> Any:
        if isinstance(found, list):
            return [self(one) for one in found]
        if not isinstance(found, dict):
            return found
        ((key, value),) = cast("dict[str, Any]", found).items()
        return _MADE[key](self, value)

    def _pairs(self, value: list[list[Any]]) -> dict[Any, Any]:
        return {self(k): self(v) for k, v in value}

    def _instance(self, value: list[Any]) -> Any:
        return self._classes[value[0]](*[self(one) for one in value[1:]])


_MADE: dict[str, Callable[[_Decoder, Any], Any]] = {
    "b": lambda _, value: bytes.fromhex(value),
    "t": lambda decode, value: tuple(decode(one) for one in value),
    "f": lambda decode, value: frozenset(decode(one) for one in value),
    "m": lambda decode, value: FrozenMap(decode._pairs(value)),
    "d": lambda decode, value: decode._pairs(value),
    "p": lambda decode, _: decode._mapping,
    "e": lambda decode, value: decode._classes[value[0]][value[1]],
    "c": lambda decode, value: decode._instance(value),
}


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a record's class, in the order in which it is made of them."""
    if is_dataclass(kind):
        assert all(f.init for f in fields(kind)), kind
        return tuple(f.name for f in fields(kind))
    found = getattr(kind, "_fields", None)
    assert found is not None, f"a reader's record is a dataclass or a named tuple, not {kind}"
    return tuple(found)


def _shape(kind: type) -> list[str]:
    """What has to be the same for records of a class to mean the same."""
    if issubclass(kind, Enum):
        return [member.name for member in kind]
    return list(_field_names(kind)) if is_dataclass(kind) or hasattr(kind, "_fields") else []


def _class_of(name: str, shape: list[str], path: Path) -> type:
    module, _, qualified = name.partition(":")
    found: Any = None
    if module.startswith(_OURS):
        with contextlib.suppress(ImportError, AttributeError):
            found = import_module(module)
            for part in qualified.split("."):
                found = getattr(found, part)
    if not isinstance(found, type) or _shape(found) != shape:
        raise InputError(
            f"{path} was written by another version of a reader: {name} is not what it was",
            help=f"{_BEGIN_ANEW}, and give all logs again",
        )
    return found
