"""Mistakes in what the master records of an index, or of a tablet, each caught by one promise alone (002)."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_split import TABLET, BackfillSplit, Piece
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, ReadTime, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    Tablet,
    next_permission,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Term, action, choose, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

STATES = "design document 002, Intermediate states of the index table"
CALM: dict[BudgetName, int | None] = {BackfillJob.aborts: 0, BackfillJob.faults: 0}


@known_bug(
    "002-75",
    STATES,
    breaks=BackfillJob.schema_changes_converge_first,
    sizes={Index: 1, Tablet: 1},
    budgets=CALM,
)
class TwoPermissionsAtOnce(BackfillJob):
    """An index at DELETE_ONLY is altered to DO_BACKFILL, under which tablets write and delete just the same."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """An alter is spared."""
        self._all_tablets_are_current()
        require(some(self._moves(i) for i in Index), "an index moves on")
        for i in Index:
            spared = self.permission[i] == Permission.delete_only
            moved = self.permission[i].column(next_permission)
            self.permission[i] = choose(spared, Permission.do_backfill, moved)
        self._bump_version()


@known_bug(
    "002-123",
    STATES,
    breaks=BackfillJob.schema_changes_converge_first,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class TwoPermissionsLess(BackfillJob):
    """An index that is removed is altered to INDEX_UNUSED at once: of two tablets, one may go on to write to it when the
    other does not delete any more.
    """

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """An alter is spared on the way out."""
        self._all_tablets_are_current()
        require(some(self._moves(i) for i in Index), "an index moves on")
        for i in Index:
            spared = self.permission[i] == Permission.write_and_delete_while_removing
            moved = self.permission[i].column(next_permission)
            self.permission[i] = choose(spared, Permission.index_unused, moved)
        self._bump_version()


@known_bug(
    "002-76",
    STATES,
    breaks=BackfillJob.what_one_tablet_writes_the_others_delete,
    sizes={Index: 1},
    budgets=CALM,
)
class CreatedAtWriteAndDelete(BackfillJob):
    """CREATE INDEX sets the index to WRITE_AND_DELETE: a tablet writes entries that others do not delete yet."""

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """The index is known at WRITE_AND_DELETE."""
        require(~self.created.has(i), "index is new")
        self.created.add(i)
        self.permission[i] = Permission.write_and_delete
        self.retains_delete_markers.add(i)
        self._bump_version()


@known_bug(
    "002-77",
    STATES,
    breaks=BackfillJob.what_one_tablet_reads_the_others_write,
    sizes={Index: 1},
    budgets={BackfillJob.faults: 0},
)
class DroppedIndexesAreNotWritten(BackfillJob):
    """DROP INDEX of an index that serves reads goes to DELETE_ONLY at once: who has not heard of it still reads."""

    @action(by=CLIENT, spends=BackfillJob.aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """The index is on its way out."""
        require(~self._is_removed(i), "index is not being removed yet")
        readable = self.permission[i] == Permission.read_write_and_delete
        goal = choose(readable, Permission.delete_only_while_removing, self.era.removal)
        self.dropped.add(i)
        self.permission[i] = goal
        self._bump_version()


@known_bug(
    "002-78",
    "design document 002, Checkpointing",
    breaks=BackfillJob.a_chunk_is_of_one_tablet,
    sizes={Index: 1},
    budgets=CALM,
)
class AnAnswerEndsOtherTablets(BackfillJob):
    """A tablet server answers that nothing is left, and every tablet that was begun is recorded as done."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet]) -> None:
        """The checkpoints of all tablets are written."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        self._is_next(t)
        blocked = some(self._is_blocked(t, i) for i in Index)
        require(~blocked, "no two rows with one key in a unique index")
        for time in self.chosen_time:
            self.scanned_at.add(time)
        self.clock = ReadTime.later
        for other in Tablet:
            for i in Index:
                here = self.checkpoint[other][i]
                begun = here == Checkpoint.in_the_middle
                first = choose(other == t, Checkpoint.in_the_middle, here)
                now = choose(begun, Checkpoint.done, first)
                self.checkpoint[other][i] = choose(self._is_to_do(other, i), now, here)


@known_bug(
    "002-79",
    "design document 002, Waiting for pending transactions to finish",
    breaks=BackfillJob.nobody_joins_a_scan,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class WhoWaitsJoinsTheNextLeader(BackfillJob):
    """A leader that takes a job up adds the indexes that wait by now, whose read time is the one that is recorded."""

    @BackfillJob.step.step(Step.none, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def resume(self) -> None:
        """All indexes that wait are built by one job."""
        self._may_begin()
        require(self._job_exists(), "a job is recorded")
        self.is_backfilling = True
        for i in Index:
            waits = (self.permission[i] == Permission.do_backfill) & self.job[i].is_none()
            self.job[i] = choose(waits, Status.in_progress, self.job[i])


@known_bug(
    "002-80",
    "design document 002, Backfill the data: the master waits for all the tablets",
    breaks=BackfillSplit.chunks_cover_the_table,
    sizes={Tablet: 1},
)
class BothChildrenInherit(BackfillSplit):
    """A tablet that was begun splits between two leaders. Both of its children count as done, and one was not read."""

    @action(by=TABLET, fair=WEAK)
    def finish_split(self, t: Term[Tablet]) -> None:
        """The children have the checkpoint of their parent."""
        super().finish_split(t)
        begun = self.checkpoint[t][Piece.parent] != Checkpoint.never_begun
        for child in (Piece.lower_child, Piece.upper_child):
            here = self.checkpoint[t][child]
            self.checkpoint[t][child] = choose(begun, Checkpoint.done, here)


@known_bug(
    "002-124",
    "design document 002, Backfill the data: the master waits for all the tablets",
    breaks=BackfillSplit.chunks_cover_the_table,
    sizes={Tablet: 1},
)
class ChildrenGoOnInTheMiddle(BackfillSplit):
    """A tablet splits between two leaders, and its children go on where it was: the upper one, too, of which nothing was
    read before that key.
    """

    @action(by=TABLET, fair=WEAK)
    def finish_split(self, t: Term[Tablet]) -> None:
        """The children have the checkpoint of their parent, as it is."""
        super().finish_split(t)
        for child in (Piece.lower_child, Piece.upper_child):
            self.checkpoint[t][child] = self.checkpoint[t][Piece.parent]


@known_bug(
    "002-135",
    "design document 002, Create the index table: another round of schema changes",
    breaks=BackfillJob.scans_wait_for_indexes_on_their_way,
    sizes={Tablet: 1},
    budgets=CALM,
)
class TheFirstIndexIsScannedFor(BackfillJob):
    """A job begins as one index is at DO_BACKFILL, though another, which was created with it, is a round behind."""

    @BackfillJob.step.step(Step.none, Step.launch, by=MASTER, fair=WEAK)
    def launch(self, i: Term[Index]) -> None:
        """An index is at DO_BACKFILL, whatever becomes of the others: a job is launched for it."""
        self._all_tablets_are_current()
        require(~self.is_backfilling, "no job is running")
        require(~self._job_exists(), "no job is recorded")
        require(self.permission[i] == Permission.do_backfill, "index waits for a backfill")
        self.is_backfilling = True
        for other in Index:
            self.requested.put(other, self._shares_the_scan(other, i))


BUGS = known_bugs_in(globals())
