"""Records what masters, tablets and transactions say as traces, each step checked as it is taken.

It knows what they said, and nothing of their memory: whether a row is the next one, a key free or a transaction
pending follows from what was stored and held before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.data import DataRecords
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import Note, TabletDivided
from stagewright.impl.indexes.records.scans import ScanRecords
from stagewright.impl.indexes.records.schemas import Schemas
from stagewright.impl.indexes.records.splits import SplitRecords
from stagewright.impl.indexes.schema import Values, row_key
from stagewright.impl.indexes.splits.tablet_map import TABLE
from stagewright.impl.recording.recording import Recording
from stagewright.impl.recording.transition_table import TransitionTable, tables_of
from stagewright.machines.recorded import OF_INDEXES


@cache
def tables() -> dict[str, TransitionTable]:
    """The definitions by kind; all runs of a process share what they compute."""
    return tables_of(OF_INDEXES)


class IndexRecorder:
    """Of one table."""

    def __init__(self, settings: Settings, now: Callable[[], int]) -> None:
        """`now` says the milliseconds of one clock for all."""
        self._recording = Recording(tables(), now)
        self._known = KnownVersions(settings.tablets)
        self._schemas = Schemas(self._recording, settings.tablets)
        self._data = DataRecords(self._recording, self._known, self._schemas)
        self._scans = ScanRecords(self._recording, self._known, self._schemas, settings)
        self._splits = SplitRecords(self._recording, self._known)
        self._divided: set[str] = set()  # tablets that have split

    def __len__(self) -> int:
        """How many steps were recorded."""
        return len(self._recording)

    @property
    def problems(self) -> list[str]:
        """Steps that a definition refuses."""
        return self._recording.problems

    def load(self, address: str, rows: Mapping[bytes, Values]) -> None:
        """Rows that a tablet has from before."""
        self._known.load(address, rows)

    def hear(self, note: Note) -> None:
        """A process has done something."""
        if isinstance(note, TabletDivided):
            split = note.split
            if split.place in self._divided:
                return  # its next leader, which does not know that the children are there
            self._divided.add(split.place)
            self._known.divide(split)
            if split.table == TABLE:
                self._schemas.divide(split, lambda key: self._known.maps.of().of(row_key(key)))
                self._scans.divide(split)
            else:
                self._data.divide(split)
        self._splits.hear(note)
        self._data.hear(note)
        self._scans.hear(note)
        self._schemas.hear(note)
        self._known.hear(note)

    def end(self) -> None:
        """Nothing more happens."""
        self._scans.look_for_silence()

    def write(self, directory: Path, trace: str) -> tuple[Path, ...]:
        """One file for each definition."""
        return self._recording.write(directory, trace)
