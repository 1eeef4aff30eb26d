"""Writes a counterexample to a directory, in every form."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from stagewright.checker.counterexample.mermaid import diagram
from stagewright.checker.counterexample.page import render_page
from stagewright.checker.counterexample.story import Story, story_of
from stagewright.checker.counterexample.text import render_text
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.scope import Scope
from stagewright.spec.text.itf import to_itf
from stagewright.spec.verdict import PropertyVerdict

TEXT_WIDTH = 100  # columns

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def write_all(
    definition: Definition,
    verdict: PropertyVerdict,
    directory: str | Path,
    scope: Scope | None = None,
) -> list[Path]:
    """Write <property>.txt, .md, .itf.json and .html; each appears whole or not at all.

    Raises:
        InputError: the directory cannot be written to, or the verdict has no run.
    """
    story = story_of(definition, verdict, scope)
    target = Path(directory)
    stem = file_stem(verdict.name)
    forms: dict[str, Callable[[], str]] = {
        ".txt": lambda: plain_text(definition, verdict, story.scope),
        ".md": lambda: markdown(story),
        ".itf.json": lambda: itf_text(story.definition, verdict, story.scope),
        ".html": lambda: render_page(definition, verdict, story.scope),
    }
    # Render all before the first write: an error in one leaves nothing behind.
    rendered = {target / f"{stem}{suffix}": render() for suffix, render in forms.items()}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, text in rendered.items():
            write_whole(path, text)
    except OSError as error:
        raise InputError(
            f"cannot write to {target}: {error.strerror or error}",
            help="name a directory that exists or can be made, on a disk with space",
        ) from error
    return list(rendered)


def plain_text(definition: Definition, verdict: PropertyVerdict, scope: Scope | None) -> str:
    """The text form without any control codes, `TEXT_WIDTH` columns wide."""
    sink = io.StringIO()
    console = Console(file=sink, width=TEXT_WIDTH, force_terminal=False, color_system=None)
    console.print(render_text(definition, verdict, scope))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def markdown(story: Story) -> str:
    """A Markdown page with the Mermaid diagram."""
    return f"# {_as_text(story.headline)}\n\n```mermaid\n{diagram(story)}```\n"


def itf_text(definition: Definition, verdict: PropertyVerdict, scope: Scope | None) -> str:
    """The ITF document as a file holds it."""
    return json.dumps(to_itf(definition, verdict, scope), indent=2, ensure_ascii=False) + "\n"


def file_stem(name: str) -> str:
    """A property's name as a file name: `tablets.reads_are_complete`, `no_deadlock`."""
    return _NOT_IN_NAMES.sub("_", name).strip("._-")[:100] or "counterexample"


def write_whole(path: Path, text: str) -> None:
    """Replace a file's text at once: a reader sees the old file or the new one, never a part."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as sink:
            sink.write(text)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _as_text(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)
