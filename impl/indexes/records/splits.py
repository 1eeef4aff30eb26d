"""What is recorded of tablets that split (`machines/recorded/index_data.py`)."""

from __future__ import annotations

from stagewright.impl.indexes.control import JOB
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import (
    Note,
    SplitRegistered,
    StatementHeld,
    Stepped,
    TabletDivided,
)
from stagewright.impl.indexes.schema import table_tablet
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
        self._registered: set[int] = set()

    def hear(self, note: Note) -> None:
        """A process has done something; a split is known already."""
        match note:
            case Stepped(kind) if kind == JOB:
                self._is_backfilling |= note.action in _BEGIN
                self._is_reading |= note.action in _WAIT_NO_MORE
                if note.action in _END:
                    self._is_backfilling = self._is_reading = False
            case SplitRegistered(split):
                self._registered.add(split.parent)
                self._take(split.parent, "register", "master", idle=not self._is_backfilling)
            case TabletDivided(split, versions, intents):
                told = tuple(zip(versions, intents, strict=True))
                known = tuple(self._known.counts(table_tablet(c)) for c in split.children)
                self._take(
                    split.parent,
                    "divide",
                    table_tablet(split.parent),
                    awaited=not self._is_reading,
                    rows=[v for v, _ in told] == [v for v, _ in known],
                    intents=[i for _, i in told] == [i for _, i in known],
                )
            case StatementHeld(tablet) if tablet in self._registered:
                self._take(tablet, "hold", table_tablet(tablet))
            case _:
                pass

    def _take(self, tablet: int, action: str, node: str, **arguments: bool) -> None:
        self._recording.take(SPLITS, table_tablet(tablet), node, action, **arguments)
