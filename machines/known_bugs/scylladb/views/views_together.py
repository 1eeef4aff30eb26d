"""Mistakes by which tasks are not taken together, or together with others that they are not to be with (design document 000)."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_coordinator import (
    WEAK,
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_destinations import (
    View as BuiltView,
    ViewDestinations,
)
from stagewright.machines.scylladb.views.view_resize import (
    LAST,
    Becomes,
    Ids,
    Slot,
    Type,
    ViewResize,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER, Work
from stagewright.machines.scylladb.views.view_worker import View as WorkerView, ViewWorker
from stagewright.spec import (
    ANY,
    Bool,
    SetVar,
    Term,
    action,
    constant,
    count,
    every,
    flag,
    initially,
    number,
    numbers,
    per,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

BATCH = "design document 000: the worker groups multiple view building tasks into a batch"


@known_bug(
    "000-107",
    BATCH,
    breaks=ViewCoordinator.ranges_are_built_for_all_views,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class ABatchBuildsOneView(ViewCoordinator):
    """Each batch was of one view: a tablet of a table with ten views was read ten times."""

    first: SetVar[View] = constant(set_of(View, init=ANY))  # whose tasks come first

    @initially
    def one_is_the_first(self) -> Bool:
        """Tasks have an order."""
        return self.first.size() == 1

    @action(by=COORDINATOR, fair=WEAK)
    def send_build_range(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the first build_range task of one tablet."""
        self._may_send(s, t, b)
        require(some(self._is_to_build(v, t) for v in View), "a view has a task for the tablet")
        waits = some(self._is_to_build(v, t) & self.first.has(v) for v in View)
        for v in View:
            self.batch[s].views.put(v, self._is_to_build(v, t) & (self.first.has(v) | ~waits))


@known_bug("000-108", BATCH, breaks=ViewWorker.tasks_are_executed_together)
class TasksAreCalledForOneByOne(ViewWorker):
    """The coordinator called for one task after the other."""

    first: SetVar[WorkerView] = constant(set_of(WorkerView, init=ANY))  # whose tasks come first

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
        for v in WorkerView:
            self.asked.put(v, left.has(v) & (self.first.has(v) | (left & self.first).is_empty()))


@known_bug(
    "000-109",
    "design document 000: removals are batched to reduce the number of generated group0 operations",
    breaks=ViewWorker.finished_tasks_are_removed_together,
)
class EachTaskIsRemovedByItself(ViewWorker):
    """Every finished task was removed by a group0 command of its own."""

    first: SetVar[WorkerView] = constant(set_of(WorkerView, init=ANY))  # whose tasks come first

    @initially
    def one_is_the_first(self) -> Bool:
        """Tasks have an order."""
        return self.first.size() == 1

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the first finished task."""
        require(~self.finished.is_empty(), "there are some")
        waits = ~(self.finished & self.first).is_empty()
        for v in WorkerView:
            later = waits & ~self.first.has(v)
            self.tasks.put(v, self.tasks.has(v) & (~self.finished.has(v) | later))
            self.finished.put(v, self.finished.has(v) & later)


@known_bug(
    "000-110",
    "design document 000: tasks can be in one batch only if they have the same type",
    breaks=ViewCoordinator.batches_are_of_one_type,
    sizes={View: 1, Tablet: 1, Shard: 1},
)
class WhoReadsTheTabletProcessesStagingToo(ViewCoordinator):
    """A batch that built a range processed what was staged at the tablet, too, and both tasks were removed."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views, from the tablet and from its staging sstables."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b), "the shard has a batch")
        require(~batch.done, "it is executed")
        batch.done = True
        for v in batch.views:
            self.scanned[v].add(t)
        self.staged[b].discard(t)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The coordinator removes the batch's tasks, and that of what is staged no more."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b) & batch.done, "the batch is done")
        require(self.called.has(s), "the coordinator waits for it")
        for v in batch.views:
            self.building[v].discard(t)
        self.staging[b].put(t, self.staging[b].has(t) & self.staged[b].has(t))
        self._end_batch(s)


@known_bug(
    "000-112",
    'design document 000: in a merge a task is created "if such task doesn\'t exist"',
    breaks=ViewResize.finished_ranges_have_no_task,
    budgets={ViewResize.staging_sstables: 0},
)
class AMergedTabletHasTwoTasks(ViewResize):
    """Two tablets merged, each with a task: the new one had two, and was read twice."""

    twice = per(number(0, LAST), flag())  # the tablet has two build_range tasks

    def _adjust(self, after: Ids, becomes: Becomes) -> None:
        for new in numbers(0, LAST):
            tasks = count(
                self.building[self.id[s]] & self._ends_at(s) & becomes(s, new) for s in Slot
            )
            self.twice[new] = tasks > 1
        super()._adjust(after, becomes)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the finished task, of which there may be another one."""
        require(self.batch == Work.done, "the batch is done")
        require(~self.stale, "its task is still in group0")
        built = self.type == Type.build_range
        another = self.twice[self.tablet]
        self.building[self.tablet] = self.building[self.tablet] & (~built | another)
        self.twice[self.tablet] = another & ~built
        self._end_batch()


@known_bug(
    "000-117",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewDestinations.views_are_built_one_by_one,
)
class ViewsWaitForEachOther(ViewDestinations):
    """A view was built when the ranges of all views of its table that had been started were."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[BuiltView]) -> None:
        """No view of the table has a task left."""
        super().mark_view_built(v)
        scanned = every(
            (self.status[u] != ViewStatus.started) | self.scanned.has(u) for u in BuiltView
        )
        require(scanned, "the ranges of all views are built")


BUGS = known_bugs_in(globals())
