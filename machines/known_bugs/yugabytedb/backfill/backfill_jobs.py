"""Bugs of two jobs at once: what belongs to a table is kept for the leader, or the other way round."""

from __future__ import annotations

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import ANY, Term, action, choose, constant, one_of, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "Y23",
    "design document 002, design goals",
    breaks="jobs.scans_are_prepared_while_others_are_altered",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class LeaderScansOneTable(BackfillJobs):
    """The leader has one read time: a table asks for its own when no other one is scanned."""

    @action(by=MASTER, fair=WEAK)
    def find_no_splits(self, b: Term[BaseTable]) -> None:
        steps = (Step.get_safe_time, Step.backfill_tablets)
        scans = some(self.jobs[c].step.any_of(*steps) for c in BaseTable)
        require(~scans, "no other table is scanned")
        self.jobs[b].find_no_splits()


@known_bug(
    "Y24",
    "design document 002, fault tolerance using checkpointing",
    breaks="jobs.every_index_becomes_usable_or_is_deleted",
    sizes={Index: 1, Tablet: 1},
)
class NewLeaderTakesUpOneJob(BackfillJobs):
    """A new leader finds the recorded job of one table, and takes that of the other for running."""

    first = constant(one_of(BaseTable, init=ANY))  # that the new leader finds in the catalog

    @action(spends=BackfillJobs.faults)
    def fail_over(self) -> None:
        for c in BaseTable:
            self.jobs[c].step = Step.none
            self.jobs[c].requested = frozenset()
            self.jobs[c].chosen_time = None
            runs = self.jobs[c].is_backfilling & (self.first != c)
            self.jobs[c].is_backfilling = runs


@known_bug(
    "Y25",
    "design document 002, index backfill on a single tablet",
    breaks="jobs.rows_are_read_at_the_recorded_time",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class ReadTimeIsTheLeaders(BackfillJobs):
    """The leader remembers one read time, and forgets it when a job ends: the other one goes on without."""

    @action(by=MASTER, fair=WEAK)
    def finish(self, b: Term[BaseTable]) -> None:
        require(self.jobs[b].step == Step.finish, "the job is over")
        self.jobs[b].step = Step.none
        self.jobs[b].is_backfilling = False
        for c in BaseTable:
            self.jobs[c].chosen_time = None


@known_bug(
    "002-42",
    'design document 002: "the CREATE INDEX command should abort", of one table',
    breaks="jobs.only_what_failed_is_removed",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class FailuresAreTheLeaders(BackfillJobs):
    """An index cannot be built, and the leader fails what it has under way, of other tables, too."""

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, b: Term[BaseTable], t: Term[Tablet], i: Term[Index]) -> None:
        require(self.jobs[b].step == Step.backfill_tablets, "tablets are being backfilled")
        rest = self.jobs[b].checkpoint[t][i] == Checkpoint.in_the_middle
        violates = rest & (self.jobs[b].unbuildable == i)
        require((self.jobs[b].job[i] == Status.in_progress) & violates, "index cannot be built")
        for c in BaseTable:
            status = self.jobs[c].job[i]
            fails = status == Status.in_progress
            self.jobs[c].job[i] = choose(fails, Status.failed, status)


@known_bug(
    "002-66",
    'design document 002: "The CREATE INDEX command is asynchronous"',
    breaks="jobs.indexes_are_created_at_any_time",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class CreatingWaitsForTheOtherTable(BackfillJobs):
    """CREATE INDEX is refused while the leader builds an index of another table."""

    @action(by=CLIENT)
    def create_index(self, b: Term[BaseTable], i: Term[Index]) -> None:
        """CREATE INDEX of a table, unless another one has a job."""
        leads = some((c != b) & (self.jobs[c].step != Step.none) for c in BaseTable)
        require(~leads, "no job of another table is under way")
        super().create_index(b, i)


@known_bug(
    "002-136",
    'design document 002, Checkpointing: an answer says "how far it managed to successfully build"',
    breaks=BackfillJobs.a_step_changes_one_job,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class AnswersDoNotNameTheirTable(BackfillJobs):
    """An answer names the tablet by its number: it is recorded for the tablet of that number of each table."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, b: Term[BaseTable], t: Term[Tablet]) -> None:
        """A tablet has answered, and the table that it is of is found."""
        self.jobs[b].backfill_chunk(t)

    @action(by=MASTER)
    def hear_answer(self, t: Term[Tablet]) -> None:
        """A tablet has answered while all tables are scanned."""
        for b in BaseTable:
            self.jobs[b].backfill_chunk(t)


@known_bug(
    "002-240",
    'design document 002: it "does not require that the job be restarted if there is a leadership change"',
    breaks="jobs.recorded_jobs_are_taken_up",
    sizes={Index: 1, Tablet: 1},
)
class JobsAreTakenUpInTurn(BackfillJobs):
    """A new leader takes up the jobs that it finds one after the other: a table waits until the index of another is built."""

    @action(by=MASTER, fair=WEAK)
    def resume(self, b: Term[BaseTable]) -> None:
        """No other job is running."""
        others = some((o != b) & self.jobs[o].is_backfilling for o in BaseTable)
        require(~others, "no other job is running")
        self.jobs[b].resume()


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
