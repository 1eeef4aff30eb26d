"""Mistakes put back into `ViewWorker`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.machines.scylladb.views.view_worker import (
    CLIENT,
    WEAK,
    Flush,
    Row,
    View,
    ViewWorker,
)
from stagewright.spec import (
    ANY,
    Bool,
    BudgetName,
    NumberVar,
    SetVar,
    Term,
    action,
    choose,
    constant,
    initially,
    number,
    per,
    require,
    set_of,
    volatile,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ANSWERS = "design document 000, RPC: the handler returns result when the tasks are finished"
CALM: dict[BudgetName, int | None] = {ViewWorker.restarts: 0}
REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
BUILT = "design document 000, Schema: once the view is built, an entry is created"
ATTACHED = "design document 000, RPC: the handler attaches to the tasks and waits for the result"
REMOVED = "design document 000: it removes those tasks from group0 state in 200ms intervals"
OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)
EVENTUALLY = "design document 000: the worker will eventually reply that the task was finished"
BATCH = "design document 000: the worker groups multiple view building tasks into a batch"


# -- what goes wrong -------------------------------------------------------------------------------


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
    """A worker whose node restarted had the tasks that it had completed for views that were still being built stored once
    more, also those that had been removed as finished.
    """

    @action(by=WORKER, spends=ViewWorker.restarts)
    def restart(self) -> None:
        again = self.tasks | (self.completed - self.dropped - self.built)
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


@known_bug("000-74", BUILT, breaks=ViewWorker.views_are_built_one_by_one)
class ViewsAreMarkedWhenNoTaskIsLeft(ViewWorker):
    """A view whose task was removed was marked as built when no other view had a task for the tablet."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """No view has a task any more."""
        require(self.tasks.is_empty(), "no view has a task")
        super().mark_view_built(v)


@known_bug(
    "000-88",
    REMEMBERED,
    breaks=ViewWorker.finished_tasks_are_remembered,
    budgets={ViewWorker.restarts: 0},
)
class WhatIsAnsweredIsForgotten(ViewWorker):
    """A worker forgot a task when it had answered that it is finished: the coordinator lost the answer with its
    leadership, and the next one had the tablet read once more.
    """

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed: the worker returns those, and keeps the others."""
        done = self.asked & self.completed
        require(~done.is_empty(), "some are completed")
        self.finished = self.finished | done
        self.asked = frozenset()
        self.completed = self.completed - done


@known_bug("000-95", BUILT, breaks=ViewWorker.built_views_stay_built)
class ANewViewReplacesTheEntry(ViewWorker):
    """system.built_views had an entry for a table and not for each view: a new one took it from the others."""

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with its task."""
        super().create_view(v)
        self.built = frozenset()


@known_bug(
    "000-101",
    "design document 000: the worker will immediately response that those tasks were completed",
    breaks=ViewWorker.completed_tasks_are_not_executed_again,
)
class WhatIsToBeRepeatedStaysSo(ViewWorker):
    """A worker that restarts finds which tasks it had finished, and that they are to be executed once more: it executed
    them at every call, however often it had done so since.
    """

    to_repeat: SetVar[View] = set_of(View)

    @action(by=WORKER, spends=ViewWorker.restarts)
    def restart(self) -> None:
        """The worker's node restarts."""
        self.to_repeat = self.to_repeat | self.completed
        super().restart()

    @action(by=WORKER, fair=WEAK)
    def start_batch(self) -> None:
        """None is completed, unless it is to be repeated."""
        require(~self.asked.is_empty(), "a call is under way")
        completed = self.asked & self.completed
        require(completed <= self.to_repeat, "none is completed, unless it is to be repeated")
        require(~self._executes(), "no batch is executed")
        require(self.asked <= self.tasks, "every id is found in group0")
        require(self.asked <= self.flushed_views, "the table was flushed for the views")
        self.batch = self.asked


@known_bug("000-108", BATCH, breaks=ViewWorker.tasks_are_executed_together)
class TasksAreCalledForOneByOne(ViewWorker):
    """The coordinator called for one task after the other."""

    first: SetVar[View] = constant(set_of(View, init=ANY))  # whose tasks come first

    @initially
    def one_is_the_first(self) -> Bool:
        """Tasks have an order."""
        return self.first.size() == 1

    @action(by=COORDINATOR, fair=WEAK)
    def ask(self) -> None:
        """The coordinator calls the worker for the first task that it does not know to be finished."""
        require(self.asked.is_empty(), "no call is under way")
        require(~(self.tasks <= self.finished), "a task is not finished")
        left = self.tasks - self.finished
        for v in View:
            self.asked.put(v, left.has(v) & (self.first.has(v) | (left & self.first).is_empty()))


@known_bug(
    "000-109",
    "design document 000: removals are batched to reduce the number of generated group0 operations",
    breaks=ViewWorker.finished_tasks_are_removed_together,
)
class EachTaskIsRemovedByItself(ViewWorker):
    """Every finished task was removed by a group0 command of its own."""

    first: SetVar[View] = constant(set_of(View, init=ANY))  # whose tasks come first

    @initially
    def one_is_the_first(self) -> Bool:
        """Tasks have an order."""
        return self.first.size() == 1

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the first finished task."""
        require(~self.finished.is_empty(), "there are some")
        waits = ~(self.finished & self.first).is_empty()
        for v in View:
            later = waits & ~self.first.has(v)
            self.tasks.put(v, self.tasks.has(v) & (~self.finished.has(v) | later))
            self.finished.put(v, self.finished.has(v) & later)


@known_bug(
    "000-111",
    "design document 000: each view building worker keeps track of finished tasks locally",
    breaks=ViewWorker.finished_tasks_are_remembered,
)
class AnIdleWorkerForgets(ViewWorker):
    """A worker without a batch took its base table for left, and forgot which of its tasks were completed."""

    @action(by=WORKER, fair=WEAK)
    def leave_base(self) -> None:
        """No batch is executed: the worker's notes are cleared."""
        require(
            self.asked.is_empty() & ~self._executes(), "no call waits, and no batch is executed"
        )
        require(~(self.completed | self.flushed_views).is_empty(), "there are notes")
        self.completed = frozenset()
        self.flushed_views = frozenset()


@known_bug(
    "000-115",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewWorker.dropped_views_are_not_built,
)
class TheEntryOutlivesItsView(ViewWorker):
    """A dropped view's entry stayed in system.built_views: another one of its name was built before it had a row."""

    @action(by=CLIENT, spends=ViewWorker.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped: its task is deleted."""
        require(self.created.has(v), "the view is there")
        self.dropped.add(v)
        self.tasks.discard(v)


@known_bug("000-119", OBSERVED, breaks=ViewWorker.workers_notice_deletions)
class DroppedViewsAreUpdatedToTheEnd(ViewWorker):
    """The worker looked which of its tasks had been deleted when it had executed them."""

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The task is completed."""
        super().observe_drop(v)
        require(self.completed.has(v), "it is completed")


@known_bug(
    "000-157",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewWorker.others_stay_in_their_batch,
)
class ADropEndsTheBatch(ViewWorker):
    """A batch was given up when one of its views was dropped: the others' tasks were executed anew."""

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The batch of a dropped view is aborted."""
        require(self.batch.has(v), "the task is in the batch")
        require(~self.tasks.has(v), "it is gone")
        self.batch = frozenset()


@known_bug(
    "000-181",
    ATTACHED,
    breaks=ViewWorker.work_goes_on_for_whoever_asks,
    budgets={ViewWorker.restarts: 0},
)
class NewLeadersInterruptBatches(ViewWorker):
    """The same of a batch for several views."""

    @action(by=COORDINATOR, spends=ViewWorker.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, and the batch of its worker ends."""
        super().change_leader()
        self.batch = frozenset()


@known_bug(
    "V07",
    "SCYLLADB-2781",
    breaks=ViewWorker.built_views_are_complete,
    budgets={ViewWorker.restarts: 0},
)
class ViewsAreReadAfterTheFlush(ViewWorker):
    """The worker flushes the base table and only then reads which views there are. A row written after the
    flush and before the newest view is neither in an sstable nor had it an update for that view.
    """

    def _note_flushed(self) -> None:
        self.flushed_views = self.flushed_views | self.created


@known_bug("000-280", REMOVED, breaks=ViewWorker.built_views_have_no_task)
class AnsweredViewsAreBuilt(ViewWorker):
    """A coordinator marked a view built when the worker had answered, and removed its task with the next interval: when
    both restarted in between, a view was built whose task was executed.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task any more, or its task is known to be finished."""
        left = self.tasks - self.finished
        require(self.created.has(v) & ~left.has(v), "the view has no other task")
        require(~self.dropped.has(v), "it is not dropped")
        require(~self.built.has(v), "not built yet")
        self.built.add(v)


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "000-238",
    EVENTUALLY,
    breaks=(ViewWorker.views_are_built, "no deadlock"),
    budgets={ViewWorker.leader_changes: 2, ViewWorker.restarts: 0},
)
class TheThirdLeaderAsksForDroppedViews(ViewWorker):
    """The second coordinator that took over after a drop had the ids of all views, and gave up as one of them was gone."""

    changes: NumberVar = number(0, 2)

    @action(by=COORDINATOR, spends=ViewWorker.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, for the first or the second time."""
        super().change_leader()
        self.changes = choose(self.changes < 2, self.changes + 1, self.changes)

    @action(by=COORDINATOR, fair=WEAK)
    def ask(self) -> None:
        """The coordinator calls the worker, if every id is there."""
        require((self.changes < 2) | self.dropped.is_empty(), "every id is there")
        super().ask()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-18",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewWorker.views_are_dropped_at_any_time,
)
class DropWaitsForTheWorker(ViewWorker):
    """A task that is executed is not deleted."""

    @action(by=CLIENT, spends=ViewWorker.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped that is not built right now."""
        super().drop_view(v)
        require(~self.batch.has(v), "its task is not executed")


@known_bug(
    "000-19",
    "design document 000: the worker builds views from the base table, which lives on",
    breaks=ViewWorker.tables_are_written_while_views_are_built,
)
class TheBaseTableIsLocked(ViewWorker):
    """No row is written while a batch reads the table."""

    @action(by=CLIENT)
    def write(self, r: Term[Row]) -> None:
        """A row is written when no view is built."""
        super().write(r)
        require(self.batch.is_empty(), "no batch is executed")


@known_bug(
    "000-50",
    "design document 000: tasks are created when a view or index is created",
    breaks=ViewWorker.views_are_created_at_any_time,
)
class CreatingWaitsForTheBatch(ViewWorker):
    """CREATE MATERIALIZED VIEW waits until the worker has no batch of the table."""

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created when no batch is executed."""
        super().create_view(v)
        require(self.batch.is_empty(), "no batch is executed")


@known_bug("000-73", REMOVED, breaks=ViewWorker.finished_tasks_are_removed_at_any_time)
class RemovalWaitsForTheCall(ViewWorker):
    """Finished tasks were removed while no call was under way, which for a large tablet takes hours."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator, which waits for no answer, removes the finished tasks."""
        require(self.asked.is_empty(), "no call is under way")
        super().remove_finished()


@known_bug(
    "000-139",
    "design document 000: the worker will immediately respond that those tasks were completed",
    breaks=ViewWorker.completed_tasks_are_answered_immediately,
)
class AnswersWaitForTheFlush(ViewWorker):
    """A call for a completed task and a new one waited until the table had been flushed for the view of the new one."""

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed, and for all the table was flushed."""
        super().answer()
        require(self.flush == Flush.none, "no flush goes on")


@known_bug(
    "000-140",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewWorker.views_are_built_whatever_the_worker_does,
)
class ViewsAreMarkedByAnIdleCoordinator(ViewWorker):
    """A view whose task was removed was marked as built when no call was under way: a large view held up a small one."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task any more, and no call is under way."""
        super().mark_view_built(v)
        require(self.asked.is_empty(), "no call is under way")


@known_bug(
    "000-266",
    "design document 000: finished tasks are removed in 200ms intervals",
    breaks=ViewWorker.tasks_are_called_for_whatever_is_to_be_removed,
)
class CallsWaitForTheRemoval(ViewWorker):
    """The coordinator called for the next task when it had removed what was finished, which it does every 200 ms."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask(self) -> None:
        """The coordinator, which has nothing to remove, calls the worker."""
        super().ask()
        require(self.finished.is_empty(), "there is nothing to remove")


@known_bug("000-285", REMOVED, breaks=ViewWorker.batches_start_whatever_is_to_be_removed)
class BatchesWaitForTheRemoval(ViewWorker):
    """A worker started no batch of a tablet replica until group0 had no finished task of it any more."""

    @action(by=WORKER, fair=WEAK)
    def start_batch(self) -> None:
        """The tasks are the batch, when all that were finished are removed."""
        require(self.finished.is_empty(), "none is to be removed")
        super().start_batch()


@known_bug("000-286", EVENTUALLY, breaks=ViewWorker.batches_are_finished_whatever_is_flushed)
class BatchesWaitForTheFlush(ViewWorker):
    """A batch was not through while the table was flushed for a view that was created later."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """The batch has read the tablet, and no flush goes on."""
        require(self.flush == Flush.none, "no flush goes on")
        super().finish_batch()


@known_bug("000-302", OBSERVED, breaks=ViewWorker.deletions_are_noticed_at_any_time)
class DeletionsAreNoticedBetweenCalls(ViewWorker):
    """A task that was deleted stayed in its batch for as long as a call waited for that."""

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The task of a dropped view leaves the batch while no call waits."""
        require(self.asked.is_empty(), "no call is under way")
        super().observe_drop(v)


@known_bug(
    "000-321",
    "design document 000: the view building worker is node-local",
    breaks=ViewWorker.workers_flush_whatever_the_coordinator_does,
)
class FlushesWaitForTheRemoval(ViewWorker):
    """A worker did not flush for a new view while the coordinator was to remove what it had answered: for a fast one that was
    always.
    """

    @action(by=WORKER, fair=WEAK)
    def begin_flush(self) -> None:
        """A task is for a view that was not flushed for, and none is to be removed."""
        super().begin_flush()
        require(self.finished.is_empty(), "nothing is to be removed")


BUGS = known_bugs_in(globals())
