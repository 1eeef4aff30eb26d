"""Mistakes by which a build is not begun, not given up, or not read, when it is to be; nothing else notices them."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_chunks import (
    TABLET,
    BackfillChunks,
    Until,
)
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import At, BackfillRpcs, Request
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import IndexRows, Row, Value
from stagewright.machines.yugabytedb.indexes.index_states import Flags
from stagewright.spec import Term, action, every, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ASYNCHRONOUS = 'design document 002: "The CREATE INDEX command is asynchronous"'
ABORTS = 'design document 002: the command "should abort and result in a failure"'


@known_bug("002-142", ASYNCHRONOUS, breaks=IndexPermissions.indexes_are_created_at_once)
class CreateLooksAtTheRows(IndexPermissions):
    """CREATE INDEX read the table first, and refused to begin where two rows shared a key."""

    @action(by=CLIENT)
    def create_index(self) -> None:
        """CREATE INDEX: the index table is made."""
        require(~self.violates_constraint, "no row violates a constraint")
        super().create_index()


@known_bug("002-143", ASYNCHRONOUS, breaks=PostgresIndex.indexes_are_created_at_once)
class PostgresLooksAtTheRows(PostgresIndex):
    """The same in YSQL, where postgres would scan the table under its own CREATE INDEX."""

    @action(by=POSTGRES)
    def create_index_in_postgres(self) -> None:
        """CREATE INDEX makes the index table."""
        require(~self.violates_constraint, "no row violates a constraint")
        super().create_index_in_postgres()


@known_bug("002-144", ABORTS, breaks=IndexPermissions.builds_are_given_up_at_any_time)
class JobsOfDroppedIndexesGoOn(IndexPermissions):
    """A job whose index was dropped could not be given up: it read the table to its end for nobody."""

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job cannot be done."""
        require(self.permission == self.backfilled_at(), "the index is being built")
        super().fail_backfill()


@known_bug(
    "002-145",
    ABORTS,
    breaks=BackfillJob.builds_are_given_up_at_any_time,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class ScansAreNotGivenUp(BackfillJob):
    """A job gave up while it waited for splits or for the safe time: a chunk that failed was tried for ever."""

    @action(by=MASTER, spends=BackfillJob.aborts)
    def give_up(self) -> None:
        """Splits or safe time take longer than is waited for."""
        require(self.step != Step.backfill_tablets, "no row is read yet")
        super().give_up()


@known_bug(
    "002-146",
    ABORTS,
    breaks=BackfillRpcs.builds_are_given_up_at_any_time,
    sizes={Index: 1},
    budgets={BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class TheLastAnswerIsWaitedFor(BackfillRpcs):
    """A job was given up when no request was on its way any more: one that hung held it up."""

    @action(by=MASTER, spends=BackfillRpcs.aborts)
    def give_up(self) -> None:
        """Too many retries, or CREATE INDEX is cancelled."""
        require(every(self.rpc[r].at == At.nowhere for r in Request), "no request is on its way")
        super().give_up()


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


@known_bug(
    "002-148",
    'design document 002: the index "can be used to serve reads"',
    breaks=PostgresRows.valid_indexes_are_read_at_any_time,
    budgets={IndexRows.writes: 0, IndexRows.drops: 0},
)
class ReadsWaitForEveryBackend(PostgresRows):
    """A backend that had read `indisvalid` used the index when every other one had read it, too."""

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client looks a value up in the index."""
        valid = every(self.index.cached[o] == Flags.indisvalid for o in Server)
        require(valid, "every backend knows that it is valid")
        super().read_index(s, r, value)


BUGS = known_bugs_in(globals())
