"""Where in a user's file something was written, and how to show it with a caret."""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType

_LIBRARY = Path(__file__).resolve().parent
_DEFINE = str(Path(__file__).with_name("define.py"))
# One pattern for all names: to compile one for each took a third of a definition's time.
_DEF = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")
_CLASS = re.compile(r"\s*class\s+(\w+)")
_MACHINERY = frozenset({contextlib.__file__, functools.__file__})


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file: 1-based `line`, 0-based `column` up to `end_column` (may be equal)."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def text(self) -> str:
        """The source line itself, or an empty string when the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def excerpt(self) -> str:
        """Place, line and caret, as compilers print them."""
        place = f"  --> {self.file}:{self.line}" + (
            f", in {self.function}" if self.function else ""
        )
        text = self.text()
        if not text.strip():
            return place
        end = self.end_column if self.end_column > self.column else len(text)
        start = self.column or len(text) - len(text.lstrip())
        indent = "".join(c if c == "\t" else " " for c in text[:start])
        caret = indent + "^" * max(1, min(end, len(text)) - start)
        return f"{place}\n   | {text}\n   | {caret}"


@lru_cache(maxsize=4096)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


@lru_cache(maxsize=4096)
def _in_library(file: str) -> bool:
    return file in _MACHINERY or Path(file).resolve().is_relative_to(_LIBRARY)


def of_frame(frame: FrameType) -> Source:
    """The place that a frame is executing."""
    code = frame.f_code
    return _of_code(code, code.co_filename, frame.f_lasti, frame.f_lineno)


@lru_cache(maxsize=1 << 14)
def _of_code(code: CodeType, file: str, instruction: int, known_line: int) -> Source:
    """`file`: the code's own; code of two files may be equal."""
    line, end_line, column, end_column = _positions(code)[instruction // 2]
    if line is None:
        return Source(file, known_line, function=code.co_name)
    end = end_column if end_line == line else 0
    return in_line(file, line, column or 0, end or 0, code.co_name)


def of_traceback(traceback: TracebackType | None, file: str) -> Source | None:
    """The innermost place in `file` that an exception passed through; else the innermost user's place."""
    places: list[Source] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not _in_library(code.co_filename):
            place = _of_code(code, code.co_filename, traceback.tb_lasti, traceback.tb_lineno)
            places.append(place)
        traceback = traceback.tb_next
    own = [place for place in places if place.file == file] or places
    return own[-1] if own else None


def in_line(file: str, line: int, start: int, end: int, function: str) -> Source:
    """The place between two columns of a line, given in UTF-8 bytes, as Python's compiler counts them."""
    text = linecache.getline(file, line)
    if text.isascii():
        return Source(file, line, min(start, len(text)), min(end, len(text)), function)
    encoded = text.encode()
    column, end_column = (len(encoded[:n].decode(errors="ignore")) for n in (start, end))
    return Source(file, line, column, end_column, function)


def span_of_frame(frame: FrameType) -> tuple[int, int, int, int] | None:
    """Line, column, end line and end column (in bytes) of what a frame is executing; None if not known."""
    line, end_line, column, end_column = _positions(frame.f_code)[frame.f_lasti // 2]
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return line, column, end_line, end_column


def user_frame() -> FrameType:
    """The innermost frame that is not part of the specification library itself."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]  # what inspect.currentframe calls
    while (outer := frame.f_back) is not None and _in_library(frame.f_code.co_filename):
        frame = outer
    return frame


def here() -> Source:
    """The place in the user's file from which the library was called."""
    return of_frame(user_frame())


def function_id(code: CodeType) -> str:
    """One text for one function."""
    return f"{code.co_filename}:{code.co_qualname}"


def methods_at_work() -> tuple[str, ...]:
    """The user's functions that are running since a body is traced, innermost first, each by its id."""
    found: list[str] = []
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != _DEFINE:
        if not _in_library(frame.f_code.co_filename):
            found.append(function_id(frame.f_code))
        frame = frame.f_back
    return tuple(found)


def statements_at_work() -> tuple[tuple[CodeType, int], ...]:
    """What each of the user's functions is executing since a body is traced, innermost first."""
    found: list[tuple[CodeType, int]] = []
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != _DEFINE:
        if not _in_library(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def of_function(function: object) -> Source:
    """The place where a function's name is defined, below its decorators."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return Source("<unknown>", 0)
    file, name = code.co_filename, code.co_name
    return _first(file, code.co_firstlineno, _DEF, name, named=name) or Source(
        file, code.co_firstlineno, function=name
    )


def of_parameter(function: object, parameter: str) -> Source:
    """The place where a function lists a parameter."""
    start = of_function(function)
    listed = re.compile(rf".*?[(,\s*]({re.escape(parameter)})\s*(?:[:,=)]|$)")
    return _first(start.file, start.line, listed, start.function) or start


def file_of(machine: type[object]) -> str:
    """The file that defines a machine; empty for a cell of a notebook and for a console."""
    try:
        return inspect.getsourcefile(machine) or ""
    except (OSError, TypeError):
        return ""


def of_class(kind: type) -> Source:
    """The place where a class's name is defined."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or "<unknown>"
    first: int = vars(kind).get("__firstlineno__", 1)  # known from Python 3.13 on
    return _first(file, first, _CLASS, "", named=kind.__name__) or Source(file, first)


def of_attribute(kind: type, name: str) -> Source | None:
    """The place where a class, or one that it inherits from, gives an attribute its value."""
    for owner in (c for c in kind.__mro__ if name in vars(c)):
        start = of_class(owner)
        given = re.compile(rf"\s+({re.escape(name)})\s*[:=]")
        return _first(start.file, start.line, given, "")
    return None


def _first(
    file: str, line: int, wanted: re.Pattern[str], function: str, *, named: str = ""
) -> Source | None:
    """The first line from `line` on that matches, with the matched group (which is `named`) as its columns."""
    for number, text in enumerate(linecache.getlines(file)[line - 1 :], start=line):
        match = wanted.match(text)
        if match is not None and named in ("", match[1]):
            return Source(file, number, match.start(1), match.end(1), function)
    return None
