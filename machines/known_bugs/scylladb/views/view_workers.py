"""Mistakes in what a view building worker executes, answers and observes, which design document 000 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.scylladb.views.view_wakeups import Fiber, Observer, ViewWakeups
from stagewright.machines.scylladb.views.view_worker import (
    CLIENT,
    WEAK,
    Row,
    View,
    ViewWorker,
)
from stagewright.spec import (
    BudgetName,
    FlagVar,
    Term,
    action,
    choose,
    flag,
    per,
    require,
    set_of,
    volatile,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ANSWERS = "design document 000, RPC: the handler returns result when the tasks are finished"
CALM: dict[BudgetName, int | None] = {ViewWorker.restarts: 0}


@known_bug(
    "000-32",
    ANSWERS,
    breaks=ViewWorker.finished_tasks_were_worked_on,
    budgets=CALM,
)
class WhatIsGoneIsFinished(ViewWorker):
    """A call was for a task that had been deleted with its view: the worker answered that it is finished."""

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed, or not found."""
        done = self.asked & (self.completed | (self.asked - self.tasks))
        require(~done.is_empty(), "some are completed, or gone")
        self.finished = self.finished | done
        self.asked = frozenset()


@known_bug(
    "000-33",
    ANSWERS,
    breaks=ViewWorker.an_answer_ends_the_call,
    budgets=CALM,
)
class TheCallWaitsForTheRest(ViewWorker):
    """The handler reported each task as it was finished, and went on waiting for the others."""

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed: the worker reports those."""
        done = self.asked & self.completed
        require(~done.is_empty(), "some are completed")
        self.finished = self.finished | done
        self.asked = self.asked - done


@known_bug(
    "000-34",
    'design document 000: build_range is to "generate view updates from the tablet replica"',
    breaks=ViewWorker.executed_tasks_leave_no_row,
    budgets={**CALM, ViewWorker.leader_changes: 0},
)
class UpdatesAreSentBehind(ViewWorker):
    """A task counted as finished when its updates were made, and not when they had arrived; the view was marked as
    built when none was under way, so that only a restart lost any.
    """

    behind = volatile(per(View, set_of(Row)), of=WORKER)

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """The batch has read the tablet and made the updates of its views."""
        require(self._executes(), "a batch is executed")
        for v in View:
            for r in Row:
                read = self.batch.has(v) & self.sstables.has(r)
                self.behind[v].put(r, self.behind[v].has(r) | read)
        self.worked = self.worked | self.batch
        self.completed = self.completed | self.batch
        self.batch = frozenset()

    @action(by=WORKER, fair=WEAK)
    def update_view(self, v: Term[View], r: Term[Row]) -> None:
        """An update arrives."""
        require(self.behind[v].has(r), "it is under way")
        self.behind[v].discard(r)
        self.rows[v].add(r)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task any more, and no update is under way to it."""
        super().mark_view_built(v)
        require(self.behind[v] <= self.rows[v], "no update is under way")


@known_bug(
    "000-35",
    'design document 000: the tasks are removed, "permanently marking them as finished"',
    breaks=ViewWorker.finished_tasks_are_removed_once,
)
class ARestartMakesAllTasksAnew(ViewWorker):
    """A worker whose node restarted had the tasks that it had completed stored once more, also those that had been removed
    as finished.
    """

    @action(by=WORKER, spends=ViewWorker.restarts)
    def restart(self) -> None:
        again = self.tasks | (self.completed - self.dropped)
        super().restart()
        self.tasks = again


@known_bug(
    "000-49",
    "design document 000: tasks are created when a view or index is created",
    breaks=ViewWorker.unfinished_views_have_a_task,
    budgets=CALM,
)
class TasksAreStoredWhenTheViewIsStarted(ViewWorker):
    """A view was stored alone; the coordinator, which started to build it, stored its task in a later command."""

    started = set_of(View)

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created."""
        require(~self.created.has(v), "not created yet")
        self.created.add(v)

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """The coordinator finds a view that is not started, and stores its task."""
        require(self._exists(v) & ~self.started.has(v), "the view is not started")
        self.started.add(v)
        self.tasks.add(v)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view was started, and has no task any more."""
        super().mark_view_built(v)
        require(self.started.has(v), "it was started")


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
    "000-39",
    'design document 000: the worker "responses the coordinator once the tasks are finished"',
    breaks=ViewWakeups.finished_batches_are_reported,
    budgets={ViewWakeups.sstables: 0},
)
class OnlyChangesAreLookedAt(ViewWakeups):
    """The observer, when it was woken, looked at its batch only if group0 had changed."""

    @ViewWakeups.observer.step(Observer.waiting, Observer.updating, by=WORKER, fair=WEAK)
    def update(self) -> None:
        """The observer reads group0's state, and the batch's where that has changed."""
        self._take_staging(Fiber.observer)
        ends = self.changed & (self.batch == Work.done)
        self.batch = choose(ends, Work.none, self.batch)
        self.changed = False


@known_bug(
    "000-40",
    'design document 000: the worker "observes the group0 state to notice when tasks are aborted"',
    breaks=ViewWakeups.changes_are_observed,
    budgets={ViewWakeups.sstables: 0},
)
class OnlyTheBatchIsLookedAt(ViewWakeups):
    """The observer, woken by a change of group0, read the state that it had in memory, which was that of before."""

    @ViewWakeups.observer.step(Observer.waiting, Observer.updating, by=WORKER, fair=WEAK)
    def update(self) -> None:
        """The observer looks at the state that it has read, and at the batch."""
        self._take_staging(Fiber.observer)
        self.batch = choose(self.batch == Work.done, Work.none, self.batch)


@known_bug(
    "000-55",
    "design document 000: each view building worker keeps track of finished tasks locally",
    breaks=ViewWorker.finished_tasks_are_remembered,
    budgets={ViewWorker.restarts: 0},
)
class ANewCoordinatorFindsAnEmptyList(ViewWorker):
    """The list of finished tasks belonged to the term in which they had been asked for: what a lost call was about had
    to be done again.
    """

    @action(by=COORDINATOR, spends=ViewWorker.leader_changes)
    def change_leader(self) -> None:
        super().change_leader()
        self.completed = frozenset()


BUGS = known_bugs_in(globals())
