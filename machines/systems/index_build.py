"""A unique index is built online from end to end (002): its job, its servers, its rows, and what clients hear.

The job of the table (`backfill_job.py`) moves the index through its permissions, which servers learn in their own
time; it chooses the time of the scan, keeps checkpoints, and goes on under another master. The rows and entries are
those of `unique_index.py`, checked backwards and forwards in time. What joins them is a transaction: it is planned
by the permission that its server has, and commits when the build may be elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step, TableState
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.machines.yugabytedb.indexes.unique_index import (
    AFTER_T_READ,
    BEFORE_T_READ,
    Key,
    Row,
    Time,
    UniqueIndex,
    Versions,
    may_commit,
    passes_the_checks,
    reclaim,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    bounded,
    budget,
    checked_alone,
    choose,
    constant,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalent_without,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    optional,
    part,
    per,
    profiles,
    require,
    restricted,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
)

STORAGE = Actor("index tablet")
ON_ITS_WAY_OUT = tuple(p for p in Permission if p.removed)
NOBODY_READS = "nobody reads an index that has failed"


@dataclass(frozen=True)
class BuildRelease(Profile):
    """The versions of the parts that go together."""


NEWEST = BuildRelease("yugabyte-2026")


class JobOfRows(BackfillJob):
    """A job that finds in the rows whether its unique index can be built."""

    unbuildable = optional(Index)  # a chunk has found two rows with one of its keys

    @lemma
    def checkpoints_are_of_the_job(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """There are no checkpoints without a job. Other tablets may be done when a chunk finds two rows."""
        begun = self.checkpoint[t][i] != Checkpoint.never_begun
        return begun.implies(self.job[i].is_some() & (self.step != Step.clear_job))


class RowsOfJob(UniqueIndex):
    """The rows of a table on which a job may come to build an index."""

    @liveness
    def builds_end(self) -> LeadsTo:
        """002: once the time of the scan is chosen, the build succeeds, or aborts "and results in a failure"."""
        chosen = ~self.now.any_of(*BEFORE_T_READ)
        begun = chosen & (self.build == Status.in_progress)
        return leads_to(begun, self.build != Status.in_progress)


class IndexBuild(Machine):
    """A unique index of a table is created, built while clients write, and serves reads, or is removed.

    `yugabyte-2026` alone: in earlier versions, and under the document, the job breaks promises of its own.
    """

    release = profiles(NEWEST)
    writes = budget(1, doc="transactions of clients")
    faults = fault_budget(
        1, doc="changes of the master leader, and writes to the sys catalog that fail"
    )

    exercised_at = scopes(
        {Index: 1},
        {Index: 1, Key: 1, writes: 2},
        {Index: 1, Key: 1, writes: 3, faults: 0},
        {Index: 1, Tablet: 1},
        {Index: 1, Tablet: 1, Key: 1, writes: 0, faults: 2},
        {Tablet: 1, Key: 1, faults: 0},  # with an index that nobody creates
    )

    job = part(
        JobOfRows,
        without=(
            BackfillJob.drop_index,
            BackfillJob.give_up,
            BackfillJob.fail_index,
            # what a job does for several indexes: here a table has one
            JobOfRows.one_scan_is_for_all_indexes,
            JobOfRows.a_second_job_follows,
        ),
        restricts=(
            restricted(
                BackfillJob.indexes_are_created_at_any_time,
                because="the rows and the answers are those of one index",
            ),
            restricted(
                BackfillJob.tablets_are_independent,
                because="a chunk that finds two rows with one key does not go on: it fails the index",
            ),
            restricted(
                BackfillJob.read_times_wait_for_nothing_else,
                because="GetSafeTime waits for transactions that leave the index out",
            ),
        ),
    )
    rows = part(
        RowsOfJob,
        without=(
            UniqueIndex.insert,
            UniqueIndex.delete,
            UniqueIndex.update,
            UniqueIndex.hand_over,
            # of a tablet with several rows: `entries_of_a_tablet_are_written_in_batches`
            UniqueIndex.entries_are_written_in_batches,
        ),
        restricts=(
            restricted(
                UniqueIndex.rows_without_a_rival_are_backfilled,
                because="a job backfills rows while it is at J3, and none that its checkpoint is past",
            ),
            restricted(
                UniqueIndex.violations_are_found,
                because="a job looks for them while it is at J3, and in an index that was created",
            ),
        ),
    )

    each_alone = checked_alone(job, rows)

    tablet = constant(per(Row, one_of(Tablet, init=ANY)))
    recorded: SetVar[Row] = set_of(Row)  # the rows that the checkpoints cover
    # the transaction of a client that has written a row, and holds its lock
    pending: OptionalVar[Row] = optional(Row)
    new_key: OptionalVar[Key] = optional(Key)  # none: the row is deleted
    # what its server has planned for the index: to delete the row's old entry, and to write the new one
    to_delete: FlagVar = flag()
    to_write: FlagVar = flag()
    # a transaction was aborted that writes to the index, or that no tablet waited for
    wrong_abort: FlagVar = flag()
    # what clients were answered
    answered: OneVar[Status] = one_of(Status, init=Status.in_progress)
    told_late: FlagVar = flag()  # one was told IN-PROGRESS of what was over

    @initially
    def tablets_have_rows(self, t: Term[Tablet]) -> Bool:
        """Every tablet has a row to scan."""
        return some(self.tablet[r] == t for r in Row)

    # -- statements ----------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """CREATE UNIQUE INDEX: of one index. It does not wait for the build."""
        require(self.job.created.is_empty(), "the table has no index yet")
        self.job.create_index(i)

    @action(by=CLIENT)
    def ask_for_status(self) -> None:
        """The client that has created the index asks what has become of it."""
        require(~self.job.created.is_empty(), "CREATE INDEX was executed")
        self._answer(self._status())

    @action(by=CLIENT, spends=writes)
    def write(self, r: Term[Row], k: Term[Key], t: Term[Tablet]) -> None:
        """A row gets a key: planned on the server of any tablet, by the permission that it knows."""
        self._begin(r, t)
        self.new_key = k

    @action(by=CLIENT, spends=writes)
    def delete(self, r: Term[Row], t: Term[Tablet]) -> None:
        """A row is deleted."""
        require(self.rows.key[r].is_some(), "the row is there")
        self._begin(r, t)

    @action
    def commit(self, r: Term[Row], time: Term[Time]) -> None:
        """The transaction's row and its entries change at one time; what is planned for the index is done."""
        require(self.pending == r, "the transaction has written the row")
        require(self._is_in_order(time), "the time is that of a commit now")
        require(self._is_free_for(r), "the key is free in the index, or the row's own")
        self.rows.enter(r, self.new_key, time, self.to_delete, self.to_write)
        self._end()

    @action
    def roll_back(self) -> None:
        """The client gives the transaction up, or is refused the key."""
        require(self.pending.is_some(), "a transaction is pending")
        self._end()

    # -- the build -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def abort_old_transaction(self) -> None:
        """GetSafeTime has waited long enough for a transaction that will not write to the index."""
        require(self.job.step == Step.get_safe_time, "tablets are asked for their safe times")
        require(self._is_old(), "a transaction from before WRITE_AND_DELETE is pending")
        asked = self.job.step == Step.get_safe_time
        self.wrong_abort = self.wrong_abort | self.to_write | ~asked
        self._end()

    @action(by=MASTER, fair=WEAK)
    def choose_read_time(self) -> None:
        """J2: nothing that leaves the index out is pending any more, and later commits have later times."""
        self._old_transactions_have_ended()
        self.job.choose_read_time()
        self.rows.choose_t_read()

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        """J3: some rows of the tablet pass the check and are in the index, and the checkpoint says so."""
        self._is_to_scan(t, r, q)
        bounded(self._fits_two_chunks(t, r, q), "a tablet is scanned in two chunks")
        self.job.backfill_chunk(t)
        self.rows.backfill(r, q)
        self._record(r, q)

    @action(by=MASTER, fair=WEAK)
    def finish_chunk(self, t: Term[Tablet]) -> None:
        """J3: a chunk finds no row that is left in the tablet."""
        self._no_row_is_left(t)
        self.job.backfill_chunk(t)

    @action(fair=WEAK)
    def write_entries(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        """J3: the entries are written, but the master does not hear of it: the chunk will be asked for again."""
        require(self.job.step == Step.backfill_tablets, "tablets are being backfilled")
        self._is_to_scan(t, r, q)
        self.rows.backfill(r, q)

    @action(by=MASTER, fair=WEAK)
    def find_duplicate(self, i: Term[Index], r: Term[Row]) -> None:
        """J3: a row of the chunk has the key of another: the index fails."""
        require(self.job.step == Step.backfill_tablets, "tablets are being backfilled")
        require(self.job.created.has(i), "it is the index")
        self._fails_the_check(r)
        self.job.unbuildable = i
        self.job.job[i] = Status.failed

    @action(by=MASTER, fair=WEAK)
    def find_all_built(self) -> None:
        """J4: every tablet is done, and so is the index."""
        self.job.find_all_done()
        self.rows.publish()

    @action(by=MASTER, fair=WEAK)
    def find_all_decided(self) -> None:
        """J4 of an index that has failed, or of a job whose tablets an earlier leader has found done."""
        require(self.rows.build != Status.in_progress, "what becomes of the index is known")
        self.job.find_all_done()

    @action(by=STORAGE)
    def compact(self, k: Term[Key]) -> None:
        """A compaction of the index table removes delete markers, and what newer entries hide."""
        require(self._markers_may_go(), "delete markers are not retained")
        reclaim(self.rows, k)

    # -- helpers -------------------------------------------------------------------------------------------

    def _begin(self, r: Term[Row], t: Term[Tablet]) -> None:
        bounded(self.pending.is_none(), "one transaction is followed at a time")
        self.pending = r
        self.to_delete = self._may(t, lambda p: p.delete)
        self.to_write = self._may(t, lambda p: p.write)

    def _end(self) -> None:
        self.pending = None
        self.new_key = None
        self.to_delete = False
        self.to_write = False

    def _may(self, t: Term[Tablet], allowed: Callable[[Permission], bool]) -> Bool:
        """A server has a permission of the one index that allows it."""
        return some(self.job.known[t][i].column(allowed) for i in Index)

    def _is_in_order(self, time: Term[Time]) -> Bool:
        """Until the time of the scan is chosen, commits are before it, and afterwards behind it."""
        scanned = ~self.rows.now.any_of(*BEFORE_T_READ)
        return choose(scanned, time.any_of(*AFTER_T_READ), time.any_of(*BEFORE_T_READ))

    def _is_free_for(self, r: Term[Row]) -> Bool:
        taken = some((self.new_key == k) & self.rows.is_taken(k, r) for k in Key)
        return ~(self.to_write & taken)

    def _is_old(self) -> Bool:
        return self.pending.is_some() & ~self.to_write

    def _old_transactions_have_ended(self) -> None:
        require(~self._is_old(), "no transaction from before WRITE_AND_DELETE is pending")

    def _is_to_scan(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> None:
        require((self.tablet[r] == t) & (self.tablet[q] == t), "the rows are in the tablet")
        behind = self.recorded.has(r) | self.recorded.has(q)
        require(~behind, "no checkpoint is past them")

    def _fits_two_chunks(self, t: Term[Tablet], r: Term[Row], q: Term[Row]) -> Bool:
        """What these rows leave is nothing after the second chunk, and fits that after the first."""
        left = count(
            (self.tablet[o] == t) & ~self.recorded.has(o) & (o != r) & (o != q) for o in Row
        )
        begun = some(self.job.checkpoint[t][i] == Checkpoint.in_the_middle for i in Index)
        return left <= choose(begun, 0, 2)

    def _no_row_is_left(self, t: Term[Tablet]) -> None:
        left = some((self.tablet[r] == t) & ~self.recorded.has(r) for r in Row)
        require(~left, "no row of the tablet is left")

    def _record(self, r: Term[Row], q: Term[Row]) -> None:
        for each in Row:
            self.recorded.put(each, self.recorded.has(each) | (each == r) | (each == q))

    def _fails_the_check(self, r: Term[Row]) -> None:
        self.rows.find_duplicate(r)

    def _markers_may_go(self) -> Bool:
        return some(
            self.job.created.has(i) & ~self.job.retains_delete_markers.has(i) for i in Index
        )

    def _answer(self, status: Term[Status]) -> None:
        self.answered = status
        self.told_late = self.told_late | ((status == Status.in_progress) & self._is_known())

    def _status(self) -> Term[Status]:
        ready = some(
            (self.job.permission[i] == Permission.read_write_and_delete)
            & every(self.job.known[t][i] == self.job.permission[i] for t in Tablet)
            for i in Index
        )
        failed = some(self.job.created.has(i) & self._is_removed(i) for i in Index)
        return choose(ready, Status.success, choose(failed, Status.failed, Status.in_progress))

    def _is_known(self) -> Bool:
        """Every server reads the index, or it is being removed, or gone."""
        going = (*ON_ITS_WAY_OUT, Permission.absent)
        removed = some(
            self.job.created.has(i) & self.job.permission[i].any_of(*going) for i in Index
        )
        return removed | every(self._may(t, lambda p: p.read) for t in Tablet)

    def _is_removed(self, i: Term[Index]) -> Bool:
        gone = self.job.permission[i] == Permission.absent
        return self.job.permission[i].column(lambda p: p.removed) | gone

    def _finds(self, r: Term[Row], k: Term[Key]) -> Bool:
        """What a look-up of the key in the index finds is the row, if the table has it so."""
        return (self.rows.holder(k) == r) == (self.rows.key[r] == k)

    # -- promises ------------------------------------------------------------------------------------------

    @invariant
    def servers_that_read_find_the_rows(self, t: Term[Tablet], r: Term[Row], k: Term[Key]) -> Bool:
        """002, READ_WRITE_AND_DELETE: the index "can be used to serve reads": whichever server reads it finds what
        the table has, whatever was pending, and whoever led the build.
        """
        reads = self._may(t, lambda p: p.read)
        return reads.implies(self._finds(r, k))

    @invariant
    def what_clients_are_told_is_so(self, r: Term[Row], k: Term[Key]) -> Bool:
        """002: after SUCCESS the index "should be consistent with the data in the primary table", no two rows share a key
        of it, and every server reads it; after FAILED two have had one, as nothing else fails the build here.
        """
        shares = some((q != r) & (self.rows.key[q] == k) for q in Row)
        sound = self._finds(r, k) & ~((self.rows.key[r] == k) & shares)
        failed = (self.answered == Status.failed).implies(self.rows.had_a_duplicate())
        read = every(self._may(t, lambda p: p.read) for t in Tablet)
        return failed & (self.answered == Status.success).implies(sound & read)

    @lemma
    @step_property
    def answers_are_final(self, after: Self) -> Bool:
        """002: "the status (IN-PROGRESS, SUCCESS, FAILED)": the last two are the end, whoever leads. A lemma: what clients are
        told is so, and is told at once.
        """
        final = self.answered.any_of(Status.success, Status.failed)
        return final.implies(after.answered == self.answered)

    @invariant
    def results_are_told_at_once(self) -> Bool:
        """002: "It would be possible to query and determine the status (IN-PROGRESS, SUCCESS, FAILED)": whoever leads by now, and
        whether the index is still there, who asks hears IN-PROGRESS until every server reads the index, or it is to go.
        """
        return ~self.told_late

    @lemma
    @always_reachable
    def clients_can_learn_the_result(self) -> Bool:
        """002: "It would be possible to query and determine the status (IN-PROGRESS, SUCCESS, FAILED)": who asks in the end does
        not hear IN-PROGRESS. A lemma: builds end, and `results_are_told_at_once`.
        """
        return self.answered.any_of(Status.success, Status.failed)

    @invariant
    def checkpoints_stand_for_entries(self, r: Term[Row], k: Term[Key]) -> Bool:
        """002, "Fault tolerance using checkpointing": what is behind a checkpoint, or in a tablet that is done, is not
        read again, so it is in the index, until a compaction may remove what newer entries hide.
        """
        entered = (self.rows.stored[k][Time.t_read].row == r) | self._markers_may_go()
        done = some(
            (self.tablet[r] == t) & (self.job.checkpoint[t][i] == Checkpoint.done)
            for t in Tablet
            for i in Index
        )
        here = (self.recorded.has(r) | done) & (self.rows.key_at_t_read[r] == k)
        return here.implies(entered)

    @step_property
    def chunks_keep_what_others_have_built(self, after: Self, r: Term[Row]) -> Bool:
        """002, Checkpointing: the master "persists the checkpointing info", and goes on "for completing the entire key range":
        the row that one chunk is past no other chunk brings back, of its tablet or of another; nor does the next leader.
        """
        scans = some(
            (self.job.job[i] == Status.in_progress) & (after.job.job[i] == Status.in_progress)
            for i in Index
        )
        return (scans & self.recorded.has(r)).implies(after.recorded.has(r))

    @accepts(commit)
    def keys_are_refused_only_if_taken(self, r: Term[Row], time: Term[Time]) -> Bool:
        """002, Design Goals: "without locking out reads or writes": whatever the build does, and whichever versions
        the servers have, a transaction commits unless another row has its key, later than those before it, and earlier
        than the scan that is to come.
        """
        taken = some(
            (q != r) & some((self.rows.key[q] == k) & (self.new_key == k) for k in Key) for q in Row
        )
        begun = ~self.rows.now.any_of(*BEFORE_T_READ)
        in_time = may_commit(self.rows, time) & (begun | time.any_of(*BEFORE_T_READ))
        return (self.pending == r) & ~taken & in_time

    @accepts(write)
    def rows_are_written_while_the_index_is_built(
        self,
        r: Term[Row],
        k: Term[Key],
        t: Term[Tablet],
    ) -> Bool:
        """002, Design Goals: "without locking out reads or writes": a row is written whatever the job does."""
        return self.pending.is_none()

    @accepts(delete)
    def rows_are_deleted_while_the_index_is_built(
        self,
        r: Term[Row],
        t: Term[Tablet],
    ) -> Bool:
        """002, Design Goals: "without locking out reads or writes": a row is deleted whatever the job does."""
        return self.pending.is_none() & self.rows.key[r].is_some()

    @accepts(backfill_chunk)
    def tablets_are_scanned_independently(self, t: Term[Tablet], r: Term[Row]) -> Bool:
        """002, "The index backfill process": "the backfill process on any tablet can proceed independent of the others":
        a row that has no rival is backfilled, whatever the scan of another tablet finds, or is at; also again, if the
        master has not heard that it is in the index.
        """
        left = (self.tablet[r] == t) & ~self.recorded.has(r)
        passes = passes_the_checks(self.rows, r)
        return self.job.tablets_are_independent(t) & passes & left

    @accepts(finish_chunk)
    def tablets_are_finished_independently(self, t: Term[Tablet]) -> Bool:
        """002, "Backfill the data": "The YB-Master keeps track of how many tablets have completed the build": a tablet is done when
        its rows are behind its checkpoints, and not with the last one of the table.
        """
        behind = every((self.tablet[r] == t).implies(self.recorded.has(r)) for r in Row)
        return self.job.tablets_are_independent(t) & behind

    @accepts(find_duplicate)
    def builds_fail_as_soon_as_they_must(self, i: Term[Index], r: Term[Row]) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table, such as a unique constraint violation", the build
        is aborted: it takes no tablet to its end before, neither this one nor another.
        """
        scanned = (self.job.step == Step.backfill_tablets) & self.job.created.has(i)
        return scanned & self.rows.violations_are_found(r)

    @accepts(create_index)
    def indexes_are_created_while_clients_write(self, i: Term[Index]) -> Bool:
        """002: "The CREATE INDEX command is asynchronous": what is pending is waited for later, before the scan."""
        return self.job.created.is_empty()

    @accepts(ask_for_status)
    def the_status_is_told_at_any_time(self) -> Bool:
        """002: "It would be possible to query and determine the status": whatever the job does, and whoever leads."""
        return ~self.job.created.is_empty()

    @step_property
    def transactions_commit_once(self, after: Self, r: Term[Row]) -> Bool:
        """002, "Waiting for pending transactions to finish": they "commit or abort": who has changed a row is through, and
        no client hears that a transaction is given up whose row others see.
        """
        changed = self.rows.key[r] != after.rows.key[r]
        return changed.implies(after.pending.is_none())

    @accepts(roll_back)
    def transactions_can_be_given_up(self) -> Bool:
        """002, "Waiting for pending transactions to finish": they "commit or abort": who is refused a key waits for
        nothing, whatever the job does.
        """
        return self.pending.is_some()

    @accepts(compact)
    def built_indexes_are_compacted(self, k: Term[Key]) -> Bool:
        """002: delete markers are retained "until the index is in READ_WRITE_AND_DELETE state", and not for ever: at the
        latest until every server has that.
        """
        published = some(self.job.permission[i] == Permission.read_write_and_delete for i in Index)
        return published & (self.job.table == TableState.running)

    @lemma
    def nothing_is_left_of_a_transaction(self) -> Bool:
        """Where none is pending, there is no key to write, and nothing is planned for the index."""
        nothing = self.new_key.is_none() & ~self.to_delete & ~self.to_write
        return self.pending.is_none().implies(nothing)

    @lemma
    @sometimes(at={Index: 1})
    def built_indexes_serve_reads(self, t: Term[Tablet]) -> Bool:
        """002, READ_WRITE_AND_DELETE: the index "can be used to serve reads": on every server, in the end. A lemma:
        `clients_hear_of_success`, when every server reads the index (`what_clients_are_told_is_so`).
        """
        return self._may(t, lambda p: p.read)

    @sometimes(at={Tablet: 1, Key: 1, faults: 0})
    def clients_hear_of_success(self) -> Bool:
        """002: "It would be possible to query and determine the status": some client is told that it has its index."""
        return self.answered == Status.success

    @sometimes(at={Tablet: 1, Key: 1, faults: 0})
    def clients_hear_of_failures(self) -> Bool:
        """002: "the CREATE INDEX command should abort and result in a failure": two rows have shared a key."""
        return self.answered == Status.failed

    @sometimes(at={Index: 1, Tablet: 1})
    def entries_of_a_tablet_are_written_in_batches(self, after: Self) -> Bool:
        """002: "These generated writes are batched and a batched write is performed": a checkpoint is past several rows."""
        return after.recorded.size() >= self.recorded.size() + 2

    @sometimes(at={Index: 1})
    def clients_write_behind_the_scan(self, after: Self, r: Term[Row]) -> Bool:
        """A row that is behind a checkpoint changes while the rest of the table is scanned."""
        scans = self.job.step == Step.backfill_tablets
        changes = self.recorded.has(r) & (self.rows.key[r] != after.rows.key[r])
        return scans & changes & some(~self.recorded.has(q) for q in Row)

    @sometimes(at={Index: 1})
    def another_master_goes_on_from_a_checkpoint(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002, "Checkpointing": a request covers "only a portion of the tablet's key range", and what it covers the master
        persists: who takes up a job finds, of a tablet that is not done, rows that need not be read again.
        """
        begun = self.job.checkpoint[t][i] == Checkpoint.in_the_middle
        behind = some((self.tablet[r] == t) & self.recorded.has(r) for r in Row)
        return (self.job.step == Step.none) & begun & behind

    @sometimes(at={Index: 1})
    def a_peer_completes_its_chunk(self, after: Self, r: Term[Row]) -> Bool:
        """002: "The peer that has already started doing the backfill may be allowed to complete": its entries are in
        the index, and the master, who has not heard of it, takes the tablet for one that nobody has begun.
        """
        entered = some(
            (after.rows.stored[k][Time.t_read].row == r)
            & (self.rows.stored[k][Time.t_read].row != r)
            for k in Key
        )
        unheard = every(
            after.job.checkpoint[t][i] == Checkpoint.never_begun for i in Index for t in Tablet
        )
        return entered & unheard

    @invariant
    def only_old_transactions_are_aborted(self) -> Bool:
        """002, "Waiting for pending transactions": those are aborted "that started before getting to WRITE_AND_DELETE
        state", and no others, however long the scan waits; nor are those before it is asked for its safe time.
        """
        return ~self.wrong_abort

    @step_property
    def the_build_ends_no_transaction(self, after: Self) -> Bool:
        """The same of whatever else the job does: as the index is created, or the time of the scan chosen, rows are written or two
        of them found under one key, and the index is published, transactions go on.
        """
        moves = (self.job.step != after.job.step) | (self.recorded != after.recorded)
        moves = moves | some(self.job.permission[i] != after.job.permission[i] for i in Index)
        moves = moves | some(
            self.job.known[t][i] != after.job.known[t][i] for t in Tablet for i in Index
        )
        moves = moves | (self.rows.backfilled != after.rows.backfilled)
        moves = moves | (self.rows.build != after.rows.build)
        return (moves & self.pending.is_some()).implies(after.pending == self.pending)

    @final
    def at_rest(self) -> Bool:
        """Final where the job is, with no transaction."""
        return self.pending.is_none()

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            ask_for_status,
            "CREATE INDEX was executed",
            because="before that nothing is answered but IN-PROGRESS, as it was",
        ),
        equivalent_drop(
            delete, "the row is there", because="to delete what is not there changes nothing"
        ),
        equivalent_loss(write, new_key, because="a client may as well delete the row"),
        equivalent_loss(
            delete,
            to_write,
            because="a delete writes no entry, and may be waited for like an old one",
        ),
        equivalent_replacement(
            delete,
            "to_write becomes",
            because="a delete writes no entry, and may be waited for like an old one",
        ),
        equivalent_loss(
            abort_old_transaction, to_write, because="an old transaction has no entry to write"
        ),
        equivalent_value(ON_ITS_WAY_OUT, lambda p: p.write, because=NOBODY_READS),
        equivalent_value(
            Permission.absent,
            lambda p: p.number,
            because="that an index is gone is asked for beside whether it is on its way out",
        ),
        equivalent_without(
            BackfillJob.backfill_chunk,
            because="the chunk that finds no row is noted: a job that had noted none before is done, too",
        ),
        equivalent_loss(
            compact,
            Versions.row,
            Versions.delete_marker,
            because="a compaction may leave what it could remove",
        ),
        equivalent_drop(
            roll_back, "a transaction is pending", because="without one there is none to give up"
        ),
        equivalent_weakening(
            abort_old_transaction,
            "a transaction from before WRITE_AND_DELETE is pending",
            because="where none is pending, there is none to abort",
        ),
        equivalent_loss(
            abort_old_transaction, wrong_abort, because="it notes what must not happen"
        ),
        equivalent_loss(_answer, told_late, because="it notes what must not happen"),
        equivalent_drop(
            _is_to_scan,
            "no checkpoint is past them",
            "the rows are in the tablet",
            because="a row gets the same entry, scanned again or with the rows of another tablet",
        ),
        equivalent_replacement(
            _is_to_scan,
            "no checkpoint is past them",
            "the rows are in the tablet",
            because="a row gets the same entry, scanned again or with the rows of another tablet",
        ),
        equivalent_replacement(
            compact,
            "[earlier].row becomes: later for t_read (2)",
            "[t_read].row becomes: latest for later (2)",
            "[t_read].row becomes: before_index for latest (2)",
            "[later].row becomes: before_index for latest (2)",
            because="a compaction may leave what it could remove",
        ),
        equivalent_replacement(
            compact,
            "[before_index].delete_marker becomes: yes for no",
            "[earlier].delete_marker becomes: yes for no",
            "[t_read].delete_marker becomes: yes for no",
            because="what a marker up to `t_read` hides was backfilled, too, above it",
        ),
        equivalent_drop(
            write_entries,
            "tablets are being backfilled",
            because="rows pass the check only while they are scanned, whichever step a leader is at",
        ),
    )

    beyond_the_default_scope = unexercised(
        vacuous(
            BackfillJob.abandoned_indexes_are_not_published,
            BackfillJob.dropped_indexes_are_deleted,
            because="no client drops the index, and no job gives up: backfill-job has that",
        ),
    )
