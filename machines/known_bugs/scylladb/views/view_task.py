"""Mistakes put back into `ViewTask`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    NETWORK,
    TOPOLOGY,
    WEAK,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.spec import (
    FlagVar,
    NumberVar,
    action,
    choose,
    flag,
    least,
    number,
    require,
    volatile,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REMOVED = "design document 000: it removes those tasks from group0 state in 200ms intervals"
REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
ATTACHED = "design document 000, RPC: the handler attaches to the tasks and waits for the result"
OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "000-7",
    "design document 000, RPC",
    breaks=ViewTask.only_the_current_coordinator_starts_work,
    budgets={ViewTask.restarts: 0},
)
class TermsAreNotCompared(ViewTask):
    """A request of a coordinator whose term is over starts a batch."""

    def _has_current_term(self) -> None:
        require(~self.late.is_empty(), "a request arrives, of whatever term")


@known_bug(
    "000-36",
    "design document 000: the worker keeps track of finished tasks",
    breaks=ViewTask.answers_are_true,
)
class ADeletedTaskIsAnswered(ViewTask):
    """A call waited for a task that was deleted: the worker answered it, as if the task had been finished."""

    @action(by=WORKER, fair=WEAK)
    def answer_for_nothing(self) -> None:
        """The task is not in group0 any more: there is nothing left to do."""
        require(self.call == Call.attached, "a call waits")
        require(~self.life.column(lambda life: life.stored), "the task is gone")
        self.call = Call.answered


@known_bug(
    "000-37",
    "design document 000, the state diagram: EXECUTE comes before DONE",
    breaks=ViewTask.only_executed_tasks_are_completed,
)
class TheBatchEndsWithAllThatItBegan(ViewTask):
    """A task that was aborted left its batch, and counted as completed with the others when that had read the tablet."""

    began: FlagVar = volatile(flag(), of=WORKER)  # the batch that runs began with the task

    def _start(self) -> None:
        super()._start()
        self.began = True

    @action(by=WORKER, fair=WEAK)
    def finish(self) -> None:
        """The batch is through: the tasks with which it began are completed."""
        require(self.began, "the batch began with the task")
        self.began = False
        self.work = Work.done
        self.worked = True

    @action(by=WORKER, spends=ViewTask.restarts)
    def restart(self) -> None:
        """The worker's node restarts."""
        require((self.work != Work.none) | self.began, "it is executed or completed")
        self.forgotten = True
        self.work = Work.none
        self.began = False


@known_bug(
    "000-38",
    'design document 000: "it is the coordinator who asks the worker"',
    breaks=ViewTask.answers_are_asked_for,
)
class WorkersReportByThemselves(ViewTask):
    """A worker sent the ids of finished tasks to the coordinator, which had not called for them."""

    @action(by=WORKER)
    def report(self) -> None:
        """The worker has completed a task that is stored, and says so."""
        require((self.call == Call.none) & (self.work == Work.done), "it is completed, nobody asks")
        require(self.life == Life.normal, "group0 stores the task")
        self.call = Call.answered


@known_bug(
    "000-89",
    REMEMBERED,
    breaks=ViewTask.completed_tasks_are_not_executed_again,
    budgets={ViewTask.restarts: 0},
)
class CompletedTasksAreOfATerm(ViewTask):
    """A worker that heard of a new coordinator forgot which tasks it had completed for the one before."""

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, and its workers begin anew."""
        super().change_leader()
        self.work = choose(self.work == Work.done, Work.none, self.work)


@known_bug("000-113", OBSERVED, breaks=ViewTask.workers_notice_aborts)
class TheFlagIsNotLookedAt(ViewTask):
    """The worker noticed tasks that were deleted: those whose aborted flag was set it executed to the end."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The observer sees that the task is gone."""
        super().observe_abort()
        require(self.life != Life.aborted, "it is gone")


@known_bug("000-114", OBSERVED, breaks=ViewTask.workers_notice_deletions)
class DeletedTasksAreExecuted(ViewTask):
    """The worker looked for the aborted flag of the tasks that it finds in group0, and did not miss those that are gone."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The observer sees that the task is aborted."""
        super().observe_abort()
        require(self.life == Life.aborted, "it is aborted")


@known_bug(
    "000-170",
    "design document 000: those tasks are removed from group0 state (permanently marking them as finished)",
    breaks=ViewTask.finished_tasks_are_marked_so,
)
class FinishedTasksAreDropped(ViewTask):
    """The coordinator removed a finished task by the path of a dropped view's: no log said of any that it was done."""

    @ViewTask.life.step(Life.normal, Life.dropped, by=COORDINATOR, fair=WEAK)
    def remove(self) -> None:
        """The coordinator deletes the tasks that it knows to be finished."""
        require(self.call == Call.answered, "the worker has answered that it is finished")
        self.call = Call.none


@known_bug(
    "000-180",
    ATTACHED,
    breaks=ViewTask.work_goes_on_for_whoever_asks,
    budgets={ViewTask.restarts: 0, ViewTask.lost_calls: 0},
)
class NewLeadersInterruptTasks(ViewTask):
    """A worker gave up what the coordinator before had asked for, and began it anew for the next one: a large tablet was never
    through where leaders changed.
    """

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, and its worker has nothing left to execute."""
        super().change_leader()
        self.work = choose(self.work == Work.executing, Work.none, self.work)


@known_bug(
    "000-207",
    REMEMBERED,
    breaks=ViewTask.completed_tasks_are_not_executed_again,
    budgets={ViewTask.lost_calls: 0},
)
class NotesOfRestartedWorkersAreOfATerm(ViewTask):
    """A worker that had restarted kept its list of completed tasks for the coordinator of that time alone."""

    unsafe: FlagVar = flag()

    @action(by=WORKER, spends=ViewTask.restarts)
    def restart(self) -> None:
        """The worker's node restarts, which is noted."""
        super().restart()
        self.unsafe = True

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """A new coordinator finds the list of a worker that has restarted empty."""
        super().change_leader()
        forgets = self.unsafe & (self.work == Work.done)
        self.work = choose(forgets, Work.none, self.work)


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "000-213",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=(ViewTask.tasks_are_processed, ViewTask.tasks_are_called_for_whoever_did_before),
    budgets={ViewTask.aborts: 0, ViewTask.deletions: 0, ViewTask.lost_calls: 2},
)
class CallsThatFailTwiceAreGivenUp(ViewTask):
    """A coordinator called for a task once more when its call had failed, and no third time."""

    failures: NumberVar = number(0, 2)

    @action(by=NETWORK, spends=ViewTask.lost_calls)
    def lose_call(self) -> None:
        """The call fails, which is counted."""
        super().lose_call()
        self.failures = least(self.failures + 1, 2)

    @action(by=COORDINATOR, fair=WEAK)
    def send(self) -> None:
        """The coordinator calls for a task that did not fail twice."""
        super().send()
        require(self.failures < 2, "it did not fail twice")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-75",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewTask.tasks_are_aborted_at_any_time,
)
class AbortsWaitForTheAnswer(ViewTask):
    """A task for which the coordinator had called was aborted when the worker had answered."""

    @ViewTask.life.step(Life.normal, Life.aborted, by=TOPOLOGY, spends=ViewTask.aborts)
    def abort(self) -> None:
        """A tablet operation sets the aborted flag of a task that nobody works on."""
        require(self.call == Call.none, "no call is under way")


@known_bug(
    "000-76",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewTask.tasks_are_deleted_at_any_time,
)
class DeletionsWaitForTheWorker(ViewTask):
    """The task of a view that is dropped was deleted when its worker did not execute it."""

    @ViewTask.life.step((Life.normal, Life.aborted), Life.dropped, spends=ViewTask.deletions)
    def drop(self) -> None:
        """The view is dropped, and its task, which is not executed."""
        require(self.work != Work.executing, "it is not executed")


@known_bug(
    "000-121",
    REMOVED,
    breaks=ViewTask.finished_tasks_are_removed_at_any_time,
)
class RemovalWaitsForLateRequests(ViewTask):
    """A finished task was removed when no request for it could arrive late: a tablet that moved before had it done again."""

    @ViewTask.life.step(Life.normal, Life.finished, by=COORDINATOR, fair=WEAK)
    def remove(self) -> None:
        """The coordinator removes a finished task for which no request is under way."""
        require(self.call == Call.answered, "the worker has answered that it is finished")
        require(self.late.is_empty(), "no request is under way")
        self.call = Call.none


@known_bug(
    "000-187",
    "design document 000: a new coordinator will send an RPC with the same view building tasks",
    breaks=ViewTask.tasks_are_called_for_whoever_did_before,
    budgets={ViewTask.restarts: 0, ViewTask.lost_calls: 0},
)
class NewLeadersWaitForTheOldBatch(ViewTask):
    """A new coordinator called for no task that its predecessor had called for, until the worker was through."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self) -> None:
        """The coordinator calls for a task that nobody executes."""
        super().send()
        require(self.work != Work.executing, "it is not executed")


@known_bug(
    "000-310",
    REMEMBERED,
    breaks=ViewTask.workers_wait_for_no_coordinator,
    budgets={ViewTask.restarts: 0},
)
class BatchesWaitForWhoCalls(ViewTask):
    """A batch whose coordinator was gone was through when the new one had called for its tasks."""

    @action(by=WORKER, fair=WEAK)
    def finish(self) -> None:
        """The batch is through, and a call waits for that."""
        gone = ~self.life.column(lambda life: life.executable)
        require((self.call == Call.attached) | gone, "a call waits")
        super().finish()


@known_bug(
    "000-311",
    "design document 000, RPC: it returns result when the tasks are finished",
    breaks=ViewTask.calls_wait_for_no_lost_request,
    budgets={ViewTask.restarts: 0},
)
class AnswersWaitForLostRequests(ViewTask):
    """A worker answered when every request of which its node had heard had come or was given up."""

    @action(by=COORDINATOR, fair=WEAK)
    def answer(self) -> None:
        """The worker answers, and no other request is under way."""
        super().answer()
        require(self.late.is_empty(), "no other request is under way")


@known_bug(
    "000-320",
    "design document 000: the worker will immediately response",
    breaks=ViewTask.calls_wait_for_no_lost_request,
)
class RefusalsWaitForLostRequests(ViewTask):
    """A call for a task that was gone failed when no request that its coordinator had given up could arrive any more."""

    @action(by=WORKER, fair=WEAK)
    def refuse(self) -> None:
        """There is nothing to wait for, and no other request is under way."""
        super().refuse()
        require(self.late.is_empty(), "no other request is under way")


BUGS = known_bugs_in(globals())
