"""Reads and writes declared map functions as text: `emit([doc.city, doc.age], doc.price, where=doc.type == "house")`.

The text is parsed, never run.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Sequence
from typing import Any

from stagewright.impl.view_engine.design.declaration import (
    Condition,
    Declared,
    Path,
    doc,
    emit,
    item,
    meta_id,
    names_of,
)

_ITEM = names_of(item)
_NAMES: dict[str, Any] = {"doc": doc, "item": item, "meta_id": meta_id}


def parse_declared(text: str) -> Declared:
    """The map function that a text declares. Raises ValueError, which says what is not understood."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no emit(…): {error.msg}") from None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Name)
        or call.func.id != "emit"
    ):
        raise ValueError(f"{text!r} is no emit(…)")
    arguments = [_value(argument) for argument in call.args]
    named = {keyword.arg or "**": _value(keyword.value) for keyword in call.keywords}
    try:
        return emit(*arguments, **named)
    except TypeError as error:
        raise ValueError(f"{text!r}: {error}") from None


def declared_text(declared: Declared) -> str:
    """The text of a declared map: `parse_declared` gives the same map."""
    arguments = [_written(declared.key)]
    if declared.value is not None:
        arguments.append(_written(declared.value))
    where = [f"{_path(c.names)} {c.operator} {_written(c.constant)}" for c in declared.where]
    if where:
        arguments.append(f"where={where[0] if len(where) == 1 else '[' + ', '.join(where) + ']'}")
    if declared.each is not None:
        arguments.append(f"each={_path(declared.each)}")
    return f"emit({', '.join(arguments)})"


def _written(expression: Any) -> str:
    if isinstance(expression, Path):
        return _path(names_of(expression))
    if isinstance(expression, list):
        return f"[{', '.join(_written(part) for part in expression)}]"
    return repr(expression)


def _path(names: Sequence[str]) -> str:
    of_item = names[:1] == _ITEM
    parts = (
        f".{name}" if name.isidentifier() and not keyword.iskeyword(name) else f"[{name!r}]"
        for name in names[of_item:]
    )
    return ("item" if of_item else "doc") + "".join(parts)


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | int() | float() | bool() | None as constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Name(id=("null" | "true" | "false") as name):
            return {"null": None, "true": True, "false": False}[name]
        case ast.Attribute(value=value, attr=name) if isinstance(place := _value(value), Path):
            return place[name]
        case ast.Subscript(value=value, slice=ast.Constant(value=str(name))) if isinstance(
            place := _value(value), Path
        ):
            return place[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element) for element in elements]
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as operator], comparators=[right]):
            place, constant = _value(left), _value(right)
            if isinstance(place, Path) and not isinstance(constant, Path | list | Condition):
                return place == constant if isinstance(operator, ast.Eq) else place != constant
        case _:
            pass
    raise ValueError(
        f"{ast.unparse(node)!r}: doc.a.b, item, meta_id, constants, lists, == and != are known"
    )
