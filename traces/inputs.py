"""Finds the trace files behind the paths a user names, and the form of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.copies import copies_among
from stagewright.traces.mapping.plan import Plan
from stagewright.traces.readers import forms
from stagewright.traces.readers.lines import beginning

# The forms of files that a mapping reads: all together, or each row by itself.
MAPPED = "mapped"
MAPPED_ALONE = "mapped-numbered"


@dataclass(frozen=True)
class InputFile:
    """One file to be read, and as what."""

    path: Path
    form: str
    size: int  # bytes, when it was found


@dataclass(frozen=True)
class Inputs:
    """The files to read, in the order of their names.

    `passed_over` are those in a directory that are no traces; `copies` those whose content another one has, and
    that one.
    """

    files: tuple[InputFile, ...]
    passed_over: tuple[Path, ...]
    copies: tuple[tuple[Path, Path], ...] = ()

    @property
    def notes(self) -> list[str]:
        """What is not read, and why."""
        names = [
            f"passed over {path}: its name is not that of a trace" for path in self.passed_over
        ]
        copies = [
            f"passed over {path}: it has the content of {first}" for path, first in self.copies
        ]
        return names + copies


def find_inputs(paths: Sequence[Path], form: str = "auto", mapping: Plan | None = None) -> Inputs:
    """The trace files among the paths; directories are searched. With a mapping, all are of its form.

    Raises:
        InputError: a path does not exist, a file is empty or of no known form, a directory has no traces.
    """
    form = _mapped_form(form, mapping)
    files: dict[Path, InputFile] = {}
    passed_over: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = _in_directory(path, form, passed_over, mapping)
        elif path.exists():
            found = [InputFile(path, _form_of(path, form), path.stat().st_size)]
        else:
            raise InputError(f"there is no file or directory {path}", help="check the path")
        for file in found:
            files.setdefault(file.path.resolve(), file)
    for file in files.values():
        forms.reader(file.form).check(file.path)
    found = sorted(files.values(), key=lambda f: str(f.path))
    copies = copies_among([f.path for f in found if _says_nothing_twice(f, mapping)])
    return Inputs(
        tuple(f for f in found if f.path not in copies), tuple(passed_over), tuple(copies.items())
    )


def _says_nothing_twice(file: InputFile, mapping: Plan | None) -> bool:
    """Whether a file with the content of another one tells nothing new, so that it must not be read."""
    if mapping is not None:
        return file.form == MAPPED and not mapping.reads_names
    return forms.form_named(file.form).once


def _mapped_form(form: str, mapping: Plan | None) -> str:
    """The form of all files: what a mapping needs, or what was asked for."""
    if mapping is None:
        return form
    if form != "auto":
        raise InputError(
            f"--format {form} and --mapping exclude each other",
            help=f"leave --format out: {mapping.file} says what the files are",
        )
    return MAPPED_ALONE if mapping.alone else MAPPED


def _in_directory(
    directory: Path, form: str, passed_over: list[Path], mapping: Plan | None
) -> list[InputFile]:
    found: list[InputFile] = []
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        if any(part.startswith((".", "_")) for part in path.relative_to(directory).parts):
            continue  # what Spark and others leave beside the data
        if mapping is not None:
            known = form if any(fnmatch(_name(path), p) for p in mapping.source.files) else None
        else:
            known = _known_form(path) if forms.is_of_traces(_name(path)) else None
        if known is None or form not in ("auto", known):
            passed_over.append(path)
        else:
            found.append(InputFile(path, known, path.stat().st_size))
    if not found and mapping is not None:
        raise InputError(
            f"the directory {directory} has none of {', '.join(mapping.source.files)}",
            help=f'say in {mapping.file} which files are meant: files = ["*.log"] under [source]',
        )
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
            help=f"say it with --format: one of {', '.join(forms.CHOICES)}; or how to read it, with --mapping",
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
