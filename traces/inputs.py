"""Finds the trace files behind the paths a user names, and the form of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from stagewright.spec.errors import InputError
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
    """The files to read, in the order of their names, those in a directory that are no traces, and empty ones."""

    files: tuple[InputFile, ...]
    passed_over: tuple[Path, ...]
    empty: tuple[Path, ...] = ()

    def notes(self) -> list[str]:
        """What is worth telling of them."""
        notes = [
            f"passed over {path}: its name is not that of a trace" for path in self.passed_over
        ]
        return [*notes, f"{len(self.empty):,} files are empty as yet"] if self.empty else notes


def find_inputs(
    paths: Sequence[Path],
    form: str = "auto",
    mapping: Plan | None = None,
    *,
    growing: bool = False,
) -> Inputs:
    """The trace files among the paths; directories are searched. With a mapping, all are of its form.

    Files that are `growing` may be empty as yet.

    Raises:
        InputError: a path does not exist, a file is empty or of no known form, a directory has no traces.
    """
    form = _mapped_form(form, mapping)
    files: dict[Path, InputFile] = {}
    passed_over: list[Path] = []
    empty: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = _in_directory(path, form, passed_over, mapping, empty if growing else None)
        elif path.exists() and growing and path.stat().st_size == 0:
            empty.append(path)
            continue
        elif path.exists():
            found = [InputFile(path, _form_of(path, form), path.stat().st_size)]
        else:
            raise InputError(f"there is no file or directory {path}", help="check the path")
        for file in found:
            files.setdefault(file.path.resolve(), file)
    for file in files.values():
        forms.reader(file.form).check(file.path)
    in_order = sorted(files.values(), key=lambda f: str(f.path))
    return Inputs(tuple(in_order), tuple(passed_over), tuple(empty))


def is_taken(path: Path, form: str = "auto", mapping: Plan | None = None) -> bool:
    """Whether a file is taken where it is found in a directory; an empty one may be, when it has something."""
    if path.stat().st_size == 0 and mapping is None:
        return forms.is_of_traces(_name(path))
    return _taken_as(path, _mapped_form(form, mapping), mapping) is not None


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
    directory: Path,
    form: str,
    passed_over: list[Path],
    mapping: Plan | None,
    empty: list[Path] | None,
) -> list[InputFile]:
    """The files of a directory; empty ones go into their own list, and are refused if there is none."""
    found: list[InputFile] = []
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        if any(part.startswith((".", "_")) for part in path.relative_to(directory).parts):
            continue  # what Spark and others leave beside the data
        if empty is not None and path.stat().st_size == 0:
            empty.append(path)
            continue
        known = _taken_as(path, form, mapping)
        if known is None:
            passed_over.append(path)
        else:
            found.append(InputFile(path, known, path.stat().st_size))
    if not found and not empty and mapping is not None:
        raise InputError(
            f"the directory {directory} has none of {', '.join(mapping.source.files)}",
            help=f'say in {mapping.file} which files are meant: files = ["*.log"] under [source]',
        )
    if not found and not empty:
        raise InputError(
            f"the directory {directory} has no traces" + (f" in {form}" * (form != "auto")),
            help=f"traces end in {', '.join(forms.endings())} (or these with "
            f"{' or '.join(forms.COMPRESSED)}); name other files one by one",
        )
    return found


def _taken_as(path: Path, form: str, mapping: Plan | None) -> str | None:
    """As which form a file in a directory is taken; None if it is not."""
    if mapping is not None:
        return form if any(fnmatch(_name(path), p) for p in mapping.source.files) else None
    known = _known_form(path) if forms.is_of_traces(_name(path)) else None
    return known if form in ("auto", known) else None


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
