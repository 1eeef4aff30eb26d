"""The backfill job of one table, and what it promises while the master leader changes and writes fail.

`backfill_chunks.py` and `backfill_rpcs.py` put keys and messages around the one step that takes long;
`backfill_safe_time.py`, `backfill_split.py`, `backfill_leaders.py` and `backfill_throttle.py` look more closely
at others.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_states import (
    Checkpoint,
    HybridTime,
    InJob,
    Step,
    TableState,
)
from stagewright.machines.yugabytedb.backfill.backfill_steps import BackfillSteps
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    Index,
    Tablet,
    next_permission,
    progress_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    Bool,
    LeadsTo,
    Term,
    always_reachable,
    equivalent_step,
    equivalents,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    only_when,
    step_property,
)


class BackfillJob(BackfillSteps):
    """Indexes are created and dropped, and one job at a time backfills those that wait for it.

    Under `yugabyte-2026` every promise holds. Under `yugabyte-2.x` `published_indexes_are_left_alone` fails:
    checkpoints and job are erased in two writes, and a leader that comes in between begins the whole backfill
    anew (yugabyte-db #33133). Under `seed` `rows_are_scanned_at_one_time` fails: the master keeps the read
    time to itself, so after a change of the leader the rest of the rows is scanned at another time.
    """

    two_writes = equivalents(
        equivalent_step(
            BackfillSteps.step,
            Step.clear_job,
            tuple(Step),
            because="only yugabyte-2.x clears the job in a write of its own",
        )
    )

    # -- promises ------------------------------------------------------------------------------------------

    @step_property
    def publishing_waits_for_all_tablets(
        self, after: Self, i: Term[Index], t: Term[Tablet]
    ) -> Bool:
        """002: "the YB-Master needs to wait for the backfill to complete on all the tablets before updating
        the table to the READ_WRITE_AND_DELETE state".
        """
        readable = Permission.read_write_and_delete
        published = (self.permission[i] != readable) & (after.permission[i] == readable)
        return published.implies(self.checkpoint[t][i] == Checkpoint.done)

    @step_property
    def schema_changes_converge_first(self, after: Self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002: "Once all the schema changes are propagated to all the nodes, the index state is updated from
        DELETE_ONLY to WRITE_AND_DELETE. Once all the schema changes converge, the index state finally gets
        set to DB_REORG." The same holds on the way out.
        """
        moved = self._moves(i) & (after.permission[i] == self.permission[i].column(next_permission))
        return moved.implies(self.known[t][i] == self.permission[i])

    @step_property
    def permissions_never_go_back(self, after: Self, i: Term[Index]) -> Bool:
        """An index at a permission "already past" another is not moved back to it; it goes on, or is gone."""
        gone = after.permission[i] == Permission.absent
        deleted = gone & (self.permission[i] == Permission.index_unused)
        forward = progress_of(after.permission[i]) >= progress_of(self.permission[i])
        return forward | deleted

    @invariant
    def backfill_begins_when_all_tablets_know(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002: "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill process";
        an index that is added later may not join it, for the read time is not valid for that one.
        """
        builds = self._left(i) & (self.permission[i] == Permission.do_backfill)
        return builds.implies(self.known[t][i] == Permission.do_backfill)

    @invariant
    def violated_constraints_fail_the_index(self, i: Term[Index]) -> Bool:
        """002: "If a problem arises while scanning the table, such as a unique constraint violation in a unique
        index, the CREATE INDEX command should abort and result in a failure."
        """
        return (self.unbuildable == i).implies(
            self.permission[i] != Permission.read_write_and_delete
        )

    @invariant
    def abandoned_indexes_are_not_published(self, i: Term[Index]) -> Bool:
        """002: "the CREATE INDEX command should abort and result in a failure", also when the job gives up."""
        published = self.permission[i] == Permission.read_write_and_delete
        return self.gave_up.has(i).implies(~published)

    @invariant
    def deleted_indexes_are_used_nowhere(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """An index table is deleted when no tablet writes to it any more."""
        deleted = self.permission[i] == Permission.absent
        unused = self.known[t][i].any_of(Permission.absent, Permission.index_unused)
        return deleted.implies(unused)

    @invariant
    def running_tables_are_altered_everywhere(self, t: Term[Tablet]) -> Bool:
        """An alter is completed when every tablet has the table's version."""
        return (self.table == TableState.running).implies(self._is_current(t))

    @invariant
    def only_what_failed_is_removed(self, i: Term[Index]) -> Bool:
        """Failure is per index (yugabyte-db #6290): the others of the job are built."""
        reason = (self.unbuildable == i) | self.dropped.has(i) | self.gave_up.has(i)
        removed = self.created.has(i) & self._is_removed(i)
        return removed.implies(reason)

    @step_property
    def checkpoints_are_kept(self, after: Self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """002: "The entire build process should not need to restart on a node failure in the cluster."""
        order = self.checkpoint[t][i].number_column(list(Checkpoint).index)
        new = after.checkpoint[t][i].number_column(list(Checkpoint).index)
        building = self.permission[i] == Permission.do_backfill
        return building.implies(new >= order)

    @step_property
    def published_indexes_are_left_alone(
        self, after: Self, t: Term[Tablet], i: Term[Index]
    ) -> Bool:
        """A leader that takes up a finished job does not scan the table again (yugabyte-db #33133)."""
        published = self.permission[i] == Permission.read_write_and_delete
        begun = after.checkpoint[t][i] == Checkpoint.in_the_middle
        return published.implies(~begun)

    @invariant
    def rows_are_scanned_at_one_time(self) -> Bool:
        """002: "the scan is performed at a fixed timestamp", "picked by the YB-Master and sent to all the
        tablets"; a new leader keeps it (yugabyte-db #3611).
        """
        return self.scanned_at.size() <= 1

    @step_property
    def rows_are_read_at_the_recorded_time(
        self, after: Self, t: Term[Tablet], i: Term[Index]
    ) -> Bool:
        """The read time is in the sys catalog before any row is read at it (yugabyte-db #3611)."""
        only_when(self.era.read_time_recorded)
        scanned = self.checkpoint[t][i] != after.checkpoint[t][i]
        scanned = scanned & (after.checkpoint[t][i] != Checkpoint.never_begun)
        return scanned.implies(self.read_time.is_some() & (self.chosen_time == self.read_time))

    @invariant
    def read_time_is_of_the_job(self) -> Bool:
        """The read time of one job is not valid for the indexes of the next."""
        return self.read_time.is_some().implies(self._job_exists())

    @invariant
    def delete_markers_are_retained(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002: "compactions for the Index table would not reclaim the delete markers until the backfill process
        is complete".
        """
        before = self.permission[i].any_of(
            Permission.delete_only, Permission.write_and_delete, Permission.do_backfill
        )
        incomplete = before & (self.checkpoint[t][i] != Checkpoint.done)
        return incomplete.implies(self.retains_delete_markers.has(i))

    @invariant
    def published_indexes_are_compacted(self, i: Term[Index]) -> Bool:
        """Delete markers of an index that serves reads can be reclaimed: that was allowed first."""
        published = self.permission[i] == Permission.read_write_and_delete
        return published.implies(~self.retains_delete_markers.has(i))

    @invariant
    def unfinished_work_is_recorded(self) -> Bool:
        """The table stays ALTERING as long as a new leader has something to resume (yugabyte-db #33207)."""
        settled = every(self._is_settled(i) for i in Index)
        idle = settled & ~self._job_exists() & ~self.is_backfilling
        return (self.table == TableState.running).implies(idle)

    @invariant
    def splitting_is_off_only_during_a_job(self) -> Bool:
        """`is_backfilling` keeps tablets from splitting; it never outlives the job's steps (yugabyte-db #33009)."""
        return self.is_backfilling == (self.step != Step.none)

    @invariant
    def jobs_are_for_indexes_that_wait(self, i: Term[Index]) -> Bool:
        """Lemma: an index of a job was at DO_BACKFILL, and its permission has not gone back since."""
        known = (self.permission[i] != Permission.absent).implies(self.created.has(i))
        past = self.created.has(i) & self._is_removed(i)
        waits_or_past = past | self.permission[i].any_of(
            Permission.do_backfill, Permission.read_write_and_delete
        )
        asked = (self.job[i] != InJob.absent) | self.requested.has(i)
        published = self.permission[i] == Permission.read_write_and_delete
        return known & asked.implies(waits_or_past) & ~(self.requested.has(i) & published)

    @invariant
    def checkpoints_are_of_the_job(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """Lemma: there are no checkpoints without a job, nor past a row that no index may have."""
        begun = self.checkpoint[t][i] != Checkpoint.never_begun
        done = self.checkpoint[t][i] == Checkpoint.done
        of_job = begun.implies((self.job[i] != InJob.absent) & (self.step != Step.clear_job))
        return of_job & done.implies(self.unbuildable != i)

    @invariant
    def launched_indexes_are_ready(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """Lemma: a job that is being launched is the only one, and for indexes that every tablet knows."""
        unrecorded = self.step.any_of(Step.launch, Step.finish)
        only = unrecorded.implies(~self._job_exists())
        launching = (self.step == Step.launch).implies(~self.requested.is_empty())
        only = (
            only & launching & (~unrecorded & (self.step != Step.none)).implies(self._job_exists())
        )
        ready = (self.permission[i] == Permission.do_backfill).implies(
            self.known[t][i] == Permission.do_backfill
        )
        launched = self.requested.has(i).implies((self.step == Step.launch) & ready)
        return only & launched

    @invariant
    def indexes_are_judged_before_the_end(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """Lemma: past the tablets no index is in progress; success means that all tablets are done."""
        past = self.step.any_of(Step.allow_gc, Step.write_permissions, Step.clear_checkpoints)
        judged = past.implies(self.job[i] != InJob.in_progress)
        waits = self.permission[i] == Permission.do_backfill
        built = waits & (self.job[i] == InJob.success)
        published = self.permission[i] == Permission.read_write_and_delete
        published = published & (self.job[i] != InJob.absent)
        if self.era.cleared_at_once:
            built = built | published
        done = built.implies(self.checkpoint[t][i] == Checkpoint.done)
        return judged & done & published.implies(self.job[i] == InJob.success)

    @invariant
    def failures_have_reasons(self, i: Term[Index]) -> Bool:
        """Lemma: an index of a job fails for a reason, and only one that can be built succeeds."""
        reason = (self.unbuildable == i) | self.dropped.has(i) | self.gave_up.has(i)
        failed = (self.job[i] == InJob.failed).implies(reason)
        given_up = (self.job[i] == InJob.failed) | self._is_removed(i)
        given_up = given_up & self.created.has(i)
        failed = failed & self.gave_up.has(i).implies(given_up)
        return failed & (self.job[i] == InJob.success).implies(self.unbuildable != i)

    @invariant
    def permissions_are_written_before_the_end(self, i: Term[Index]) -> Bool:
        """Lemma: at J7 no index of the job waits any more."""
        cleared = self.step.any_of(Step.clear_checkpoints, Step.clear_job)
        waits = self.permission[i] == Permission.do_backfill
        return cleared.implies(~(waits & (self.job[i] != InJob.absent)))

    @invariant
    def the_clock_goes_on_while_rows_are_read(self) -> Bool:
        """Lemma: a time that is chosen after rows were read is another one."""
        return (self.clock == HybridTime.first) == self.scanned_at.is_empty()

    @invariant
    def the_chosen_time_is_the_recorded_one(self) -> Bool:
        """Lemma: rows are read at the time that is recorded."""
        only_when(self.era.read_time_recorded)
        same = self.chosen_time == self.read_time
        scans = (self.step == Step.backfill_tablets).implies(same & self.read_time.is_some())
        read = every(self.read_time == time for time in self.scanned_at)
        chooses = (self.step == Step.get_safe_time).implies(self.read_time.is_none())
        return scans & read & chooses

    @invariant
    def delete_markers_go_when_built(self, i: Term[Index]) -> Bool:
        """Lemma: until an index is built its delete markers are retained; before it is published they go."""
        before = self.permission[i].any_of(
            Permission.delete_only, Permission.write_and_delete, Permission.do_backfill
        )
        kept = (before & (self.job[i] != InJob.success)).implies(self.retains_delete_markers.has(i))
        allowed = (self.step == Step.write_permissions) & (self.job[i] == InJob.success)
        return kept & allowed.implies(~self.retains_delete_markers.has(i))

    @final
    def nothing_is_going_on(self) -> Bool:
        """A table whose indexes are usable or gone may stay as it is."""
        return self._is_clean()

    @always_reachable
    def every_index_can_be_usable_or_gone(self) -> Bool:
        """002: indexes are consistent "after the index builds are completed", and "an aborted index will be
        cleaned up and deleted": whatever happened, nothing of a job need be left.
        """
        return self._is_clean()

    @liveness
    def every_index_becomes_usable_or_is_deleted(self, i: Term[Index]) -> LeadsTo:
        """002: "An aborted index will be cleaned up and deleted"; all others are built."""
        return leads_to(self.created.has(i), self._is_settled(i))

    @liveness
    def dropped_indexes_are_deleted(self, i: Term[Index]) -> LeadsTo:
        """DROP INDEX takes effect, whether a job is running or not (yugabyte-db #20041)."""
        return leads_to(self.dropped.has(i), self.permission[i] == Permission.absent)

    @liveness
    def every_job_ends(self) -> LeadsTo:
        """002: it is possible "to query and determine the status (IN-PROGRESS, SUCCESS, FAILED)": the first of
        them does not last.
        """
        return leads_to(self._job_exists(), ~self._job_exists())

    @liveness
    def every_alter_ends(self) -> LeadsTo:
        """The table does not stay ALTERING (yugabyte-db #4930)."""
        return leads_to(self.table == TableState.altering, self.table == TableState.running)

    def _is_clean(self) -> Bool:
        settled = every(self._is_settled(i) for i in Index)
        erased = every(
            self.checkpoint[t][i] == Checkpoint.never_begun for t in Tablet for i in Index
        )
        running = self.table == TableState.running
        return settled & erased & running & ~self._job_exists() & ~self.is_backfilling
