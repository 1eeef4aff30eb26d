"""Where something is written, as CI systems name it: a path below the repository's root, and lines."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.definition import Definition
from stagewright.spec.source import Source
from stagewright.spec.text.visible import one_line


@dataclass(frozen=True)
class Place:
    """Lines of a file, counted from 1; `path` is relative to the repository, absolute outside of it.

    Columns count characters from 1, the last one is exclusive; 0: not known. `end_line` is the last
    line of what begins at `line`, `text` the line itself.
    """

    path: str
    line: int
    column: int = 0
    end_column: int = 0
    end_line: int = 0
    text: str = ""

    @property
    def inside(self) -> bool:
        """Whether the file is part of the repository."""
        return not Path(self.path).is_absolute()

    def __str__(self) -> str:
        return one_line(f"{self.path}:{self.line}")


def place_of(source: Source | None) -> Place | None:
    """The place of a function's definition; None if it is not known."""
    if source is None or source.line < 1 or not Path(source.file).is_file():
        return None
    columns = (source.column + 1, source.end_column + 1) if source.end_column else (0, 0)
    end = source.line + _length(source.file, source.line) - 1
    return Place(path_of(source.file), source.line, *columns, end, source.text())


def class_place(definition: Definition) -> Place | None:
    """The place of the class that the definition was made from; None if it is not known."""
    wanted = re.compile(rf"\s*class\s+({re.escape(definition.name)})\b")
    for line, text in enumerate(linecache.getlines(definition.file), start=1):
        if (match := wanted.match(text)) is not None:
            columns = (match.start(1) + 1, match.end(1) + 1)
            return Place(path_of(definition.file), line, *columns, line, text.rstrip("\n"))
    return None


def line_place(file: str, line: int) -> Place:
    """A line of any file, which need not exist here."""
    return Place(path_of(file), max(1, line), end_line=max(1, line))


def path_of(file: str) -> str:
    """The file's path below the root of its repository, with `/`; absolute if it is in none.

    The root is the nearest directory above the file that has a `.git`; else GitHub's workspace; else
    the working directory.
    """
    path = Path(file).resolve()  # not the package's links, but where the file really lies
    workspace = os.environ.get("GITHUB_WORKSPACE", "")
    repositories = [above for above in path.parents if (above / ".git").exists()]
    roots = [*repositories[:1], *([Path(workspace).resolve()] if workspace else []), Path.cwd()]
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return (path if root is None else path.relative_to(root)).as_posix()


def _length(file: str, line: int) -> int:
    """How many lines the definition that begins at `line` has."""
    try:
        return max(1, len(inspect.getblock(linecache.getlines(file)[line - 1 :])))
    except (SyntaxError, tokenize.TokenError):
        return 1
