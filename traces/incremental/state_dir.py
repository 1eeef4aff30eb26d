"""What one run leaves for the next: which files were read, and what is carried of every entity.

A directory with `state.json` and a folder of Parquet files for each run whose files still count. A run writes new
files beside the old ones and then puts a new `state.json` in place: an interrupted run leaves the state as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from stagewright import __version__
from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.inputs.file_identity import FileRead
from stagewright.traces.replay.exact_verdicts import MachineKey

VERSION = 3
_FILE = "state.json"
_LOCK = "lock"
_FOLDER = "run-"
_BEGIN_ANEW = "begin anew with an empty --state directory"


class Watched(NamedTuple):
    """A machine whose entities are carried, as their events name it; `asked` stands for what --together asks of it."""

    machine: str
    profile: str
    definition: str
    asked: str = ""

    @property
    def key(self) -> MachineKey:
        """How events name it."""
        return self[:3]


@dataclass(frozen=True)
class State:
    """What earlier runs have left in a directory; of a new one, nothing.

    `definitions`: the fingerprint and the scope that evaluated each machine whose entities are carried. `parts` are the
    path and the first line of every part that was ever read: places refer to them. All else are names of files:
    `carried` has the rows of entities, `records` what was extracted of logs, `coverage` what traces have exercised,
    `reported` what was reported of logs.
    """

    folder: Path
    runs: int = 0
    program: str = __version__
    options: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])
    machines: tuple[Watched, ...] = ()
    files: tuple[FileRead, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    carried: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    coverage: str = ""
    reported: str = ""

    @property
    def names(self) -> list[str]:
        """The names of all files that the state consists of."""
        return [n for n in (*self.carried, *self.records, self.coverage, self.reported) if n]

    def path(self, name: str) -> Path:
        """Where a file of the state is."""
        return self.folder / name

    def fits_options(self, options: str) -> None:
        """Raise an `InputError` unless the earlier runs had the same options."""
        if self.runs and options != self.options:
            raise InputError(
                f"the state in {self.folder} was made with other options: {self.options or 'none'}",
                help="give the same ones, or begin anew with an empty --state directory",
            )

    def fits(self, definitions: Mapping[str, str], watched: Mapping[MachineKey, str]) -> None:
        """Raise an `InputError` unless what is carried was evaluated, and seen, as it is in this run."""
        for name, evaluated in definitions.items():
            was = self.definitions.get(name, evaluated)
            if was != evaluated:
                raise InputError(
                    f"the state in {self.folder} was made under the definition {was} of {name}; "
                    f"it is {evaluated} now",
                    help=f"take the version and the sizes of then, or {_BEGIN_ANEW}",
                )
        for one in self.machines:
            if watched.get(one.key, "") != one.asked:
                raise InputError(
                    f"--together asks something else of {one.machine} than the state in {self.folder} "
                    "has kept: the system has changed, or these are the first traces of one of its parts",
                    help=f"{_BEGIN_ANEW}, with traces of all parts in the first run",
                )

    def new_folder(self) -> Path:
        """Where this run writes what it carries."""
        folder = self.folder / f"{_FOLDER}{self.runs + 1}-{uuid.uuid4().hex[:8]}"
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise no_room(self.folder, error) from error
        return folder


def no_room(folder: Path, error: OSError) -> InputError:
    """A state that cannot be written."""
    return InputError(
        f"{folder} cannot be written: {error.strerror or error}",
        help="make room there; what earlier runs left is as it was",
    )


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs from the state while this one uses it.

    Raises:
        InputError: another run does; or what is there is no state.
    """
    import fcntl

    if folder.exists() and (not folder.is_dir() or _is_of_others(folder)):
        raise InputError(f"{folder} has no {_FILE}", help="--state wants a directory of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a")
    except OSError as error:
        raise no_room(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # is gone with the process that has it
        except OSError as error:
            raise InputError(
                f"another run uses the state in {folder}", help="wait for its end"
            ) from error
        yield


def load_state(folder: Path) -> State:
    """The state in a directory, which need not exist yet.

    Raises:
        InputError: what is there is no state, or one of another version.
    """
    path = folder / _FILE
    if not path.exists():
        return State(folder)
    state = _read(folder, path)
    if gone := [name for name in state.names if not state.path(name).exists()]:
        raise InputError(f"{state.path(gone[0])} is gone", help=_BEGIN_ANEW)
    if state.records and state.program != __version__:
        raise InputError(
            f"the logs in {folder} were read by Stagewright {state.program}; this is {__version__}",
            help=f"{_BEGIN_ANEW}, and give all logs again",
        )
    return state


def _read(folder: Path, path: Path) -> State:
    try:
        found = json.loads(path.read_text("utf-8"))
        version = found.pop("version")
        if version == VERSION:
            return _state(folder, found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged: {error}", help=_BEGIN_ANEW) from error
    raise InputError(
        f"{path} has version {version}; this program writes version {VERSION}", help=_BEGIN_ANEW
    )


def save_state(state: State, verdicts: Mapping[TraceVerdict, int]) -> None:
    """Put a new state in place of the old one, and remove what only the old one needs.

    Raises:
        InputError: there is no room.
    """
    content = asdict(state) | {
        "version": VERSION,
        "verdicts": {verdict.value: count for verdict, count in verdicts.items()},
    }
    del content["folder"]
    path = state.folder / _FILE
    partial = path.with_suffix(".partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise no_room(state.folder, error) from error
    remove_unused(state)


def remove_unused(state: State) -> None:
    """Remove the folders of runs that the state does not need: older ones, and those that were interrupted."""
    kept = {name.split("/")[0] for name in state.names}
    for folder in state.folder.glob(f"{_FOLDER}*"):
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)


def _is_of_others(folder: Path) -> bool:
    """Whether a directory without a state holds anything but what an interrupted first run has left."""
    if (folder / _FILE).exists():
        return False
    ours = {_LOCK, f"{Path(_FILE).stem}.partial"}
    return any(p.name not in ours and not p.name.startswith(_FOLDER) for p in folder.iterdir())


def _state(folder: Path, found: Mapping[str, object]) -> State:
    plain: dict[str, object] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in found.items()
        if name != "verdicts"
    }
    plain["files"] = tuple(_file(one) for one in _sequence(found["files"]))
    plain["parts"] = tuple((str(path), int(before)) for path, before in _sequence(found["parts"]))
    plain["machines"] = tuple(Watched(*one) for one in _sequence(found["machines"]))
    return State(folder, **plain)  # type: ignore[arg-type]


def _file(found: Mapping[str, object]) -> FileRead:
    lists: dict[str, object] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return FileRead(**lists)  # type: ignore[arg-type]


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    found: list[Any] = value
    return found
