"""What to write instead of what Python itself refuses: in a body, and where a class declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from enum import Enum, EnumMeta

from stagewright.spec.errors import did_you_mean
from stagewright.spec.terms.symbolic import Symbolic
from stagewright.spec.terms.terms import Term

_CALL = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|takes|got) ")
_LENGTH = re.compile(r"object of type '(\w+)' has no len\(\)")
_BINDS_TIGHTER = re.compile(
    r"unsupported operand type\(s\) for [&|]: |bad operand type for unary ~: "
)
# What Python, or another sort of the language, calls the same.
_CALLED_HERE = {
    "length": "size",
    "size": "length",
    "contains": "has",
    "remove": "discard",
    "pop": "drop_head",
    "issubset": "<=",
    "union": "|",
    "intersection": "&",
    "difference": "-",
}
_OPERATORS = {"<=", "|", "&", "-"}
_LENGTHS = {
    "SetOf": "write `.size()`",
    "RecordSet": "write `.size()`",
    "QueueOf": "write `.length`",
    "BagOf": "write `.count_of(member)`, or `.is_empty()`",
    "MapOf": "write `count(… for k in …)` over its keys",
}
_IN_GENERAL = (
    "a body is Python that runs once, with symbolic values: these compare, combine with "
    "`&`, `|`, `~`, and numbers calculate with `+`, `-`, `*`, `//`, `%`"
)


def mend_in_body(error: Exception) -> str:
    """What to write instead of what Python refused in a body."""
    match error:
        case AttributeError():
            return _of_attribute(error.obj, error.name or "") or _IN_GENERAL
        case NameError() if error.name in _words():
            return f"import it: `from stagewright.spec import {error.name}`, or write `sw.{error.name}`"
        case TypeError():
            return _of_operation(str(error)) or usage_of(error) or _IN_GENERAL
        case _:
            return _IN_GENERAL


def usage_of(error: BaseException) -> str:
    """How a word of the language is called, if this is a call of it that does not fit; else empty."""
    call = _CALL.match(str(error)) if isinstance(error, TypeError) else None
    word = _words().get(call[1]) if call is not None else None
    if word is None or isinstance(word, type):
        return ""
    return f"write `{_called(word)}`"


def _words() -> dict[str, Callable[..., object]]:
    import stagewright.spec

    return {name: word for name, word in vars(stagewright.spec).items() if callable(word)}


def _called(word: Callable[..., object]) -> str:
    """A call with the arguments that it needs, and what it may be given besides."""
    shown: list[str] = []
    for name, parameter in inspect.signature(word).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            shown.append("…")
        elif parameter.default is inspect.Parameter.empty:
            shown.append(name)
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY or parameter.default is not None:
            shown.append(f"{name}=…")
    return f"{word.__name__}({', '.join(shown)})"


def _of_attribute(holder: object, name: str) -> str:
    if isinstance(holder, Enum) and hasattr(Term, name):
        kind = type(holder).__name__
        return (
            f"`{holder}` is a member of {kind}, as a loop over an enum gives them: call its own "
            f"methods and columns, or make it symbolic by a parameter: `x: Term[{kind}]`"
        )
    if isinstance(holder, EnumMeta):
        members = list(holder.__members__)
        return f"{did_you_mean(name, members)}{holder.__name__} has: {', '.join(members)}"
    if not isinstance(holder, Symbolic):
        return ""
    known = [n for n in dir(holder) if not n.startswith("_") and n != "node"]
    here = _CALLED_HERE.get(name, "")
    if here in _OPERATORS:
        return f"write `a {here} b`"
    hint = f"did you mean `{here}`? " if here in known else did_you_mean(name, known)
    return f"{hint}it has: {', '.join(known)}" if known else ""


def _of_operation(problem: str) -> str:
    if _BINDS_TIGHTER.search(problem):
        return (
            "parenthesise both sides: `(a == b) | (c == d)`, `~(a < b)`, "
            "for `&`, `|` and `~` bind tighter than comparisons"
        )
    if "for >>: " in problem:
        return "write `a.implies(b)`"
    length = _LENGTH.search(problem)
    return _LENGTHS.get(length[1], "") if length is not None else ""
