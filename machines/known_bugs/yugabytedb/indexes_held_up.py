"""Mistakes by which an index waits for a client, a job, or another server (002), each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import (
    CLIENT,
    MASTER,
    POSTGRES,
    WEAK,
    Server,
)
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_rows import HybridTime, IndexRows
from stagewright.machines.yugabytedb.indexes.index_states import Flags, Permission, Status
from stagewright.machines.yugabytedb.indexes.unique_index import Key
from stagewright.spec import BudgetName, Term, action, choose, every, only_when, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CREATE_TABLE = 'design document 002, "Create the index table"'
TRANSACTIONS = 'design document 002, "Waiting for pending transactions to finish"'
CLEANED_UP = 'design document 002: "An aborted index will be cleaned up and deleted"'
ASKED = "a client has asked for the status"
ONE_WRITE: dict[BudgetName, int | None] = {IndexRows.writes: 1, IndexRows.drops: 0}


# -- for another index, tablet or server ---------------------------------------------------------------


@known_bug("002-314", CREATE_TABLE, breaks=PostgresIndex.indexes_become_ready_whatever_is_altered)
class ReadyWhenNothingIsAltered(PostgresIndex):
    """Postgres writes `indisready` when no server has a version of the table to apply, of whichever index."""

    @PostgresIndex.flags.step(Flags.indislive, Flags.indisready, by=POSTGRES, fair=WEAK)
    def make_ready(self) -> None:
        self._wait_for_backends()
        self._all_reported()


@known_bug(
    "002-315",
    'design document 002, "Backfill the data": the master "keeps track of how many tablets have completed"',
    breaks=IndexBuild.tablets_are_finished_independently,
    sizes={Index: 1, Key: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 0},
)
class TabletsAreClosedTogether(IndexBuild):
    """A tablet is noted as done when no row is left in any: until the end nobody sees how many are."""

    @action(by=MASTER, fair=WEAK)
    def finish_chunk(self, t: Term[Tablet]) -> None:
        for each in Tablet:
            self._no_row_is_left(each)
        self.job.backfill_chunk(t)


@known_bug(
    "002-332",
    TRANSACTIONS,
    breaks=IndexRows.servers_answer_independently,
    budgets=ONE_WRITE,
)
class SafeTimesAreToldTogether(IndexRows):
    """A server answers GetSafeTime when nothing old is pending on any of those that have not answered."""

    @action(fair=WEAK)
    def get_safe_time(self, s: Term[Server], time: Term[HybridTime]) -> None:
        others = some((o != s) & ~self.safe.has(o) & self._is_old(o) for o in Server)
        require(~others, "nothing old is pending on another server")
        super().get_safe_time(s, time)


@known_bug(
    "002-333",
    TRANSACTIONS,
    breaks=IndexRows.old_transactions_are_aborted_independently,
    budgets=ONE_WRITE,
)
class OldTransactionsAreAbortedInTheEnd(IndexRows):
    """A server aborts what is old when all others have answered, and it alone holds up the backfill."""

    @action(fair=WEAK)
    def abort_old_transaction(self, s: Term[Server]) -> None:
        answered = every((o == s) | self.safe.has(o) | self._is_old(o) for o in Server)
        require(answered, "every other server has answered, or has old ones, too")
        super().abort_old_transaction(s)


@known_bug("002-334", CREATE_TABLE, breaks=IndexPermissions.servers_report_independently)
class ServersReportTogether(IndexPermissions):
    """A server reports its version when all others have applied it."""

    @action(fair=WEAK)
    def report(self, s: Term[Server]) -> None:
        everywhere = every(self.learned_version[o] == self.version for o in Server)
        require(everywhere, "every server has applied the version")
        super().report(s)


# -- for a client that asks --------------------------------------------------------------------------------


@known_bug("002-335", CREATE_TABLE, breaks=IndexPermissions.indexes_are_maintained_unasked)
class WritesAreAllowedIfSomebodyAsks(IndexPermissions):
    """An index comes to WRITE_AND_DELETE when its status is asked for."""

    @IndexPermissions.permission.step(
        Permission.delete_only, Permission.write_and_delete, by=MASTER, fair=WEAK
    )
    def allow_writes(self) -> None:
        only_when(not self.era.postgres)
        require(self.told.is_some(), ASKED)
        self._all_reported()
        self._enter()


@known_bug("002-336", CREATE_TABLE, breaks=IndexPermissions.backfills_are_allowed_unasked)
class BackfillsAreAllowedIfSomebodyAsks(IndexPermissions):
    """An index comes to DO_BACKFILL when its status is asked for."""

    @IndexPermissions.permission.step(
        Permission.write_and_delete, Permission.do_backfill, by=MASTER, fair=WEAK
    )
    def allow_backfill(self) -> None:
        only_when(self.era.do_backfill)
        require(self.told.is_some() | self.deferred, ASKED)
        self._all_reported()
        self._enter()


@known_bug(
    "002-337",
    'design document 002, "Backfill the data"',
    breaks=IndexPermissions.backfills_begin_unasked,
)
class JobsBeginIfSomebodyAsks(IndexPermissions):
    """The job of an index begins when its status is asked for."""

    @action(by=MASTER, fair=WEAK)
    def launch_backfill(self) -> None:
        require(self.told.is_some(), ASKED)
        super().launch_backfill()


@known_bug(
    "002-338",
    'design document 002: "The CREATE INDEX command is asynchronous"',
    breaks=IndexPermissions.backfills_end_unasked,
)
class JobsEndIfSomebodyAsks(IndexPermissions):
    """Whether all tablets are done is looked at when the status is asked for."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        require(self.told.is_some(), ASKED)
        super().finish_backfill()


@known_bug(
    "002-339",
    'design document 002: "such as a unique constraint violation in a unique index"',
    breaks=IndexPermissions.violations_fail_the_build_unasked,
)
class ViolationsAreFoundForWhoAsks(IndexPermissions):
    """A build that cannot succeed goes on until a client is there to hear that it has failed."""

    @action(by=MASTER, fair=WEAK)
    def find_violation(self) -> None:
        require(self.told.is_some(), ASKED)
        super().find_violation()


@known_bug(
    "002-340",
    "design document 002, READ_WRITE_AND_DELETE",
    breaks=IndexPermissions.published_indexes_are_served_unasked,
)
class WhoAsksServesTheIndex(IndexPermissions):
    """Clients read a published index when one of them has asked for its status."""

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self) -> None:
        require(self.told.is_some(), ASKED)
        super().finish_alter()


# -- for a job that builds for nobody --------------------------------------------------------------------


@known_bug("002-341", CLEANED_UP, breaks=IndexPermissions.removed_indexes_are_not_written_for_a_job)
class WritesStopAfterTheJob(IndexPermissions):
    """Servers write to an index that is dropped until its job is over, however long that takes."""

    @IndexPermissions.permission.step(
        Permission.write_and_delete_while_removing,
        Permission.delete_only_while_removing,
        by=MASTER,
        fair=WEAK,
    )
    def stop_writes(self) -> None:
        only_when(self.era.stepwise_removal)
        require(self.job == Job.none, "the job is over")
        self._all_reported()
        self._enter()


@known_bug(
    "002-342", CLEANED_UP, breaks=IndexPermissions.removed_indexes_are_not_maintained_for_a_job
)
class DeletesStopAfterTheJob(IndexPermissions):
    """The same of their deletes."""

    @IndexPermissions.permission.step(
        Permission.delete_only_while_removing, Permission.index_unused, by=MASTER, fair=WEAK
    )
    def stop_deletes(self) -> None:
        only_when(self.era.stepwise_removal)
        require(self.job == Job.none, "the job is over")
        self._all_reported()
        self._enter()


# -- what a client hears ---------------------------------------------------------------------------------


@known_bug(
    "002-316",
    'design document 002: after the build the index is "consistent with the data in the primary table"',
    breaks=IndexPermissions.success_means_that_every_server_reads,
)
class TheJobIsAsked(IndexPermissions):
    """The status is that of the job: who asks hears SUCCESS of an index that was dropped while its rows were scanned."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        succeeded = self.drop_requested & (self.job == Job.success) & (self.told != Status.failed)
        require(self.version > 0, "CREATE INDEX was executed")
        require(~self.drop_requested | succeeded, "no client has dropped the index, or it is built")
        self.told = choose(succeeded, Status.success, self._status())


BUGS = known_bugs_in(globals())
