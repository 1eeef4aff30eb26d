"""Finds the trace files behind the paths a user names, and the form of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.readers import forms
from stagewright.traces.readers.lines import beginning


@dataclass(frozen=True)
class InputFile:
    """One file to be read, and as what."""

    path: Path
    form: str
    size: int  # bytes, when it was found


@dataclass(frozen=True)
class Inputs:
    """The files to read, in the order of their names, and those in a directory that are no traces."""

    files: tuple[InputFile, ...]
    passed_over: tuple[Path, ...]


def find_inputs(paths: Sequence[Path], form: str = "auto") -> Inputs:
    """The trace files among the paths; directories are searched.

    Raises:
        InputError: a path does not exist, a file is empty or of no known form, a directory has no traces.
    """
    files: dict[Path, InputFile] = {}
    passed_over: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = _in_directory(path, form, passed_over)
        elif path.exists():
            found = [InputFile(path, _form_of(path, form), path.stat().st_size)]
        else:
            raise InputError(f"there is no file or directory {path}", help="check the path")
        for file in found:
            files.setdefault(file.path.resolve(), file)
    for file in files.values():
        forms.reader(file.form).check(file.path)
    return Inputs(tuple(sorted(files.values(), key=lambda f: str(f.path))), tuple(passed_over))


def _in_directory(directory: Path, form: str, passed_over: list[Path]) -> list[InputFile]:
    found: list[InputFile] = []
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        if any(part.startswith((".", "_")) for part in path.relative_to(directory).parts):
            continue  # what Spark and others leave beside the data
        known = _known_form(path) if forms.is_of_traces(_name(path)) else None
        if known is None or form not in ("auto", known):
            passed_over.append(path)
        else:
            found.append(InputFile(path, known, path.stat().st_size))
    if not found:
        raise InputError(
            f"the directory {directory} has no traces" + (f" in {form}" * (form != "auto")),
            help=f"traces end in {', '.join(forms.endings())} (or these with "
            f"{' or '.join(forms.COMPRESSED)}); name other files one by one",
        )
    return found


def _name(path: Path) -> str:
    return path.stem if path.suffix in forms.COMPRESSED else path.name


def _form_of(path: Path, form: str) -> str:
    known = _known_form(path)  # an empty or unreadable file is refused whatever its form is
    if form != "auto":
        return form
    if known is None:
        raise InputError(
            f"cannot tell what {path} is",
            help=f"say it with --format: one of {', '.join(forms.NAMES)}",
        )
    return known


def _known_form(path: Path) -> str | None:
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty", help="leave it out, or take another copy of it")
        begin = beginning(path, forms.PROBE_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", help="check it") from error
    known = forms.form_of(_name(path), begin)
    return None if known is None else known.name
