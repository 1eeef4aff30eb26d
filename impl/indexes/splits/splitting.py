"""Splits at their master, one at a time: it registers one, has the tablet split, and then changes the map.

As in YugabyteDB, no tablet splits while a job of its table is going on (`is_backfilling`, which a master does not write
down: until the next one takes up the job, a tablet may split), and a job waits for a split that has begun.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stagewright.impl.indexes.control import JOB, TABLE
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import Divide, SplitBegun
from stagewright.impl.indexes.records.notes import SplitRegistered
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.tablet_map import Split

if TYPE_CHECKING:
    from stagewright.impl.indexes.catalog import JobRow
    from stagewright.impl.indexes.master import Master


class SplitsOfMaster:
    """What a master does about them."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._sent = -master.settings.retry
        self._divided = -1  # a tablet that has split

    def ask(self, sender: str, tablet: int) -> None:
        """A tablet is to split; who asks again hears what became of it."""
        split, refused = self._known(tablet), ""
        if split is None:
            split = (
                self._master.tablets.halves(tablet)
                if tablet in self._master.tablets.ranges
                else None
            )
            refused = self._refusal(tablet, split)
            if split is not None and not refused:
                self._master.catalog.split = split
                self._master.port.note(SplitRegistered(split))
                self.tick()
        children = () if split is None or refused else split.children
        self._master.port.send(sender, SplitBegun(tablet, children, refused))

    def _known(self, tablet: int) -> Split | None:
        going_on = self._master.catalog.split
        if going_on is not None and going_on.parent == tablet:
            return going_on
        return self._master.tablets.split_of(tablet)

    def _refusal(self, tablet: int, split: Split | None) -> str:
        if tablet not in self._master.tablets.ranges:
            return f"there is no tablet {tablet}"
        if split is None:
            return f"tablet {tablet} is too small"
        if self._master.catalog.split is not None:
            return f"tablet {self._master.catalog.split.parent} is splitting"
        careless = Defect.splits_do_not_wait_for_jobs in self._master.settings.defects
        if self._master.control.of(JOB, TABLE).read("is_backfilling") and not careless:
            return "a backfill is going on"
        return ""

    def tick(self) -> None:
        """Have the tablet split, until it has; then change the map, once no statement would wait for its children's leaders."""
        split, now, port = self._master.catalog.split, self._master.port.now(), self._master.port
        if split is None:
            return
        if split.parent == self._divided:
            if all(port.is_led(table_tablet(child)) for child in split.children):
                self._change_map(split)
        elif now - self._sent >= self._master.settings.retry:
            self._sent = now
            port.send(table_tablet(split.parent), Divide(split, self._master.tablets))

    def on_divided(self, tablet: int) -> None:
        """Its children have what they are to have, and are to be led."""
        self._divided = tablet
        self.tick()

    def _change_map(self, split: Split) -> None:
        catalog = self._master.catalog
        catalog.tablets, catalog.split = self._master.tablets.after(split), None
        if catalog.job is not None:
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
