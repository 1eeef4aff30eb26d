"""Mistakes by which a tablet waits for another one, or what is answered for what is not (002), each caught by one promise."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_leaders import (
    TABLET as TABLET_LEADER,
    BackfillLeaders,
    Intent,
    Thread,
)
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import (
    TABLET as TABLET_OF_REQUESTS,
    At,
    BackfillRpcs,
    Request as Rpc,
)
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    NO_TIME,
    TABLET,
    BackfillSafeTime,
)
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit, Piece
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    TABLET_SERVER,
    BackfillThrottle,
    Request,
    Task,
)
from stagewright.spec import Bool, Term, action, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CHECKPOINTING = 'design document 002, "Checkpointing"'
CREATE_TABLE = 'design document 002, "Create the index table"'
FAILS = 'design document 002: "the CREATE INDEX command should abort and result in a failure"'


def _some_are_on_their_way(rpcs: BackfillRpcs) -> Bool:
    return some(rpcs.rpc[r].at != At.nowhere for r in Rpc)


# -- answers and requests --------------------------------------------------------------------------------


@known_bug("002-310", CHECKPOINTING, breaks=BackfillThrottle.answers_wait_for_no_other)
class AnswersAreHeardInTurn(BackfillThrottle):
    """A tablet that is done answers when the master has recorded the answer of another one."""

    @action(by=TABLET_SERVER, fair=WEAK)
    def answer(self, task: Term[Task]) -> None:
        heard = some((o != task) & (self.request[o] == Request.answered) for o in Task)
        require(~heard, "no other answer is to be recorded")
        super().answer(task)


@known_bug("002-311", CHECKPOINTING, breaks=BackfillRpcs.refusals_are_heard_as_they_come)
class RefusalsAreHeardInTheEnd(BackfillRpcs):
    """A refusal is looked at when no other request is on its way that might do better."""

    @action(by=MASTER, fair=WEAK)
    def handle_refusal(self, r: Term[Rpc]) -> None:
        other = some((o != r) & (self.rpc[o].at == At.sent) for o in Rpc)
        require(~other, "no other request is to be answered")
        super().handle_refusal(r)


@known_bug("002-312", CHECKPOINTING, breaks=BackfillRpcs.requests_are_handled_as_they_come)
class TabletsWaitUntilTheyAreHeard(BackfillRpcs):
    """A tablet handles no other request while an answer of its own is on its way, to a leader that may be gone."""

    @action(by=TABLET_OF_REQUESTS, fair=WEAK)
    def handle(self, r: Term[Rpc]) -> None:
        answered = some(
            (o != r) & self.rpc[o].at.any_of(At.backfilled, At.past, At.refused) for o in Rpc
        )
        require(~answered, "no answer is on its way")
        super().handle(r)


@known_bug(
    "002-317",
    'design document 002, "Backfill the data"',
    breaks=BackfillRpcs.tablets_are_asked_beside_old_requests,
)
class OldRequestsComeFirst(BackfillRpcs):
    """A new leader asks a tablet when whatever an earlier one has asked has come to its end."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, r: Term[Rpc]) -> None:
        old = some((self.rpc[o].at != At.nowhere) & (self.rpc[o].job != self.job_id) for o in Rpc)
        require(~old, "nothing of an earlier leader is on its way")
        super().ask(r)


@known_bug("002-318", CREATE_TABLE, breaks=BackfillRpcs.indexes_move_on_beside_requests)
class AltersWaitForRequests(BackfillRpcs):
    """An index comes to DO_BACKFILL when nothing is on its way for others, that no tablet be altered while it is scanned."""

    @action(by=MASTER, fair=WEAK)
    def alter_to_do_backfill(self, i: Term[Index]) -> None:
        require(~_some_are_on_their_way(self), "no request is on its way")
        super().alter_to_do_backfill(i)


@known_bug(
    "002-319",
    'design document 002, "Finalize the index"',
    breaks=BackfillRpcs.indexes_are_published_beside_requests,
)
class PublishingWaitsForEveryAnswer(BackfillRpcs):
    """An index that is built is published when all that was asked for is answered, or lost."""

    @action(by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        require(~_some_are_on_their_way(self), "no request is on its way")
        super().write_permissions()


@known_bug("002-320", CREATE_TABLE, breaks=BackfillRpcs.jobs_are_erased_beside_requests)
class JobsAreKeptForLateAnswers(BackfillRpcs):
    """A job is erased when nobody can answer it any more: the next one waits for that."""

    @action(by=MASTER, fair=WEAK)
    def clear_checkpoints(self) -> None:
        require(~_some_are_on_their_way(self), "no request is on its way")
        super().clear_checkpoints()


@known_bug(
    "002-321",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=BackfillRpcs.removed_indexes_are_deleted_beside_requests,
)
class DeletionsWaitForTheJob(BackfillRpcs):
    """The table of an index is deleted when its job is erased, which others of the job may hold up."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        require(self.job[i].is_none(), "the index is in no job")
        super().delete_index(i)


# -- tablets and threads ---------------------------------------------------------------------------------


@known_bug(
    "002-313",
    'design document 002: "the backfill process on any tablet can proceed independent"',
    breaks=BackfillSplit.tablets_are_backfilled_independently,
)
class ChildrenAreScannedInTurn(BackfillSplit):
    """Of the two that a tablet has split into, the upper one is scanned when the lower one is done."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet], piece: Term[Piece]) -> None:
        first = self.checkpoint[t][Piece.lower_child] == Checkpoint.done
        require((piece == Piece.upper_child).implies(first), "the lower child is done")
        super().backfill_chunk(t, piece)


@known_bug(
    "002-326",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillSafeTime.transactions_can_be_given_up,
)
class NobodyAbortsDuringTheScan(BackfillSafeTime):
    """A transaction is given up before the time of the scan is chosen, or when the index is there."""

    @action(by=TABLET, fair=WEAK)
    def abort(self, t: Term[Tablet]) -> None:
        require((self.read_time == NO_TIME) | self.published, "the table is not scanned")
        super().abort(t)


@known_bug("002-322", CREATE_TABLE, breaks=BackfillLeaders.versions_are_launched_beside_others)
class VersionsWaitForOldThreads(BackfillLeaders):
    """The next version is launched when no thread of an earlier leader is left that might write."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self, th: Term[Thread]) -> None:
        require(~_old_threads_are_left(self), "no thread of an earlier leader is left")
        super().launch_next_version(th)


@known_bug("002-323", FAILS, breaks=BackfillLeaders.failures_are_recorded_beside_others)
class FailuresWaitForOldThreads(BackfillLeaders):
    """The same of the failure: an earlier leader might still have had an answer."""

    @action(by=MASTER, fair=WEAK)
    def record_failure(self, th: Term[Thread]) -> None:
        require(~_old_threads_are_left(self), "no thread of an earlier leader is left")
        super().record_failure(th)


@known_bug("002-324", FAILS, breaks=BackfillLeaders.failures_are_found_beside_others)
class FailuresAreFoundWhenAllThreadsAreFree(BackfillLeaders):
    """That a tablet does not answer is noticed when no other thread has anything to write."""

    @action(by=MASTER, fair=WEAK)
    def find_failed(self, th: Term[Thread]) -> None:
        busy = some((o != th) & (self.work[o].intent != Intent.none) for o in Thread)
        require(~busy, "every other thread is free")
        super().find_failed(th)


@known_bug("002-325", CREATE_TABLE, breaks=BackfillLeaders.tablets_apply_versions_at_any_time)
class TabletsWaitForThreads(BackfillLeaders):
    """A tablet applies a version when no thread of a master is about to write one."""

    @action(by=TABLET_LEADER, fair=WEAK)
    def apply_version(self) -> None:
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "every thread is free")
        super().apply_version()


def _old_threads_are_left(leaders: BackfillLeaders) -> Bool:
    return some(
        (leaders.work[o].intent != Intent.none) & (leaders.work[o].term != leaders.term)
        for o in Thread
    )


BUGS = known_bugs_in(globals())
