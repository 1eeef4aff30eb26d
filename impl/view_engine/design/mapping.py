"""What a map function makes of documents, and the map functions that are Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple, Protocol

from stagewright.impl.view_engine.design.emitted import Emitted, EmittedRows
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.documents.changes import Change, Changes

MapFunction = Callable[[Any, Mapping[str, str]], Iterable[tuple[object, object]]]


class MappingStoppedError(Exception):
    """Nobody wants what the map functions emit any more."""


def never_stopped() -> bool:
    """For callers that wait for the end."""
    return False


class MapError(NamedTuple):
    """A map function failed on a document: it has no rows in that view."""

    doc_id: str
    map_number: int
    message: str


class Mapped(NamedTuple):
    """What all map functions of a design document made of one change."""

    change: Change
    rows: Sequence[Sequence[Emitted]]  # by map function; none for a deleted document


class MappedBatch(NamedTuple):
    """What all map functions of a design document made of a batch of changes."""

    changes: Changes
    columns: Sequence[EmittedRows]  # by map function

    def documents(self) -> list[Mapped]:
        """Change by change."""
        rows = zip(*self.columns, strict=True)
        return [Mapped(change, of) for change, of in zip(self.changes, rows, strict=True)]

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        return sum(column.size for column in self.columns) + 64 * len(self.changes)


class Mapper(Protocol):
    """One map function, over batches. Failures are given back, by document; nothing is raised for them."""

    def run(self, changes: Changes) -> tuple[EmittedRows, list[tuple[int, str]]]:
        """The rows of each change, and what failed: which change, and why."""
        ...


@dataclass(frozen=True)
class PythonMapper:
    """Calls a Python function `(doc, meta) → (key, value) pairs` for each document."""

    function: MapFunction

    def run(self, changes: Changes) -> tuple[EmittedRows, list[tuple[int, str]]]:
        rows: list[Sequence[Emitted]] = []
        failed: list[tuple[int, str]] = []
        for number, change in enumerate(changes):
            found: list[Emitted] = []
            if change.body is not None:
                meta = {"id": change.doc_id.decode("utf-8", "replace")}
                try:
                    emitted = self.function(json.loads(change.body), meta) or ()
                    found = [(json_text(key), json_text(value)) for key, value in emitted]
                except Exception as error:  # noqa: BLE001 - it is the user's function
                    failed.append((number, f"{type(error).__name__}: {error}"))
                    found = []
            rows.append(found)
        return EmittedRows.of(rows), failed


def function_identity(function: Callable[..., object]) -> str:
    """What makes a Python function this one: its code and constants, not where it stands."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(
            f"{function!r} is no Python function: a map or reduce is a `def` or a lambda"
        )
    closure = getattr(function, "__closure__", None) or ()
    cells = [repr(cell.cell_contents) for cell in closure]
    text = repr((_code_identity(code), getattr(function, "__defaults__", None), cells))
    return hashlib.sha256(text.encode()).hexdigest()


def _code_identity(code: CodeType) -> object:
    constants = [_code_identity(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames
