"""The requests of the backfill job: late, refused, answered for a job that is over, or to a master that is gone.

A tablet server handles a request by what it knows of the indexes, which may be older or newer than what the
master knew when it asked. Here each tablet is one chunk; `backfill_chunks.py` has its rows.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.backfill_states import YUGABYTE_2, YUGABYTE_2026, InJob
from stagewright.machines.backfill_table import CLIENT, MASTER, WEAK, Index, number_of
from stagewright.machines.index_states import Permission
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    Record,
    SetVar,
    Term,
    action,
    budget,
    choose,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    only_when,
    per,
    profiles,
    reachable,
    record,
    require,
    set_of,
    some,
    step_property,
)

TABLET = Actor("tablet leader")
NETWORK = Actor("network")
MAX_JOBS = 2  # as many as indexes
NOBODY = 0  # the job of a request whose master is not the leader any more


class Request(Entity, scope=2):
    """A BackfillIndex request that may be on its way."""


class At(Enum):
    """Where a request is, and how it was answered."""

    nowhere = auto()
    sent = auto()
    backfilled = auto()  # OK
    past = auto()  # OK: all its indexes have moved past DO_BACKFILL, so nothing is left to do
    refused = auto()  # MISMATCHED_SCHEMA: an index "is not ready to backfill"


class Phase(Enum):
    """Where the master leader is with the job."""

    none = auto()
    asks = auto()  # J3
    write_permissions = auto()  # J6
    clear_checkpoints = auto()  # J7a
    clear_job = auto()  # J7b


class Rpc(Record):
    """A request: whose it is, what it asks for, and its answer."""

    at = one_of(At, init=At.nowhere)
    job = number(NOBODY, MAX_JOBS)
    indexes = set_of(Index)


class BackfillRpcs(Machine):
    """Jobs follow one another while requests of earlier ones are still on their way.

    Under `yugabyte-2.x` checkpoints are erased before the job is, so a new leader asks again for what is done.
    """

    era = profiles(YUGABYTE_2, YUGABYTE_2026)
    aborts = budget(1, doc="DROP INDEX, and jobs that give up on their tablets")
    late = budget(
        1, doc="requests that are lost, or for which the master does not wait long enough"
    )
    changes = budget(1, doc="changes of the leader, of the masters or of the tablet")

    # in the sys catalog
    permission = per(Index, one_of(Permission, init=Permission.write_and_delete))
    job = per(Index, one_of(InJob, init=InJob.absent))
    done: SetVar[Index] = set_of(Index)  # `backfilled_until` is the end of the tablet
    # the master leader
    phase: OneVar[Phase] = one_of(Phase, init=Phase.none)
    job_id: NumberVar = number(NOBODY, MAX_JOBS)
    waiting: FlagVar = flag()  # for an answer
    # on the wire
    rpc = per(Request, record(Rpc))
    # the tablet
    known = per(Index, one_of(Permission, init=Permission.write_and_delete))
    built: SetVar[Index] = set_of(Index)  # each row has its entry
    # what befalls the indexes
    dropped: SetVar[Index] = set_of(Index)
    gave_up: SetVar[Index] = set_of(Index)

    # -- the table -------------------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def alter_to_do_backfill(self, i: Term[Index]) -> None:
        """The index has gone through its other permissions; this is the next."""
        require(self.permission[i] == Permission.write_and_delete, "index is at WRITE_AND_DELETE")
        self.permission[i] = Permission.do_backfill

    @action(by=CLIENT, spends=aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """DROP INDEX, also in the middle of a job."""
        require(self._is_before_removal(i), "index is not being removed yet")
        self.permission[i] = Permission.write_and_delete_while_removing
        self.dropped.add(i)

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        """The tablet has learned that the index is being removed: after more such rounds it is gone."""
        removing = Permission.write_and_delete_while_removing
        require((self.permission[i] == removing) & (self.known[i] == removing), "all know")
        self.permission[i] = Permission.absent
        self.built.discard(i)

    @action(by=TABLET, fair=WEAK)
    def learn(self, i: Term[Index]) -> None:
        """The tablet leader applies the alter."""
        require(self.known[i] != self.permission[i], "tablet leader is behind")
        self.known[i] = self.permission[i]

    @action(spends=changes)
    def change_tablet_leader(self, i: Term[Index]) -> None:
        """A replica that has yet to apply the alter to DO_BACKFILL becomes the tablet's leader."""
        require(self.known[i] == Permission.do_backfill, "tablet leader knows of the backfill")
        self.known[i] = Permission.write_and_delete

    # -- the master leader -------------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def launch(self) -> None:
        """Indexes wait, and every tablet knows: a job of its own for them."""
        require(self.phase == Phase.none, "no job is running")
        require(~self._job_exists(), "no job is recorded")
        require(some(self._may_join(i) for i in Index), "an index waits, and every tablet knows")
        require(self.job_id < MAX_JOBS, "each index is in one job")
        self.phase = Phase.asks
        self.job_id = self.job_id + 1
        for i in Index:
            self.job[i] = choose(self._may_join(i), InJob.in_progress, InJob.absent)

    @action(by=MASTER, fair=WEAK)
    def resume(self) -> None:
        """A new leader finds a job recorded, and goes on with it."""
        require(self.phase == Phase.none, "no job is running")
        require(self._job_exists(), "a job is recorded")
        self.phase = Phase.asks

    @action(by=MASTER, fair=WEAK)
    def ask(self, r: Term[Request]) -> None:
        """BackfillChunk: the tablet's leader is asked to backfill the indexes that have not failed."""
        require((self.phase == Phase.asks) & ~self.waiting, "job has nothing on its way")
        require(some(self._is_to_do(i) for i in Index), "tablet is not done")
        require(self.rpc[r].at == At.nowhere, "request is a new one")
        self.waiting = True
        self.rpc[r].at = At.sent
        self.rpc[r].job = self.job_id
        for i in Index:
            self.rpc[r].indexes.put(i, self._left(i))

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, r: Term[Request]) -> None:
        """The answer is OK: the tablet is done for the indexes that the job still builds."""
        self._is_for_this_job(r)
        require(self.rpc[r].at.any_of(At.backfilled, At.past), "answer is OK")
        for i in Index:
            self.done.put(i, self.done.has(i) | (self._left(i) & self._tells_the_end(r)))
        self.waiting = False
        self._forget(r)

    @action(by=MASTER, fair=WEAK)
    def judge_refusal(self, r: Term[Request]) -> None:
        """Not ready: an index that is dropped fails, and is not asked for again; the others are tried again."""
        self._is_for_this_job(r)
        require(self.rpc[r].at == At.refused, "answer is a refusal")
        for i in Index:
            self.job[i] = choose(self._left(i) & self._is_hopeless(i), InJob.failed, self.job[i])
        self.waiting = False
        self._forget(r)

    @action(by=MASTER, fair=WEAK)
    def ignore(self, r: Term[Request]) -> None:
        """An answer to a job that is over, or to a master that is not the leader any more."""
        rpc = self.rpc[r]
        require(~rpc.at.any_of(At.nowhere, At.sent), "request is answered")
        require((rpc.job != self.job_id) | (self.phase != Phase.asks), "nobody waits for it")
        self._forget(r)

    @action(by=NETWORK, spends=late)
    def time_out(self) -> None:
        """The master does not wait any longer and asks once more; the first request goes on."""
        require(self.waiting, "master waits")
        self.waiting = False

    @action(by=NETWORK, spends=late)
    def lose(self, r: Term[Request]) -> None:
        """A request, or its answer, is lost."""
        require(self.rpc[r].at != At.nowhere, "request is on its way")
        self._forget(r)

    @action(by=MASTER, fair=WEAK)
    def retry(self) -> None:
        """No answer will come: the master asks again."""
        mine = some(
            (self.rpc[r].at != At.nowhere) & (self.rpc[r].job == self.job_id) for r in Request
        )
        require(self.waiting & ~mine, "what the master waits for is lost")
        self.waiting = False

    @action(by=MASTER, spends=aborts)
    def give_up(self) -> None:
        """Too many retries, or CREATE INDEX is cancelled: the job's indexes fail, whatever is on its way."""
        require(self.phase == Phase.asks, "job is running")
        require(some(self._is_to_do(i) for i in Index), "tablet is not done")
        for i in Index:
            self.gave_up.put(i, self.gave_up.has(i) | self._left(i))
            self.job[i] = choose(self._left(i), InJob.failed, self.job[i])
        self.waiting = False

    @action(by=MASTER, fair=WEAK)
    def finish_tablets(self) -> None:
        """The tablet is done for every index that has not failed."""
        require(self.phase == Phase.asks, "job is running")
        require(~some(self._is_to_do(i) for i in Index), "tablet is done")
        for i in Index:
            self.job[i] = choose(self._left(i), InJob.success, self.job[i])
        self.waiting = False
        self.phase = Phase.write_permissions

    @action(by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        """J6: never back."""
        require(self.phase == Phase.write_permissions, "tablets are done")
        for i in Index:
            built, old = self.job[i] == InJob.success, self.permission[i]
            waits = (self.job[i] != InJob.absent) & (old == Permission.do_backfill)
            removing = Permission.write_and_delete_while_removing
            goal = choose(built, Permission.read_write_and_delete, removing)
            self.permission[i] = choose(waits, goal, old)
        self.phase = Phase.clear_checkpoints

    @action(by=MASTER, fair=WEAK)
    def clear_checkpoints(self) -> None:
        """J7a."""
        require(self.phase == Phase.clear_checkpoints, "permissions are written")
        self.done = frozenset()
        if self.era.cleared_at_once:
            self._clear_job()
        else:
            self.phase = Phase.clear_job

    @action(by=MASTER, fair=WEAK)
    def clear_job(self) -> None:
        """J7b."""
        only_when(not self.era.cleared_at_once)
        require(self.phase == Phase.clear_job, "checkpoints are erased")
        self._clear_job()

    @action(spends=changes)
    def fail_over(self) -> None:
        """Another master becomes the leader: nobody waits for the answers to the old one."""
        self.phase = Phase.none
        self.waiting = False
        for r in Request:
            self.rpc[r].job = NOBODY

    # -- the tablet server ---------------------------------------------------------------------------------------

    @action(by=TABLET, fair=WEAK)
    def backfill(self, r: Term[Request]) -> None:
        """Every index of the request is at DO_BACKFILL: read the rows and write their entries."""
        require(self.rpc[r].at == At.sent, "request is there")
        self._is_ready(r)
        self.rpc[r].at = At.backfilled
        self.built = self.built | self.rpc[r].indexes

    @action(by=TABLET, fair=WEAK)
    def find_all_past(self, r: Term[Request]) -> None:
        """Every index of the request has moved past DO_BACKFILL: nothing to do, which is OK."""
        require(self.rpc[r].at == At.sent, "request is there")
        require(
            every(self._is_past(i) for i in self.rpc[r].indexes),
            "every index has moved past DO_BACKFILL",
        )
        self.rpc[r].at = At.past

    @action(by=TABLET, fair=WEAK)
    def refuse(self, r: Term[Request]) -> None:
        """An index of the request is not there yet, or not any more."""
        require(self.rpc[r].at == At.sent, "request is there")
        past = every(self._is_past(i) for i in self.rpc[r].indexes)
        require(~self._all_at_do_backfill(r) & ~past, "an index is not ready, but not all are past")
        self.rpc[r].at = At.refused

    # -- what recurs -----------------------------------------------------------------------------------------------

    def _is_ready(self, r: Term[Request]) -> None:
        require(self._all_at_do_backfill(r), "every index of the request is at DO_BACKFILL")

    def _all_at_do_backfill(self, r: Term[Request]) -> Bool:
        return every(self.known[i] == Permission.do_backfill for i in self.rpc[r].indexes)

    def _is_past(self, i: Term[Index]) -> Bool:
        past = number_of(self.known[i]) > Permission.do_backfill.number
        return past | (self.known[i] == Permission.absent)

    def _is_for_this_job(self, r: Term[Request]) -> None:
        require(self.phase == Phase.asks, "job is running")
        require(self.rpc[r].job == self.job_id, "request is of this job")

    def _tells_the_end(self, r: Term[Request]) -> Bool:
        """An answer that is OK carries the key until which the tablet is done."""
        return self.rpc[r].at.any_of(At.backfilled, At.past)

    def _is_hopeless(self, i: Term[Index]) -> Bool:
        return ~self._is_before_removal(i)

    def _is_before_removal(self, i: Term[Index]) -> Bool:
        removing = Permission.write_and_delete_while_removing.number
        return (self.permission[i] != Permission.absent) & (
            number_of(self.permission[i]) < removing
        )

    def _may_join(self, i: Term[Index]) -> Bool:
        waits = self.permission[i] == Permission.do_backfill
        return waits & (self.known[i] == Permission.do_backfill)

    def _job_exists(self) -> Bool:
        return some(self.job[i] != InJob.absent for i in Index)

    def _left(self, i: Term[Index]) -> Bool:
        return self.job[i].any_of(InJob.in_progress, InJob.success)

    def _is_to_do(self, i: Term[Index]) -> Bool:
        return self._left(i) & ~self.done.has(i)

    def _forget(self, r: Term[Request]) -> None:
        self.rpc[r].at = At.nowhere
        self.rpc[r].job = NOBODY
        self.rpc[r].indexes = frozenset()

    def _clear_job(self) -> None:
        for i in Index:
            self.job[i] = InJob.absent
        self.phase = Phase.none

    # -- promises ----------------------------------------------------------------------------------------------------

    @invariant
    def published_indexes_are_complete(self, i: Term[Index]) -> Bool:
        """002: "After the index builds are completed, they should be consistent with the data": also when answers
        to another job arrive (yugabyte-db #20510).
        """
        published = self.permission[i] == Permission.read_write_and_delete
        return published.implies(self.built.has(i))

    @step_property
    def chunks_run_only_at_do_backfill(self, after: Self, i: Term[Index]) -> Bool:
        """002: "DB_REORG: This is the state where the YB-TServers actually perform the backfill"; an index that is
        being removed gets no new entries (yugabyte-db #33123).
        """
        written = after.built.has(i) & ~self.built.has(i)
        return written.implies(self.known[i] == Permission.do_backfill)

    @invariant
    def only_what_failed_is_removed(self, i: Term[Index]) -> Bool:
        """A refusal fails the index that was dropped; the others of the job are built (yugabyte-db #20041)."""
        reason = self.dropped.has(i) | self.gave_up.has(i)
        return self._is_before_removal(i) | reason

    @final
    def nothing_is_going_on(self) -> Bool:
        """Every index is usable or gone, and nothing of a job is left."""
        return self._is_clean()

    @reachable
    def every_index_can_be_usable_or_gone(self) -> Bool:
        """002: whatever happened, builds are completed, or "cleaned up and deleted"."""
        return self._is_clean()

    @liveness
    def every_index_becomes_usable_or_is_deleted(self, i: Term[Index]) -> LeadsTo:
        """002: "An aborted index will be cleaned up and deleted"; all others are built."""
        waits = self.permission[i] == Permission.do_backfill
        return leads_to(waits, self._is_settled(i))

    @liveness
    def every_job_ends(self) -> LeadsTo:
        """No chunk is asked for again and again."""
        return leads_to(self._job_exists(), ~self._job_exists())

    def _is_settled(self, i: Term[Index]) -> Bool:
        return self.permission[i].any_of(Permission.absent, Permission.read_write_and_delete)

    def _is_clean(self) -> Bool:
        settled = every(self._is_settled(i) for i in Index)
        idle = (self.phase == Phase.none) & ~self._job_exists() & self.done.is_empty()
        return settled & idle
