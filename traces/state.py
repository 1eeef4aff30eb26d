"""What one run leaves for the next: which files were read, and what is carried of every entity.

A directory with `state.json` and Parquet files of rows. A run writes new files beside the old ones and then
puts a new `state.json` in place: an interrupted run leaves the state as it was.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.inputs import InputFile
from stagewright.traces.readers import forms
from stagewright.traces.readers.lines import compression, last_line_end
from stagewright.traces.readers.parts import Part

VERSION = 1
_FILE = "state.json"


@dataclass(frozen=True)
class FileRead:
    """A file that was read: how large it was then, and how many lines it had."""

    size: int
    lines: int


@dataclass(frozen=True)
class State:
    """What earlier runs have left in a directory; of a new one, nothing.

    `parts` are the path and the first line of every part that was ever read: places refer to them.
    """

    folder: Path
    runs: int = 0
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])
    options: str = ""
    files: Mapping[str, FileRead] = field(default_factory=dict[str, FileRead])
    parts: tuple[tuple[str, int], ...] = ()
    carried: tuple[str, ...] = ()

    def new_parts(self, files: Sequence[InputFile], parts: Sequence[Part]) -> list[Part]:
        """What of the input has not been read yet, numbered on.

        Raises:
            InputError: a file has changed otherwise than by growing.
        """
        found: list[Part] = []
        by_path: dict[str, list[Part]] = {}
        for part in parts:
            by_path.setdefault(part.path, []).append(part)
        for file in files:
            known = self.files.get(str(file.path.resolve()))
            size = file.size
            for part in by_path.get(str(file.path), []):
                grows = forms.form_named(part.form).grows and not compression(file.path)
                if known is None:
                    found.append(replace(part, stop=min(part.stop, size)) if grows else part)
                elif size != known.size:
                    if size < known.size or not grows:
                        raise InputError(
                            f"{file.path} had {known.size:,} bytes when it was read, and has {size:,} now",
                            help="give new events in new files, or begin anew with an empty --state directory",
                        )
                    if part.stop > known.size:
                        start = max(part.start, known.size)
                        found.append(replace(part, start=start, stop=min(part.stop, size)))
        return [replace(part, number=len(self.parts) + number) for number, part in enumerate(found)]

    def whole_lines(self, files: Sequence[InputFile]) -> tuple[InputFile, ...]:
        """The files up to the end of their last whole line, if they may still be written to."""
        return tuple(
            replace(file, size=last_line_end(file.path))
            if forms.form_named(file.form).grows and not compression(file.path)
            else file
            for file in files
        )

    def lines_of(self, files: Sequence[InputFile]) -> dict[str, int]:
        """How many lines of each file earlier runs have read."""
        known = {str(file.path): self.files.get(str(file.path.resolve())) for file in files}
        return {path: one.lines for path, one in known.items() if one is not None}

    def fits(self, definitions: Mapping[str, str], options: str) -> None:
        """Raise an `InputError` unless the earlier runs had the same definitions and options."""
        for name, fingerprint in definitions.items():
            was = self.definitions.get(name, fingerprint)
            if was != fingerprint:
                raise InputError(
                    f"the state in {self.folder} was made under the definition {was} of {name}; "
                    f"it is {fingerprint} now",
                    help="take the version of then, or begin anew with an empty --state directory",
                )
        if self.runs and options != self.options:
            raise InputError(
                f"the state in {self.folder} was made with other options: {self.options or 'none'}",
                help="give the same ones, or begin anew with an empty --state directory",
            )

    def new_folder(self) -> Path:
        """Where this run writes what it carries."""
        folder = self.folder / f"carried-{self.runs + 1}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True)
        return folder


def load_state(folder: Path) -> State:
    """The state in a directory, which need not exist yet.

    Raises:
        InputError: what is there is no state, or one of another version.
    """
    path = folder / _FILE
    if not path.exists():
        if folder.exists() and (not folder.is_dir() or any(map(_is_strange, folder.iterdir()))):
            raise InputError(
                f"{folder} has no {_FILE}", help="--state wants a directory of its own"
            )
        return State(folder)
    try:
        found = json.loads(path.read_text("utf-8"))
        version = found["version"]
        state = State(
            folder,
            found["runs"],
            found["definitions"],
            found["options"],
            {name: FileRead(*one) for name, one in found["files"].items()},
            tuple((path, before) for path, before in found["parts"]),
            tuple(found["carried"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged: {error}", help="begin anew with an empty --state directory"
        ) from error
    if version != VERSION:
        raise InputError(
            f"{path} has version {version}; this program writes version {VERSION}",
            help="begin anew with an empty --state directory",
        )
    if gone := [name for name in state.carried if not (folder / name).exists()]:
        raise InputError(
            f"{folder / gone[0]} is gone", help="begin anew with an empty --state directory"
        )
    return state


def _is_strange(path: Path) -> bool:
    """Whether a run that failed cannot have left this."""
    return not path.match("carried-*") and path.name != f"{Path(_FILE).stem}.partial"


def save_state(state: State, verdicts: Mapping[TraceVerdict, int]) -> None:
    """Put a new state in place of the old one, and remove what only the old one needs.

    Raises:
        InputError: there is no room.
    """
    content = {
        "version": VERSION,
        "runs": state.runs,
        "definitions": dict(state.definitions),
        "options": state.options,
        "verdicts": {verdict.value: count for verdict, count in verdicts.items()},
        "files": {name: [one.size, one.lines] for name, one in state.files.items()},
        "parts": state.parts,
        "carried": state.carried,
    }
    path = state.folder / _FILE
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(json.dumps(content, indent=1), "utf-8")
        partial.replace(path)
    except OSError as error:
        raise InputError(
            f"{state.folder} cannot be written: {error.strerror}",
            help="make room there; what earlier runs left is as it was",
        ) from error
    kept = {name.split("/")[0] for name in state.carried}
    for folder in state.folder.glob("carried-*"):
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
