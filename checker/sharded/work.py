"""A search's work directory: what it says of the search, and which levels are done."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stagewright.checker.sharded.files import (
    DamagedError,
    done_file,
    level_folder,
    new_file,
    read_json,
    secure,
    sent_file,
    write_json,
)
from stagewright.checker.sharded.program import Program
from stagewright.checker.sharded.tasks import SEARCH_FILE
from stagewright.spec.errors import InputError

_FORMAT = 1


@dataclass(frozen=True)
class Level:
    """What the tasks of one level found."""

    states: tuple[int, ...]  # by shard
    sent: tuple[int, ...]
    transitions: int
    observed: tuple[int, ...]


@dataclass(frozen=True)
class WorkDirectory:
    """Where one search, of one run's name, keeps its files."""

    folder: Path
    run: str
    program: Program
    shards: int
    lasting: bool  # to be gone on with, even after a crash of the machine

    @classmethod
    def opened(
        cls,
        folder: Path,
        program: Program,
        shards: int,
        settings: dict[str, str],
        *,
        lasting: bool = True,
    ) -> WorkDirectory:
        """A new work directory, or the one of the same search.

        Raises:
            InputError: something else lies there, or another search.
            DamagedError: its files are not what was written.
        """
        data = {**settings, "shards": str(shards)}
        path = folder / SEARCH_FILE
        if path.exists():
            before = read_json(path)
            _compare(folder, before, data, program)
            return cls(folder, str(before["run"]), program, shards, lasting)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            foreign = any(folder.iterdir())
        except OSError as error:
            raise InputError(
                f"{folder} cannot be the work directory: {error.strerror}",
                help="name a directory that may be written",
            ) from None
        if foreign:
            raise InputError(
                f"{folder} holds something else than a search", help="name an empty directory"
            )
        run = uuid.uuid4().hex
        write_json(
            path,
            {
                "format": _FORMAT,
                "run": run,
                "settings": data,
                "digest": program.digest,
                "program": program.json(),
            },
        )
        return cls(folder, run, program, shards, lasting)

    def level(self, level: int) -> Level | None:
        """What was found in a level, if it is done.

        Raises:
            DamagedError: a file is not what was written.
        """
        path = done_file(self.folder, level)
        if not path.exists():
            return None
        document = read_json(path)
        try:
            found = Level(
                tuple(document["states"]),
                tuple(document["sent"]),
                document["transitions"],
                tuple(document["observed"]),
            )
        except (KeyError, TypeError):
            raise DamagedError(path) from None
        for shard, states in enumerate(found.states):
            states_path = new_file(self.folder, level, shard)
            if not states_path.exists() or (
                states_path.stat().st_size != 8 * self.program.words * states
            ):
                raise DamagedError(states_path)
        return found

    def finish(self, level: int, found: Level) -> None:
        """Say that a level is done; what was sent to it is not needed any more."""
        if self.lasting:
            for shard in range(self.shards):
                secure(new_file(self.folder, level, shard))
                secure(sent_file(self.folder, level, shard))
        write_json(done_file(self.folder, level), asdict(found))
        if self.lasting:
            secure(done_file(self.folder, level))
        self.forget_sent(level - 1)
        self.prepare(level)

    def forget_sent(self, level: int) -> None:
        """Remove what a level sent to the next, which is done."""
        for shard in range(self.shards if level >= 0 else 1):
            sent_file(self.folder, level, shard).unlink(missing_ok=True)

    def prepare(self, level: int) -> None:
        """A folder for a level, without claims and what broken tasks left there."""
        folder = level_folder(self.folder, level)
        folder.mkdir(exist_ok=True)
        for rest in folder.glob(".*"):
            rest.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)


def shards_in(folder: Path) -> int | None:
    """How many shards the search that lies in a folder has.

    Raises:
        DamagedError: what lies there is not what was written.
    """
    path = folder / SEARCH_FILE
    if not path.exists():
        return None
    try:
        return int(read_json(path)["settings"]["shards"])
    except (KeyError, TypeError, ValueError):
        raise DamagedError(path) from None


def _compare(folder: Path, before: dict[str, Any], data: dict[str, str], program: Program) -> None:
    settings = before.get("settings")
    if before.get("format") != _FORMAT or not isinstance(settings, dict):
        raise DamagedError(folder / SEARCH_FILE)
    for name, value in data.items():
        if settings.get(name) != value:
            raise InputError(
                f"{folder} holds a search with another {name}: {settings.get(name)}, not {value}",
                help="continue with the same, or name another work directory",
            )
    if before.get("digest") != program.digest:
        raise InputError(
            f"{folder} holds a search of another version of {data['machine']}",
            help="the definition has changed since: name another work directory",
        )
