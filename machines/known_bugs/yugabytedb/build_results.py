"""Mistakes in what becomes of a build that design document 002 rules out, each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_split import (
    BackfillSplit,
    Step as StepOfSplit,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER, WEAK, Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_states import Flags, Permission, Status
from stagewright.machines.yugabytedb.indexes.unique_index import (
    BEFORE_T_READ,
    Key,
    Row,
    Time,
    UniqueIndex,
)
from stagewright.spec import Bool, Term, action, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONLINE = 'design document 002: "without locking out reads or writes"'


@known_bug(
    "002-68",
    'design document 002, Finalize the index: "Once the index build is successfully completed on all the tablets"',
    breaks=IndexPermissions.completed_builds_are_published,
)
class CompletedBuildsAreGivenUp(IndexPermissions):
    """A chunk that was tried too often fails the job, also when the rows of all tablets are in the index by then."""

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job is not over."""
        require(self.job.any_of(Job.running, Job.success), "there is a job")
        self.job = Job.failed


@known_bug(
    "002-69",
    "design document 002: the status is IN-PROGRESS, SUCCESS or FAILED",
    breaks=IndexPermissions.clients_hear_of_success,
)
class NoBuildSucceeds(IndexPermissions):
    """The answer of the last tablet ends the job, and a job that ends before it has succeeded has failed."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The rows of all tablets are in the index."""
        require(self.job == Job.running, "the job is running")
        require(~self.violates_constraint, "no row violates a constraint")
        self.job = Job.failed


@known_bug(
    "002-70",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=PostgresIndex.dropped_indexes_are_forgotten,
)
class BackendsKeepWhatIsDropped(PostgresIndex):
    """Backends read the catalog anew for the flags of an index; of one that is not in it there are none to read."""

    @action(fair=WEAK)
    def refresh(self, s: Term[Server]) -> None:
        """The index is in the catalog."""
        super().refresh(s)
        require(self.flags != Flags.none, "the index is in the catalog")


@known_bug(
    "002-71",
    'design document 002: the command "should abort and result in a failure"',
    breaks=UniqueIndex.results_are_for_good,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 0},
)
class FailedBuildsAreBegunAgain(UniqueIndex):
    """A build that has found two rows with one key is begun again, as if it had been lost."""

    @action(by=MASTER, fair=WEAK)
    def begin_again(self) -> None:
        """The build has failed."""
        require(self.build == Status.failed, "the build has failed")
        self.build = Status.in_progress


@known_bug(
    "002-72",
    ONLINE,
    breaks=UniqueIndex.keys_that_no_row_has_are_free,
    budgets={UniqueIndex.writes: 2},
)
class NothingIsInsertedAfterAFailure(UniqueIndex):
    """No row is inserted while the index of a build that has failed is still there."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def insert(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """The build has not failed."""
        require(self.build != Status.failed, "the build has not failed")
        super().insert(r, k, time)


@known_bug(
    "002-73",
    ONLINE,
    breaks=IndexBuild.keys_are_refused_only_if_taken,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class FailedBuildsLockTheTable(IndexBuild):
    """A transaction that is pending when the build fails waits for the removal of the index."""

    @action
    def commit(self, r: Term[Row], time: Term[Time]) -> None:
        """The build has not failed."""
        require(self.rows.build != Status.failed, "the build has not failed")
        super().commit(r, time)


@known_bug(
    "002-89",
    ONLINE,
    breaks=IndexBuild.keys_are_refused_only_if_taken,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class NothingCommitsBeforeTheScan(IndexBuild):
    """A transaction that wrote a row after CREATE INDEX waited for the time of the scan: none committed before it."""

    def _is_in_order(self, time: Term[Time]) -> Bool:
        return super()._is_in_order(time) & ~time.any_of(*BEFORE_T_READ)


@known_bug(
    "002-74",
    "design document 002, READ_WRITE_AND_DELETE: the index can be used to serve reads",
    breaks=IndexBuild.what_clients_are_told_is_so,
    sizes={Index: 1, Key: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 0},
)
class TheFirstServerIsTheLast(IndexBuild):
    """SUCCESS is told as soon as one server has the version with which the index serves reads."""

    def _status(self) -> Term[Status]:
        readable = Permission.read_write_and_delete
        ready = some(
            (self.job.permission[i] == readable)
            & some(self.job.known[t][i] == readable for t in Tablet)
            for i in Index
        )
        return choose(ready, Status.success, super()._status())


@known_bug(
    "002-138",
    "design document 002: the status is IN-PROGRESS, SUCCESS or FAILED",
    breaks=BackfillSplit.results_are_for_good,
    sizes={Tablet: 1},
)
class WhatHasFailedIsTakenUp(BackfillSplit):
    """A job that was given up is taken up by whoever finds its index not built, though its client has heard FAILED."""

    @BackfillSplit.step.step(StepOfSplit.none, StepOfSplit.wait_for_splits, by=MASTER, fair=WEAK)
    def launch(self) -> None:
        """J0 of an index that is not built."""
        require(self.index != Status.success, "index is not built")
        self.index = Status.in_progress
        self.is_backfilling = True


BUGS = known_bugs_in(globals())
