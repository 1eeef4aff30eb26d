"""A search written to a directory level by level, so that it can be taken up again.

The directory grows: states are written once, in files of whole levels, and what was counted and noted
until then replaces the last such record in one step. A search that dies loses what came after the last
record, never the record.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.exploration import Noted, Tally, Watch
from stagewright.checker.explicit.packing import Words
from stagewright.spec.errors import InputError

_RECORD = "search.json"
_FORMAT = 2
_SECONDS = 30.0
_MOST_UNWRITTEN = 1 << 20  # states, where they are to be forgotten once they are written
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class Checkpoint:
    """One directory, and how often to write to it."""

    directory: Path
    seconds: float = _SECONDS
    failed: str = ""  # why nothing is written any more; what was written before is whole
    _files: list[list[int]] = field(default_factory=list)  # where each ends, in states; its sum
    _last: float = field(default_factory=time.monotonic)

    @property
    def exists(self) -> bool:
        """Whether there is a search to take up."""
        return (self.directory / _RECORD).exists()

    @property
    def written(self) -> int:
        """How many states are in files that the next record names."""
        return self._files[-1][0] if self._files else 0

    def due(self, unwritten: int = 0) -> bool:
        """Whether it is time to write again: as time goes by, or since many states wait for it."""
        waited = time.monotonic() - self._last >= self.seconds
        return not self.failed and (waited or unwritten > _MOST_UNWRITTEN)

    def save(self, tally: Tally, states: Callable[[int, int], Words]) -> None:
        """Write a search that stands between two levels; `states(first, after)` reads its log.

        A directory that takes no more ends the writing, not the search: `failed` says why.
        """
        if self.failed:
            return
        try:
            if tally.states > self.written:
                words = np.ascontiguousarray(states(self.written, tally.states).T)
                name = _states_name(self.written, tally.states)
                _write(self.directory / name, words.data)
                self._files.append([tally.states, _sum(words)])
            record = {
                "format": _FORMAT,
                "words": states(0, 0).shape[0],
                "files": self._files,
                "tally": _plain(tally),
            }
            sealed = json.dumps({**record, "seal": _seal(record)})
            _write(self.directory / _RECORD, memoryview(sealed.encode()))
        except OSError as error:
            self.failed = error.strerror or str(error)
        self._last = time.monotonic()

    def load(self, engine: Engine, watch: Watch) -> tuple[Tally, Iterator[Words]]:
        """What was counted, and the states in the order of the log, level by level.

        Raises:
            InputError: the files are damaged, or belong to another search.
        """
        path = self.directory / _RECORD
        try:
            record = _unsealed(path.read_bytes())
            tally = _tally(record["tally"], engine, watch)
            same = record["format"] == _FORMAT and record["words"] == engine.layout.words
            files = record["files"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} cannot be read: {error}", help=_AGAIN) from error
        if not same:
            raise InputError(f"{path} was written by another search", help=_AGAIN)
        states = self._states(engine.layout.words, files)
        self._files = files
        ends = [*tally.levels[1:], tally.states]
        return tally, (
            states[:, first:after] for first, after in zip(tally.levels, ends, strict=True)
        )

    def _states(self, words: int, files: list[list[int]]) -> Words:
        """The states of the files that the record names: others are of a search that died since."""
        parts = [np.empty((0, words), dtype=np.uint64)]
        first = 0
        for after, expected in files:
            path = self.directory / _states_name(first, after)
            data = path.read_bytes() if path.exists() else b""
            if len(data) == (after - first) * words * 8:
                parts.append(np.frombuffer(data, dtype=np.uint64).reshape(-1, words))
            if len(data) != (after - first) * words * 8 or _sum(parts[-1]) != expected:
                raise InputError(
                    f"{self.directory} lacks the states from {first:,} on, or they are damaged",
                    help=_AGAIN,
                )
            first = after
        return np.concatenate(parts).T


def _seal(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _unsealed(data: bytes) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(data)
    if record.pop("seal") != _seal(record):
        raise ValueError("its content is not what was written")
    return record


def _sum(words: Words) -> int:
    """The same for the same states in any order within a level: workers enter them as they come."""
    return int(((words ^ words >> np.uint64(31)) * _MULTIPLIER).sum(dtype=np.uint64))


_AGAIN = "start the search again, with another directory"


def _states_name(first: int, after: int) -> str:
    return f"states-{first:020}-{after:020}"


def _plain(tally: Tally) -> dict[str, Any]:
    plain = {key: value for key, value in vars(tally).items() if key != "watch"}
    plain["fired"], plain["false_counts"] = tally.fired.tolist(), tally.false_counts.tolist()
    for key in ("state_notes", "step_notes"):
        plain[key] = [None if note is None else asdict(note) for note in plain[key]]
    for key in ("deadlock", "overflow"):
        plain[key] = None if plain[key] is None else asdict(plain[key])
    return plain


def _tally(plain: dict[str, Any], engine: Engine, watch: Watch) -> Tally:
    """The record as it was; its lists must be as long as this search's."""
    empty = Tally.empty(engine, watch)
    lengths = {
        "fired": empty.fired.size,
        "false_counts": empty.false_counts.size,
        "state_notes": len(empty.state_notes),
        "step_notes": len(empty.step_notes),
        "met_states": len(empty.met_states),
        "met_steps": len(empty.met_steps),
    }
    for key, length in lengths.items():
        if len(plain[key]) != length:
            raise ValueError(f"{key} has {len(plain[key])} entries instead of {length}")
    return Tally(
        watch,
        np.array(plain["fired"], dtype=np.int64),
        np.array(plain["false_counts"], dtype=np.int64),
        levels=plain["levels"],
        states=plain["states"],
        expanded=plain["expanded"],
        transitions=plain["transitions"],
        state_notes=[_noted(note) for note in plain["state_notes"]],
        step_notes=[_noted(note) for note in plain["step_notes"]],
        deadlock=_noted(plain["deadlock"]),
        overflow=_noted(plain["overflow"]),
        noted_depth=plain["noted_depth"],
        met_states=plain["met_states"],
        met_steps=plain["met_steps"],
        beyond=plain["beyond"],
        within_depth=plain["within_depth"],
        _settled=plain["_settled"],
    )


def _noted(plain: dict[str, Any] | None) -> Noted | None:
    return None if plain is None else Noted(tuple(plain["words"]), plain["step"])


def _write(path: Path, data: memoryview) -> None:
    """All of it under its name, or nothing."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
