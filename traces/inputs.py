"""Finds the trace files behind the paths a user names, and the form of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.errors import InputError

FORMS = ("jsonl", "parquet", "scylla-log")
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".log": "scylla-log"}
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class InputFile:
    """One file to be read, and as what."""

    path: Path
    form: str


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
            found = [InputFile(path, _form_of(path, form))]
        else:
            raise InputError(f"there is no file or directory {path}", help="check the path")
        for file in found:
            files.setdefault(file.path.resolve(), file)
    for file in files.values():
        _check(file)
    return Inputs(tuple(sorted(files.values(), key=lambda f: str(f.path))), tuple(passed_over))


def _in_directory(directory: Path, form: str, passed_over: list[Path]) -> list[InputFile]:
    found: list[InputFile] = []
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        if any(part.startswith((".", "_")) for part in path.relative_to(directory).parts):
            continue  # what Spark and others leave beside the data
        known = _by_suffix(path)
        if known is None or form not in ("auto", known):
            passed_over.append(path)
        else:
            found.append(InputFile(path, known))
    if not found:
        endings = ", ".join(e for e, f in _SUFFIXES.items() if form in ("auto", f))
        raise InputError(
            f"the directory {directory} has no traces",
            help=f"traces end in {endings} (or these with .gz or .zst); name other files one by one",
        )
    return found


def _by_suffix(path: Path) -> str | None:
    name = path.with_suffix("") if path.suffix in _COMPRESSED else path
    return _SUFFIXES.get(name.suffix)


def _form_of(path: Path, form: str) -> str:
    if form != "auto":
        return form
    if known := _by_suffix(path):
        return known
    with path.open("rb") as file:
        begin = file.read(1 << 16)
    if begin.startswith(b"PAR1"):
        return "parquet"
    if begin.lstrip().startswith(b"{"):
        return "jsonl"
    if b"[shard" in begin:
        return "scylla-log"
    raise InputError(
        f"cannot tell what {path} is", help=f"say it with --format: one of {', '.join(FORMS)}"
    )


def _check(file: InputFile) -> None:
    try:
        size = file.path.stat().st_size
        if size == 0:
            raise InputError(
                f"{file.path} is empty", help="leave it out, or take another copy of it"
            )
        with file.path.open("rb"):
            pass
    except OSError as error:
        raise InputError(
            f"{file.path} cannot be read: {error.strerror}", help="check it"
        ) from error
    from stagewright.traces.readers import jsonl, parquet, scylla_log

    match file.form:
        case "jsonl":
            jsonl.check(file.path)
        case "parquet":
            parquet.check(file.path)
        case _:
            scylla_log.check(file.path)
