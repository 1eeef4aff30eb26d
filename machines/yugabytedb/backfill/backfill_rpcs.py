"""The requests of the backfill job: late, refused, answered for a job that is over, or to a master that is gone.

A tablet server handles a request by what it knows of the indexes, which may be older or newer than what the
master knew when it asked. Here each tablet is one chunk; `backfill_chunks.py` has its rows.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_states import (
    YUGABYTE_2,
    YUGABYTE_2026,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    progress_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    choose,
    equivalent_drop,
    equivalent_helper,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    independent,
    invariant,
    known_violations,
    leads_to,
    liveness,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    violated,
)

TABLET = Actor("tablet leader")
NETWORK = Actor("network")
MAX_JOBS = 4  # more than a check has indexes
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
    """Where the master leader is with the job that is recorded."""

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
    """Jobs follow one another while requests of earlier ones are still on their way."""

    era = profiles(YUGABYTE_2, YUGABYTE_2026)
    aborts = budget(1, doc="DROP INDEX, and jobs that give up on their tablets")
    lost = fault_budget(1, doc="requests and answers that are lost")
    changes = fault_budget(1, doc="changes of the leader, of the masters or of the tablet")
    exercised_at = scopes(
        {Index: 1, aborts: 2},
        {lost: 0, changes: 0},
        {Request: 1},
        {Index: 1, aborts: 0, lost: 2, changes: 2},
    )

    # in the sys catalog
    permission = per(Index, one_of(Permission, init=Permission.write_and_delete))
    job = per(Index, optional(Status))
    done: SetVar[Index] = set_of(Index)  # `backfilled_until` is the end of the tablet
    job_id: NumberVar = number(NOBODY, MAX_JOBS)
    # the master leader
    phase: OneVar[Phase] = one_of(Phase, init=Phase.none)
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
        require(~self._is_removed(i), "index is not being removed yet")
        self.permission[i] = Permission.write_and_delete_while_removing
        self.dropped.add(i)

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        """The tablet knows that the index is being removed: after more such rounds it is gone."""
        removing = Permission.write_and_delete_while_removing
        require(self.permission[i] == removing, "index is being removed")
        require(self.known[i] == removing, "tablet knows that the index is being removed")
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
    def record_job(self) -> None:
        """Indexes wait, and every tablet knows: a job of its own is recorded for them."""
        require(~self._job_exists(), "no job is recorded")
        require(some(self._may_join(i) for i in Index), "an index waits, and every tablet knows")
        self.job_id = self.job_id + 1
        for i in Index:
            self.job[i] = choose(self._may_join(i), Term.of(Status.in_progress), None)

    @action(by=MASTER, fair=WEAK)
    def take_up(self) -> None:
        """The leader finds a job recorded that is not running, and runs it."""
        require(self.phase == Phase.none, "no job is running")
        require(self._job_exists(), "a job is recorded")
        self.phase = Phase.asks

    @action(by=MASTER, fair=WEAK)
    def ask(self, r: Term[Request]) -> None:
        """BackfillChunk: the tablet's leader is asked; and asked again, if an answer takes too long."""
        require(self.phase == Phase.asks, "job is running")
        require(some(self._is_to_do(i) for i in Index), "tablet is not done")
        require(self.rpc[r].at == At.nowhere, "request is a new one")
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
        self._forget(r)

    @action(by=MASTER, fair=WEAK)
    def handle_refusal(self, r: Term[Request]) -> None:
        """Not ready: an index that is dropped fails, and is not asked for again; the others are tried again."""
        self._is_for_this_job(r)
        require(self.rpc[r].at == At.refused, "answer is a refusal")
        for i in Index:
            hopeless = self._left(i) & self._is_hopeless(i)
            self.job[i] = choose(hopeless, Status.failed, self.job[i])
        self._forget(r)

    @action(by=MASTER, spends=aborts)
    def give_up(self) -> None:
        """Too many retries, or CREATE INDEX is cancelled: the job's indexes fail, whatever is on its way."""
        require(some(self.job[i] == Status.in_progress for i in Index), "an index is in progress")
        for i in Index:
            in_progress = self.job[i] == Status.in_progress
            self.gave_up.put(i, self.gave_up.has(i) | in_progress)
            self.job[i] = choose(in_progress, Status.failed, self.job[i])

    @action(by=MASTER, fair=WEAK)
    def finish_tablets(self) -> None:
        """J4: the tablet is done for every index that has not failed."""
        require(self.phase == Phase.asks, "job is running")
        require(~some(self._is_to_do(i) for i in Index), "tablet is done")
        for i in Index:
            self.job[i] = choose(self._left(i), Status.success, self.job[i])
        self.phase = Phase.write_permissions

    @action(by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        """J6: never back."""
        require(self.phase == Phase.write_permissions, "tablets are done")
        for i in Index:
            built, old = self.job[i] == Status.success, self.permission[i]
            waits = (self.job[i].is_some()) & (old == Permission.do_backfill)
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

    # -- faults --------------------------------------------------------------------------------------------------

    @action(spends=changes)
    def fail_over(self) -> None:
        """Another master becomes the leader: nobody waits for the answers to the old one."""
        self.phase = Phase.none
        for r in Request:
            self.rpc[r].job = NOBODY

    @action(by=NETWORK, spends=lost)
    def lose(self, r: Term[Request]) -> None:
        """A request, or its answer, is lost."""
        require(self.rpc[r].at != At.nowhere, "request is on its way")
        self._forget(r)

    @action(by=NETWORK, fair=WEAK)
    def ignore(self, r: Term[Request]) -> None:
        """What belongs to a job that is over, or to a master that is gone, is ignored in the end."""
        require(self.rpc[r].at != At.nowhere, "request is on its way")
        require(
            (self.rpc[r].job != self.job_id) | (self.phase != Phase.asks), "nobody waits for it"
        )
        self._forget(r)

    # -- the tablet server ---------------------------------------------------------------------------------------

    @action(by=TABLET, fair=WEAK)
    def handle(self, r: Term[Request]) -> None:
        """All indexes at DO_BACKFILL: backfill them. All past it: OK, nothing to do. Else: not ready."""
        require(self.rpc[r].at == At.sent, "request is there")
        ready, past = self._is_ready(r), every(self._is_past(i) for i in self.rpc[r].indexes)
        self.rpc[r].at = choose(ready, At.backfilled, choose(past, At.past, At.refused))
        new = choose(ready, self.rpc[r].indexes, frozenset())
        self.built = self.built | new

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _is_ready(self, r: Term[Request]) -> Bool:
        return every(self.known[i] == Permission.do_backfill for i in self.rpc[r].indexes)

    def _is_past(self, i: Term[Index]) -> Bool:
        return self.known[i].any_of(
            Permission.read_write_and_delete,
            Permission.write_and_delete_while_removing,
            Permission.absent,
        )

    def _is_for_this_job(self, r: Term[Request]) -> None:
        require(self.phase == Phase.asks, "job is running")
        require(self.rpc[r].job == self.job_id, "request is of this job")

    def _tells_the_end(self, r: Term[Request]) -> Bool:
        """An answer that is OK carries the key until which the tablet is done."""
        return self.rpc[r].at.any_of(At.backfilled, At.past)

    def _is_hopeless(self, i: Term[Index]) -> Bool:
        return self._is_removed(i)

    def _is_removed(self, i: Term[Index]) -> Bool:
        return self.permission[i].any_of(
            Permission.write_and_delete_while_removing, Permission.absent
        )

    def _may_join(self, i: Term[Index]) -> Bool:
        waits = self.permission[i] == Permission.do_backfill
        return waits & (self.known[i] == Permission.do_backfill)

    def _job_exists(self) -> Bool:
        return some(self.job[i].is_some() for i in Index)

    def _left(self, i: Term[Index]) -> Bool:
        """Not failed; under `yugabyte-2.x` a job that succeeded may be without checkpoints when taken up again."""
        return self.job[i].any_of(Status.in_progress, Status.success)

    def _is_to_do(self, i: Term[Index]) -> Bool:
        return self._left(i) & ~self.done.has(i)

    def _forget(self, r: Term[Request]) -> None:
        self.rpc[r].at = At.nowhere
        self.rpc[r].job = NOBODY
        self.rpc[r].indexes = frozenset()

    def _clear_job(self) -> None:
        for i in Index:
            self.job[i] = None
        self.phase = Phase.none

    # -- promises ----------------------------------------------------------------------------------------------------

    @accepts(drop_index)
    def indexes_are_dropped_at_any_time(self, i: Term[Index]) -> Bool:
        """DROP INDEX waits for no answer of a tablet, and for no job."""
        return ~self._is_removed(i)

    @sometimes
    def a_tablet_is_asked_again(self) -> Bool:
        """002, "Checkpointing": the master "issues futher RPCs as necessary": also while an earlier one is still on its way."""
        return every(
            (self.rpc[r].at == At.sent) & (self.rpc[r].job == self.job_id) for r in Request
        )

    @accepts(give_up)
    def builds_are_given_up_at_any_time(self) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table", the command "should abort and result in a
        failure": whatever is on its way, and whoever leads.
        """
        return some(self.job[i] == Status.in_progress for i in Index)

    @accepts(record_job)
    def jobs_wait_for_no_request(self) -> Bool:
        """002, "Backfill the data": "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill
        process": what is still on its way of an earlier job holds up no other.
        """
        free = every(self.job[i].is_none() for i in Index)
        do_backfill = Permission.do_backfill
        waits = some(
            (self.permission[i] == do_backfill) & (self.known[i] == do_backfill) for i in Index
        )
        return free & waits

    @accepts(take_up)
    def new_leaders_wait_for_no_request(self) -> Bool:
        """002, "Handling node restarts and leadership changes": a job need not "be restarted if there is a leadership change":
        the new leader goes on with it, and what the old one has asked for may come to an end beside it.
        """
        return (self.phase == Phase.none) & some(self.job[i].is_some() for i in Index)

    @accepts(record_checkpoint)
    def answers_are_recorded_as_they_come(self, r: Term[Request]) -> Bool:
        """002, "Checkpointing": the master "persists the checkpointing info" of one request, also while another hangs."""
        answered = self.rpc[r].at.any_of(At.backfilled, At.past)
        return (self.phase == Phase.asks) & answered & (self.rpc[r].job == self.job_id)

    @accepts(handle_refusal)
    def refusals_are_heard_as_they_come(self, r: Term[Request]) -> Bool:
        """002, "Checkpointing": the master "issues futher RPCs as necessary": what was refused is made again, or given up,
        without waiting for what else is on its way.
        """
        refused = (self.rpc[r].at == At.refused) & (self.rpc[r].job == self.job_id)
        return (self.phase == Phase.asks) & refused

    @accepts(handle)
    def requests_are_handled_as_they_come(self, r: Term[Request]) -> Bool:
        """002, "Checkpointing": servers handle "each of these RPC calls", also while the answer to another is on its way, which may be
        one that nobody waits for.
        """
        return self.rpc[r].at == At.sent

    @accepts(ask)
    def tablets_are_asked_beside_old_requests(self, r: Term[Request]) -> Bool:
        """002, "Backfill the data": the master issues "BackfillIndex() RPC calls to each tablet": those of an earlier job, or of
        another leader, need not have come to their end.
        """
        left = some((self.job[i] == Status.in_progress) & ~self.done.has(i) for i in Index)
        asked = some(
            (self.rpc[o].at != At.nowhere) & (self.rpc[o].job == self.job_id) for o in Request
        )
        return (self.phase == Phase.asks) & left & ~asked & (self.rpc[r].at == At.nowhere)

    @accepts(alter_to_do_backfill)
    def indexes_move_on_beside_requests(self, i: Term[Index]) -> Bool:
        """002, "Create the index table": "Once all the schema changes converge, the index state finally gets set to DB_REORG":
        whatever is on its way for other indexes.
        """
        return self.permission[i] == Permission.write_and_delete

    @accepts(write_permissions)
    def indexes_are_published_beside_requests(self) -> Bool:
        """002, "Finalize the index": "Once the index build is successfully completed on all the tablets of the table, the table state
        is updated": a tablet that was asked twice need not answer twice.
        """
        return self.phase == Phase.write_permissions

    @accepts(clear_checkpoints)
    def jobs_are_erased_beside_requests(self) -> Bool:
        """002, "Create the index table": as soon as a job is erased the master sees whether "another change is required": it
        waits for no answer, as the next job waits for none.
        """
        return self.phase == Phase.clear_checkpoints

    @accepts(delete_index)
    def removed_indexes_are_deleted_beside_requests(self, i: Term[Index]) -> Bool:
        """002, Design Goals: "An aborted index will be cleaned up and deleted": whatever is on its way, which finds the index
        gone, and whichever job it was one of.
        """
        removing = Permission.write_and_delete_while_removing
        return (self.permission[i] == removing) & (self.known[i] == removing)

    @accepts(finish_tablets)
    def the_first_answer_is_enough(self) -> Bool:
        """002, "Finalize the index": "Once the index build is successfully completed on all the tablets", nobody waits for
        another answer of a tablet that was asked twice.
        """
        undone = some(
            self.job[i].any_of(Status.in_progress, Status.success) & ~self.done.has(i)
            for i in Index
        )
        return (self.phase == Phase.asks) & ~undone

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
        return self._is_removed(i).implies(reason)

    @step_property
    def jobs_outlast_their_leaders(self, after: Self, i: Term[Index]) -> Bool:
        """002: "The backfill process itself does not require that the job be restarted if there is a leadership change":
        what is in progress as a leader goes, or comes, stays so.
        """
        changes = (self.phase == Phase.none) != (after.phase == Phase.none)
        left = self.job[i] == Status.in_progress
        return (changes & left).implies(after.job[i] == Status.in_progress)

    @invariant
    def cancelled_indexes_are_not_published(self, i: Term[Index]) -> Bool:
        """002: "the CREATE INDEX command should abort and result in a failure"."""
        published = self.permission[i] == Permission.read_write_and_delete
        return self.gave_up.has(i).implies(~published)

    @invariant
    def deleted_indexes_have_no_entries(self, i: Term[Index]) -> Bool:
        """002: "An aborted index will be cleaned up and deleted": no late request writes to it."""
        return (self.permission[i] == Permission.absent).implies(~self.built.has(i))

    @step_property
    def permissions_never_go_back(self, after: Self, i: Term[Index]) -> Bool:
        """002, "Intermediate states": an index "moves through the following 4 states", in their order and whoever leads, or is
        "cleaned up and deleted": what is on its way out does not come back, and what is gone is gone.
        """
        was_gone = self.permission[i] == Permission.absent
        gone = after.permission[i] == Permission.absent
        forward = progress_of(after.permission[i]) >= progress_of(self.permission[i])
        return (gone & self._is_removed(i)) | (forward & ~was_gone)

    @step_property
    def checkpoints_are_kept(self, after: Self, i: Term[Index]) -> Bool:
        """002, "Checkpointing": the master "persists the checkpointing info": a tablet that is done for an index is so until
        that has a result, whatever else is answered, and whoever leads.
        """
        builds = (self.job[i] == Status.in_progress) & (after.job[i] == Status.in_progress)
        return (builds & self.done.has(i)).implies(after.done.has(i))

    @invariant
    def nobody_joins_a_job(self, i: Term[Index]) -> Bool:
        """The job is for indexes that waited when it was recorded: its read time is not valid for others."""
        in_job = self.job[i].is_some()
        return in_job.implies(self.permission[i] != Permission.write_and_delete)

    @step_property
    def what_is_done_is_not_asked_for(self, after: Self, r: Term[Request]) -> Bool:
        """002: "The entire build process should not need to restart": a tablet that is done is left alone."""
        asks = (after.rpc[r].at == At.sent) & (self.rpc[r].at != At.sent)
        needs = some((self.job[i] == Status.in_progress) & ~self.done.has(i) for i in Index)
        return asks.implies(needs)

    @final
    def nothing_is_going_on(self) -> Bool:
        """Every index is usable or gone, and nothing of a job is left."""
        return self._is_clean()

    @always_reachable
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

    @liveness
    def dropped_indexes_are_deleted(self, i: Term[Index]) -> LeadsTo:
        """DROP INDEX takes effect, whether a job is running or not (yugabyte-db #20041)."""
        return leads_to(self.dropped.has(i), self.permission[i] == Permission.absent)

    @independent(learn, of=(job, done, job_id, phase, rpc, built, gave_up))
    def tablets_learn_beside_requests(self) -> None:
        """002, "Create the index table": "The HandleAlterTable() RPC call initiates a schema change on all the nodes": a tablet
        applies it whichever job is running, and whatever it was asked, or has answered.
        """

    def _is_settled(self, i: Term[Index]) -> Bool:
        return self.permission[i].any_of(Permission.absent, Permission.read_write_and_delete)

    def _is_clean(self) -> Bool:
        settled = every(self._is_settled(i) for i in Index)
        idle = (self.phase == Phase.none) & ~self._job_exists() & self.done.is_empty()
        return settled & idle

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            what_is_done_is_not_asked_for,
            under=YUGABYTE_2,
            because="checkpoints are erased before the job is, so a new leader asks again (yugabyte-db #33133)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            record_job, "2 for 1", because="any number that was not used yet names a job"
        ),
        equivalent_weakening(
            drop_index, "index is not being removed yet", because="dropping twice is dropping once"
        ),
        equivalent_helper(
            _is_removed,
            "permission[i] is write_and_delete_while_removing",
            because="dropping twice is dropping once, and an index that is asked for until it is gone fails then",
        ),
        equivalent_drop(delete_index, "index is being removed", because="what is gone stays so"),
        equivalent_drop(learn, "tablet leader is behind", because="there is nothing to apply"),
        equivalent_drop(
            change_tablet_leader,
            "tablet leader knows of the backfill",
            because="a fault: it may strike anywhere, or not at all",
        ),
        equivalent_loss(
            change_tablet_leader, known, because="a fault: it may strike anywhere, or not at all"
        ),
        equivalent_drop(
            ask, "job is running", because="whoever asks, the job that is recorded is the one to do"
        ),
        equivalent_drop(
            give_up,
            "an index is in progress",
            because="it changes nothing where no index is in progress",
        ),
        equivalent_weakening(
            finish_tablets,
            "tablet is done",
            because="only under yugabyte-2.x has a job that succeeded lost its checkpoints",
        ),
        equivalent_loss(
            fail_over,
            phase,
            Rpc.job,
            because="a fault that does not strike; an answer would be as good for the new leader",
        ),
        equivalent_drop(lose, "request is on its way", because="there is nothing to lose"),
        equivalent_drop(ignore, "request is on its way", because="there is nothing to ignore"),
        equivalent_drop(
            _is_for_this_job,
            "job is running",
            because="a job whose tablets are done loses nothing by one more answer",
        ),
        equivalent_drop(
            handle_refusal,
            "request is of this job",
            because="an index that is dropped fails, whoever asked",
        ),
        equivalent_loss(_forget, Rpc.at, because="an answer that comes twice does no harm"),
        equivalent_loss(_forget, Rpc.job, Rpc.indexes, because="the next request has its own"),
        equivalent_replacement(
            drop_index,
            "index is not being removed yet",
            because="dropping twice is dropping once",
        ),
        equivalent_replacement(
            record_checkpoint,
            "failed for success",
            because="only under yugabyte-2.x has a job that succeeded lost its checkpoints",
        ),
        equivalent_replacement(
            _forget, "job becomes: 1 for 0", because="what is nowhere is asked for by no job"
        ),
        equivalent_replacement(
            handle_refusal,
            "delete_only_while_removing for write_and_delete_while_removing",
            because="an index that is asked for until it is gone fails then",
        ),
        equivalent_replacement(
            ignore,
            "sent for nowhere",
            because="a request is handled first, and its answer is ignored then",
        ),
        equivalent_replacement(
            handle,
            "becomes: past for backfilled",
            because="either answer is OK, and tells the end of the tablet",
        ),
        equivalent_replacement(
            handle,
            "becomes: write_and_delete_while_removing for",
            "becomes: delete_only_while_removing for",
            "becomes: delete_only for absent",
            "becomes: refused for past",
            because="what is past the backfill in a job is being removed: refused, it fails as well",
        ),
    )
