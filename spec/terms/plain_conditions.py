"""Why a condition came out as a plain bool: `is` instead of `==`, or an attribute that is no variable."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, EnumMeta
from pathlib import Path
from types import FrameType

from stagewright.spec.source import Source, of_attribute, span_of_frame
from stagewright.spec.terms.symbolic import Placed

_Class = Callable[[str], type[object] | None]
_NONE = ast.dump(ast.Constant(None))


def in_call(frame: FrameType) -> str:
    """What to write in the call that a frame is executing; empty if the source does not tell."""
    span = span_of_frame(frame)
    calls = [
        node
        for node in ast.walk(_tree(frame.f_code.co_filename))
        if isinstance(node, ast.Call)
        and (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == span
    ]

    def class_of(name: str) -> type[object] | None:
        holder = frame.f_locals.get(name)
        return type(holder) if isinstance(holder, Placed) else None

    return _mend((part for call in calls for part in _outside_of_lambdas(call)), class_of)


def in_method(method: Callable[..., object], where: Source) -> str:
    """What to write in the body of a method that returned a plain bool; empty if the source does not tell."""
    methods = [
        node
        for node in ast.walk(_tree(where.file))
        if isinstance(node, ast.FunctionDef)
        and (node.name, node.lineno) == (method.__name__, where.line)
    ]
    own: object = sys.modules.get(method.__module__)
    for name in method.__qualname__.split(".")[:-1]:
        own = getattr(own, name, None)
    first = next(iter(inspect.signature(method).parameters), "")

    def class_of(name: str) -> type[object] | None:
        return own if name == first and isinstance(own, type) else None

    return _mend((part for found in methods for part in _outside_of_lambdas(found)), class_of)


def constant_of(holder: type[object], name: str) -> str:
    """What to write if an attribute of a machine or record is a plain value of Python; empty if it is none."""
    value: object = inspect.getattr_static(holder, name, _nothing)
    declared = _declared(value)
    if not declared:
        return ""
    where = of_attribute(holder, name)
    at = "" if where is None else f" ({Path(where.file).name}:{where.line})"
    shown = value.__name__ if isinstance(value, type) else str(value)
    return (
        f"`{name}` is Python's {shown}{at}, not a variable; if it is to change, declare it "
        f"`{name} = {declared}`"
    )


_nothing = object()


def _declared(value: object) -> str:
    """The declaration that was meant by a plain value; empty for what is nobody's idea of a variable."""
    match value:
        case bool():
            return f"flag(init={value})" if value else "flag()"
        case Enum():
            return f"one_of({type(value).__name__}, init={value})"
        case int():
            return f"number({min(0, value)}, …{f', init={value}' if value > 0 else ''})"
        case EnumMeta():
            return f"one_of({value.__name__}, init=…)"
        case str():
            return "one_of(…, init=…)` of an enum's members, not of texts: `class Stage(Enum): …"
        case None:
            return "optional(…)"
        case set() | frozenset():
            return "set_of(…)"
        case dict():
            return "per(…, …)"
        case list() | tuple():
            return "queue(…)"
        case _:
            return ""


def _mend(parts: Iterable[ast.AST], class_of: _Class) -> str:
    constant = ""
    for part in parts:
        match part:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[right]):
                return f"`is` compares Python's objects: write `{_compared(left, op, right)}`"
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if not constant:
                holder = class_of(name)
                constant = "" if holder is None else constant_of(holder, attribute)
            case _:
                pass
    return constant


def _outside_of_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it, but not what a column says: there a member is Python's own."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from _outside_of_lambdas(child)


def _compared(left: ast.expr, op: ast.Is | ast.IsNot, right: ast.expr) -> str:
    same = isinstance(op, ast.Is)
    if ast.dump(right) == _NONE:
        return f"{ast.unparse(left)}.{'is_none' if same else 'is_some'}()"
    return f"{ast.unparse(left)} {'==' if same else '!='} {ast.unparse(right)}"


def _tree(file: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])
