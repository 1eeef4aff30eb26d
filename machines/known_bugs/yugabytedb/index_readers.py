"""Mistakes that design document 002 rules out, and that readers, servers or other indexes put up with."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    BackfillThrottle,
    Request,
    Task,
)
from stagewright.machines.yugabytedb.backfill.backfill_versions import BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, POSTGRES
from stagewright.machines.yugabytedb.indexes.index_life import IndexLife, Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_rows import HybridTime, Row, Stored, Value
from stagewright.machines.yugabytedb.indexes.index_states import Flags, Permission
from stagewright.spec import Bool, Term, action, choose, every, only_when, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

GOAL = 'design document 002: "consistent with the data in the primary table"'


@known_bug(
    "002-15", GOAL, breaks=BackfillVersions.no_orphan_entry, budgets={BackfillVersions.writes: 1}
)
class ReadersLookIntoTheTable(BackfillVersions):
    """A reader looks whether the row is as its entry says. So nobody minds delete markers that go too early."""

    @action(by=CLIENT)
    def read_index(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> None:
        """A client looks a value up, and what it finds in the table, too."""
        require(self.permission.column(lambda p: p.read), "the index serves reads")
        require(self._is_kept(time), "the read point is in history")
        self._may_use_the_index(time)
        there = self._row_at(r, time) == v
        found = (self._entry_at(r, v, time) == Stored.live) & there
        self.wrong_read = self.wrong_read | (found != there)

    def _may_reclaim_markers(self) -> Bool:
        return self.permission.column(lambda p: p.kept)


@known_bug(
    "002-16", GOAL, breaks=BackfillVersions.no_missing_entry, budgets={BackfillVersions.writes: 1}
)
class ReadersScanTheTable(BackfillVersions):
    """A reader that finds nothing scans the table. So the index is published before it is built."""

    @action(by=CLIENT)
    def read_index(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> None:
        """A client looks a value up, in the table where the index does not have it."""
        require(self.permission.column(lambda p: p.read), "the index serves reads")
        require(self._is_kept(time), "the read point is in history")
        self._may_use_the_index(time)
        there = self._row_at(r, time) == v
        found = (self._entry_at(r, v, time) == Stored.live) | there
        self.wrong_read = self.wrong_read | (found != there)

    @BackfillVersions.permission.step(
        Permission.do_backfill, Permission.read_write_and_delete, by=MASTER, fair=WEAK
    )
    def publish(self) -> None:
        """The index serves reads."""


@known_bug(
    "002-17",
    'design document 002: the command should otherwise "abort and result in a failure"',
    breaks=IndexPermissions.builds_end,
)
class DropOnlyStopsTheJob(IndexPermissions):
    """DROP INDEX of an index that is backfilled ends its job, and then nobody removes it: it takes a second one."""

    @action(by=CLIENT)
    def drop_index(self) -> None:
        """The job is stopped; without one the index is on its way out."""
        require(self.permission.column(lambda p: p.kept), "the index is there, and to stay")
        running = self.job == Job.running
        old, removing = self.permission, Permission.write_and_delete_while_removing
        self.drop_requested = True
        self.job = Job.none
        self.version = choose(running, self.version, self.version + 1)
        self.permission = choose(running, old, removing)
        self.fully_applied = choose(running, self.fully_applied, old)
        self.reported = choose(running, self.reported, frozenset())

    def _is_to_be_built(self) -> None:
        super()._is_to_be_built()
        require(~self.drop_requested, "no client has dropped the index")


@known_bug(
    "002-18",
    "design document 002: the maximum number of backfill operations on any YB-TServer",
    breaks=BackfillThrottle.free_slots_are_given,
)
class SlotsAreFreeWhenTheMasterHasHeard(BackfillThrottle):
    """No slot is given anywhere while the master has an answer to record."""

    def _has_free_slot(self, task: Term[Task]) -> Bool:
        recorded = every(self.request[t] != Request.answered for t in Task)
        return super()._has_free_slot(task) & recorded


@known_bug(
    "002-19",
    'design document 002: several indexes of a table are added "at the same time"',
    breaks=PostgresIndex.indexes_do_not_wait_for_each_other,
)
class OneIndexAfterTheOther(PostgresIndex):
    """While an index of the table waits for its backfill, no other one gets a version."""

    @action(by=MASTER)
    def alter_another_index(self) -> None:
        """Another index moves on, beside one that is not about to be backfilled."""
        require(self.permission != Permission.do_backfill, "no index waits for its backfill")
        super().alter_another_index()


@known_bug(
    "002-85",
    'design document 002: the backfill begins when "all the schema changes converge"',
    breaks=PostgresIndex.backfill_waits_for_every_backend,
)
class BackendsAreWaitedForAtTheEnd(PostgresIndex):
    """Postgres waited for its backends before queries could use the index, and not before the backfill: rows that they had
    written meanwhile without an entry were behind the scan.
    """

    @IndexLife.permission.step(
        Permission.write_and_delete, Permission.do_backfill, by=POSTGRES, fair=WEAK
    )
    def allow_backfill(self) -> None:
        """Every server has the permission: postgres asks for the backfill."""
        only_when(self.era.do_backfill)
        self._is_ready()
        self._all_reported()
        self._enter()

    @PostgresIndex.flags.step(Flags.indisready, Flags.indisvalid, by=POSTGRES, fair=WEAK)
    def make_valid(self) -> None:
        """The master says that the index is built, and every backend maintains it."""
        require(self.permission == Permission.read_write_and_delete, "the index is built")
        self._wait_for_backends()


@known_bug(
    "002-181",
    'design document 002, READ_WRITE_AND_DELETE: the index "can be used to serve reads"',
    breaks=PostgresIndex.valid_indexes_are_used,
)
class AnswersOfPostgresAreErrors(PostgresIndex):
    """Postgres answers to the last chunk that no row is left, which the master took for an error: it failed each index."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The rows of all tablets are in the index, and the job fails."""
        require(self.job == Job.running, "the job is running")
        require(~self.violates_constraint, "no row violates a constraint")
        self.job = Job.failed


BUGS = known_bugs_in(globals())
