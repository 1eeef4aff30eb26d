"""Finds the trace files behind the paths a user names, and the form of each."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.text.counting import counted
from stagewright.traces.inputs.archives import archive_kind
from stagewright.traces.inputs.duplicates import copies_among
from stagewright.traces.mapping.plan import Plan
from stagewright.traces.readers import formats
from stagewright.traces.readers.text_lines import beginning

# The forms of files that a mapping reads: all together, or each row by itself.
MAPPED = "mapped"
MAPPED_ALONE = "mapped-numbered"

_NAMED = 3  # files in one note
_ROCKSDB = ("CURRENT", "IDENTITY")  # files of a database whose `*.log` hold rows


@dataclass(frozen=True)
class InputFile:
    """One file to be read, and as what."""

    path: Path
    form: str
    size: int  # bytes, when it was found


@dataclass(frozen=True)
class LeftOut:
    """A file that cannot even be opened as what it is, and why; `form` is empty where that is not known."""

    path: Path
    reason: str
    form: str = ""


@dataclass(frozen=True)
class Inputs:
    """The files to read, in the order of their names.

    `passed_over` are those in a directory whose names are not those of traces, `unrecognized` those that are in no
    form that is read; `copies` those whose content another one has, and that one; `empty` those that have nothing as yet.
    """

    files: tuple[InputFile, ...]
    passed_over: tuple[Path, ...]
    left_out: tuple[LeftOut, ...] = ()
    remarks: tuple[str, ...] = ()
    empty: tuple[Path, ...] = ()
    copies: tuple[tuple[Path, Path], ...] = ()
    unrecognized: tuple[Path, ...] = ()

    def notes(self) -> list[str]:
        """What is worth a note of them."""
        notes = [
            f"passed over {counted(len(paths), 'file')} {why}: {_some(paths)}; {advice}"
            for paths, why, advice in (
                (
                    self.passed_over,
                    "that are not named like traces",
                    "a trace with another name has to be named itself",
                ),
                (
                    self.unrecognized,
                    "in no known format",
                    "--format or --mapping says how to read them",
                ),
            )
            if paths
        ]
        copies = [
            f"passed over {path}: it has the content of {first}" for path, first in self.copies
        ]
        empty = [f"{counted(len(self.empty), 'file')} still empty"] if self.empty else []
        return [*notes, *self.remarks, *copies, *empty]


def find_inputs(
    paths: Sequence[Path],
    form: str = "auto",
    mapping: Plan | None = None,
    *,
    skip_damaged: bool = False,
    state: Path | None = None,
) -> Inputs:
    """The trace files among the paths; directories are searched. With a mapping, all are of its form.

    Logs may be empty, as they are after a rotation, if others are not; with the directory of
    a `state` all may be empty as yet. The state's own files are not part of the input.

    Raises:
        InputError: a path does not exist, a directory has no traces, all files are empty; or a file cannot be
            read or is of no known form, and this is not to be skipped.
    """
    form = _mapped_form(form, mapping)
    left_out: list[LeftOut] | None = [] if skip_damaged else None
    search = _Search(form, mapping, left_out, state)
    for path in paths:
        if path.is_dir():
            search.directory(path)
        elif path.exists() or path.is_symlink():
            search.file(path)
        else:
            raise InputError(
                f"there is no file or directory {path}", help="is the path right, from here?"
            )
    if search.empty and not search.files and not left_out and state is None:
        raise InputError(
            f"{search.empty[0]} is empty", help="leave it out, or take another copy of it"
        )
    if left_out and not search.files:
        text = "\n".join(one.reason for one in left_out)
        raise InputError(text, help="there is nothing else to check: take other copies")
    files = sorted(search.files.values(), key=lambda f: str(f.path))
    copies = copies_among([f.path for f in files if _says_nothing_twice(f, mapping)])
    return Inputs(
        tuple(f for f in files if f.path not in copies),
        tuple(search.passed_over),
        tuple(left_out or ()),
        tuple(search.remarks),
        tuple(search.empty),
        tuple(copies.items()),
        tuple(search.unrecognized),
    )


def _some(paths: Sequence[Path]) -> str:
    named = ", ".join(map(str, paths[:_NAMED]))
    return named + (f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else "")


def is_taken(path: Path, form: str = "auto", mapping: Plan | None = None) -> bool:
    """Whether a file is taken where it is found in a directory; an empty one may be, when it has something."""
    if path.stat().st_size == 0 and mapping is None:
        return formats.is_of_traces(_name(path))
    return _taken_as(path, _mapped_form(form, mapping), mapping) is not None


def _says_nothing_twice(file: InputFile, mapping: Plan | None) -> bool:
    """Whether a file with the content of another one has nothing new, so that it must not be read."""
    if mapping is not None:
        return file.form == MAPPED and not mapping.reads_names
    return formats.form_named(file.form).once


SKIP = "or leave out what is damaged with --skip-damaged"


def unreadable(path: Path, error: Exception) -> StagewrightError:
    """What keeps a file from being read, as an error that names it."""
    if isinstance(error, StagewrightError):
        return error
    reason = error.strerror if isinstance(error, OSError) else None
    return InputError(
        f"{path} cannot be read: {reason or error}", help="who may read it, and is it all there?"
    )


def refuse_or_leave_out(
    error: StagewrightError, path: Path, left_out: list[LeftOut] | None, form: str = ""
) -> None:
    """Add a file to those that are left out; where nothing is to be left out, raise the error."""
    if left_out is None:
        raise InputError(error.problem, help=f"{error.help}; {SKIP}", where=error.where) from error
    left_out.append(LeftOut(path, error.problem, form))


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


class _Search:
    """What was found so far; `left_out` is None where nothing is to be left out.

    The directory `without` is passed over: it is that of a state, with which any file may be empty as yet.
    """

    def __init__(
        self,
        form: str,
        mapping: Plan | None,
        left_out: list[LeftOut] | None,
        without: Path | None,
    ) -> None:
        self._form, self._mapping = form, mapping
        self._without = None if without is None else without.resolve()
        self.left_out = left_out
        self.empty: list[Path] = []
        self.files: dict[Path, InputFile] = {}
        self.passed_over: list[Path] = []
        self.unrecognized: list[Path] = []
        self.remarks: list[str] = []

    def file(self, path: Path) -> None:
        """Take a file that was named."""
        if path.exists() and not path.is_file():
            raise InputError(
                f"{path} is not a file",
                help="what comes through a pipe must be written to a file first",
            )
        self._take(path, _form_of)

    def directory(self, directory: Path) -> None:
        """Take the traces in a directory."""
        before = self._found
        for path in self._below(directory):
            if not self._is_wanted(path):
                self.passed_over.append(path)
            elif path.is_dir():
                self.remarks.append(f"passed over {path}: links to directories are not followed")
            elif path.exists() and not path.is_file():
                self.remarks.append(f"passed over {path}: it is not a file")
            else:
                self._take(path, _form_in_directory)
        if before == self._found:
            raise self._nothing(directory)

    @property
    def _found(self) -> int:
        return len(self.files) + len(self.left_out or ()) + len(self.empty)

    def _below(self, directory: Path) -> Iterator[Path]:
        """The files in a directory and below it, but for what Spark and others leave beside the data, and RocksDB's."""

        def unreadable_directory(error: OSError) -> None:
            path = Path(error.filename or directory)
            refuse_or_leave_out(unreadable(path, error), path, self.left_out)

        for folder, folders, names in os.walk(directory, onerror=unreadable_directory):
            folders[:] = sorted(name for name in folders if self._is_searched(Path(folder, name)))
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in sorted([*names, *links]):
                if not name.startswith((".", "_")):
                    yield Path(folder, name)

    def _is_searched(self, folder: Path) -> bool:
        hidden = folder.name.startswith((".", "_"))
        if hidden or (self._without is not None and folder.resolve() == self._without):
            return False
        return not all(os.access(folder / name, os.F_OK) for name in _ROCKSDB)

    def _is_wanted(self, path: Path) -> bool:
        if path.is_dir():
            return True
        if self._mapping is not None:
            return any(fnmatch(_name(path), p) for p in self._mapping.source.files)
        return formats.is_of_traces(_name(path))

    def _take(self, path: Path, form_of: Callable[[Path, str], str | None]) -> None:
        known: str | None = None
        try:
            if path.stat().st_size == 0 and (self._without is not None or _may_be_empty(path)):
                self.empty.append(path)
                return
            known = self._form if self._mapping is not None else form_of(path, self._form)
            if known is None:
                self.unrecognized.append(path)
                return
            formats.reader(known).check(path)
            self.files.setdefault(path.resolve(), InputFile(path, known, path.stat().st_size))
        except (OSError, StagewrightError) as error:
            refuse_or_leave_out(unreadable(path, error), path, self.left_out, known or "")

    def _nothing(self, directory: Path) -> InputError:
        if self._mapping is not None:
            return InputError(
                f"the directory {directory} has none of {', '.join(self._mapping.source.files)}",
                help=f'say in {self._mapping.file} which files are meant: files = ["*.log"] under [source]',
            )
        return InputError(
            f"the directory {directory} has no traces"
            + (f" in {self._form}" * (self._form != "auto")),
            help=f"traces end in {', '.join(formats.endings())} (or these with "
            f"{' or '.join(formats.COMPRESSED)}) or are called log; name other files one by one",
        )


def _taken_as(path: Path, form: str, mapping: Plan | None) -> str | None:
    """As which form a file in a directory is taken; None if it is not."""
    if mapping is not None:
        return form if any(fnmatch(_name(path), p) for p in mapping.source.files) else None
    known = _known_form(path) if formats.is_of_traces(_name(path)) else None
    return known if form in ("auto", known) else None


def _may_be_empty(path: Path) -> bool:
    """Whether a file without a byte is a log that has just been rotated, and not a trace that was lost."""
    return path.suffix not in (".json", ".jsonl", ".ndjson", ".parquet", *formats.COMPRESSED)


def _name(path: Path) -> str:
    return path.stem if path.suffix in formats.COMPRESSED else path.name


def _form_of(path: Path, form: str) -> str:
    known = _known_form(path)  # an empty or unreadable file is refused whatever its form is
    if form != "auto":
        return form
    archive = archive_kind(path)
    if archive:
        raise InputError(f"{path} is a {archive} archive", help="unpack it and name its folder")
    if known is None and beginning(path, formats.PROBE_BYTES).lstrip().startswith(b"["):
        raise InputError(
            f"{path} is a JSON array, and a trace has one object a line",
            help=f"write each event on a line of its own: jq -c '.[]' {path} > {path.with_suffix('.jsonl')}",
        )
    if known is None:
        raise InputError(
            f"cannot tell what {path} is",
            help=f"say it with --format: one of {', '.join(formats.choices())}; or how to read it, with --mapping",
        )
    return known


def _form_in_directory(path: Path, form: str) -> str | None:
    known = _known_form(path)
    return known if form in {"auto", known} else None


def _known_form(path: Path) -> str | None:
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty", help="leave it out, or take another copy of it")
        begin = beginning(path, formats.PROBE_BYTES)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", help="who may read it, and is it all there?"
        ) from error
    known = formats.form_of(_name(path), begin)
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(
            f"{path} is text in UTF-16, as PowerShell's `>` writes it",
            help=f"make it UTF-8: iconv -f UTF-16 -t UTF-8 {path} > {path}.utf8",
        )
    return None if known is None else known.name
