"""Two tables whose indexes are built at the same time (002): each has its own job, and one master leader drives both.

`backfill_job.py` has what a job does and promises. The masters keep the jobs of all tables in one
sys catalog; the leader's memory of them is lost for all tables when another master becomes the
leader. The tablet servers share their slots among the jobs (`backfill_throttle.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Machine,
    Profile,
    Term,
    action,
    bounded,
    checked_alone,
    constant,
    every,
    fault_budget,
    lemma,
    many,
    one_of,
    profiles,
    scopes,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
)

REMOVED = tuple(permission for permission in Permission if permission.removed)


class BaseTable(Entity, scope=2):
    """A table with an index."""


@dataclass(frozen=True)
class MasterRelease(Profile):
    """The version of YugabyteDB, which the jobs follow."""


NEWEST = MasterRelease("yugabyte-2026")


class BackfillJobs(Machine):
    """The jobs of two tables, under one master leader."""

    release = profiles(NEWEST)
    faults = fault_budget(
        1, doc="changes of the master leader, and writes to the sys catalog that fail"
    )

    exercised_at = scopes({Index: 1}, {Index: 1, Tablet: 1, faults: 2})

    jobs = many(
        BackfillJob,
        over=BaseTable,
        without=(
            BackfillJob.drop_index,
            BackfillJob.give_up,
            # what a job does for several indexes: here each table has one
            BackfillJob.one_scan_is_for_all_indexes,
            BackfillJob.a_second_job_follows,
        ),
    )

    each_alone = checked_alone(jobs)

    the_index = constant(one_of(Index, init=ANY))  # the one that is created

    @action(by=CLIENT)
    def create_index(self, b: Term[BaseTable], i: Term[Index]) -> None:
        """A client runs CREATE INDEX on a table."""
        bounded(self.the_index == i, "it is the index of the table")
        self.jobs[b].create_index(i)

    @action(spends=faults)
    def fail_over(self) -> None:
        """Another master becomes the leader, for all tables at once."""
        for b in BaseTable:
            self.jobs[b].fail_over()

    def _scans(self, b: Term[BaseTable]) -> Bool:
        """The rows of the table are being read, and some are in the index."""
        begun = some(
            self.jobs[b].checkpoint[t][i] == Checkpoint.in_the_middle for t in Tablet for i in Index
        )
        return (self.jobs[b].step == Step.backfill_tablets) & begun

    # -- promises ------------------------------------------------------------------------------------------

    @lemma
    @sometimes(at={Index: 1, Tablet: 1, faults: 0})
    def jobs_run_at_once(self) -> Bool:
        """002, Design Goals: an index build locks nobody out, nor another index build: two tables
        are scanned at the same time. A lemma: no step of a job waits for the job of another table.
        """
        return every(self._scans(b) for b in BaseTable)

    @sometimes(at={Index: 1, Tablet: 1, faults: 1})
    def a_new_leader_takes_up_both_jobs(self) -> Bool:
        """002, "Fault tolerance": what the previous leader has begun can be continued, for every table."""
        return every(self._is_left(b) for b in BaseTable)

    def _is_left(self, b: Term[BaseTable]) -> Bool:
        recorded = some(self.jobs[b].job[i] == Status.in_progress for i in Index)
        return (self.jobs[b].step == Step.none) & recorded

    @step_property
    def a_step_changes_one_job(self, after: Self, b: Term[BaseTable], c: Term[BaseTable]) -> Bool:
        """002, "Checkpointing": an answer says how far one tablet of one table has got, so a step
        changes one job. Only a new leader changes two at once, and then neither of them runs yet.
        """
        both = self._changes(after, b) & self._changes(after, c)
        idle = (after.jobs[b].step == Step.none) & (after.jobs[c].step == Step.none)
        return ((b != c) & both).implies(idle)

    def _changes(self, after: Self, b: Term[BaseTable]) -> Bool:
        recorded = some(
            self.jobs[b].checkpoint[t][i] != after.jobs[b].checkpoint[t][i]
            for t in Tablet
            for i in Index
        )
        return (self.jobs[b].step != after.jobs[b].step) | recorded

    # -- harmless changes ----------------------------------------------------------------------------------

    beyond_the_default_scope = unexercised(
        vacuous(
            BackfillJob.abandoned_indexes_are_not_published,
            BackfillJob.dropped_indexes_are_deleted,
            because="no client drops an index here, and no job gives up: backfill-job has that",
        ),
    )
