"""Mistakes put back into `BackfillJobs`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    ANY,
    FlagVar,
    Term,
    action,
    choose,
    constant,
    flag,
    one_of,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

LEADERS = 'design document 002, "Handling node restarts and leadership changes"'
CREATE_TABLE = 'design document 002, "Create the index table"'
FINALIZE = 'design document 002, "Finalize the index"'


# -- what goes wrong -------------------------------------------------------------------------------


def _no_other_is_scanned(jobs: BackfillJobs, b: Term[BaseTable]) -> None:
    """What several mistakes wait for: the scan of every other table is over."""
    step = Step.backfill_tablets
    require(~some((c != b) & (jobs.jobs[c].step == step) for c in BaseTable), "none is scanned")


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


# -- what is never done ----------------------------------------------------------------------------


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


# -- who is refused, or waits ----------------------------------------------------------------------


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


@known_bug(
    "002-262",
    'design document 002, "Handling node restarts and leadership changes"',
    breaks="jobs.indexes_that_wait_are_backfilled",
    sizes={Index: 1, Tablet: 1},
)
class JobsThatAreFoundComeFirst(BackfillJobs):
    """A new leader launches no job of its own until those that it has found are over, of whichever table."""

    elected = flag()

    @action(spends=BackfillJobs.faults)
    def fail_over(self) -> None:
        for b in BaseTable:
            self.jobs[b].fail_over()
        self.elected = True

    @action(by=MASTER, fair=WEAK)
    def launch(self, b: Term[BaseTable], i: Term[Index]) -> None:
        found = some(
            (b != c) & some(self.jobs[c].job[j].is_some() for j in Index) for c in BaseTable
        )
        require(~(self.elected & found), "no job that was found is left")
        self.jobs[b].launch(i)


@known_bug(
    "002-264",
    FINALIZE,
    breaks="jobs.built_indexes_wait_for_no_other",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class TablesArePublishedTogether(BackfillJobs):
    """An index that is built is published when no other table is scanned any more."""

    @action(by=MASTER, fair=WEAK)
    def write_permissions(self, b: Term[BaseTable]) -> None:
        step = Step.backfill_tablets
        scans = some((c != b) & (self.jobs[c].step == step) for c in BaseTable)
        require(~scans, "no other table is scanned")
        self.jobs[b].write_permissions()


@known_bug(
    "002-281",
    LEADERS,
    breaks="jobs.scans_that_are_found_go_on",
    sizes={Index: 1, Tablet: 1},
)
class ScansAreTakenUpInTurn(BackfillJobs):
    """A new leader takes up all jobs, and goes on with the scan of one table when that of another is over."""

    @action(by=MASTER, fair=WEAK)
    def take_recorded_time(self, b: Term[BaseTable]) -> None:
        """J1 of a job that was begun, when no other table is scanned."""
        _no_other_is_scanned(self, b)
        self.jobs[b].take_recorded_time()


@known_bug(
    "002-283",
    'design document 002, "Create the index table": the master "performs checks"',
    breaks="jobs.leaders_are_free_when_the_job_is_erased",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class JobsFinishTogether(BackfillJobs):
    """The leader is busy, and tablets do not split, until no table is scanned any more."""

    @action(by=MASTER, fair=WEAK)
    def finish(self, b: Term[BaseTable]) -> None:
        """J8, when no other table is scanned."""
        _no_other_is_scanned(self, b)
        self.jobs[b].finish()


@known_bug(
    "002-330",
    CREATE_TABLE,
    breaks="jobs.tables_are_altered_for_no_other",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class TablesAreAlteredTogether(BackfillJobs):
    """A table stays ALTERING as long as another one has a job."""

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self, b: Term[BaseTable]) -> None:
        busy = some((c != b) & (self.jobs[c].step != Step.none) for c in BaseTable)
        require(~busy, "no other table has a job")
        self.jobs[b].finish_alter()


@known_bug(
    "002-357",
    LEADERS,
    breaks="jobs.recorded_jobs_are_taken_up",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 2},
)
class TheThirdLeaderTakesUpOneJobATime(BackfillJobs):
    """After two changes of the leader jobs are taken up one after the other, the second when the first is over."""

    elected: FlagVar = flag()
    again: FlagVar = flag()

    @action(spends=BackfillJobs.faults)
    def fail_over(self) -> None:
        self.again = self.elected
        self.elected = True
        for b in BaseTable:
            self.jobs[b].fail_over()

    @action(by=MASTER, fair=WEAK)
    def resume(self, b: Term[BaseTable]) -> None:
        busy = some((c != b) & (self.jobs[c].step != Step.none) for c in BaseTable)
        require(~(self.again & busy), "no other job is running")
        self.jobs[b].resume()


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
    "002-401",
    'design document 002: HandleAlterTable() "initiates a schema change on all the nodes"',
    breaks="jobs.tablets_apply_versions_at_any_time",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class ServersThatScanApplyNothing(BackfillJobs):
    """A server applies no version of a table while another table is scanned."""

    @action(fair=WEAK)
    def apply_version(self, b: Term[BaseTable], t: Term[Tablet]) -> None:
        _no_other_is_scanned(self, b)
        self.jobs[b].apply_version(t)


@known_bug(
    "002-402",
    CREATE_TABLE,
    breaks="jobs.indexes_move_on_while_others_are_built",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class AltersWaitForTheOtherTable(BackfillJobs):
    """An index that was created while another table is scanned stays at DELETE_ONLY until that is done."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self, b: Term[BaseTable]) -> None:
        _no_other_is_scanned(self, b)
        self.jobs[b].launch_next_version()


@known_bug(
    "002-403",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks="jobs.unused_indexes_are_deleted_while_others_are_built",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class DeletionsWaitForTheOtherTable(BackfillJobs):
    """The table of an index that has failed is deleted when no other table is scanned."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, b: Term[BaseTable], i: Term[Index]) -> None:
        _no_other_is_scanned(self, b)
        self.jobs[b].delete_index(i)


BUGS = known_bugs_in(globals())
