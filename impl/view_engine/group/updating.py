"""The updater of a group in its thread: started when changes are there, taken back where history was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.design.mapping import MapError
from stagewright.impl.view_engine.documents.changes import RollbackError, Source
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.group.compacting import Compacting
from stagewright.impl.view_engine.group.current import CurrentIndex
from stagewright.impl.view_engine.group.rollback import rolled_back
from stagewright.impl.view_engine.group.workers import Workers
from stagewright.impl.view_engine.index.progress import has_reached
from stagewright.impl.view_engine.index.updater import Updater, UpdaterLimits, UpdateStoppedError
from stagewright.impl.view_engine.log.log import GroupLog

MAP_ERRORS_KEPT = 100


class Updating:
    """Starts one updater at a time, in the background."""

    def __init__(
        self,
        index: CurrentIndex,
        workers: Workers,
        design: DesignDocument,
        source: Source,
        folder: Path,
        checkpoint: Callable[[IndexHeader], IndexHeader],
        limits: UpdaterLimits | None,
        log: GroupLog,
    ) -> None:
        self._index = index
        self._workers = workers
        self._design = design
        self._source = source
        self._folder = folder
        self._checkpoint = checkpoint
        self._limits = limits
        self._log = log
        self.compacting = Compacting(index, workers, design, self.start_if_behind, log)
        self.failure: BaseException | None = None  # of the last run
        self.map_errors: deque[MapError] = deque(maxlen=MAP_ERRORS_KEPT)
        self.map_error_count = 0

    def start_if_behind(self) -> None:
        """With the lock held: start the updater unless it runs, may not, or has nothing to do."""
        if not has_reached(self._index.header, self._source.positions(), passive=True):
            self.start()

    def start(self) -> None:
        """With the lock held: start the updater unless it runs or may not."""
        if not self._workers.may_update():
            return
        updater = Updater(
            self._index.file,
            self._design,
            self._source,
            self._folder,
            checkpoint=self._checkpoint,
            on_map_error=self._note_map_error,
            limits=self._limits,
            scheduler=self._workers.scheduler,
            trace=self._log.trace,
        )
        self._workers.updater = updater
        self.failure = None
        self.compacting.after_updater_started()
        self._log.updater_started(self._index.header)
        self._workers.scheduler.start(partial(self._run, updater), "view-updater")

    def _run(self, updater: Updater) -> None:
        failure: BaseException | None = None
        began = self._index.header
        try:
            updater.run(began)
        except UpdateStoppedError:
            pass
        except RollbackError as error:
            failure = self._roll_back_safely(error)
        except BaseException as error:  # noqa: BLE001 - raised where a query waits
            failure = error
        with self._workers.changed:
            self.failure = failure
            self._workers.updater = None
            self.compacting.after_updater_ended()
            self._log.updater_finished(began, self._index.header, updater.documents)
            self._workers.changed.notify_all()

    def _roll_back_safely(self, rollback: RollbackError) -> BaseException | None:
        try:
            if self._workers.compactor is not None:
                self._workers.compactor.stop()  # what it copied is of a history that was lost
            now = self._index.header
            logs = {p: self._source.failover_log(p) for p in now.seqs}
            back = rolled_back(now, self._index.file.snapshots(), rollback, logs)
            self._log.rolled_back(rollback.partition, rollback.seq, now, back)
            self._checkpoint(back)
        except BaseException as error:  # noqa: BLE001 - raised where a query waits
            return error
        return None

    def _note_map_error(self, error: MapError) -> None:
        self.map_errors.append(error)
        self.map_error_count += 1
