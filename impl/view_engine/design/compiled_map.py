"""A declared map as a program for `run_declared`, where it only copies what stands in the documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.design.declaration import (
    Condition,
    Declared,
    DocumentId,
    Expression,
    Path,
    names_of,
)
from stagewright.impl.view_engine.design.emit_loops import (
    DOCUMENT_ID,
    LITERAL,
    PLACE,
    ROW,
    SLOW,
    run_declared,
)
from stagewright.impl.view_engine.design.emitted import EmittedRows
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.design.scan_loops import is_kept
from stagewright.impl.view_engine.documents.changes import Changes

Array = NDArray[Any]


class _NotCompiledError(Exception):
    """The map needs Python for each document."""


@dataclass
class _Program:
    """Collects what expressions refer to."""

    text: bytearray = field(default_factory=lambda: bytearray(b"null"))
    paths: dict[tuple[str, ...], int] = field(default_factory=dict)

    def place(self, path: Path) -> int:
        names = names_of(path)
        if not names or names[0].startswith("\0"):
            raise _NotCompiledError
        return self.paths.setdefault(names, len(self.paths))

    def literal(self, text: bytes) -> tuple[int, int]:
        start = len(self.text)
        self.text += text
        return start, len(self.text)

    def pieces(self, expression: Expression) -> list[tuple[int, int, int]]:
        match expression:
            case Path():
                return [(PLACE, self.place(expression), 0)]
            case DocumentId():
                return [(DOCUMENT_ID, 0, 0)]
            case list():
                made = [(LITERAL, *self.literal(b"["))]
                for number, part in enumerate(expression):
                    if number:
                        made.append((LITERAL, *self.literal(b",")))
                    made += self.pieces(part)
                return [*made, (LITERAL, *self.literal(b"]"))]
            case _:
                return [(LITERAL, *self.literal(json_text(expression)))]

    def condition(self, condition: Condition) -> tuple[int, int, int, int]:
        constant = condition.constant
        if isinstance(constant, bool) or not isinstance(constant, str | int | float | None):
            raise _NotCompiledError
        text = json_text(constant)
        if not is_kept(_array(text), 0, len(text)):
            raise _NotCompiledError
        place = self.place(Path(*condition.names))
        return place, *self.literal(text), int(condition.operator == "==")


class CompiledMap:
    """Runs one declared map over the text of documents."""

    def __init__(self, program: _Program, tables: Sequence[Array]) -> None:
        names = [name.encode() for path in program.paths for name in path]
        ends = np.cumsum([len(path) for path in program.paths], dtype=np.int64)
        paths = np.stack([ends - [len(path) for path in program.paths], ends], axis=1)
        name_at = np.cumsum([0, *(len(name) for name in names)], dtype=np.int64)
        self._program = (
            _array(bytes(program.text)),
            _array(b"".join(names)),
            name_at,
            paths.astype(np.int64),
            *tables,
        )

    @classmethod
    def of(cls, declared: Declared) -> CompiledMap | None:
        """None for what needs Python: `each`, whole documents, comparisons with lists or booleans."""
        program = _Program()
        try:
            where = [program.condition(condition) for condition in declared.where]
            key, value = program.pieces(declared.key), program.pieces(declared.value)
        except (_NotCompiledError, TypeError, ValueError):
            return None
        if declared.each is not None or not program.paths:
            return None
        tables = [
            np.array(rows, np.int64).reshape(-1, width)
            for rows, width in ((where, 4), (key, 3), (value, 3))
        ]
        return cls(program, tables)

    def run(self, changes: Changes) -> tuple[EmittedRows, list[int]] | None:
        """The rows, and which changes Python must map (they have none); None if that is all of them."""
        bodies, ids = changes.body_texts, changes.id_texts
        if not bodies.is_text:
            return None
        keys, key_ends, values, value_ends, status = run_declared(*bodies, *ids, *self._program)
        rows = status == ROW
        emitted = EmittedRows(keys, key_ends[rows], values, value_ends[rows], np.cumsum(rows))
        left = [
            number
            for number in np.flatnonzero(status == SLOW).tolist()
            if changes.bodies[number] is not None
        ]
        return emitted, left


def _array(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)
