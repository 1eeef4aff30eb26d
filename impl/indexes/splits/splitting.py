"""Splits at their master, one at a time: it registers one, has the tablet split, and then changes the map.

As in YugabyteDB, no tablet splits while a job of its table is going on (`is_backfilling`, which a master does not write
down: until the next one takes up the job, a tablet may split), and a job waits for a split that has begun. Both are of the
table whose rows are read: an index is a table of its own, and splits at any time, also while its entries are written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stagewright.impl.indexes.control import JOB
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import Divide, SplitBegun
from stagewright.impl.indexes.records.notes import SplitRegistered
from stagewright.impl.indexes.splits.tablet_map import (
    TABLE,
    Split,
    TabletMap,
    index_table,
    place_parts,
)

if TYPE_CHECKING:
    from stagewright.impl.indexes.catalog import JobRow
    from stagewright.impl.indexes.master import Master


class SplitsOfMaster:
    """What a master does about them."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._sent = -master.settings.retry
        self._divided = ""  # a tablet that has split

    def is_going_on(self, table: str) -> bool:
        """Whether a tablet of the table, or of an index, is splitting."""
        split = self._master.catalog.split
        return split is not None and split.table == table

    def ask(self, sender: str, place: str) -> None:
        """A tablet is to split; who asks again hears what became of it."""
        split, refused = self._known(place), ""
        if split is None:
            tablets, number = self._map_of(place)
            split = tablets.halves(number) if number in tablets.ranges else None
            refused = self._refusal(place, split)
            if split is not None and not refused:
                self._master.catalog.split = split
                self._master.port.note(SplitRegistered(split))
                self.tick()
        children = () if split is None or refused else split.places
        self._master.port.send(sender, SplitBegun(place, children, refused))

    def _map_of(self, place: str) -> tuple[TabletMap, int]:
        table, number = place_parts(place)
        return self._master.catalog.map_of(table), number

    def _known(self, place: str) -> Split | None:
        going_on = self._master.catalog.split
        if going_on is not None and going_on.place == place:
            return going_on
        tablets, number = self._map_of(place)
        return tablets.split_of(number)

    def _refusal(self, place: str, split: Split | None) -> str:
        tablets, number = self._map_of(place)
        master, of_table = self._master, tablets.table == TABLE
        if not of_table and not self._is_there(tablets.table):
            return "the index is gone, or is being removed"
        if number not in tablets.ranges:
            return f"there is no tablet {number}"
        if split is None:
            return f"tablet {number} is too small"
        if master.catalog.split is not None:
            return f"tablet {_shown(master.catalog.split)} is splitting"
        careless = Defect.splits_do_not_wait_for_jobs in master.settings.defects
        if of_table and master.control.of(JOB, TABLE).read("is_backfilling") and not careless:
            return "a backfill is going on"
        return ""

    def _is_there(self, table: str) -> bool:
        indexes = self._master.catalog.indexes
        return any(index_table(i.number) == table and i.permission.kept for i in indexes)

    def tick(self) -> None:
        """Have the tablet split, until it has; then change the map, once no statement would wait for its children's leaders."""
        split, now, port = self._master.catalog.split, self._master.port.now(), self._master.port
        if split is None:
            return
        if split.place == self._divided:
            if all(map(port.is_led, split.places)):
                self._change_map(split)
        elif now - self._sent >= self._master.settings.retry:
            self._sent = now
            tablets = self._master.catalog.map_of(split.table)
            port.send(split.place, Divide(split, tablets))

    def on_divided(self, place: str) -> None:
        """Its children have what they are to have, and are to be led."""
        self._divided = place
        self.tick()

    def _change_map(self, split: Split) -> None:
        catalog = self._master.catalog
        catalog.set_map(catalog.map_of(split.table).after(split))
        catalog.split = None
        if catalog.job is not None and split.table == TABLE:
            catalog.job = self._without_parent(catalog.job, split)

    def _without_parent(self, job: JobRow, split: Split) -> JobRow:
        """A job that is recorded scans the children from their starts, unless their parent was done.

        If all tablets were, delete markers may be gone already, and no entry may be written in the past any more.
        """
        defects = self._master.settings.defects
        until = {t: at for t, at in job.until.items() if t != split.parent}
        if job.until.get(split.parent, b"") is None:
            until |= dict.fromkeys(split.children)
        if Defect.splits_do_not_wait_for_jobs in defects:
            until[split.upper] = None
        if Defect.checkpoints_count_for_children in defects and split.parent in job.until:
            until |= dict.fromkeys(split.children)
        return replace(job, until=until)


def _shown(split: Split) -> str:
    return str(split.parent) if split.table == TABLE else split.place
