"""Mistakes put back into `BackfillChunks`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_chunks import (
    TABLET,
    BackfillChunks,
    Row,
    Until,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    Bool,
    FlagVar,
    Number,
    SetOf,
    Term,
    action,
    choose,
    flag,
    only_when,
    require,
    some,
)
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CALM: dict[BudgetName, int | None] = {BackfillChunks.lost: 0, BackfillChunks.failovers: 0}
CHECKPOINTS = "design document 002, Fault tolerance using checkpointing"


# -- what goes wrong -------------------------------------------------------------------------------


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


@known_bug(
    "002-355",
    'design document 002, "Checkpointing"',
    breaks=BackfillChunks.only_the_last_chunk_is_repeated,
    sizes={Index: 1},
    budgets={BackfillChunks.failovers: 2},
)
class TheThirdLeaderReadsNoCheckpoint(BackfillChunks):
    """The checkpoints are read as a leader comes for the first time; the next one begins at the start of the tablet."""

    elected: FlagVar = flag()

    @action(spends=BackfillChunks.failovers)
    def fail_over(self) -> None:
        again = self.elected
        for i in Index:
            self.reached[i] = choose(again, Until.never_begun, self.until[i])
        self._end_chunk()
        self.elected = True


@known_bug(
    "Y17",
    "design document 002",
    breaks=BackfillChunks.a_page_is_read_once_for_all_indexes,
    budgets={BackfillChunks.lost: 0, BackfillChunks.failovers: 0},
)
class OneRowAWrite(BackfillChunks):
    """Each row has a request and a write of its own: nothing is batched."""

    def _is_page(self, page: SetOf[Row]) -> Bool:
        return super()._is_page(page) & (page.size() == 1)


@known_bug(
    "002-359",
    'design document 002: "the status (IN-PROGRESS, SUCCESS, FAILED)"',
    breaks=BackfillChunks.results_are_for_good,
    sizes={Index: 1},
)
class TheNextLeaderTriesAgain(BackfillChunks):
    """A new leader finds an index that has failed, and has it backfilled on from its checkpoint."""

    @action(spends=BackfillChunks.failovers)
    def fail_over(self) -> None:
        super().fail_over()
        for i in Index:
            failed = self.job[i] == Status.failed
            self.job[i] = choose(failed, Status.in_progress, self.job[i])


@known_bug(
    "002-360",
    "design document 002, Detecting constraint violations",
    breaks=BackfillChunks.keys_are_not_taken_from_other_rows,
    budgets=CALM,
)
class KeysAreCountedAtTheEnd(BackfillChunks):
    """The entries of a tablet are written as they come, and counted when all are there: the last row of a key has it."""

    def _no_row_violates(self, page: SetOf[Row], late: Term[Index] | None) -> None:
        """Nobody looks yet."""

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, i: Term[Index], row: Term[Row]) -> None:
        """The index has all entries, and fewer keys than rows."""
        require(self.job[i] == Status.in_progress, "index is in progress")
        require(self.duplicate[i] == row, "row violates its constraint")
        require(self.reached[i] == Until.end, "all entries are there")
        self._fail(i)

    def _tablet_is_done(self) -> None:
        """Nothing is left to be counted."""
        super()._tablet_is_done()
        uncounted = some(
            (self.job[i] == Status.in_progress) & self.duplicate[i].is_some() for i in Index
        )
        require(~uncounted, "every index has a key for each row")


@known_bug(
    "Y30",
    "design document 002, Fault tolerance using checkpointing",
    breaks=BackfillChunks.checkpoints_only_advance,
)
class TheLastAnswerIsTheCheckpoint(BackfillChunks):
    """An answer is recorded for all indexes of the job: also for one that has come further, as another has been late."""

    def _came_further(self, i: Term[Index]) -> Bool:
        return (self.job[i] == Status.in_progress) & (self.late != i)


@known_bug(
    "Z13",
    "yugabyte-db #5031",
    breaks=(
        BackfillChunks.built_indexes_are_complete,
        BackfillChunks.checkpoints_tell_what_is_built,
    ),
    sizes={Index: 1},
    budgets={BackfillChunks.lost: 0, BackfillChunks.failovers: 0},
)
class OnePageIsTheWholeTablet(BackfillChunks):
    """The tablet server reads the first page of 1,024 rows, finds it consumed, and answers that all is done."""

    def _answered_until(self, stop: Term[Until]) -> Term[Until]:
        return Term.of(Until.end)


@known_bug(
    "Z38",
    "yugabyte-db backfill_index.cc, BackfillTablet: read, not reported",
    breaks=(BackfillChunks.built_indexes_are_complete,),
    budgets={BackfillChunks.lost: 0},
)
class TheEmptyKeySortsFirst(BackfillChunks):
    """A tablet goes on from the least checkpoint of its indexes, compared as strings. "Done" is the empty
    string, which is the least of all: one index that is done ends the tablet for the others.
    """

    def _tablet_is_done(self) -> None:
        done = some(
            (self.job[i] == Status.in_progress) & (self.reached[i] == Until.end) for i in Index
        )
        require(done, "the least checkpoint is empty")


@known_bug(
    "Z43",
    "yugabyte-db #6290",
    breaks=(BackfillChunks.failure_is_per_index,),
    budgets={BackfillChunks.lost: 0, BackfillChunks.failovers: 0},
)
class OneFailureFailsAll(BackfillChunks):
    """A chunk answers that one index failed, and all indexes of the job are marked as failed."""

    def _fail(self, i: Term[Index]) -> None:
        for other in Index:
            in_progress = self.job[other] == Status.in_progress
            self.job[other] = choose(in_progress, Status.failed, self.job[other])


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "Z34",
    "yugabyte-db #3627",
    breaks=(
        BackfillChunks.every_index_can_have_a_result,
        BackfillChunks.every_index_is_built_or_fails,
    ),
    sizes={Index: 1},
    budgets={BackfillChunks.lost: 1, BackfillChunks.failovers: 0},
)
class FailedRequestsAreForgotten(BackfillChunks):
    """The RPC of a chunk fails. It is neither tried again nor told to the job, which waits for ever."""

    @action(by=MASTER)
    def retry(self) -> None:
        """Nobody does."""
        only_when(False)


# -- who is refused, or waits ----------------------------------------------------------------------


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


BUGS = known_bugs_in(globals())
