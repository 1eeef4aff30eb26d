"""Mistakes put back into `BackfillRpcs`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_rpcs import (
    NETWORK,
    TABLET,
    At,
    BackfillRpcs,
    Phase,
    Request,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import CLIENT, MASTER, WEAK, Index
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Bool, FlagVar, Term, action, choose, every, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CHECKPOINTING = 'design document 002, "Checkpointing"'
CREATE_TABLE = 'design document 002, "Create the index table"'
OUTLAST = 'design document 002: the build "should not need to restart on a node failure"'
ORCHESTRATES = 'design document 002: the master "orchestrates the backfill process"'
LEADERSHIP = 'design document 002, "Handling node restarts and leadership changes"'
FINALIZE = 'design document 002, "Finalize the index"'
ABORTS = 'design document 002: the command "should abort and result in a failure"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-28",
    'design document 002, DB_REORG: "where the YB-TServers actually perform the backfill"',
    breaks=BackfillRpcs.chunks_run_only_at_do_backfill,
    sizes={Index: 1, Request: 1},
    budgets={BackfillRpcs.lost: 0},
)
class OneVersionBehindIsReady(BackfillRpcs):
    """A tablet leader that is at WRITE_AND_DELETE takes a request for the news that the others know, and carries it out."""

    def _is_ready(self, r: Term[Request]) -> Bool:
        maintains = (Permission.write_and_delete, Permission.do_backfill)
        return every(self.known[i].any_of(*maintains) for i in self.rpc[r].indexes)


@known_bug(
    "002-131",
    OUTLAST,
    breaks=BackfillRpcs.jobs_outlast_their_leaders,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 0},
)
class RequestsThatNobodyHearsAreGivenUp(BackfillRpcs):
    """The requests of the old leader have no answer, and count as tried too often: the index is given up."""

    @action(spends=BackfillRpcs.changes)
    def fail_over(self) -> None:
        """Another master becomes the leader: what was asked for has failed."""
        super().fail_over()
        for i in Index:
            left = self.job[i] == Status.in_progress
            self.gave_up.put(i, self.gave_up.has(i) | left)
            self.job[i] = choose(left, Status.failed, self.job[i])


@known_bug(
    "002-152",
    'design document 002: the master "issues futher RPCs as necessary"',
    breaks=BackfillRpcs.a_tablet_is_asked_again,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class AskedWhenNothingIsOnItsWay(BackfillRpcs):
    """A tablet was not asked again while a request was on its way: one that hung was waited for."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, r: Term[Request]) -> None:
        """BackfillChunk: the tablet's leader is asked."""
        require(every(self.rpc[o].at == At.nowhere for o in Request), "nothing is on its way")
        super().ask(r)


@known_bug(
    "002-351",
    'design document 002, "Checkpointing": the master "issues futher RPCs as necessary"',
    breaks=BackfillRpcs.only_what_failed_is_removed,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 2},
)
class TheSecondLossFailsTheJob(BackfillRpcs):
    """A job fails with the second request that is lost, however long ago the first one was."""

    lost_one: FlagVar = flag()

    @action(by=NETWORK, spends=BackfillRpcs.lost)
    def lose(self, r: Term[Request]) -> None:
        again = self.lost_one
        for i in Index:
            fails = again & (self.job[i] == Status.in_progress)
            self.job[i] = choose(fails, Status.failed, self.job[i])
        super().lose(r)
        self.lost_one = True


@known_bug(
    "Z40",
    "yugabyte-db #20510",
    breaks=(BackfillRpcs.published_indexes_are_complete,),
    budgets={BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class AnswersToAnotherJob(BackfillRpcs):
    """A job is given up while a request of it is on its way, and the next job starts. The late answer is taken
    for one to the new job: its indexes get a checkpoint, and no row of theirs was read.
    """

    def _is_for_this_job(self, r: Term[Request]) -> None:
        """Any job."""


@known_bug(
    "Z47",
    "yugabyte-db #33123, #20041, #20178",
    breaks=(BackfillRpcs.chunks_run_only_at_do_backfill,),
    sizes={Index: 1, Request: 1},
    budgets={BackfillRpcs.lost: 0},
)
class ChunksRunAnyTime(BackfillRpcs):
    """The tablet server does not look at its index permissions: a request that overtakes the alter, or comes
    when the index is being dropped, is carried out.
    """

    def _is_ready(self, r: Term[Request]) -> Bool:
        return self.rpc[r].at == At.sent


@known_bug(
    "002-391",
    OUTLAST,
    breaks=BackfillRpcs.permissions_never_go_back,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0},
)
class NextLeaderAltersAnew(BackfillRpcs):
    """A new leader finds an index at DO_BACKFILL of which no job is recorded, and begins with its last alter once more."""

    @action(spends=BackfillRpcs.changes)
    def fail_over(self) -> None:
        """What the old leader was about to launch is not known."""
        super().fail_over()
        for i in Index:
            left = (self.permission[i] == Permission.do_backfill) & self.job[i].is_none()
            self.permission[i] = choose(left, Permission.write_and_delete, self.permission[i])


@known_bug(
    "002-392",
    'design document 002: READ_WRITE_AND_DELETE "is the final state"',
    breaks=BackfillRpcs.permissions_never_go_back,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0},
)
class NextLeaderBackfillsAnew(BackfillRpcs):
    """A new leader finds no job of an index that is published, and has it backfilled once more: nobody reads it meanwhile."""

    @action(spends=BackfillRpcs.changes)
    def fail_over(self) -> None:
        """What has come of a job that is erased is not known."""
        super().fail_over()
        for i in Index:
            left = (self.permission[i] == Permission.read_write_and_delete) & self.job[i].is_none()
            self.permission[i] = choose(left, Permission.do_backfill, self.permission[i])


@known_bug("002-393", CHECKPOINTING, breaks=BackfillRpcs.checkpoints_are_kept)
class RefusalsBeginTheTabletAnew(BackfillRpcs):
    """A tablet that refuses a request for one index is taken for one that nobody has asked: of the others, too, it is done
    once more.
    """

    @action(by=MASTER, fair=WEAK)
    def handle_refusal(self, r: Term[Request]) -> None:
        """What it has done is forgotten."""
        super().handle_refusal(r)
        self.done = frozenset[Index]()


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "002-27",
    'design document 002, Finalize the index: "the table state is updated to READ_WRITE_AND_DELETE"',
    breaks=BackfillRpcs.every_index_becomes_usable_or_is_deleted,
    budgets={BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class JobsBeginWithAStatement(BackfillRpcs):
    """The master looks for indexes that wait as a client alters the table: the last of them waits for the next client."""

    @action(by=CLIENT)
    def record_job(self) -> None:
        """A client alters the table, or none does."""
        super().record_job()


@known_bug(
    "Z36",
    "yugabyte-db tablet_service.cc, all_past_backfill: read, not reported",
    profile="yugabyte-2.x",
    breaks=(BackfillRpcs.every_index_can_be_usable_or_gone, BackfillRpcs.every_job_ends),
    sizes={Index: 1, Request: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 0},
)
class PastWithoutAPosition(BackfillRpcs):
    """The leader changes after the permissions are written and before the job is erased. The next one asks
    the tablet again, which answers OK, for its indexes have moved past DO_BACKFILL, but not how far it is
    done: so it is asked again, for ever.
    """

    def _tells_the_end(self, r: Term[Request]) -> Bool:
        return self.rpc[r].at == At.backfilled


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-64",
    "design document 002: the index build itself will occur asynchronously",
    breaks=BackfillRpcs.indexes_are_dropped_at_any_time,
)
class DropIndexWaitsForTheTablet(BackfillRpcs):
    """DROP INDEX is refused while the master leader has a job to do."""

    @action(by=CLIENT, spends=BackfillRpcs.aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """The master leader has no job to do."""
        super().drop_index(i)
        require(self.phase == Phase.none, "the master leader has no job to do")


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


@known_bug("002-284", ORCHESTRATES, breaks=BackfillRpcs.jobs_wait_for_no_request)
class JobsWaitForOldRequests(BackfillRpcs):
    """A job begins when no request of an earlier one is on its way: one that hangs holds up the table."""

    @action(by=MASTER, fair=WEAK)
    def record_job(self) -> None:
        """J0, when no request is on its way."""
        require(every(self.rpc[r].at == At.nowhere for r in Request), "no request is on its way")
        super().record_job()


@known_bug("002-285", LEADERSHIP, breaks=BackfillRpcs.new_leaders_wait_for_no_request)
class NewLeadersWaitForOldRequests(BackfillRpcs):
    """A new leader takes the job up when what the old one had asked for has come to an end."""

    @action(by=MASTER, fair=WEAK)
    def take_up(self) -> None:
        """The leader finds a job, when no request is on its way."""
        require(every(self.rpc[r].at == At.nowhere for r in Request), "no request is on its way")
        super().take_up()


@known_bug("002-286", CHECKPOINTING, breaks=BackfillRpcs.answers_are_recorded_as_they_come)
class AnswersAreRecordedTogether(BackfillRpcs):
    """An answer is recorded when no tablet is at work any more."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, r: Term[Request]) -> None:
        """The answer is OK, and no other one is waited for."""
        require(every(self.rpc[o].at != At.sent for o in Request), "no tablet is at work")
        super().record_checkpoint(r)


@known_bug("002-287", FINALIZE, breaks=BackfillRpcs.the_first_answer_is_enough)
class EveryRequestIsAnswered(BackfillRpcs):
    """A tablet that was asked twice has answered, and its job waits for the other answer."""

    @action(by=MASTER, fair=WEAK)
    def finish_tablets(self) -> None:
        """J4, when no request of the job is on its way."""
        others = some(
            (self.rpc[r].at != At.nowhere) & (self.rpc[r].job == self.job_id) for r in Request
        )
        require(~others, "every request is answered")
        super().finish_tablets()


@known_bug("002-311", CHECKPOINTING, breaks=BackfillRpcs.refusals_are_heard_as_they_come)
class RefusalsAreHeardInTheEnd(BackfillRpcs):
    """A refusal is looked at when no other request is on its way that might do better."""

    @action(by=MASTER, fair=WEAK)
    def handle_refusal(self, r: Term[Request]) -> None:
        other = some((o != r) & (self.rpc[o].at == At.sent) for o in Request)
        require(~other, "no other request is to be answered")
        super().handle_refusal(r)


@known_bug("002-312", CHECKPOINTING, breaks=BackfillRpcs.requests_are_handled_as_they_come)
class TabletsWaitUntilTheyAreHeard(BackfillRpcs):
    """A tablet handles no other request while an answer of its own is on its way, to a leader that may be gone."""

    @action(by=TABLET, fair=WEAK)
    def handle(self, r: Term[Request]) -> None:
        answered = some(
            (o != r) & self.rpc[o].at.any_of(At.backfilled, At.past, At.refused) for o in Request
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
    def ask(self, r: Term[Request]) -> None:
        old = some(
            (self.rpc[o].at != At.nowhere) & (self.rpc[o].job != self.job_id) for o in Request
        )
        require(~old, "nothing of an earlier leader is on its way")
        super().ask(r)


def _some_are_on_their_way(rpcs: BackfillRpcs) -> Bool:
    return some(rpcs.rpc[r].at != At.nowhere for r in Request)


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


@known_bug("002-370", CREATE_TABLE, breaks=BackfillRpcs.tablets_learn_beside_requests)
class TabletsLearnWhenTheirAnswersAreHeard(BackfillRpcs):
    """A tablet that has answered applies no altered schema until the master has heard it: an index on its way out goes on being
    written.
    """

    @action(by=TABLET, fair=WEAK)
    def learn(self, i: Term[Index]) -> None:
        heard = every(self.rpc[r].at != At.backfilled for r in Request)
        require(heard, "no answer is on its way")
        super().learn(i)


BUGS = known_bugs_in(globals())
