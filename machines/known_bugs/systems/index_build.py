"""Mistakes put back into `IndexBuild`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.systems.index_build import STORAGE, IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step, TableState
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.machines.yugabytedb.indexes.unique_index import (
    BEFORE_T_READ,
    Key,
    Row,
    Time,
    reclaim,
)
from stagewright.spec import (
    Bool,
    FlagVar,
    Term,
    action,
    bounded,
    choose,
    every,
    flag,
    only_when,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONLINE = 'design document 002: "without locking out reads or writes"'
STATUS = 'design document 002, "Handle CREATE INDEX statement"'
ABORTS = 'design document 002: "If a problem arises while scanning the table"'
BATCHED = 'design document 002: "a batched write is performed"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-45",
    'design document 002: the peer that has started "may be allowed to complete"',
    breaks=IndexBuild.a_peer_completes_its_chunk,
    sizes={Index: 1, Tablet: 1, Key: 1},
)
class UnheardChunksAreUndone(IndexBuild):
    """A tablet server whose answer nobody waits for takes back what it has written."""

    @action
    def write_entries(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        """Nothing is left of it."""
        super().write_entries(t, r, q)
        only_when(False)


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
    "002-149",
    "design document 002, Fault tolerance using checkpointing",
    breaks=IndexBuild.checkpoints_stand_for_entries,
    sizes={Index: 1, Tablet: 1},
    budgets={IndexBuild.faults: 0},
)
class ChangedRowsAreLeftOut(IndexBuild):
    """A row that had changed since the time of the scan, and had no rival, was left to the transaction that had changed
    it: the checkpoint went past it without its old entry, which a newer delete hides from all but who reads at that time.
    """

    @action(by=MASTER)
    def leave_out(self, t: Term[Tablet], r: Term[Row]) -> None:
        """The row is another one by now."""
        require(self.rows.key[r] != self.rows.key_at_t_read[r], "the row has changed since")
        rival = some(
            (o != r) & (self.rows.key_at_t_read[r] == k) & self.rows.has_had(o, k)
            for o in Row
            for k in Key
        )
        require(~rival, "no other row had its key, or has")
        self._is_to_scan(t, r, r)
        self.job.backfill_chunk(t)
        self.rows.backfilled.add(r)
        self._record(r, r)


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
    def backfill_chunk(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        """J3: a row passes the check and is in the index, and the checkpoint says so."""
        require(r == q, "it is one row")
        super().backfill_chunk(t, r, q)


@known_bug(
    "002-186",
    'design document 002, Checkpointing: the master "persists the checkpointing info"',
    breaks=IndexBuild.chunks_keep_what_others_have_built,
    sizes={Index: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 0},
)
class OneCheckpointForAllTablets(IndexBuild):
    """The table had one checkpoint, which was that of the tablet that had answered last: the others were read again."""

    def _record(self, r: Term[Row], q: Term[Row]) -> None:
        for each in Row:
            same = some((self.tablet[each] == t) & (self.tablet[r] == t) for t in Tablet)
            kept = same & self.recorded.has(each)
            self.recorded.put(each, kept | (each == r) | (each == q))


@known_bug(
    "002-364",
    'design document 002: "the entire build process should not need to restart"',
    breaks=IndexBuild.chunks_keep_what_others_have_built,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 0},
)
class BegunTabletsAreBegunAgain(IndexBuild):
    """Who takes up a job looks which tablets are done, and has the others scanned from their start."""

    @action(by=MASTER, fair=WEAK)
    def resume(self) -> None:
        """A job is recorded but not running: this leader takes it up."""
        self.job.resume()
        for r in Row:
            done = some(
                (self.tablet[r] == t) & (self.job.checkpoint[t][i] == Checkpoint.done)
                for t in Tablet
                for i in Index
            )
            self.recorded.put(r, self.recorded.has(r) & done)


@known_bug(
    "002-244",
    "design document 002, Waiting for pending transactions",
    breaks=IndexBuild.the_build_ends_no_transaction,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class ReadTimesEndTransactions(IndexBuild):
    """As the time of the scan is chosen every pending transaction is aborted, also one that would write its entries."""

    @action(by=MASTER, fair=WEAK)
    def choose_read_time(self) -> None:
        """J2: nothing is pending any more."""
        super().choose_read_time()
        self._end()


@known_bug("002-260", STATUS, breaks=IndexBuild.results_are_told_at_once, sizes={Index: 1})
class TheResultIsTheLeaders(IndexBuild):
    """The master leader remembers what has become of a build: who asks another one hears IN-PROGRESS, for ever."""

    elected = flag()

    @action(spends=IndexBuild.faults)
    def fail_over(self) -> None:
        self.job.fail_over()
        self.elected = True

    def _status(self) -> Term[Status]:
        unknown = self.elected & (self.answered == Status.in_progress)
        return choose(unknown, Status.in_progress, super()._status())


@known_bug("002-261", STATUS, breaks=IndexBuild.results_are_told_at_once, sizes={Index: 1})
class FailuresGoWithTheIndex(IndexBuild):
    """FAILED is said of an index that is on its way out: who asks first when it is deleted hears IN-PROGRESS."""

    def _status(self) -> Term[Status]:
        absent = Permission.absent
        gone = some(self.job.created.has(i) & (self.job.permission[i] == absent) for i in Index)
        unheard = gone & (self.answered == Status.in_progress)
        return choose(unheard, Status.in_progress, super()._status())


@known_bug(
    "002-358",
    'design document 002, "Handle CREATE INDEX statement"',
    breaks=IndexBuild.results_are_told_at_once,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 2},
)
class TheThirdLeaderKnowsNoResult(IndexBuild):
    """The result of a build goes from a leader to the next one; who asks the third hears IN-PROGRESS."""

    elected: FlagVar = flag()
    again: FlagVar = flag()

    @action(spends=IndexBuild.faults)
    def fail_over(self) -> None:
        self.again = self.elected
        self.elected = True
        self.job.fail_over()

    def _status(self) -> Term[Status]:
        unknown = self.again & (self.answered == Status.in_progress)
        return choose(unknown, Status.in_progress, super()._status())


@known_bug(
    "Y20",
    "design document 002, detecting constraint violations",
    breaks="rows.no_false_duplicate",
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 2, IndexBuild.faults: 0},
)
class HiddenMarkersAreReclaimed(IndexBuild):
    """While the index is built, compactions keep the delete marker that is a key's newest version, and no other.

    No entry of the past can come to light so; but the check forwards in time finds the next row of the key, as if
    the one that is scanned had not been deleted before.
    """

    @action(by=STORAGE)
    def compact(self, k: Term[Key]) -> None:
        hidden = self.rows.holder(k).is_some()
        require(self._markers_may_go() | hidden, "a newer entry hides the marker")
        reclaim(self.rows, k)


@known_bug(
    "Y21",
    "design document 002, detecting constraint violations",
    breaks="rows.no_false_duplicate",
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class CheckCountsWhatIsPending(IndexBuild):
    """The check forwards in time counts entries of transactions that have not committed, and may never do so."""

    def _fails_the_check(self, r: Term[Row]) -> None:
        same = self.new_key.is_some() & (self.new_key == self.rows.key_at_t_read[r])
        pending = self.pending.is_some() & (self.pending != r) & self.to_write & same
        require(self.rows.is_duplicate(r) | pending, "another row has the key, or asks for it")
        self.rows.build = Status.failed


@known_bug(
    "Y22",
    "design document 002, intermediate states of the index table",
    breaks=IndexBuild.servers_that_read_find_the_rows,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class KeysAreCheckedFromDoBackfillOn(IndexBuild):
    """A server looks for a key's row when it plans a statement under DO_BACKFILL: before, the index was empty.

    A transaction of before commits when the rows are backfilled, and the check backwards in time has been made.
    """

    unchecked: FlagVar = flag()  # the transaction was planned under WRITE_AND_DELETE

    def _begin(self, r: Term[Row], t: Term[Tablet]) -> None:
        super()._begin(r, t)
        before = some(self.job.known[t][i] == Permission.write_and_delete for i in Index)
        self.unchecked = before

    def _is_free_for(self, r: Term[Row]) -> Bool:
        return super()._is_free_for(r) | self.unchecked


@known_bug(
    "Y33",
    "design document 002, Fault tolerance using checkpointing",
    breaks=IndexBuild.checkpoints_stand_for_entries,
    sizes={Index: 1, Tablet: 1},
)
class DoneWithRowsLeft(IndexBuild):
    """A chunk whose time was up answered that the tablet is done, with rows left in it."""

    def _no_row_is_left(self, t: Term[Tablet]) -> None:
        """Nobody looks."""


@known_bug(
    "Y37",
    "design document 002: IN-PROGRESS, SUCCESS, FAILED",
    breaks=IndexBuild.what_clients_are_told_is_so,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 0},
)
class JobsThatNobodyLeadsHaveFailed(IndexBuild):
    """A client that asks between two masters is told FAILED, and again whenever it asks; and the index is built."""

    @action(by=CLIENT)
    def ask_for_status(self) -> None:
        """The client asks what has become of its index."""
        require(~self.job.created.is_empty(), "CREATE INDEX was executed")
        left = some(self.job.job[i] == Status.in_progress for i in Index)
        left = left & (self.job.step == Step.none)
        now = choose(left, Status.failed, self._status())
        self._answer(choose(self.answered == Status.in_progress, now, self.answered))


@known_bug(
    "Y38",
    'design document 002: the command "should abort and result in a failure"',
    breaks=IndexBuild.clients_hear_of_failures,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 0},
)
class FailuresAreNotAnswered(IndexBuild):
    """Who asks for an index that has failed is told what is told of one that is not built yet."""

    def _status(self) -> Term[Status]:
        status = super()._status()
        return choose(status == Status.failed, Status.in_progress, status)


@known_bug(
    "002-404",
    'design document 002, "Checkpointing": "only a portion of the tablet\'s key range"',
    breaks=IndexBuild.another_master_goes_on_from_a_checkpoint,
    sizes={Index: 1},
    budgets={IndexBuild.writes: 0},
)
class OnlyDoneTabletsAreBehind(IndexBuild):
    """How far a tablet has come is recorded with the chunk that takes it to its end: whoever leads by then has it read from its
    start.
    """

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        """J3: some rows of the tablet are in the index, and the checkpoint says so when they are the last."""
        self._is_to_scan(t, r, q)
        bounded(self._fits_two_chunks(t, r, q), "a tablet is scanned in two chunks")
        ends = some(self.job.checkpoint[t][i] == Checkpoint.in_the_middle for i in Index)
        for each in Row:
            here = ends & ((each == r) | (each == q))
            self.recorded.put(each, self.recorded.has(each) | here)
        self.job.backfill_chunk(t)
        self.rows.backfill(r, q)


@known_bug(
    "Y39",
    'design document 002: "the entire build process should not need to restart"',
    breaks=IndexBuild.another_master_goes_on_from_a_checkpoint,
    sizes={Index: 1},
    budgets={IndexBuild.writes: 0},
)
class TheNextMasterScansAnew(IndexBuild):
    """Which rows are behind a checkpoint is what a master remembers: the next one has every row read again."""

    @action(spends=IndexBuild.faults)
    def fail_over(self) -> None:
        """Another master becomes the leader."""
        self.job.fail_over()
        self.recorded = frozenset()

    @action(by=MASTER, spends=IndexBuild.faults)
    def fail_to_write(self) -> None:
        """The leader leaves the job."""
        self.job.fail_to_write()
        self.recorded = frozenset()


@known_bug(
    "Y40",
    "design document 002, Waiting for pending transactions",
    breaks=IndexBuild.only_old_transactions_are_aborted,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class TheScanWaitsForEveryTransaction(IndexBuild):
    """GetSafeTime waits for all that is pending, and aborts it, whether or not it writes to the index."""

    def _is_old(self) -> Bool:
        return self.pending.is_some()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-43",
    'design document 002, Waiting for pending transactions: they "commit or abort"',
    breaks=IndexBuild.transactions_can_be_given_up,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class TransactionsEndAfterTheScan(IndexBuild):
    """A transaction that was planned for the index is not rolled back while the index is scanned: its row stays locked."""

    @action
    def roll_back(self) -> None:
        """No chunk is on its way."""
        super().roll_back()
        require(self.job.step != Step.backfill_tablets, "the table is not scanned")


@known_bug(
    "002-44",
    'design document 002: delete markers stay "until the index is in READ_WRITE_AND_DELETE state"',
    breaks=IndexBuild.built_indexes_are_compacted,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class CompactionsEndWithTheAlter(IndexBuild):
    """An index that serves reads is compacted while the table is altered, and when all servers have it never again."""

    @action(by=STORAGE)
    def compact(self, k: Term[Key]) -> None:
        """The table is still altered."""
        super().compact(k)
        require(self.job.table == TableState.altering, "the table is altered")


@known_bug(
    "002-67",
    'design document 002: "The CREATE INDEX command is asynchronous"',
    breaks=IndexBuild.indexes_are_created_while_clients_write,
    sizes={Index: 1, Tablet: 1},
)
class CreatingWaitsForTransactions(IndexBuild):
    """CREATE INDEX waits until no transaction has a row of the table locked."""

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """CREATE UNIQUE INDEX of a table that nobody writes to."""
        super().create_index(i)
        require(self.pending.is_none(), "no transaction is pending")


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
    "002-83",
    "design document 002, The index backfill process",
    breaks=IndexBuild.tablets_are_scanned_independently,
    sizes={Index: 1},
    budgets={IndexBuild.faults: 0},
)
class TabletsAreScannedInTurn(IndexBuild):
    """A tablet is asked for its rows when the one before is done."""

    def _is_to_scan(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        super()._is_to_scan(t, r, q)
        half = some(
            (o != t) & (self.job.checkpoint[o][i] == Checkpoint.in_the_middle)
            for o in Tablet
            for i in Index
        )
        require(~half, "no other tablet is in the middle of it")


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
    "002-297",
    ABORTS,
    breaks=IndexBuild.builds_fail_as_soon_as_they_must,
    sizes={Index: 1},
    budgets={IndexBuild.faults: 0, IndexBuild.writes: 0},
)
class FailuresAreHeldBack(IndexBuild):
    """Two rows with one key fail the build when the other tablets are scanned to their end."""

    @action(by=MASTER, fair=WEAK)
    def find_duplicate(self, i: Term[Index], r: Term[Row]) -> None:
        """J3, at the end: no other tablet is left."""
        super().find_duplicate(i, r)
        over = every(
            (self.tablet[r] == t)
            | (self.job.checkpoint[t][i] == Checkpoint.done)
            | some((self.tablet[q] == t) & self.rows.is_duplicate(q) for q in Row)
            for t in Tablet
        )
        require(over, "no other tablet can be scanned further")


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
    "Y34",
    "design document 002, Design Goals: without locking out reads or writes",
    breaks=IndexBuild.rows_are_written_while_the_index_is_built,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class WritesWaitForTheBackfill(IndexBuild):
    """No row is written while the tablets are backfilled."""

    @action(by=CLIENT, spends=IndexBuild.writes)
    def write(self, r: Term[Row], k: Term[Key], t: Term[Tablet]) -> None:
        """A row gets a key while no tablet is backfilled."""
        super().write(r, k, t)
        require(self.job.step != Step.backfill_tablets, "no tablet is backfilled")


@known_bug(
    "Y35",
    "design document 002, Design Goals: without locking out reads or writes",
    breaks=IndexBuild.rows_are_deleted_while_the_index_is_built,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.faults: 0},
)
class DeletesWaitForTheReadTime(IndexBuild):
    """No row is deleted while tablets are asked for their safe times, so that the scan need not know of it."""

    @action(by=CLIENT, spends=IndexBuild.writes)
    def delete(self, r: Term[Row], t: Term[Tablet]) -> None:
        """A row is deleted while no time is chosen for the scan."""
        super().delete(r, t)
        require(self.job.step != Step.get_safe_time, "no time is chosen")


@known_bug(
    "Y36",
    "design document 002: it would be possible to query and determine the status",
    breaks=IndexBuild.the_status_is_told_at_any_time,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 0},
)
class StatusIsToldAtTheEnd(IndexBuild):
    """Who asks for the status while a tablet is backfilled waits for its end."""

    @action(by=CLIENT)
    def ask_for_status(self) -> None:
        """The client asks what has become of its index while no tablet is backfilled."""
        super().ask_for_status()
        require(self.job.step != Step.backfill_tablets, "no tablet is backfilled")


BUGS = known_bugs_in(globals())
