"""What is recorded of statements, transactions, entries and unique keys (`machines/recorded/index_data.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stagewright.impl.indexes.bulk.columns import changes_of
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import (
    BackfillOver,
    Compacted,
    Decided,
    EntriesBackfilled,
    IntentsEnded,
    Note,
    StatementCame,
    StatementHeld,
    StatementWaits,
    Stored,
    ViolationFound,
)
from stagewright.impl.indexes.records.schemas import Schemas
from stagewright.impl.indexes.schema import (
    EntryChange,
    entry_key,
    key_of,
    table_tablet,
    value_of,
)
from stagewright.impl.indexes.splits.tablet_map import Split
from stagewright.impl.recording.recording import Recording

STATEMENTS, TRANSACTIONS = "index-statements", "index-transactions"
ENTRIES, KEYS = "index-entries", "index-keys"


class DataRecords:
    """Makes steps of what tablets and records of transactions say."""

    def __init__(self, recording: Recording, known: KnownVersions, schemas: Schemas) -> None:
        self._over = set[str]()  # tablets of indexes that know that the backfill is over
        self._ending: dict[str, tuple[str, set[int]]] = {}  # by tablet of the table
        self._recording = recording
        self._known = known
        self._schemas = schemas
        self._came: dict[tuple[str, int], int] = {}  # when the last copy of a statement came
        self._decided: dict[str, int | None] = {}

    def hear(self, note: Note) -> None:
        """A process has done something; rows and entries are known as they were before."""
        match note:
            case StatementCame() | StatementWaits() | StatementHeld():
                self._statement(note)
            case Decided(transaction, time):
                self._decided[transaction] = time
                action = "abort" if time is None else "commit"
                self._recording.take(TRANSACTIONS, transaction, "transactions", action)
            case IntentsEnded(address, transaction, None):
                self._recording.take(TRANSACTIONS, transaction, address, "drop")
            case IntentsEnded(address, transaction, time):
                right = self._decided.get(transaction) == time
                self._recording.take(TRANSACTIONS, transaction, address, "store", at_its_time=right)
                if address.startswith("table"):
                    written = self._schemas.written_by(address, transaction)
                    self._ending[address] = transaction, written
            case Stored(address, time, versions) if address in self._ending:
                self._rows(address, time, versions)
            case EntriesBackfilled():
                self._backfilled(note)
            case ViolationFound(address, read_time, entry):
                rivals = self._rivals(address, entry, read_time)
                self._key(address, entry, "report", rival=any(rivals))
            case BackfillOver(address):
                self._end_backfill(address)
            case Compacted(address):
                self._recording.take(ENTRIES, address, address, "compact")
            case _:
                pass

    def divide(self, split: Split) -> None:
        """A tablet of an index has split: its children know what it has heard."""
        for place in split.places if split.place in self._over else ():
            self._end_backfill(place)

    def _end_backfill(self, address: str) -> None:
        self._over.add(address)
        self._recording.take(ENTRIES, address, address, "end_backfill")

    def _rows(self, address: str, time: int, versions: Mapping[bytes, bytes | None]) -> None:
        """The rows of a transaction are stored: their entries are, too, or are held for it."""
        transaction, written = self._ending.pop(address)
        schema = self._schemas.of(int(address.removeprefix("table/")))
        places = [
            (self._known.maps.place_of(index.number, entry), entry, key_of(key))
            for key, stored in versions.items()
            for index in schema.indexes
            if index.number in written
            and (value := json.loads(stored or b"{}").get(index.column)) is not None
            and (entry := entry_key(index.unique, value, key_of(key)))
        ]
        maintained = all(
            self._known.holder_of(place, entry) == transaction
            or self._known.has_entry(place, entry, time, row)
            for place, entry, row in places
        )
        self._recording.take(
            TRANSACTIONS, transaction, address, "store_rows", maintained=maintained
        )

    def _statement(self, note: StatementCame | StatementWaits | StatementHeld) -> None:
        name = note.transaction, note.statement
        entity, place = f"{note.transaction}.{note.statement}", table_tablet(note.tablet)
        match note:
            case StatementCame():
                self._came[name] = self._recording.now()
                self._recording.take(STATEMENTS, entity, place, "come")
            case StatementWaits(key=key):
                holder = self._known.holder_of(place, key)
                locked = holder not in (None, note.transaction)
                self._recording.take(STATEMENTS, entity, place, "wait", locked=locked)
            case StatementHeld(version=version):
                current = version == self._schemas.of(note.tablet).version
                prompt = self._came.get(name) == self._recording.now()
                self._recording.take(
                    STATEMENTS, entity, place, "hold", current=current, prompt=prompt
                )

    def _backfilled(self, note: EntriesBackfilled) -> None:
        unique = [e for e in changes_of(note.entries) if e.unique]
        decided = all(self._known.holder_of(note.address, e.entry) is None for e in unique)
        at_scan = note.time == note.read_time
        self._recording.take(
            ENTRIES, note.address, note.address, "backfill", at_scan=at_scan, decided=decided
        )
        for entry in unique:
            before, after = self._rivals(note.address, entry, note.read_time)
            self._key(
                note.address, entry, "write_entry", free_before=not before, free_after=not after
            )

    def _rivals(self, address: str, entry: EntryChange, at: int) -> tuple[bool, bool]:
        assert entry.row is not None
        return self._known.rival(address, entry.entry, at, entry.row)

    def _key(self, address: str, entry: EntryChange, action: str, **arguments: bool) -> None:
        entity = f"index{entry.index} = {value_of(entry.entry)}"
        self._recording.take(KEYS, entity, address, action, **arguments)
