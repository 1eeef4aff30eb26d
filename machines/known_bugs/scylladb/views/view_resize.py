"""Mistakes put back into `ViewResize`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_resize import (
    LAST,
    WEAK,
    Becomes,
    Id,
    Ids,
    Slot,
    Type,
    ViewResize,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Work
from stagewright.spec import (
    Bool,
    Number,
    NumberVar,
    Term,
    action,
    choose,
    count,
    every,
    flag,
    number,
    numbers,
    per,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

EACH_TASK = (
    "design document 000, Tablet operations: a new task is created for each that was aborted"
)
BUILT = "design document 000, Schema: once the view is built, an entry is created"
ATTACHES = "design document 000, RPC: attaches to the tasks and waits for the result"
FAILOVER = {
    ViewResize.resizes: 1,
    ViewResize.staging_sstables: 0,
    ViewResize.leader_changes: 1,
}
RESTART = {ViewResize.resizes: 1, ViewResize.staging_sstables: 0, ViewResize.restarts: 1}
OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "000-44",
    "design document 000: a task is associated with a tablet id",
    breaks=ViewResize.staging_tasks_are_created_for_something,
    budgets={ViewResize.resizes: 1},
)
class AMergeLeavesTheOldTasks(ViewResize):
    """A merge stored the process_staging tasks of the new tablets, and did not delete those of the old ones: some were of
    no tablet, and stayed until their view was built.
    """

    def _is_to_process(self, new: Number, becomes: Becomes) -> Bool:
        return super()._is_to_process(new, becomes) | self.staging[new]

    def _start(self, t: Number, kind: Type) -> None:
        super()._start(t, kind)
        require(self._is_tablet(t), "there is such a tablet")

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No tablet has a task."""
        left = some(self.building[self.id[s]] | self.staging[self.id[s]] for s in Slot)
        require(~left, "no tablet has a task")
        require(self.batch == Work.none, "none is executed")
        require(~self.built, "not built yet")
        self.built = True


@known_bug(
    "000-45",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewResize.one_batch_on_the_shard,
    budgets={ViewResize.staging_sstables: 0},
)
class ACallEndsTheBatch(ViewResize):
    """A call for another tablet made the worker give up the batch that it executed, and begin that one."""

    def _is_idle(self) -> None:
        require(self.batch != Work.done, "the last batch has been answered")
        self.stale = False


@known_bug(
    "000-46",
    "design document 000: the group0 state stores tasks that haven't been completed yet",
    breaks=ViewResize.missing_ranges_have_a_task,
    budgets={ViewResize.resizes: 0, ViewResize.staging_sstables: 0},
)
class TasksAreRemovedWhenTheyBegin(ViewResize):
    """The row of a task was deleted when its batch began: no resize that came then knew that there was anything to do."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets the task to build the view from a tablet, and group0 stores it no longer."""
        super().start_building(t)
        self.building[t] = False


@known_bug(
    "000-92",
    EACH_TASK,
    breaks=ViewResize.ranges_are_built_once,
    budgets={ViewResize.resizes: 1, ViewResize.staging_sstables: 0},
)
class AResizeMakesTasksForAllTablets(ViewResize):
    """After a resize every tablet of a table whose view was not built got a task, as if the view had been created then."""

    def _adjust(self, after: Ids, becomes: Becomes) -> None:
        """One command deletes the tasks of the old tablets, and stores one for each new one."""
        for new in numbers(0, LAST):
            self.building[new] = ~self.built & some(after(s) == new for s in Slot)
        for new in numbers(0, LAST):
            self.staging[new] = self._is_to_process(new, becomes)
        self.stale = self.batch != Work.none
        self._find_anew(after)
        for s in Slot:
            self.id[s] = after(s)


@known_bug(
    "000-98",
    BUILT,
    breaks=ViewResize.built_views_stay_built,
    budgets={ViewResize.resizes: 1, ViewResize.staging_sstables: 0},
)
class AResizeStartsTheView(ViewResize):
    """The view of a table whose tablets were resized counted as started until somebody found no task for it."""

    def _adjust(self, after: Ids, becomes: Becomes) -> None:
        super()._adjust(after, becomes)
        self.built = False


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
    "000-136",
    OBSERVED,
    breaks=ViewResize.workers_notice_deletions,
    budgets={ViewResize.staging_sstables: 0},
)
class BatchesOfOldTabletsAreExecuted(ViewResize):
    """The batch of a tablet that had split was executed to the end, for tasks that were gone."""

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self) -> None:
        """The worker sees that the task of its batch, which is done, is gone."""
        require(self.batch == Work.done, "the batch is done")
        super().observe_deletion()


@known_bug(
    "000-255",
    ATTACHES,
    breaks=ViewResize.work_goes_on_for_whoever_asks,
    budgets={**FAILOVER, ViewResize.staging_sstables: 1},
)
class NewCoordinatorsBeginAnew(ViewResize):
    """The call that a deposed coordinator had made to build a range was cancelled, and its batch with it, however much of
    the tablet it had read.
    """

    @action(by=COORDINATOR, spends=ViewResize.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: what is executed is given up."""
        super().change_leader()
        executing = (self.batch == Work.executing) & (self.type == Type.build_range)
        self.batch = choose(executing, Work.none, self.batch)
        self.type = choose(executing, None, self.type)
        for s in Slot:
            self.reads.put(s, self.reads.has(s) & ~executing)
        self.stale = self.stale & ~executing


@known_bug(
    "000-257",
    "design document 000: after the coordinator gets the response from the worker",
    breaks=ViewResize.tasks_are_finished_by_answers,
    budgets=FAILOVER,
)
class NobodyNeedAsk(ViewResize):
    """A worker whose coordinator was gone removed the finished task itself."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The finished task is removed from group0, whoever waits for it."""
        require(self.batch == Work.done, "the batch is done")
        require(~self.stale, "its task is still in group0")
        built = self.type == Type.build_range
        self.building[self.tablet] = self.building[self.tablet] & ~built
        self._end_batch()


@known_bug(
    "000-258",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=ViewResize.calls_are_to_shards_with_a_batch,
    budgets=RESTART,
)
class CallsOutliveTheNode(ViewResize):
    """A call to a node that had restarted was under way for the coordinator until it had another task for the shard."""

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts, which the coordinator does not notice."""
        require(self.batch != Work.none, "the worker has a batch")
        for t in numbers(0, LAST):
            self.staging[t] = self.staging[t] | self._started(t)
        self.batch = Work.none
        self.type = None
        self.tablet = 0
        self.reads = frozenset()
        self.stale = False
        self.restarted = True


@known_bug(
    "000-259",
    "design document 000: both are restarted, and we will have to redo the work",
    breaks=ViewResize.staging_sstables_have_a_task,
    budgets={**RESTART, ViewResize.staging_sstables: 1},
)
class StartedTasksAreNotStartedAgain(ViewResize):
    """A process_staging task that a worker had begun counted as started after the worker's restart, too: nobody had it
    executed.
    """

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts: its batch is lost, and its task is one that was started."""
        require(self.batch != Work.none, "the worker has a batch")
        self._end_batch()
        self.restarted = True


@known_bug(
    "V09",
    "scylladb #26244",
    breaks=(ViewResize.staging_sstables_have_a_task, ViewResize.staging_sstables_are_processed),
    budgets={ViewResize.resizes: 1},
)
class StagingStaysUnderTheOldToken(ViewResize):
    """Two tablets merge, and their tasks become one with a new last token. The worker still holds staging
    sstables under the old one, where no task looks.
    """

    def _find_anew(self, after: Ids) -> None:
        """The worker's map is left as it is."""


@known_bug(
    "V15",
    "scylladb bc4a4cc075",
    breaks=(ViewResize.missing_ranges_have_a_task, ViewResize.built_views_are_complete),
    budgets={ViewResize.staging_sstables: 0},
)
class MergedTaskByHalving(ViewResize):
    """Where only some tablets merge, the new id of a tablet is not half of the old one: the task is created
    for the wrong tablet.
    """

    def _becomes_in_merge(self, s: Term[Slot], new: Number, _after: Ids) -> Bool:
        return self._halves(s, new)


@known_bug(
    "000-272",
    "design document 000: group0 stores only tasks that have not been completed yet",
    breaks=ViewResize.built_views_have_no_ranges_to_build,
)
class ViewsAreBuiltByTheLastAnswer(ViewResize):
    """A coordinator marked a view built when it had the answer for its last task, which it removed later: the next one
    found a task of a view that was built.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left but the one that is known to be finished."""
        answered = (self.batch == Work.done) & self.called & ~self.stale
        last = answered & (self.type == Type.build_range)
        left = some(
            (self.building[t] & ~(last & (self.tablet == t))) | self.staging[t]
            for t in numbers(0, LAST)
        )
        require(~left, "no other task is left")
        require((self.batch == Work.none) | answered, "none is executed")
        require(~self.built, "not built yet")
        self.built = True


@known_bug(
    "000-283",
    EACH_TASK,
    breaks=ViewResize.staging_tasks_are_created_for_something,
    budgets={ViewResize.resizes: 1},
)
class EveryNewTabletIsProcessed(ViewResize):
    """A resize stored a process_staging task for each new tablet of a table that had one: most of them found none."""

    def _is_to_process(self, new: Number, becomes: Becomes) -> Bool:
        of_the_table = some(self.staging[t] | self._started(t) for t in numbers(0, LAST))
        return of_the_table & some(becomes(s, new) for s in Slot)


@known_bug(
    "000-284",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewResize.staging_tasks_are_created_for_something,
    budgets=RESTART,
)
class RestartedNodesProcessAllTablets(ViewResize):
    """A worker that started again stored a process_staging task for every tablet of the node, needed or not."""

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts: all its tablets are to be processed."""
        require(self.batch != Work.none, "the worker has a batch")
        for t in numbers(0, LAST):
            self.staging[t] = self._is_tablet(t) & ~self.built
        self._end_batch()
        self.restarted = True


@known_bug(
    "000-345",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewResize.staging_tasks_are_created_for_something,
    budgets={ViewResize.resizes: 0, ViewResize.leader_changes: 1},
)
class NewLeadersStoreStartedTasks(ViewResize):
    """A coordinator that took over took the process_staging task that a worker had begun for one that nobody had: it stored
    another, which found nothing.
    """

    @action(by=COORDINATOR, spends=ViewResize.leader_changes)
    def change_leader(self) -> None:
        """The leader changes: a task that has started waits once more."""
        super().change_leader()
        for t in numbers(0, LAST):
            self.staging[t] = self.staging[t] | self._started(t)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-155",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewResize.ranges_are_built_in_any_order,
    budgets={ViewResize.resizes: 1},
)
class StagingComesFirst(ViewResize):
    """No range was built while a tablet whose range was built had staging sstables: a repair held up a new view."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets a range to build when nothing is staged that might be processed."""
        waits = some(self.staging[u] & ~self.building[u] for u in numbers(0, LAST))
        require(~waits, "nothing is staged")
        super().start_building(t)


@known_bug(
    "000-156",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewResize.staging_waits_for_no_other_tablet,
    budgets={ViewResize.resizes: 1},
)
class AllRangesComeFirst(ViewResize):
    """Staging sstables were processed when all ranges of the table were built, which takes days."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_processing(self, t: Id) -> None:
        """The shard gets the task to process staging sstables of a table whose ranges are built."""
        require(every(~self.building[u] for u in numbers(0, LAST)), "all ranges are built")
        super().start_processing(t)


@known_bug(
    "000-254",
    ATTACHES,
    breaks=ViewResize.a_new_coordinator_waits_for_a_running_batch,
    budgets=FAILOVER,
)
class RunningBatchesAreNotAttachedTo(ViewResize):
    """A worker answered a new coordinator for what it had completed, and refused the call for what it was executing."""

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self) -> None:
        """A coordinator that does not know of the batch has its result, when there is one."""
        super().attach()
        require(self.batch == Work.done, "the batch is done")


@known_bug(
    "000-256",
    "design document 000, tablet resize: abort the task and create new tasks",
    breaks=ViewResize.splits_do_not_wait_for_views,
    budgets=FAILOVER,
)
class SplitsWaitForTheNewCoordinator(ViewResize):
    """After a failover no tablet was split until the new coordinator had asked the worker for what it was doing."""

    @action(by=TOPOLOGY, spends=ViewResize.resizes)
    def split(self, s: Term[Slot]) -> None:
        """A tablet splits, whose coordinator knows of the batch."""
        super().split(s)
        require((self.batch == Work.none) | self.called, "the coordinator knows of the batch")


@known_bug(
    "000-260",
    "design document 000: both are restarted, and we will have to redo the work",
    breaks=ViewResize.ranges_are_built_in_any_order,
    budgets={**RESTART, ViewResize.restarts: 2},
)
class TwoRestartsAreEnough(ViewResize):
    """A worker that had restarted twice during the building of a view got no range to build any more."""

    lost: NumberVar = number(0, 2)

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets the task to build the view from a tablet, if its node keeps running."""
        super().start_building(t)
        require(self.lost < 2, "the node keeps running")

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts."""
        super().restart()
        self.lost = self.lost + 1


@known_bug(
    "000-273",
    "design document 000, tablet resize: abort the task and create new task with new tablet id",
    breaks=ViewResize.all_tablets_merge_whatever_is_executed,
    profile="seed",
    budgets={ViewResize.resizes: 1, ViewResize.staging_sstables: 0},
)
class MergesWaitForTheBatch(ViewResize):
    """A merge was finalized when no worker executed a task of the table any more."""

    @action(by=TOPOLOGY, spends=ViewResize.resizes)
    def merge_all(self) -> None:
        """All tablets merge, two and two, of a table that no worker is busy with."""
        require(self.batch == Work.none, "the worker has no batch")
        super().merge_all()


@known_bug(
    "000-274",
    "design document 000, tablet resize: abort the task and create new tasks",
    breaks=ViewResize.all_tablets_split_whatever_is_executed,
    profile="seed",
    budgets={ViewResize.resizes: 1},
)
class SplitsWaitForStagingSstables(ViewResize):
    """A split was finalized when the table had no sstable in a staging directory."""

    @action(by=TOPOLOGY, spends=ViewResize.resizes)
    def split_all(self) -> None:
        """All tablets split, of which none has a staging sstable."""
        require(~some(self._is_held(s) for s in Slot), "none is staged")
        super().split_all()


@known_bug(
    "000-312",
    "design document 000: each view building worker keeps track of finished tasks locally",
    breaks=ViewResize.batches_end_whatever_becomes_of_the_tablets,
    budgets=FAILOVER,
)
class BatchesWaitForWhoCalls(ViewResize):
    """A range that was read for a coordinator that was gone was built when the new one had called for it."""

    @action(by=WORKER, fair=WEAK)
    def build_range(self) -> None:
        """The batch has read the tablet, and somebody waits for that."""
        super().build_range()
        require(self.called | self.stale, "a call waits")


BUGS = known_bugs_in(globals())
