"""Mistakes in the scan of a tablet that design document 002 rules out, each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks, Until
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    LAST,
    NO_TIME,
    TABLET as SAFE_TIME_TABLET,
    BackfillSafeTime,
    Change,
    Transaction,
)
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit, Piece
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet, Begin, Scan
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    ROWS,
    TABLET_SERVER,
    BackfillThrottle,
    Request,
    Task,
)
from stagewright.machines.yugabytedb.backfill.backfill_versions import TIMES, BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_rows import HybridTime, Row, Value, number_of
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    Bool,
    Maybe,
    Number,
    Term,
    action,
    bounded,
    choose,
    every,
    least,
    number,
    per,
    require,
    some,
)
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CHECKPOINTS = "design document 002, Fault tolerance using checkpointing"
FIXED = 'design document 002: "the scan is performed at a fixed timestamp"'
CALM: dict[BudgetName, int | None] = {BackfillChunks.lost: 0, BackfillChunks.failovers: 0}


@known_bug(
    "002-29",
    'design document 002: indexes are "consistent with the data in the primary table"',
    breaks=BackfillChunks.built_indexes_are_complete,
    sizes={Index: 1},
    budgets=CALM,
)
class OnlyUniqueIndexesAreWaitedFor(BackfillChunks):
    """An index without a constraint cannot fail, so it is reported as built while its rows are on their way."""

    def _tablet_is_done(self) -> None:
        undone = some(
            (self.job[i] == Status.in_progress)
            & self.duplicate[i].is_some()
            & (self.reached[i] != Until.end)
            for i in Index
        )
        require(~undone, "every index that may fail has reached the end of the tablet")


@known_bug(
    "002-30",
    CHECKPOINTS,
    breaks=BackfillChunks.checkpoints_tell_what_is_built,
    budgets=CALM,
)
class OneCheckpointForAllIndexes(BackfillChunks):
    """The checkpoint says how far the tablet was read, also of an index whose entries were not written in time."""

    def _recorded(self, i: Term[Index], new: Term[Until]) -> Term[Until]:
        late = (self.job[i] == Status.in_progress) & (self.late == i)
        read, recorded = choose(late, self.stop, new), self.until[i]
        return choose(self._rows(read) > self._rows(recorded), read, recorded)

    def _rows(self, until: Term[Until]) -> Number:
        return until.number_column(list(Until).index)


@known_bug("002-31", CHECKPOINTS, breaks=BackfillSplit.checkpoints_are_kept)
class CheckpointsAreTheLeaders(BackfillSplit):
    """How far tablets are, only the leader knows: the next one scans all of them again."""

    @action(spends=BackfillSplit.failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader."""
        super().fail_over()
        for t in Tablet:
            for piece in Piece:
                self.checkpoint[t][piece] = Checkpoint.never_begun


@known_bug("002-32", CHECKPOINTS, breaks=BackfillTablet.checkpoints_only_advance)
class LaterChunksAreNotKnown(BackfillTablet):
    """A new leader knows that the tablet was begun, and not how far it is: it asks for the first chunk."""

    @action
    def begin_anew(self) -> None:
        """A chunk after the first was going on."""
        require(self.scan == Scan.taken_over, "another master is the leader")
        require(self.begin.any_of(Begin.same, Begin.further), "it was not the first chunk")
        self.scan = Scan.chunk
        self.begin = Begin.at_the_start


@known_bug(
    "002-33",
    'design document 002: an answer says "how far it managed to successfully build"',
    breaks=BackfillTablet.what_is_done_was_scanned,
)
class AFailureIsAnEnd(BackfillTablet):
    """A chunk has failed for one index, and the tablet is taken for done for the others, too."""

    @action(by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """No chunk of it is going on any more."""
        require(self.scan.any_of(Scan.chunk, Scan.failed), "a chunk was asked for")
        self.scan = Scan.done


@known_bug(
    "002-34",
    'design document 002: "utilizing multiple/all nodes in the cluster"',
    breaks=BackfillThrottle.tablets_are_asked_independently,
)
class OneRequestAtATime(BackfillThrottle):
    """The master waits for the answer of one tablet before it asks the next."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        """Nothing is asked of other tablets."""
        super().ask(task)
        others = every(self.request[other] == Request.none for other in Task)
        require(others, "no request is on its way")


@known_bug(
    "002-86",
    'design document 002: "how far it managed to successfully build"',
    breaks=BackfillThrottle.checkpoints_are_answers,
    sizes={Task: 1},
)
class ProgressIsTheCheckpoint(BackfillThrottle):
    """How far a tablet server is, it says while it reads: when its leader goes away that is what the master writes down."""

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """Entries may not be written yet of what was read."""
        super().lose_leader(task)
        self.recorded[task] = self._reached(task)


@known_bug(
    "002-87",
    'design document 002: "The entire build process should not need to restart"',
    breaks=BackfillThrottle.checkpoints_only_advance,
    sizes={Task: 1},
)
class CheckpointsAreOfOneRequest(BackfillThrottle):
    """The checkpoint is how many rows the last request has read, wherever that began."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """What is recorded already is not added."""
        require(self.request[task] == Request.answered, "an answer is there")
        self.recorded[task] = self.read[task]
        self._end(task)


@known_bug(
    "002-35",
    'design document 002: RPCs "as necessary for completing the entire key range"',
    breaks=BackfillThrottle.done_tablets_are_left_alone,
    sizes={Task: 1},
)
class AskedUntilNothingIsLeft(BackfillThrottle):
    """A tablet is asked for more until an answer is empty, which nobody writes down: it is asked for ever."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        """Whatever the checkpoint is."""
        require(self.request[task] == Request.none, "nothing is on its way")
        self.request[task] = Request.queued
        self.elapsed[task] = 0
        self.since_asked[task] = 0
        self.read[task] = 0

    @action(by=TABLET_SERVER, fair=WEAK)
    def answer(self, task: Term[Task]) -> None:
        """An empty answer ends the request."""
        require(self.request[task] == Request.running, "request has a slot")
        require(self._is_due(task), "tablet is done, or time is up")
        self.request[task] = choose(self.read[task] > 0, Request.answered, Request.none)
        self._free_slot(task)


@known_bug(
    "002-36",
    'design document 002: entries have a timestamp "that is in the past"',
    breaks=BackfillSafeTime.entries_have_rows,
)
class EntriesHaveTheTimeOfTheirWrite(BackfillSafeTime):
    """Entries are written with the time of now: they hide the delete markers of what was deleted since the scan's."""

    def _is_shown(self, t: Term[Tablet]) -> Bool:
        return self.entry.has(t)


@known_bug("002-37", FIXED, breaks=BackfillSafeTime.scans_share_one_time)
class ChosenAgainBeforeTheFirstScan(BackfillSafeTime):
    """A new leader finds no tablet scanned, and chooses a time of its own, whatever was sent already."""

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader."""
        super().fail_over()
        self.read_time = choose(self.scanned.is_empty(), NO_TIME, self.read_time)


@known_bug("002-38", FIXED, breaks=BackfillSafeTime.scans_repeat)
class ASecondScanMendsTheFirst(BackfillSafeTime):
    """A tablet is scanned before it has reached the read time, and once more before the index is published."""

    def _safe_time_is_reached(self, t: Term[Tablet]) -> None:
        """The first scan does not wait for it."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """Every tablet is scanned again."""
        super().publish()
        for t in Tablet:
            super()._safe_time_is_reached(t)
            self.entry.put(t, self._was_live(t))


@known_bug(
    "002-82",
    "design document 002, Waiting for pending transactions to finish",
    breaks=BackfillSafeTime.answers_end_no_transaction,
    sizes={Tablet: 1},
)
class AnAnswerEndsWhatIsPending(BackfillSafeTime):
    """A tablet aborts whatever is pending as it answers: no old transaction is, so it can only be one that deletes."""

    @action(by=SAFE_TIME_TABLET, fair=WEAK)
    def get_safe_time(self, t: Term[Tablet]) -> None:
        """Nothing is pending any more."""
        super().get_safe_time(t)
        pending = self.transaction[t] == Transaction.pending
        self.transaction[t] = choose(pending, Transaction.aborted, self.transaction[t])


@known_bug(
    "002-88",
    "design document 002, Design Goals: consistent with the data in the primary table",
    breaks=BackfillVersions.no_missing_entry,
)
class RowsOfBeforeAreNotSeen(BackfillVersions):
    """A row is looked up among the versions that came since the index is known: the scan finds none of before, and so
    does a lookup that the table is asked for.
    """

    def _row_at(self, r: Term[Row], time: Term[HybridTime]) -> Maybe[Value]:
        since, *later = TIMES[1:]
        found = choose(self._has_version(r, since, time), self.value[r][since], None)
        for t in later:
            found = choose(self._has_version(r, t, time), self.value[r][t], found)
        return found

    def _has_version(self, r: Term[Row], t: HybridTime, time: Term[HybridTime]) -> Bool:
        return self.written[r].has(t) & (number_of(Term.of(t)) <= number_of(time))


@known_bug(
    "002-230",
    "design document 002, Resilience: the index build should be resilient to failures",
    breaks=BackfillTablet.chunks_fail_for_an_index,
)
class FailuresWaitForTheNextLeader(BackfillTablet):
    """A leader for which a chunk had failed left the tablet to whoever came after it."""

    @action(by=MASTER)
    def fail(self) -> None:
        """A chunk fails for an index of the job: this leader does no more about it."""
        require(self.scan == Scan.chunk, "a chunk is going on")
        self.scan = Scan.taken_over


@known_bug(
    "002-231",
    "design document 002, Waiting for pending transactions: to finish, i.e. commit or abort",
    breaks=BackfillSafeTime.rows_of_old_transactions_are_found,
    budgets={BackfillSafeTime.failovers: 0},
)
class OldTransactionsAreAborted(BackfillSafeTime):
    """A transaction that had begun before the index had its permission was aborted as it came to commit, since its rows would
    have no entries.
    """

    @action(by=SAFE_TIME_TABLET)
    def commit(self, t: Term[Tablet]) -> None:
        """The transaction commits, if it knows of the index."""
        old = self.change[t] == Change.old_insert
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        bounded(self.clock[t] < LAST, "a time is left")
        outcome = choose(old, Transaction.aborted, Term.of(Transaction.committed))
        self.transaction[t] = outcome
        self.committed_at[t] = choose(old, NO_TIME, self.clock[t] + 1)
        self.clock[t] = self.clock[t] + 1


@known_bug(
    "002-241",
    'design document 002: "how far it managed to successfully build"',
    breaks=BackfillThrottle.checkpoints_are_answers,
    sizes={Task: 1},
)
class LostRowsAreCounted(BackfillThrottle):
    """What a leader had read that went away is added to the next answer, whose request has read the same rows once more: as
    many rows at the end of the tablet are skipped.
    """

    carried = per(Task, number(0, ROWS))

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """What it had read is not forgotten."""
        super().lose_leader(task)
        self.carried[task] = self.read[task]

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """Both count."""
        require(self.request[task] == Request.answered, "an answer is there")
        self.recorded[task] = least(self._reached(task) + self.carried[task], ROWS)
        self.carried[task] = 0
        self._end(task)


@known_bug(
    "002-246",
    "design document 002, Waiting for pending transactions to finish",
    breaks=BackfillSafeTime.answers_end_no_transaction,
)
class ScansEndTransactions(BackfillSafeTime):
    """A tablet that is scanned drops what is pending, though it would have written its entries."""

    @action(by=SAFE_TIME_TABLET, fair=WEAK)
    def scan(self, t: Term[Tablet]) -> None:
        """Nothing is pending on it any more."""
        super().scan(t)
        pending = self.transaction[t] == Transaction.pending
        self.transaction[t] = choose(pending, Transaction.aborted, self.transaction[t])


BUGS = known_bugs_in(globals())
