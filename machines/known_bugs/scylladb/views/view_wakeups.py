"""Mistakes put back into `ViewWakeups`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER, Work
from stagewright.machines.scylladb.views.view_wakeups import (
    GROUP0,
    WEAK,
    Fiber,
    Loop,
    Observer,
    Registrator,
    ViewWakeups,
)
from stagewright.spec import action, choose, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "000-189",
    "design document 000: tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.what_is_taken_gets_a_task,
    budgets={ViewWakeups.batches: 0, ViewWakeups.creations: 0},
)
class FailedCommandsAreLogged(ViewWakeups):
    """A command of the registrator failed, as commands of group0 may, which was logged; the sstables that it was about were in
    no queue any more, and no task was ever created for them.
    """

    @ViewWakeups.registrator.step(Registrator.adding, Registrator.awake, by=GROUP0)
    def fail_to_add(self) -> None:
        """The command is not applied, and the registrator goes on."""
        self.taken = False


@known_bug(
    "V12",
    "SCYLLADB-2879",
    breaks=ViewWakeups.fibers_do_not_wait_for_each_other,
    budgets={ViewWakeups.batches: 0},
)
class RegistratorKeepsTheMutex(ViewWakeups):
    """The registrator holds the staging mutex while it waits for group0 to apply its command; the observer
    holds group0's mutex while it waits for the staging mutex.
    """

    def _release_before_adding(self) -> None:
        """The mutex is kept."""


# -- what is never done ----------------------------------------------------------------------------


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
    "V02",
    "scylladb #26204",
    breaks=ViewWakeups.finished_batches_are_reported,
    budgets={ViewWakeups.sstables: 0, ViewWakeups.changes: 0},
)
class ObserverSleepsWithoutLooking(ViewWakeups):
    """A batch finishes while the observer updates its state, and its broadcast wakes nobody: the observer
    then goes to sleep, and the batch is never reported.
    """

    def _observer_may_sleep(self) -> None:
        """The wait has no predicate."""


@known_bug(
    "V11",
    "SCYLLADB-3772",
    breaks=ViewWakeups.queued_sstables_get_a_task,
    budgets={ViewWakeups.batches: 0, ViewWakeups.changes: 0},
)
class RegistratorSleepsWithoutLooking(ViewWakeups):
    """An sstable is queued after the registrator has released the mutex and before it waits: the wait has
    no predicate, and the sstable gets no task.
    """

    def _registrator_may_sleep(self) -> None:
        """The wait has no predicate."""


@known_bug(
    "V19",
    "scylladb #27298",
    breaks=ViewWakeups.stored_tasks_are_worked_on,
    budgets={ViewWakeups.sstables: 0, ViewWakeups.batches: 0, ViewWakeups.changes: 0},
)
class CoordinatorSleepsWithoutLooking(ViewWakeups):
    """The coordinator's loop releases the group0 guard and only then waits: what happens in between wakes nobody, and
    a task that is stored then is not worked on.
    """

    def _loop_may_sleep(self) -> None:
        """The wait has no predicate."""


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-86",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.sstables_are_queued_at_any_time,
    budgets={ViewWakeups.batches: 0, ViewWakeups.changes: 0, ViewWakeups.creations: 0},
)
class QueueingWaitsForGroup0(ViewWakeups):
    """Whoever wrote a staging sstable waited until the command about the one before was applied."""

    @action(by=WORKER, spends=ViewWakeups.sstables)
    def queue_sstable(self) -> None:
        """A staging sstable is queued while none is being registered."""
        require(~self.taken, "none is being registered")
        super().queue_sstable()


@known_bug(
    "000-87",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=ViewWakeups.tasks_are_created_at_any_time,
    budgets={ViewWakeups.batches: 0, ViewWakeups.changes: 0, ViewWakeups.sstables: 0},
)
class TasksAreCreatedWhenTheLoopSleeps(ViewWakeups):
    """Tasks were created only while the coordinator waited for them, so that no wake-up could be lost."""

    @action(by=GROUP0, spends=ViewWakeups.creations)
    def create_task(self) -> None:
        """A task is stored while the loop waits."""
        require(self.loop == Loop.asleep, "the loop waits")
        super().create_task()


@known_bug(
    "000-141",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewWakeups.batches_start_at_any_time,
)
class BatchesStartWhenTheRegistratorSleeps(ViewWakeups):
    """A batch was started when nothing was to be registered: a stream of staging sstables kept a view from being built."""

    @action(by=COORDINATOR, spends=ViewWakeups.batches)
    def start_batch(self) -> None:
        """The coordinator starts a batch while the registrator sleeps."""
        require(self.registrator == Registrator.asleep, "the registrator sleeps")
        super().start_batch()


@known_bug(
    "000-142",
    "design document 000: the state is loaded while group0 state is applied",
    breaks=ViewWakeups.group0_changes_at_any_time,
)
class CommandsWaitForTheRegistrator(ViewWakeups):
    """No command of another node was applied between a registrator's and the move of what that was about."""

    @action(by=GROUP0, spends=ViewWakeups.changes)
    def apply_change(self) -> None:
        """A command of another node is applied while nothing is being registered."""
        require(~self.taken, "nothing is being registered")
        super().apply_change()


@known_bug(
    "000-143",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.the_registrator_waits_for_no_batch,
)
class RegisteringWaitsForTheBatch(ViewWakeups):
    """The registrator looked at its queue while no batch was executed."""

    @ViewWakeups.registrator.step(Registrator.awake, Registrator.looking, by=WORKER, fair=WEAK)
    def look(self) -> None:
        """The registrator takes the staging mutex at an idle worker."""
        require(self.batch != Work.executing, "no batch is executed")
        self._take_staging(Fiber.registrator)


@known_bug("000-144", OBSERVED, breaks=ViewWakeups.the_observer_waits_for_no_batch)
class ObservingWaitsForTheBatch(ViewWakeups):
    """The observer looked at group0 when a batch was over: a task that was aborted meanwhile was executed to its end."""

    @ViewWakeups.observer.step(Observer.awake, Observer.waiting, by=WORKER, fair=WEAK)
    def begin_update(self) -> None:
        """The observer takes group0's read-apply mutex at an idle worker."""
        require(self.batch != Work.executing, "no batch is executed")
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        self.apply_mutex.add(Fiber.observer)


@known_bug(
    "000-188",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewWakeups.the_coordinator_waits_for_no_call,
)
class TheLoopWaitsForItsCall(ViewWakeups):
    """The loop called one worker, and looked for nothing else until that had answered and its tasks were removed."""

    @ViewWakeups.loop.step(Loop.drowsy, Loop.awake, by=COORDINATOR, fair=WEAK)
    def look_anew(self) -> None:
        """Something has happened in the meantime, and no call is under way."""
        require(self.news & (self.call == Work.none), "something has happened")


@known_bug("000-264", OBSERVED, breaks=ViewWakeups.group0_is_read_whatever_is_executed)
class TheObserverWaitsWithTheMutex(ViewWakeups):
    """The observer took group0's read-apply mutex, and read the state when its batch was over: until then no node's commands
    were applied there.
    """

    @ViewWakeups.observer.step(Observer.waiting, Observer.updating, by=WORKER, fair=WEAK)
    def update(self) -> None:
        """The observer, at an idle worker, reads group0's state and the batch's."""
        require(self.batch != Work.executing, "no batch is executed")
        self._take_staging(Fiber.observer)
        self.changed = False
        self.batch = choose(self.batch == Work.done, Work.none, self.batch)


@known_bug(
    "000-307",
    "design document 000: the coordinator is a single entity within the whole cluster",
    breaks=ViewWakeups.the_coordinator_waits_for_no_fiber,
)
class TasksAreRemovedBetweenUpdates(ViewWakeups):
    """On the coordinator's own node no finished task was removed while the observer of its worker read the state."""

    @ViewWakeups.call.step(Work.done, Work.none, by=COORDINATOR, fair=WEAK)
    def remove_task(self) -> None:
        """The finished task is removed while the state is not read."""
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        self._guard_is_free()
        self.stored = False
        self._wake_loop()


@known_bug(
    "000-308",
    "design document 000: tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.registering_goes_on_whatever_is_executed,
)
class EntriesWaitForTheBatch(ViewWakeups):
    """The registrator held its mutex until the batch that was executed had ended, and then sent its command."""

    @ViewWakeups.registrator.step(Registrator.looking, Registrator.adding, by=WORKER, fair=WEAK)
    def add_entry(self) -> None:
        """An sstable has to be registered, and no batch is executed."""
        require(self.batch != Work.executing, "no batch is executed")
        require(self.queued, "an sstable is queued")
        self.queued = False
        self.taken = True
        self._release_before_adding()


@known_bug(
    "000-309",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=ViewWakeups.batches_are_reported_whatever_is_registered,
)
class BatchesEndWhenNothingIsQueued(ViewWakeups):
    """A batch was through when all sstables that had come meanwhile were registered."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """The batch is done, and nothing is to be registered."""
        require(~self.queued & ~self.taken, "nothing is to be registered")
        super().finish_batch()


@known_bug(
    "000-327",
    "design document 000: tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.registering_goes_on_whatever_is_executed,
)
class CommandsWaitForTheBatch(ViewWakeups):
    """The registrator's command was applied when the worker of that node executed no batch."""

    @ViewWakeups.registrator.step(Registrator.adding, Registrator.applied, by=GROUP0, fair=WEAK)
    def apply_entry(self) -> None:
        """The command is applied while nothing is executed."""
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        require(self.batch != Work.executing, "no batch is executed")
        self.changed = True
        self._wake_observer()


@known_bug(
    "000-328",
    "design document 000: tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.registering_goes_on_whatever_is_executed,
)
class TheRegistratorRestsWithTheBatch(ViewWakeups):
    """A registrator that found an sstable in its queue when it was about to wait looked at it after the batch."""

    @ViewWakeups.registrator.step(Registrator.drowsy, Registrator.awake, by=WORKER, fair=WEAK)
    def stay_awake(self) -> None:
        """An sstable was queued in the meantime, and no batch is executed."""
        require(self.queued, "an sstable is queued")
        require(self.batch != Work.executing, "no batch is executed")


@known_bug(
    "000-329",
    "design document 000: the worker responses the coordinator once the tasks are finished",
    breaks=ViewWakeups.answers_wait_for_no_loop,
)
class AnswersWaitForTheLoop(ViewWakeups):
    """A worker's answer was taken when the coordinator's loop waited for events: one that went from task to task had none
    removed.
    """

    @ViewWakeups.call.step(Work.executing, Work.done, by=WORKER, fair=WEAK)
    def answer_call(self) -> None:
        """The worker answers a loop that waits."""
        require(self.loop == Loop.asleep, "the loop waits")
        self._wake_loop()


@known_bug(
    "000-341",
    "design document 000: finished tasks are removed in 200ms intervals",
    breaks=ViewWakeups.finished_tasks_are_removed_at_any_time,
)
class TasksAreRemovedWhenTheLoopRests(ViewWakeups):
    """The coordinator's loop removed what was finished when it found nothing else to do: while tasks were created one after the
    other none was.
    """

    @ViewWakeups.call.step(Work.done, Work.none, by=COORDINATOR, fair=WEAK)
    def remove_task(self) -> None:
        """The finished task is removed while the loop sleeps."""
        require(self.loop == Loop.asleep, "the loop waits for events")
        self.stored = False
        self._wake_loop()


@known_bug(
    "000-342",
    "design document 000: at some point the coordinator will decide to process a task",
    breaks=ViewWakeups.the_coordinator_looks_whatever_is_called,
)
class TheLoopIsWokenByItsCall(ViewWakeups):
    """A loop that was woken by a new task looked for it when the call for another one had been answered and its task removed."""

    @ViewWakeups.loop.step(Loop.awake, Loop.looking, by=COORDINATOR, fair=WEAK)
    def take_guard(self) -> None:
        """The loop takes the group0 guard while no call is under way."""
        require(self.call == Work.none, "no call is under way")
        self.news = False


BUGS = known_bugs_in(globals())
