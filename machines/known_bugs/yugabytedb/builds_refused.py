"""Mistakes by which a build is not begun, not given up, or not read, when it is to be; nothing else notices them."""

from __future__ import annotations

from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_chunks import (
    TABLET,
    BackfillChunks,
    Until,
)
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import (
    BackfillLeaders,
    Intent,
    Thread,
)
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import At, BackfillRpcs, Request
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    BackfillSafeTime,
    Transaction,
)
from stagewright.machines.yugabytedb.backfill.backfill_split import (
    SPLIT_MANAGER,
    BackfillSplit,
    Shape,
    Step as SplitStep,
)
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    TABLET_SERVER,
    BackfillThrottle,
    Request as TaskRequest,
    Task,
)
from stagewright.machines.yugabytedb.backfill.backfill_versions import BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import (
    STORAGE,
    HybridTime,
    IndexRows,
    Row,
    Value,
)
from stagewright.machines.yugabytedb.indexes.index_states import Flags, Permission
from stagewright.machines.yugabytedb.indexes.unique_index import Row as UniqueRow, UniqueIndex
from stagewright.spec import Bool, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ASYNCHRONOUS = 'design document 002: "The CREATE INDEX command is asynchronous"'
CONVERGE = 'design document 002: "Once all the schema changes are propagated to all the nodes"'
ON_ALL_NODES = (
    'design document 002: HandleAlterTable() "initiates a schema change on all the nodes"'
)
BATCHED = 'design document 002: "a batched write is performed"'
ABORTS = 'design document 002: the command "should abort and result in a failure"'


@known_bug("002-142", ASYNCHRONOUS, breaks=IndexPermissions.indexes_are_created_at_once)
class CreateLooksAtTheRows(IndexPermissions):
    """CREATE INDEX read the table first, and refused to begin where two rows shared a key."""

    @action(by=CLIENT)
    def create_index(self) -> None:
        """CREATE INDEX: the index table is made."""
        require(~self.violates_constraint, "no row violates a constraint")
        super().create_index()


@known_bug("002-143", ASYNCHRONOUS, breaks=PostgresIndex.indexes_are_created_at_once)
class PostgresLooksAtTheRows(PostgresIndex):
    """The same in YSQL, where postgres would scan the table under its own CREATE INDEX."""

    @action(by=POSTGRES)
    def create_index_in_postgres(self) -> None:
        """CREATE INDEX makes the index table."""
        require(~self.violates_constraint, "no row violates a constraint")
        super().create_index_in_postgres()


@known_bug("002-144", ABORTS, breaks=IndexPermissions.builds_are_given_up_at_any_time)
class JobsOfDroppedIndexesGoOn(IndexPermissions):
    """A job whose index was dropped could not be given up: it read the table to its end for nobody."""

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job cannot be done."""
        require(self.permission == self.backfilled_at(), "the index is being built")
        super().fail_backfill()


@known_bug(
    "002-145",
    ABORTS,
    breaks=BackfillJob.builds_are_given_up_at_any_time,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class ScansAreNotGivenUp(BackfillJob):
    """A job gave up while it waited for splits or for the safe time: a chunk that failed was tried for ever."""

    @action(by=MASTER, spends=BackfillJob.aborts)
    def give_up(self) -> None:
        """Splits or safe time take longer than is waited for."""
        require(self.step != Step.backfill_tablets, "no row is read yet")
        super().give_up()


@known_bug(
    "002-146",
    ABORTS,
    breaks=BackfillRpcs.builds_are_given_up_at_any_time,
    sizes={Index: 1},
    budgets={BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class TheLastAnswerIsWaitedFor(BackfillRpcs):
    """A job was given up when no request was on its way any more: one that hung held it up."""

    @action(by=MASTER, spends=BackfillRpcs.aborts)
    def give_up(self) -> None:
        """Too many retries, or CREATE INDEX is cancelled."""
        require(every(self.rpc[r].at == At.nowhere for r in Request), "no request is on its way")
        super().give_up()


@known_bug(
    "002-147",
    'design document 002: "representing how far it managed to successfully build"',
    breaks=BackfillChunks.no_index_waits_for_another_one,
    budgets={BackfillChunks.failovers: 0, BackfillChunks.lost: 0},
)
class TheFirstPageIsOfAll(BackfillChunks):
    """A tablet server answered the first chunk when every index had its rows: "never begun" was no answer."""

    @action(by=TABLET)
    def write_entries_of_some(self, stop: Term[Until], late: Term[Index]) -> None:
        """The time is up before the entries of one index are written."""
        require(self.reached[late] != Until.never_begun, "it has had a page")
        super().write_entries_of_some(stop, late)


@known_bug(
    "002-148",
    'design document 002: the index "can be used to serve reads"',
    breaks=PostgresRows.valid_indexes_are_read_at_any_time,
    budgets={IndexRows.writes: 0, IndexRows.drops: 0},
)
class ReadsWaitForEveryBackend(PostgresRows):
    """A backend that had read `indisvalid` used the index when every other one had read it, too."""

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client looks a value up in the index."""
        valid = every(self.index.cached[o] == Flags.indisvalid for o in Server)
        require(valid, "every backend knows that it is valid")
        super().read_index(s, r, value)


@known_bug(
    "002-150",
    CONVERGE,
    breaks=BackfillJob.indexes_move_on_while_others_are_built,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class AltersWaitForTheJob(BackfillJob):
    """An index that was created while another was backfilled stayed at DELETE_ONLY until that was done, for hours."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """Every tablet has the version."""
        super().launch_next_version()
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-151",
    ON_ALL_NODES,
    breaks=BackfillJob.tablets_apply_versions_at_any_time,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class ScannedTabletsApplyNothing(BackfillJob):
    """A tablet applied no version while it was being scanned."""

    @action(fair=WEAK)
    def apply_version(self, t: Term[Tablet]) -> None:
        """A tablet applies the version of the table and reports it."""
        super().apply_version(t)
        require(self.step != Step.backfill_tablets, "it is not being scanned")


@known_bug(
    "002-152",
    'design document 002: the master "issues futher RPCs as necessary"',
    breaks=BackfillRpcs.a_tablet_is_asked_again,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class AskedWhenNothingIsOnItsWay(BackfillRpcs):
    """A tablet was not asked again while a request was on its way: one that hung was waited for."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, r: Term[Request]) -> None:
        """BackfillChunk: the tablet's leader is asked."""
        require(every(self.rpc[o].at == At.nowhere for o in Request), "nothing is on its way")
        super().ask(r)


@known_bug(
    "002-153",
    'design document 002: "The YB-Master persists the checkpointing info"',
    breaks=BackfillThrottle.checkpoints_are_recorded_as_they_come,
    budgets={BackfillThrottle.crashes: 0},
)
class CheckpointsAreRecordedTogether(BackfillThrottle):
    """What tablets had answered was recorded when no other one was at work."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """The master hears how far the tablet server came."""
        running = some(self.request[o] == TaskRequest.running for o in Task)
        require(~running, "no tablet is read")
        super().record_checkpoint(task)


@known_bug(
    "002-154",
    "design document 002, and yugabyte-db #7108: if a backfill is happening, disallow split",
    breaks=BackfillSplit.backfills_and_splits_exclude_each_other,
    budgets={BackfillSplit.failovers: 0, BackfillSplit.failures: 0},
)
class TabletsSplitUntilTheyAreListed(BackfillSplit):
    """While a job waited for the end of splits new ones began: on a table that grows it would wait for ever."""

    @action(by=SPLIT_MANAGER)
    def begin_split(self, t: Term[Tablet]) -> None:
        """A tablet has grown too large."""
        require(self.shape[t] == Shape.whole, "tablet has not split")
        require(self.step != SplitStep.backfill_tablets, "no tablet is scanned")
        self.shape[t] = Shape.splitting


@known_bug(
    "002-155",
    'design document 002: those "that started before getting to WRITE_AND_DELETE state"',
    breaks=BackfillSafeTime.safe_times_wait_for_old_transactions_alone,
    budgets={BackfillSafeTime.failovers: 0},
)
class EveryTransactionIsWaitedFor(BackfillSafeTime):
    """A tablet answered GetSafeTime when nothing was pending on it: new transactions, too, were waited for, then aborted."""

    def _old_transactions_are_over(self, t: Term[Tablet]) -> Bool:
        return self.transaction[t] != Transaction.pending


@known_bug(
    "002-156",
    "design document 002, Finalize the index",
    breaks=BackfillLeaders.threads_of_earlier_leaders_hold_up_nobody,
    budgets={BackfillLeaders.failures: 0, BackfillLeaders.drops: 0},
)
class OneThreadAtATime(BackfillLeaders):
    """That a tablet was done was found when no thread was about to write: one of a leader that was gone held it up."""

    @action(by=MASTER, fair=WEAK)
    def find_done(self, th: Term[Thread]) -> None:
        """J4: the tablet is done."""
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "no thread is about to write")
        super().find_done(th)


@known_bug(
    "002-157",
    "design document 002, Index backfill on a single tablet: compactions",
    breaks=BackfillVersions.history_of_the_table_goes_during_the_scan,
    budgets={BackfillVersions.writes: 1},
)
class NoCompactionDuringTheScan(BackfillVersions):
    """The table was not compacted while it was scanned, not even of what was older than the scan."""

    def _is_not_scanned(self, time: Term[HybridTime]) -> None:  # noqa: ARG002
        require(self.permission != Permission.do_backfill, "no scan is under way")


@known_bug("002-158", ON_ALL_NODES, breaks=IndexPermissions.servers_learn_at_any_time)
class ServersLearnWhenTheJobIsDone(IndexPermissions):
    """A server that backfilled applied no altered schema: DROP INDEX waited until the build was through."""

    @action(fair=WEAK)
    def learn(self, s: Term[Server]) -> None:
        """The tablets of a server apply the altered schema."""
        require(self.job != Job.running, "no job is running")
        super().learn(s)


@known_bug("002-159", ON_ALL_NODES, breaks=PostgresIndex.backends_learn_at_any_time)
class BackendsLearnWhenTheJobIsDone(PostgresIndex):
    """The same of backends: the catalog was not read anew while the index was built."""

    @action(fair=WEAK)
    def refresh(self, s: Term[Server]) -> None:
        """The backends of a server read the catalog anew."""
        require(self.job != Job.running, "no job is running")
        super().refresh(s)


@known_bug(
    "002-160",
    BATCHED,
    breaks=UniqueIndex.entries_are_written_in_batches,
    budgets={UniqueIndex.writes: 0},
)
class RowsAreWrittenOneByOne(UniqueIndex):
    """The rows of a batch were checked together, and one of them was written before the others were read again."""

    @action(fair=WEAK)
    def backfill(self, r: Term[UniqueRow], q: Term[UniqueRow]) -> None:
        """A batch passes the checks, and a row of it is written to the index."""
        require(~self.is_duplicate(q), "the other row of the batch passes the checks, too")
        super().backfill(r, r)


@known_bug(
    "002-161",
    BATCHED,
    breaks=IndexBuild.entries_of_a_tablet_are_written_in_batches,
    sizes={Index: 1, Tablet: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 0},
)
class ChunksAreOfOneRow(IndexBuild):
    """A checkpoint was written for every row."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet], r: Term[UniqueRow], q: Term[UniqueRow]) -> None:
        """J3: a row passes the check and is in the index, and the checkpoint says so."""
        require(r == q, "it is one row")
        super().backfill_chunk(t, r, q)


@known_bug(
    "002-162",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=BackfillJob.unused_indexes_are_deleted_while_others_are_built,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class DeletedWhenNoJobRuns(BackfillJob):
    """The table of an index that nobody used was deleted when no other one was being backfilled."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        """Nobody uses the index any more."""
        super().delete_index(i)
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-163",
    "design document 002, Throttling index build rate",
    breaks=BackfillThrottle.nothing_is_read_in_vain,
    budgets={BackfillThrottle.crashes: 0},
)
class TheSlotBeginsTheTime(BackfillThrottle):
    """A tablet server counted the time of a request from its slot on: what it then read came too late for the master."""

    @action(by=TABLET_SERVER, fair=WEAK)
    def start(self, task: Term[Task]) -> None:
        """A slot is free."""
        super().start(task)
        self.elapsed[task] = 0


@known_bug(
    "002-164",
    "design document 002, Handling node restarts and leadership changes",
    breaks=BackfillLeaders.reports_are_heard_at_any_time,
    budgets={BackfillLeaders.failures: 0, BackfillLeaders.drops: 0},
)
class ReportsAreHeardOneByOne(BackfillLeaders):
    """Reports were heard when no thread was about to write, nor one of a leader that was gone."""

    @action(by=MASTER, fair=WEAK)
    def hear_report(self, th: Term[Thread]) -> None:
        """A tablet reports its version of the table."""
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "no thread is about to write")
        super().hear_report(th)


@known_bug(
    "002-168",
    "design document 002, Handling node restarts and leadership changes",
    breaks=BackfillLeaders.answers_are_heard_at_any_time,
    budgets={BackfillLeaders.failures: 0, BackfillLeaders.drops: 0},
)
class AnswersAreHeardOneByOne(BackfillLeaders):
    """Answers were heard when no thread was about to write, nor one of a leader that was gone."""

    @action(by=MASTER, fair=WEAK)
    def hear_answer(self, th: Term[Thread]) -> None:
        """The tablet has answered a chunk."""
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "no thread is about to write")
        super().hear_answer(th)


@known_bug(
    "002-165",
    'design document 002: a "terminal open with an ongoing txn"',
    breaks=BackfillSafeTime.indexes_are_published_under_transactions,
    budgets={BackfillSafeTime.failovers: 0},
)
class NothingIsPendingWhenItIsPublished(BackfillSafeTime):
    """An index was published when no transaction was pending, also none that had written to it all the time."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """Every tablet is scanned."""
        super().publish()
        pending = some(self.transaction[t] == Transaction.pending for t in Tablet)
        require(~pending, "no transaction is pending")


@known_bug(
    "002-166",
    "design document 002, Index backfill on a single tablet: compactions",
    breaks=BackfillVersions.the_index_is_compacted_while_it_is_built,
    budgets={BackfillVersions.writes: 1},
)
class NoCompactionOfTheIndex(BackfillVersions):
    """Compactions of an index were off until it served reads, so that no delete marker went too early."""

    @action(by=STORAGE)
    def compact_index(self, time: Term[HybridTime]) -> None:
        """History of the index is collected."""
        super().compact_index(time)
        require(self.permission == Permission.read_write_and_delete, "it serves reads")


@known_bug(
    "002-167",
    ABORTS,
    breaks=BackfillSplit.jobs_do_not_wait_for_splits_for_ever,
    budgets={BackfillSplit.failovers: 0},
)
class OneTabletMayHangForEver(BackfillSplit):
    """A job gave up when all tablets took too long to split: one that hung held it up."""

    @action(by=MASTER, spends=BackfillSplit.failures)
    def give_up(self) -> None:
        """Splits take longer than is waited for."""
        hang = every(self.shape[t] == Shape.splitting for t in Tablet)
        require(hang, "all tablets are splitting")
        super().give_up()


BUGS = known_bugs_in(globals())
