"""What is recorded of tablets that split (`machines/recorded/index_data.py`)."""

from __future__ import annotations

from stagewright.impl.indexes.control import JOB
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import (
    EntriesBackfilled,
    IntentsHeld,
    Note,
    SplitRegistered,
    StatementHeld,
    Stepped,
    TabletDivided,
)
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.tablet_map import TABLE
from stagewright.impl.recording.recording import Recording

SPLITS = "index-splits"
_BEGIN, _WAIT_NO_MORE = ("launch", "resume"), ("find_no_splits", "take_recorded_time")
_END = ("finish", "fail_over")


class SplitRecords:
    """Makes steps of what masters and tablets say."""

    def __init__(self, recording: Recording, known: KnownVersions) -> None:
        self._recording = recording
        self._known = known
        self._is_backfilling = False
        self._is_reading = False  # a job does not wait for splits any more
        self._registered: set[str] = set()

    def hear(self, note: Note) -> None:
        """A process has done something; a split is known already."""
        match note:
            case Stepped(kind) if kind == JOB:
                self._is_backfilling |= note.action in _BEGIN
                self._is_reading |= note.action in _WAIT_NO_MORE
                if note.action in _END:
                    self._is_backfilling = self._is_reading = False
            case SplitRegistered(split):
                self._registered.add(split.place)
                idle = split.table != TABLE or not self._is_backfilling
                self._take(split.place, "register", "master", idle=idle)
            case TabletDivided(split):
                self._divide(note)
            case StatementHeld(tablet):
                self._hold(table_tablet(tablet))
            case EntriesBackfilled(address) | IntentsHeld(address):
                if not address.startswith(f"{TABLE}/"):  # of a statement, that it is held
                    self._hold(address)
            case _:
                pass

    def _hold(self, place: str) -> None:
        if place in self._registered:
            self._take(place, "hold", place)

    def _divide(self, note: TabletDivided) -> None:
        split, known = note.split, self._known
        given = list(zip(split.places, note.versions, note.rows, strict=True))
        self._take(
            split.place,
            "divide",
            split.place,
            awaited=split.table != TABLE or not self._is_reading,
            rows=all(known.has(place, versions, rows) for place, versions, rows in given),
            intents=note.intents == tuple(map(known.intents, split.places)),
        )

    def _take(self, place: str, action: str, node: str, **arguments: bool) -> None:
        self._recording.take(SPLITS, place, node, action, **arguments)
