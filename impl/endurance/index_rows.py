"""What the stopped processes of a cluster have stored, looked at by the oracle of the simulator: no definition is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from stagewright.impl.endurance.index_writers import Changes, Writer
from stagewright.impl.indexes.catalog import Catalog
from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.processes.stored_catalog import catalog_in, steps_in
from stagewright.impl.indexes.processes.traces import watched
from stagewright.impl.indexes.records.notes import Note, Stepped, Stored
from stagewright.impl.indexes.simulated.oracle import Ended, Oracle
from stagewright.impl.indexes.splits.tablet_map import TABLE, TabletMap, index_table
from stagewright.impl.indexes.tablet import INTENTS, ROWS, Intent, stored_value
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS, RECORD
from stagewright.impl.storage.port import Snapshot
from stagewright.impl.storage.rocks import RocksRows
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status


class Held:
    """All versions of all tablets, and what the master has decided."""

    def __init__(self, layout: IndexLayout) -> None:
        path = layout.directory / "catalog.sqlite"
        self.catalog: Catalog = catalog_in(path)
        self.steps: list[tuple[int, int, Note]] = list(steps_in(path))
        self._layout = layout
        self.oracle = Oracle()
        records = dict(_records(layout))
        serving, gone = self._maps()
        self._misplaced: list[str] = []
        for place in layout.places():
            if place == RECORDS or layout.is_deleted(place) or place in gone:
                continue
            with closing(RocksRows(layout.tablet(place) / "rows")) as rows:
                snapshot = rows.snapshot()
                for note in _stored(place, snapshot, records):
                    self.oracle.hear(note)
                    others = (
                        {serving[place].place_of(k) for k in note.versions}
                        if place in serving
                        else {place}
                    )
                    self._misplaced += [
                        f"{place} has what {o} is to have" for o in others - {place}
                    ]
                snapshot.close()

    def _maps(self) -> tuple[dict[str, TabletMap], set[str]]:
        """The map of each tablet that serves, and the tablets that have split."""
        tables = (TABLE, *(index_table(i.number) for i in self.catalog.indexes))
        maps = list(map(self.catalog.map_of, tables)) if self.catalog.tablets is not None else []
        gone = {split.place for tablets in maps for split in tablets.splits}
        return {place: tablets for tablets in maps for place in tablets.places}, gone

    def breaches(self) -> list[str]:
        """Where an index is not its table at some time from its scan on, or its constraint is not as it ended."""
        end, found = max((*self.oracle.rows, 0)) + 1, self._misplaced[:3]
        for row in self.catalog.indexes:
            ended = self._ended(row.number)
            if row.status is Status.in_progress and not row.dropped:
                found.append(f"the build of {row.name} has not ended")
            if row.status is Status.success and not row.dropped:
                found += self.oracle.index(row, end)
            until = end if ended.dropped is None else (ended.dropped - 50) * 4096
            found += self.oracle.constraint(row, ended, until)
            if row.permission not in (Permission.absent, Permission.read_write_and_delete):
                found.append(f"{row.name} stays {row.permission.name}")
        return found

    def _ended(self, number: int) -> Ended:
        at: dict[str, int] = {}
        for _, milliseconds, note in self.steps:
            if isinstance(note, Stepped) and note.entity == f"index{number}":
                at.setdefault(note.action, milliseconds)
        return Ended(at.get("publish"), at.get("find_violation"), at.get("drop_index"))

    def refused(self) -> list[str]:
        """Steps of masters that the definitions do not allow, one master after the other."""
        return watched(self._layout).problems

    def lost(self, writers: list[Writer]) -> list[str]:
        """Rows that were committed and are not there at their time, or are there and nobody wrote them."""
        rows, found = self.oracle.rows, list[str]()
        known: dict[int, Changes] = {}
        for writer in writers:
            known |= writer.committed
        for time, changes in known.items():
            if rows.get(time) != {k: None if v is None else dict(v) for k, v in changes.items()}:
                found.append(f"{changes} was committed at {time}, the table has {rows.get(time)}")
        unknown = [dict(c) for w in writers for c in w.unknown]
        for time, changes in rows.items():
            if time not in known and dict(changes) not in unknown:
                found.append(f"nobody has committed {changes} at {time}")
        return found


def _records(layout: IndexLayout) -> Iterator[tuple[str, int]]:
    """When transactions have committed."""
    with closing(RocksRows(layout.tablet(RECORDS) / "rows")) as rows:
        snapshot = rows.snapshot()
        for version in snapshot.versions(RECORD, b"", None):
            yield version.key.decode(), int(version.value or b"0")
        snapshot.close()


def _stored(place: str, snapshot: Snapshot, records: dict[str, int]) -> Iterator[Stored]:
    """Versions, and what is held of transactions that have committed."""
    for version in snapshot.versions(ROWS, b"", None):
        yield Stored(place, version.time, {version.key: version.value})
    for version in snapshot.versions(INTENTS, b"", None):
        if version.value is not None:
            intent = Intent.decoded(version.value)
            if time := records.get(intent.transaction):
                yield Stored(place, time, {version.key: stored_value(intent)})
