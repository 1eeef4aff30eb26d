"""Declared map functions: `emit([doc.city, doc.age], doc.price, where=doc.type == "house")`.

They say what is emitted without running a program for each document, can be stored, and are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


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


def names_of(path: Path) -> tuple[str, ...]:
    """The members that lead to a place: a path has no attribute for them, as any name may be a member's."""
    return path._names


class DocumentId:
    """The document's id."""

    def __repr__(self) -> str:
        return "meta_id"


doc = Path()
meta_id = DocumentId()
Expression: TypeAlias = "Path | DocumentId | list[Expression] | str | int | float | bool | None"


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
        case DocumentId():
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
