"""A compaction of a group: it copies a snapshot, follows the updater, and replaces the file."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.group.current import CurrentIndex
from stagewright.impl.view_engine.group.partitions import settle
from stagewright.impl.view_engine.group.workers import Workers
from stagewright.impl.view_engine.index.compactor import (
    Compaction,
    CompactionStoppedError,
    Compactor,
)
from stagewright.impl.view_engine.log.log import GroupLog

CATCH_UP_ROUNDS = (
    3  # then the updater is stopped for the rest: a compaction ends, however busy it is
)


class Compacting:
    """Runs one compaction at a time, while queries and the updater go on."""

    def __init__(
        self,
        index: CurrentIndex,
        workers: Workers,
        design: DesignDocument,
        start_updater: Callable[[], None],
        log: GroupLog,
    ) -> None:
        """`start_updater` is called with the lock held after the switch, where changes are left."""
        self._index = index
        self._workers = workers
        self._design = design
        self._start_updater = start_updater
        self._log = log
        self._snapshot: IndexHeader | None = (
            None  # what is copied; then all that follows is recorded
        )

    def run(self) -> Compaction:
        """Rewrite the index into a new file and go over to it. Raises CompactionStoppedError."""
        compactor = self._begin()
        try:
            assert self._snapshot is not None
            compactor.copy(self._snapshot)
            for _ in range(CATCH_UP_ROUNDS):
                if not compactor.catch_up():
                    break
            return self._switch(compactor)
        finally:
            with self._workers.changed:
                if self._workers.compactor is compactor:
                    self._end(compactor)

    def _begin(self) -> Compactor:
        """The compactor has the snapshot after which it gets all that the updater changes."""
        workers = self._workers
        with workers.changed:
            if workers.compactor is not None:
                raise CompactionStoppedError("a compaction runs already")
            if workers.about_to_change:
                raise CompactionStoppedError("the index is about to change")
            if workers.cleaner is not None:
                workers.cleaner.stop()
            compactor = Compactor(
                self._index.file, self._design.shapes, self._index.next_path, workers.scheduler
            )
            workers.compactor = compactor
            self._log.compaction_starting()
            self._snapshot = None
            self._wait_for_a_checkpoint(compactor)
            return compactor

    def _wait_for_a_checkpoint(self, compactor: Compactor) -> None:
        """With the lock held, until nothing runs or what runs has written a header."""
        workers = self._workers
        while (workers.updater or workers.cleaner) and self._snapshot is None:
            if workers.about_to_change:
                self._end(compactor)
                raise CompactionStoppedError("the index is about to change")
            workers.changed.wait()
        if self._snapshot is None:
            self._attach(compactor)

    def _attach(self, compactor: Compactor) -> None:
        """With the lock held, where no change of the updater is half done."""
        self._snapshot = self._index.header
        self._log.trace.did("start_copy")
        if self._workers.updater is not None:
            self._workers.updater.record = compactor.deltas.record

    def _switch(self, compactor: Compactor) -> Compaction:
        """Stop the updater, apply the rest, and let the new file be the index."""
        workers, index = self._workers, self._index
        with workers.changed:
            with workers.alone(compactor=False):
                compactor.catch_up()
                before = index.size()
                header = index.header
                if has(Defect.compaction_ends_with_its_first_header) and self._snapshot is not None:
                    header = self._snapshot
                snapshot = compactor.finish(header, settle)
                workers.compactor = None
                old = index.header
                index.replace(compactor.file, snapshot)
                self._log.trace.switched(old, snapshot.header)
                self._log.trace.committed(snapshot.header)
                self._log.worked(old, snapshot.header)
                self._log.compaction_complete(compactor.filtered)
            self._start_updater()
            return Compaction(before, index.size(), compactor.batches)

    def _end(self, compactor: Compactor) -> None:
        """With the lock held: what there is of the new file is of no use."""
        compactor.give_up()
        if self._snapshot is not None:
            self._log.trace.did("end_copy")
        self._workers.compactor = None
        if self._workers.updater is not None:
            self._workers.updater.record = None
        self._workers.changed.notify_all()

    # -- what the group says of its other workers, with the lock held ---------------------------------------

    def after_checkpoint(self) -> None:
        """A header was committed: what the updater recorded up to it counts."""
        compactor = self._workers.compactor
        if compactor is None:
            return
        if self._snapshot is None:
            self._attach(compactor)
        else:
            compactor.deltas.publish()

    def after_updater_started(self) -> None:
        """A new updater records what it changes, too."""
        compactor, updater = self._workers.compactor, self._workers.updater
        if has(Defect.compaction_misses_new_updaters):
            return
        if compactor is not None and updater is not None and self._snapshot is not None:
            updater.record = compactor.deltas.record

    def after_updater_ended(self) -> None:
        """What it recorded after its last header never happened."""
        if self._workers.compactor is not None:
            self._workers.compactor.deltas.drop()
