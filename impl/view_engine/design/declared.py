"""Declared map functions: `emit([doc.city, doc.age], doc.price, where=doc.type == "house")`.

They say what is emitted without running a program for each document, can be stored, and are pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.design.mapping import Emitted
from stagewright.impl.view_engine.documents.changes import Change

_MISSING = object()


class Path:
    """A place in a document: `doc.address.city`, `doc["first name"]`; `meta_id` is the document's id."""

    __slots__ = ("_names",)

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Path:
        if name.startswith("__"):
            raise AttributeError(name)
        return Path(*self._names, name)

    def __getitem__(self, name: str) -> Path:
        return Path(*self._names, name)

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition("==", self._names, other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition("!=", self._names, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return ".".join(("doc", *self._names))


class _Id:
    """The document's id."""

    def __repr__(self) -> str:
        return "meta_id"


doc = Path()
meta_id = _Id()
Expression: TypeAlias = "Path | _Id | list[Expression] | str | int | float | bool | None"


@dataclass(frozen=True)
class Condition:
    """A comparison of a place with a constant; a document without the place does not satisfy `==`."""

    operator: str
    names: tuple[str, ...]
    constant: object

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition is decided for each document: give it as where=, without and/or/not"
        )


@dataclass(frozen=True)
class Declared:
    """What `emit` made: for each document that has the key's places and satisfies `where`, one row."""

    key: Expression
    value: Expression
    where: tuple[Condition, ...]
    each: tuple[str, ...] | None

    def definition(self) -> dict[str, object]:
        """As JSON: equal for equal functions."""
        return {
            "key": _definition(self.key),
            "value": _definition(self.value),
            "where": [[c.operator, list(c.names), c.constant] for c in self.where],
            "each": None if self.each is None else list(self.each),
        }

    @classmethod
    def of_definition(cls, definition: Mapping[str, Any]) -> Declared:
        """The inverse of `definition`."""
        where = tuple(Condition(o, tuple(n), c) for o, n, c in definition["where"])
        each = definition["each"]
        return cls(
            _expression(definition["key"]),
            _expression(definition["value"]),
            where,
            None if each is None else tuple(each),
        )


def emit(
    key: Expression,
    value: Expression = None,
    *,
    where: Condition | Sequence[Condition] = (),
    each: Path | None = None,
) -> Declared:
    """Emit `key` and `value` for each document that has all places of the key.

    `where`: one condition or several, all of which must hold. `each`: a place that holds a list: one row
    for each element, which `item` stands for.
    """
    conditions = (where,) if isinstance(where, Condition) else tuple(where)
    return Declared(key, value, conditions, None if each is None else each._names)


item = Path("\0item")


def _definition(expression: Expression) -> object:
    match expression:
        case Path():
            return {"path": list(expression._names)}
        case _Id():
            return {"meta": "id"}
        case list():
            return [_definition(element) for element in expression]
        case _:
            return {"constant": expression}


def _expression(definition: Any) -> Expression:
    if isinstance(definition, list):
        return [_expression(element) for element in definition]
    if "path" in definition:
        return Path(*definition["path"])
    if "meta" in definition:
        return meta_id
    constant: Expression = definition["constant"]
    return constant


Getter = Callable[[Any, str, object], object]  # (document, its id, list element) → value


class DeclaredMapper:
    """Runs a declared map function over batches."""

    def __init__(self, declared: Declared) -> None:
        self._key = _getter(declared.key)
        self._emitted = _getter(declared.value)
        self._where = declared.where
        self._each = declared.each

    def run(
        self, changes: Sequence[Change]
    ) -> tuple[list[Sequence[Emitted]], list[tuple[int, str]]]:
        rows: list[Sequence[Emitted]] = []
        failed: list[tuple[int, str]] = []
        bodies = [change.body for change in changes if change.body is not None]
        try:
            documents = iter(json.loads(b"[" + b",".join(bodies) + b"]"))
        except ValueError:
            documents = iter([_parsed(body) for body in bodies])
        for number, change in enumerate(changes):
            if change.body is None:
                rows.append(())
                continue
            document = next(documents)
            if isinstance(document, ValueError):
                failed.append((number, f"the document is not JSON: {document}"))
                rows.append(())
                continue
            rows.append(self._rows(document, change.doc_id.decode("utf-8", "replace")))
        return rows, failed

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


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError as error:
        return error


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
            names = expression._names
            if names[:1] == ("\0item",):
                return lambda _document, _id, element: _at(element, names[1:])
            return lambda document, _id, _element: _at(document, names)
        case _Id():
            return lambda _document, doc_id, _element: doc_id
        case list():
            parts = [_getter(part) for part in expression]

            def of_list(document: Any, doc_id: str, element: object) -> object:
                values = [part(document, doc_id, element) for part in parts]
                return _MISSING if any(value is _MISSING for value in values) else values

            return of_list
        case _:
            return lambda _document, _id, _element: expression
