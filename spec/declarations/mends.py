"""What to write instead of what Python itself refuses: in a body, and where a class declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from enum import Enum, EnumMeta
from types import FunctionType, TracebackType

from stagewright.spec.errors import did_you_mean, nearest
from stagewright.spec.terms.symbolic import Symbolic
from stagewright.spec.terms.terms import Term

_CALL = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|takes|got) ")
_LENGTH = re.compile(r"object of type '(\w+)' has no len\(\)")
_ADDED = re.compile(r"unsupported operand type\(s\) for [+-]: .*'Bool'")
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
# What is written, from Python or another language, for a word of this one.
_WORD_FOR = {
    "all": "every",
    "any": "some",
    "sum": "count",
    "len": "count",
    "min": "least",
    "max": "greatest",
    "sorted": "every",
    "bool": "flag",
    "int": "number",
    "set": "set_of",
    "map": "per",
    "dict": "per",
    "enum": "one_of",
    "guard": "require",
    "when": "require",
    "always": "invariant",
    "property": "invariant",
    "ite": "choose",
}
_ELSEWHERE = {
    "Self": "typing",
    "Annotated": "typing",
    "Literal": "typing",
    "Enum": "enum",
    "IntEnum": "enum",
    "auto": "enum",
    "dataclass": "dataclasses",
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
        case NameError():
            return mend_of_name(error) or _IN_GENERAL
        case TypeError():
            return _of_operation(str(error)) or usage_of(error) or _IN_GENERAL
        case _:
            return _IN_GENERAL


def mend_of_name(error: BaseException) -> str:
    """What to write instead of a name that is not known, or that the language does not have; empty if nothing is alike."""
    if isinstance(error, AttributeError):
        return _of_word(error.name or "") if _is_language(error.obj) else ""
    if not isinstance(error, NameError) or not error.name:
        return ""
    name = error.name
    if name == "sw":
        return "import the language: `import stagewright.spec as sw`"
    if name in _words():
        return f"import it: `from stagewright.spec import {name}`, or write `sw.{name}`"
    if name in _ELSEWHERE:
        return f"import it: `from {_ELSEWHERE[name]} import {name}`"
    near = nearest(name, _visible(error.__traceback__))
    return f"did you mean `{near}`?" if near else ""


def _is_language(holder: object) -> bool:
    return getattr(holder, "__name__", "") == "stagewright.spec"


def _of_word(name: str) -> str:
    """What is meant by a word that the language does not have."""
    if name in _ELSEWHERE:
        return f"import it: `from {_ELSEWHERE[name]} import {name}`, and write `{name}`"
    near = _WORD_FOR.get(name) or nearest(name, _words())
    return f"did you mean `{near}`?" if near else ""


def _visible(traceback: TracebackType | None) -> set[str]:
    """The names that were known where an error was raised."""
    if traceback is None:
        return set()
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    return {name for name in {**frame.f_globals, **frame.f_locals} if not name.startswith("__")}


def usage_of(error: BaseException) -> str:
    """How a word of the language is called, if this is a call of it that does not fit; else empty."""
    call = _CALL.match(str(error)) if isinstance(error, TypeError) else None
    word = _words().get(call[1]) if call is not None else None
    if word is None or isinstance(word, type):
        return ""
    return f"write `{_called(word)}`"


def usage_if_word(value: object) -> str:
    """How a function of the language is called, if the value is one; else empty."""
    if not isinstance(value, FunctionType) or not value.__module__.startswith("stagewright.spec."):
        return ""
    return _called(value) if value in _words().values() else ""


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
    if _is_language(holder):
        return _of_word(name)
    if not isinstance(holder, Symbolic):
        return ""
    known = [n for n in dir(holder) if not n.startswith("_") and n != "node"]
    here = _CALLED_HERE.get(name, "")
    if name == "clear" and "discard" in known:
        return "a set is emptied by an assignment: `self.s = set()`"
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
    if _ADDED.search(problem):
        return (
            "conditions are not numbers: write `count(condition for x in …)` instead of `sum(…)`, "
            "or `choose(condition, 1, 0)`"
        )
    if "for >>: " in problem:
        return "write `a.implies(b)`"
    length = _LENGTH.search(problem)
    return _LENGTHS.get(length[1], "") if length is not None else ""
