"""Runs declared map functions: as compiled loops over the text where they can, else in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from stagewright.impl.view_engine.design.compiled_map import CompiledMap
from stagewright.impl.view_engine.design.declaration import (
    Condition,
    Declared,
    DocumentId,
    Expression,
    Path,
    names_of,
)
from stagewright.impl.view_engine.design.emitted import Emitted, EmittedRows
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.documents.changes import Change, Changes

_MISSING = object()

Getter = Callable[[Any, str, object], object]  # (document, its id, list element) → value


class DeclaredMapper:
    """Runs a declared map function over batches."""

    def __init__(self, declared: Declared) -> None:
        self._compiled = CompiledMap.of(declared)
        self._key = _getter(declared.key)
        self._emitted = _getter(declared.value)
        self._where = declared.where
        self._each = declared.each

    def run(self, changes: Changes) -> tuple[EmittedRows, list[tuple[int, str]]]:
        found = self._compiled.run(changes) if self._compiled is not None else None
        failed: list[tuple[int, str]] = []
        if found is None:
            return EmittedRows.of(
                [self._mapped(n, c, failed) for n, c in enumerate(changes)]
            ), failed
        emitted, left = found
        if not left:
            return emitted, failed
        rows = [*emitted]
        for number in left:
            rows[number] = self._mapped(number, changes[number], failed)
        return EmittedRows.of(rows), failed

    def _mapped(
        self, number: int, change: Change, failed: list[tuple[int, str]]
    ) -> Sequence[Emitted]:
        if change.body is None:
            return ()
        try:
            document = json.loads(change.body)
        except ValueError as error:
            failed.append((number, f"the document is not JSON: {error}"))
            return ()
        try:
            return self._rows(document, change.doc_id.decode("utf-8", "replace"))
        except ValueError as error:  # NaN, or infinity
            failed.append((number, f"what it emits is not JSON: {error}"))
            return ()

    def _rows(self, document: object, doc_id: str) -> Sequence[Emitted]:
        for condition in self._where:
            if not _holds(condition, document):
                return ()
        if self._each is None:
            return self._row(document, doc_id, None)
        found = _at(document, self._each)
        elements = found if isinstance(found, list) else ()
        return [row for element in elements for row in self._row(document, doc_id, element)]

    def _row(self, document: object, doc_id: str, element: object) -> Sequence[Emitted]:
        key = self._key(document, doc_id, element)
        if key is _MISSING:
            return ()
        value = self._emitted(document, doc_id, element)
        return ((json_text(key), json_text(None if value is _MISSING else value)),)


def _at(document: object, names: Sequence[str]) -> object:
    for name in names:
        if not isinstance(document, dict) or name not in document:
            return _MISSING
        document = document[name]
    return document


def _holds(condition: Condition, document: object) -> bool:
    found = _at(document, condition.names)
    same = type(found) is type(condition.constant) or not isinstance(found, bool)
    equal = same and found == condition.constant
    return equal if condition.operator == "==" else not equal


def _getter(expression: Expression) -> Getter:
    """What computes an expression; `_MISSING` where the document lacks a place."""
    match expression:
        case Path():
            names = names_of(expression)
            if names[:1] == ("\0item",):
                return lambda _document, _id, element: _at(element, names[1:])
            return lambda document, _id, _element: _at(document, names)
        case DocumentId():
            return lambda _document, doc_id, _element: doc_id
        case list():
            parts = [_getter(part) for part in expression]

            def of_list(document: Any, doc_id: str, element: object) -> object:
                values = [part(document, doc_id, element) for part in parts]
                return _MISSING if any(value is _MISSING for value in values) else values

            return of_list
        case _:
            return lambda _document, _id, _element: expression
