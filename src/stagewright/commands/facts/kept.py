"""Facts of shipped machines, kept on disk from the first time that they are asked for.

To define a large machine takes a quarter of a second, to read what was said of it a few milliseconds. What is kept
holds as long as no file of the language, of the machines or of this folder is changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stagewright.commands.facts.facts import (
    ActionFacts,
    EnumFacts,
    MachineFacts,
    PropertyFacts,
    VariableFacts,
)

_PACKAGE = Path(__file__).resolve().parent.parent.parent
_SOURCES = ("spec", "machines", "commands/facts")
_NAME = re.compile(r"[\w.-]*", re.ASCII)
_ROWS: dict[str, type[Any]] = {
    "enums": EnumFacts,
    "variables": VariableFacts,
    "actions": ActionFacts,
    "properties": PropertyFacts,
}


def kept_facts(name: str, profile: str) -> MachineFacts | None:
    """What was kept of a shipped machine under a profile (``""``: the newest); None if that no longer holds."""
    file = _file(name, profile)
    if file is None:
        return None
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return _facts(kept["facts"]) if kept["sources"] == _sources() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none, or a damaged one
        return None


def keep_facts(name: str, profile: str, facts: MachineFacts) -> None:
    """Keep the facts of a shipped machine for the next time, where the user's cache can be written to."""
    file = _file(name, profile)
    if file is None:
        return
    import tempfile

    text = json.dumps({"sources": _sources(), "facts": asdict(facts)}, ensure_ascii=False)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, prefix=".new-", encoding="utf-8", delete=False
        ) as new:
            new.write(text)
        Path(new.name).replace(file)


def _file(name: str, profile: str) -> Path | None:
    from stagewright.machines import SHIPPED

    if name not in SHIPPED or not _NAME.fullmatch(profile):
        return None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # a user without a home, as containers have them
        return None
    return folder / "stagewright" / "facts" / f"{name}@{profile}.json"


def _facts(kept: dict[str, Any]) -> MachineFacts:
    fields: dict[str, Any] = {
        name: tuple(_ROWS[name](**_tuples(row)) for row in value)
        if name in _ROWS
        else _tuple(value)
        for name, value in kept.items()
    }
    return MachineFacts(**fields)


def _tuples(row: dict[str, object]) -> dict[str, object]:
    return {name: _tuple(value) for name, value in row.items()}


def _tuple(value: object) -> object:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _sources() -> list[object]:
    """What the facts follow from: the interpreter, and each source file with its size and time of change."""
    return [sys.version, *(entry for folder in _SOURCES for entry in _files(_PACKAGE / folder))]


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                found = Path(place, name).stat()
                yield f"{place}/{name} {found.st_size} {found.st_mtime_ns}"
