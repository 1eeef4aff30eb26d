"""Two tables whose indexes are built at once (002): each has its job, and one master leads both.

What a job is, and what it promises, is said in `backfill_job.py`. The masters keep jobs of several tables in one
catalog and in one memory, which is lost for all of them when another master becomes the leader; the tablet servers
share their slots among them (`backfill_throttle.py`).
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
    """The version of the jobs."""


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

    the_index = constant(one_of(Index, init=ANY))  # that is created

    @action(by=CLIENT)
    def create_index(self, b: Term[BaseTable], i: Term[Index]) -> None:
        """CREATE INDEX of a table."""
        bounded(self.the_index == i, "it is the index of the table")
        self.jobs[b].create_index(i)

    @action(spends=faults)
    def fail_over(self) -> None:
        """Another master becomes the leader, of all tables."""
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
        """002, Design Goals: an index is built without locking others out: two tables are scanned at once. A lemma: no step of a
        job waits for what another table is at.
        """
        return every(self._scans(b) for b in BaseTable)

    @sometimes(at={Index: 1, Tablet: 1, faults: 1})
    def a_new_leader_takes_up_both_jobs(self) -> Bool:
        """002, "Fault tolerance": what another leader has begun is gone on with, for every table."""
        return every(self._is_left(b) for b in BaseTable)

    def _is_left(self, b: Term[BaseTable]) -> Bool:
        recorded = some(self.jobs[b].job[i] == Status.in_progress for i in Index)
        return (self.jobs[b].step == Step.none) & recorded

    @step_property
    def a_step_is_of_one_job(self, after: Self, b: Term[BaseTable], c: Term[BaseTable]) -> Bool:
        """002, "Checkpointing": an answer tells how far one tablet came, of one table. Only another leader changes two jobs
        at once: by taking up neither of them yet.
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

    # -- what no promise can tell --------------------------------------------------------------------------

    beyond_the_default_scope = unexercised(
        vacuous(
            BackfillJob.abandoned_indexes_are_not_published,
            BackfillJob.dropped_indexes_are_deleted,
            because="no client drops an index, and no job gives up: backfill-job has that",
        ),
    )
