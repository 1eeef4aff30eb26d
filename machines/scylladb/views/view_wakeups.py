"""The fibers of a view building worker: two mutexes, and condition variables that wake only who sleeps.

The registrator stores tasks for staging sstables; the observer follows group0 and ends finished batches.
A broadcast that nobody waits for is lost, so a fiber must look again before it sleeps; and who holds the
staging mutex must not wait for group0, as group0 is applied under a mutex that the observer holds while it
waits for the staging mutex. `view_staging.py` is about the same queues as data.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER, Work
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    accepts,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalents,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    require,
    scopes,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK
GROUP0 = Actor("group0")
REMOVED = "of a finished task the loop has nothing to do, and another fiber removes it"
AWAKE = "a fiber that does not sleep looks again"


class Fiber(Enum):
    """A fiber of the worker that takes mutexes."""

    registrator = auto()
    observer = auto()


class Registrator(Enum):
    """Where the staging sstable registrator is."""

    awake = auto()  # about to take the staging mutex
    looking = auto()  # holds it, looks at the queue
    adding = auto()  # waits until its group0 command is applied
    applied = auto()  # about to take the staging mutex again
    moving = auto()  # holds it, moves what it registered out of the queue
    drowsy = auto()  # has found nothing, and is about to wait
    asleep = auto()  # waits on the condition variable


class Observer(Enum):
    """Where the group0 observer is."""

    awake = auto()  # about to take group0's read-apply mutex
    waiting = auto()  # holds it, and waits for the staging mutex
    updating = auto()  # holds both
    drowsy = auto()  # has seen everything, and is about to wait
    asleep = auto()  # waits on the condition variable


class Loop(Enum):
    """Where the loop of the view building coordinator is."""

    awake = auto()  # about to take the group0 guard
    looking = auto()  # holds it, and has what group0 stores worked on
    drowsy = auto()  # has released it, and is about to wait
    asleep = auto()  # waits on the condition variable


class ViewWakeups(Machine):
    """A worker's registrator, observer and batch, which wait for each other; and the coordinator's loop."""

    sstables = budget(2, doc="staging sstables that are queued")
    batches = budget(1, doc="batches that are started")
    changes = budget(1, doc="changes of group0 by others")
    creations = budget(2, doc="tasks that are created for the coordinator")

    exercised_at = scopes({}, {batches: 2, sstables: 1, changes: 0})

    queued: FlagVar = flag()  # an sstable is to be registered
    taken: FlagVar = flag()  # the registrator has taken what was queued, and has not moved it yet
    changed: FlagVar = flag()  # group0 has changed since the observer looked
    batch: OneVar[Work] = one_of(Work, init=Work.none)
    staging_mutex: SetVar[Fiber] = set_of(Fiber)  # who holds it
    apply_mutex: SetVar[Fiber] = set_of(Fiber)
    registrator: OneVar[Registrator] = one_of(Registrator, init=Registrator.awake)
    observer: OneVar[Observer] = one_of(Observer, init=Observer.awake)

    # the coordinator, on its own node
    loop: OneVar[Loop] = one_of(Loop, init=Loop.awake)
    stored: FlagVar = flag()  # a task in group0
    call: OneVar[Work] = one_of(Work, init=Work.none)  # for it; done: answered
    news: FlagVar = flag()  # something has happened since the loop looked

    # -- what happens to the worker ----------------------------------------------------------------------

    @action(by=WORKER, spends=sstables)
    def queue_sstable(self) -> None:
        """A staging sstable is queued, under the mutex, and the registrator is notified."""
        require(self.staging_mutex.is_empty(), "staging mutex is free")
        self.queued = True
        self._wake_registrator()

    @action(by=COORDINATOR, spends=batches)
    def start_batch(self) -> None:
        """The coordinator starts a batch."""
        require(self.batch == Work.none, "no batch")
        self.batch = Work.executing

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """The batch is done and notifies the observer."""
        require(self.batch == Work.executing, "a batch is executed")
        self.batch = Work.done
        self._wake_observer()

    @action(by=GROUP0, spends=changes)
    def apply_change(self) -> None:
        """A command of another node is applied."""
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        self.changed = True
        self._wake_observer()

    # -- the registrator ---------------------------------------------------------------------------------

    @registrator.step(Registrator.awake, Registrator.looking, by=WORKER, fair=WEAK)
    def look(self) -> None:
        """The registrator takes the staging mutex and looks at the queue."""
        self._take_staging(Fiber.registrator)

    @registrator.step(Registrator.looking, Registrator.adding, by=WORKER, fair=WEAK)
    def add_entry(self) -> None:
        """An sstable has to be registered: the registrator sends a command to group0 and holds no mutex meanwhile."""
        require(self.queued, "an sstable is queued")
        self.queued = False
        self.taken = True
        self._release_before_adding()

    @registrator.step(Registrator.adding, Registrator.applied, by=GROUP0, fair=WEAK)
    def apply_entry(self) -> None:
        """The registrator's command is applied: a task is stored."""
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        self.changed = True
        self._wake_observer()

    @registrator.step(Registrator.applied, Registrator.moving, by=WORKER, fair=WEAK)
    def look_again(self) -> None:
        """The registrator takes the staging mutex, unless it still holds it."""
        self._take_staging(Fiber.registrator)

    @registrator.step(Registrator.moving, Registrator.awake, by=WORKER, fair=WEAK)
    def move(self) -> None:
        """What was registered leaves the queue; what was queued since stays."""
        self.taken = False
        self.staging_mutex.discard(Fiber.registrator)

    @registrator.step(Registrator.looking, Registrator.drowsy, by=WORKER, fair=WEAK)
    def find_nothing(self) -> None:
        """The queue is empty: the registrator releases the mutex."""
        require(~self.queued, "nothing is queued")
        self.staging_mutex.discard(Fiber.registrator)

    @registrator.step(Registrator.drowsy, Registrator.asleep, by=WORKER, fair=WEAK)
    def wait(self) -> None:
        """The registrator finds the queue still empty, and waits on the condition variable."""
        self._registrator_may_sleep()

    @registrator.step(Registrator.drowsy, Registrator.awake, by=WORKER, fair=WEAK)
    def stay_awake(self) -> None:
        """An sstable was queued in the meantime: the registrator does not wait."""
        require(self.queued, "an sstable is queued")

    # -- the observer ------------------------------------------------------------------------------------

    @observer.step(Observer.awake, Observer.waiting, by=WORKER, fair=WEAK)
    def begin_update(self) -> None:
        """The observer takes group0's read-apply mutex, so that the state does not change while it looks."""
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        self.apply_mutex.add(Fiber.observer)

    @observer.step(Observer.waiting, Observer.updating, by=WORKER, fair=WEAK)
    def update(self) -> None:
        """The observer takes the staging mutex as well, and reads group0's state and the batch's."""
        self._take_staging(Fiber.observer)
        self.changed = False
        self.batch = choose(self.batch == Work.done, Work.none, self.batch)

    @observer.step(Observer.updating, Observer.drowsy, by=WORKER, fair=WEAK)
    def end_update(self) -> None:
        """The observer releases both mutexes."""
        self.staging_mutex.discard(Fiber.observer)
        self.apply_mutex.discard(Fiber.observer)

    @observer.step(Observer.drowsy, Observer.asleep, by=WORKER, fair=WEAK)
    def wait_for_event(self) -> None:
        """The observer finds no change of group0 and no finished batch, and waits for either."""
        self._observer_may_sleep()

    @observer.step(Observer.drowsy, Observer.awake, by=WORKER, fair=WEAK)
    def go_on(self) -> None:
        """Something has happened in the meantime: the observer does not wait."""
        require(self.changed | (self.batch == Work.done), "something has happened")

    # -- the coordinator's loop ----------------------------------------------------------------------------

    @action(by=GROUP0, spends=creations)
    def create_task(self) -> None:
        """A task is stored in group0: whoever waits for changes of the state is woken."""
        require(~self.stored, "none is stored")
        self._guard_is_free()
        self.stored = True
        self._wake_loop()

    @loop.step(Loop.awake, Loop.looking, by=COORDINATOR, fair=WEAK)
    def take_guard(self) -> None:
        """The loop takes the group0 guard: nothing changes while it looks."""
        self.news = False

    @loop.step(Loop.looking, Loop.drowsy, by=COORDINATOR, fair=WEAK)
    def call_worker(self) -> None:
        """The loop calls the worker for the stored task, if there is one, and releases the guard."""
        calls = self.stored & (self.call == Work.none)
        self.call = choose(calls, Work.executing, self.call)

    @call.step(Work.executing, Work.done, by=WORKER, fair=WEAK)
    def answer_call(self) -> None:
        """The worker answers, and the loop is woken if it waits."""
        self._wake_loop()

    @call.step(Work.done, Work.none, by=COORDINATOR, fair=WEAK)
    def remove_task(self) -> None:
        """Another fiber removes the finished task, under the guard."""
        self._guard_is_free()
        self.stored = False
        self._wake_loop()

    @loop.step(Loop.drowsy, Loop.asleep, by=COORDINATOR, fair=WEAK)
    def await_event(self) -> None:
        """No event has come since the loop looked: it waits for one."""
        self._loop_may_sleep()

    @loop.step(Loop.drowsy, Loop.awake, by=COORDINATOR, fair=WEAK)
    def look_anew(self) -> None:
        """Something has happened in the meantime: the loop does not wait."""
        require(self.news, "something has happened")

    # -- helpers ---------------------------------------------------------------------------------------

    def _take_staging(self, fiber: Fiber) -> None:
        own = self.staging_mutex == {fiber}
        require(self.staging_mutex.is_empty() | own, "staging mutex is free")
        self.staging_mutex.add(fiber)

    def _release_before_adding(self) -> None:
        self.staging_mutex.discard(Fiber.registrator)

    def _registrator_may_sleep(self) -> None:
        require(~self.queued, "nothing is queued")

    def _observer_may_sleep(self) -> None:
        require(~self.changed & (self.batch != Work.done), "nothing has happened")

    def _loop_may_sleep(self) -> None:
        require(~self.news, "nothing has happened")

    def _guard_is_free(self) -> None:
        require(self.loop != Loop.looking, "group0 guard is free")

    def _wake_loop(self) -> None:
        self.news = True
        self.loop = choose(self.loop == Loop.asleep, Loop.awake, self.loop)

    def _wake_registrator(self) -> None:
        """A broadcast wakes who waits at this moment, and leaves no trace."""
        asleep = self.registrator == Registrator.asleep
        self.registrator = choose(asleep, Registrator.awake, self.registrator)

    def _wake_observer(self) -> None:
        asleep = self.observer == Observer.asleep
        self.observer = choose(asleep, Observer.awake, self.observer)

    # -- promises --------------------------------------------------------------------------------------

    @accepts(queue_sstable)
    def sstables_are_queued_at_any_time(self) -> Bool:
        """000: "a staging sstable was registered": whoever writes one waits for the mutex, and not for group0."""
        return self.staging_mutex.is_empty()

    @accepts(create_task)
    def tasks_are_created_at_any_time(self) -> Bool:
        """000: a task "is stored in group0 state (system.view_building_tasks) to be processed in the future", whatever the
        coordinator does meanwhile: nothing changes only while its loop looks.
        """
        return ~self.stored & (self.loop != Loop.looking)

    @accepts(start_batch)
    def batches_start_at_any_time(self) -> Bool:
        """000: the worker "can execute only one batch per shard": for nothing but that one a batch waits, whatever the
        registrator and the observer do.
        """
        return self.batch == Work.none

    @accepts(apply_change)
    def group0_changes_at_any_time(self) -> Bool:
        """000: the state is loaded "while group0 state is applied", for which a command of another node waits, and for no
        fiber of the worker but the one that reads it.
        """
        return self.apply_mutex.is_empty()

    @accepts(look)
    def the_registrator_waits_for_no_batch(self) -> Bool:
        """000: tasks are created when "a staging sstable was registered", and not when the worker has nothing to execute."""
        return (self.registrator == Registrator.awake) & self.staging_mutex.is_empty()

    @accepts(look_anew)
    def the_coordinator_waits_for_no_call(self) -> Bool:
        """000: the coordinator calls a worker for a task "at some point", and looks again when something has happened since:
        not when a call of its own is over.
        """
        return (self.loop == Loop.drowsy) & self.news

    @accepts(take_guard)
    def the_coordinator_looks_whatever_is_called(self) -> Bool:
        """000, the same of a loop that was woken: another task is found while a worker executes this one."""
        return self.loop == Loop.awake

    @accepts(remove_task)
    def finished_tasks_are_removed_at_any_time(self) -> Bool:
        """000: finished tasks are removed "in 200ms intervals", and not when the loop finds nothing else to do: only while it
        looks nothing changes.
        """
        return (self.call == Work.done) & (self.loop != Loop.looking)

    @accepts(begin_update)
    def the_observer_waits_for_no_batch(self) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted": those that it executes."""
        return (self.observer == Observer.awake) & self.apply_mutex.is_empty()

    @accepts(update)
    def group0_is_read_whatever_is_executed(self) -> Bool:
        """000, the same: it reads what it has locked at once, as the state is loaded "while group0 state is applied", which
        waits until it has been read.
        """
        return (self.observer == Observer.waiting) & self.staging_mutex.is_empty()

    @independent(
        take_guard,
        call_worker,
        remove_task,
        await_event,
        of=(queued, taken, changed, batch, staging_mutex, apply_mutex, registrator, observer),
    )
    def the_coordinator_waits_for_no_fiber(self) -> None:
        """000: the coordinator "is a single entity within the whole cluster": its loop waits for no mutex and no fiber of the
        worker beside it.
        """

    @independent(
        add_entry,
        apply_entry,
        look_again,
        move,
        find_nothing,
        wait,
        stay_awake,
        of=(batch, loop, stored, call, news),
    )
    def registering_goes_on_whatever_is_executed(self) -> None:
        """000: tasks are created when "a staging sstable was registered": whatever is called for, or executed."""

    @independent(
        finish_batch, end_update, go_on, of=(queued, taken, registrator, loop, stored, call, news)
    )
    def batches_are_reported_whatever_is_registered(self) -> None:
        """000: "the worker will eventually reply that the task was finished": whatever else is to be registered, and whoever
        waits for the reply.
        """

    @independent(
        answer_call,
        of=(
            queued,
            taken,
            changed,
            batch,
            staging_mutex,
            apply_mutex,
            registrator,
            observer,
            loop,
            news,
        ),
    )
    def answers_wait_for_no_loop(self) -> None:
        """000: the worker "responses the coordinator once the tasks are finished", whether the loop waits for that, looks at other
        tasks, or is about to.
        """

    @invariant
    def a_mutex_has_one_holder(self) -> Bool:
        """Queues and state are looked at and changed by one fiber at a time."""
        return (self.staging_mutex.size() <= 1) & (self.apply_mutex.size() <= 1)

    @invariant
    def mutexes_are_held_where_they_are_needed(self) -> Bool:
        """The queue is read, moved and updated under the staging mutex, group0 is read under its own; and
        neither is held anywhere else.
        """
        queue = self.registrator.any_of(Registrator.looking, Registrator.moving)
        reads = self.observer.any_of(Observer.waiting, Observer.updating)
        return (
            (queue == self.staging_mutex.has(Fiber.registrator))
            & ((self.observer == Observer.updating) == self.staging_mutex.has(Fiber.observer))
            & (reads == self.apply_mutex.has(Fiber.observer))
        )

    @invariant
    def what_is_taken_is_being_registered(self) -> Bool:
        """A command is under way for what the registrator has taken."""
        under_way = (Registrator.adding, Registrator.applied, Registrator.moving)
        return self.taken.implies(self.registrator.any_of(*under_way))

    @step_property
    def nothing_leaves_the_queue_unregistered(self, after: Self) -> Bool:
        """000: a task is created when "a staging sstable was registered": none is forgotten."""
        return (self.queued & ~after.queued).implies(after.taken)

    @step_property
    def what_is_taken_gets_a_task(self, after: Self) -> Bool:
        """000: tasks are created when "a staging sstable was registered": of what the registrator has taken it lets nothing go
        before its command is applied, and then under the mutex.
        """
        return (self.taken & ~after.taken).implies(self.registrator == Registrator.moving)

    @step_property
    def the_queue_changes_under_its_mutex(self, after: Self) -> Bool:
        """Nobody else looks at the queue while it changes."""
        takes = self.queued & ~after.queued
        puts = ~self.queued & after.queued
        free = self.staging_mutex.is_empty()
        own = self.staging_mutex == {Fiber.registrator}
        return takes.implies(own) & puts.implies(free)

    @step_property
    def group0_does_not_change_while_it_is_read(self, after: Self) -> Bool:
        """Commands are applied under the read-apply mutex."""
        return (~self.apply_mutex.is_empty() & ~self.changed).implies(~after.changed)

    @step_property
    def every_command_is_for_the_observer_to_see(self, after: Self) -> Bool:
        """000: the worker "observes the group0 state", its own commands too: the registrator goes on with what it has taken
        when group0 has changed by it.
        """
        past = (Registrator.applied, Registrator.moving)
        applied = ~self.registrator.any_of(*past) & after.registrator.any_of(*past)
        return applied.implies(after.changed)

    @step_property
    def batches_run_to_their_end(self, after: Self) -> Bool:
        """A batch finishes before it is ended, and is reported before another one starts."""
        goes_on = (self.batch == Work.executing).implies(after.batch != Work.none)
        return goes_on & (self.batch == Work.done).implies(after.batch != Work.executing)

    @invariant
    def calls_are_for_stored_tasks(self) -> Bool:
        """000: the coordinator decides to process what "is stored in group0 state"."""
        return (self.call != Work.none).implies(self.stored)

    @lemma
    def the_loop_sleeps_when_all_is_seen(self) -> Bool:
        """A loop that sleeps has missed no event, and has called the worker for the stored task."""
        seen = ~self.stored | (self.call != Work.none)
        released = self.loop.any_of(Loop.drowsy, Loop.asleep)
        return (self.loop == Loop.asleep).implies(~self.news) & (released & ~self.news).implies(
            seen
        )

    @step_property
    def tasks_are_removed_when_answered(self, after: Self) -> Bool:
        """000: "After the coordinator gets the response from the worker", tasks are removed; a worker responds to a call."""
        responds = (self.call != Work.done) & (after.call == Work.done)
        removed = self.stored & ~after.stored
        return removed.implies(self.call == Work.done) & responds.implies(
            self.call == Work.executing
        )

    @step_property
    def group0_does_not_change_while_the_loop_looks(self, after: Self) -> Bool:
        """Changes are made under the group0 guard, by one fiber at a time."""
        return (self.loop == Loop.looking).implies(self.stored == after.stored)

    @invariant
    def fibers_do_not_wait_for_each_other(self) -> Bool:
        """No deadlock of the two mutexes (SCYLLADB-2879)."""
        registrator = (self.registrator == Registrator.adding) & ~self.apply_mutex.is_empty()
        observer = (self.observer == Observer.waiting) & self.staging_mutex.has(Fiber.registrator)
        return ~(registrator & observer)

    @final
    def all_asleep(self) -> Bool:
        """Nothing is to be done."""
        idle = (self.registrator == Registrator.asleep) & (self.observer == Observer.asleep)
        idle = idle & (self.loop == Loop.asleep) & ~self.stored
        return idle & ~self.queued & ~self.taken & ~self.changed & (self.batch == Work.none)

    @liveness
    def queued_sstables_get_a_task(self) -> LeadsTo:
        """A queued staging sstable gets a task in the end (SCYLLADB-3772)."""
        return leads_to(self.queued, ~self.queued)

    @liveness
    def registered_sstables_leave_the_queue(self) -> LeadsTo:
        """What the registrator has taken is stored as a task, and held for it, in the end."""
        return leads_to(self.taken, ~self.taken)

    @liveness
    def finished_batches_are_reported(self) -> LeadsTo:
        """000: the worker "responses the coordinator once the tasks are finished" (scylladb #26204)."""
        return leads_to(self.batch == Work.done, self.batch != Work.done)

    @liveness
    def stored_tasks_are_worked_on(self) -> LeadsTo:
        """000: "at some point, the view building coordinator will decide to process it" (scylladb #27298)."""
        return leads_to(self.stored, ~self.stored)

    @liveness
    def changes_are_observed(self) -> LeadsTo:
        """000: the worker "observes the group0 state to notice when tasks are aborted"."""
        return leads_to(self.changed, ~self.changed)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_step(
            registrator,
            (Registrator.drowsy, Registrator.asleep),
            Registrator.adding,
            because="a command about nothing stores nothing",
        ),
        equivalent_step(registrator, Registrator.asleep, Registrator.drowsy, because=AWAKE),
        equivalent_step(observer, Observer.asleep, Observer.drowsy, because=AWAKE),
        equivalent_step(loop, Loop.asleep, Loop.drowsy, because=AWAKE),
        equivalent_loss(queue_sstable, queued, because="there may as well be no sstable"),
        equivalent_replacement(
            queue_sstable,
            "queued becomes: no for yes",
            because="there may as well be no sstable",
        ),
        equivalent_loss(start_batch, batch, because="a batch may as well not start"),
        equivalent_loss(apply_change, changed, because="there may as well be no change"),
        equivalent_replacement(
            apply_change,
            "changed becomes: no for yes",
            because="there may as well be no change",
        ),
        equivalent_drop(
            add_entry, "an sstable is queued", because="a command about nothing stores nothing"
        ),
        equivalent_replacement(
            find_nothing,
            "asleep for drowsy",
            because="a fiber that sleeps as soon as it releases the mutex misses nothing",
        ),
        equivalent_loss(wait, registrator, because=AWAKE),
        equivalent_drop(
            begin_update,
            "read-apply mutex is free",
            because="group0 holds it within one step, and no other fiber takes it",
        ),
        equivalent_loss(wait_for_event, observer, because=AWAKE),
        equivalent_loss(_wake_observer, observer, because=AWAKE),
        equivalent_drop(create_task, "none is stored", because="what is stored is stored already"),
        equivalent_loss(create_task, stored, because="there may as well be no task"),
        equivalent_replacement(
            create_task,
            "stored becomes: no for yes",
            because="there may as well be no task",
        ),
        equivalent_loss(create_task, loop, because=AWAKE),
        equivalent_drop(
            call_worker, "loop is looking", because="a worker may be called at any time"
        ),
        equivalent_replacement(
            call_worker,
            "asleep for drowsy",
            because="while the loop looks, only an answer may come, and of a finished task it has nothing to do",
        ),
        equivalent_replacement(
            _wake_loop,
            "looking for awake",
            because="who is woken may as well take the guard at once: it was free",
        ),
        equivalent_replacement(answer_call, "news becomes: no for yes", because=REMOVED),
        equivalent_replacement(remove_task, "news becomes: no for yes", because=REMOVED),
        equivalent_loss(answer_call, news, loop, because=REMOVED),
        equivalent_loss(remove_task, news, loop, because=REMOVED),
        equivalent_loss(await_event, loop, because=AWAKE),
        equivalent_drop(look_anew, "loop is drowsy", because=AWAKE),
    )
