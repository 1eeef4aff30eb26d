"""Staging sstables: one worker, its two queues, and a tablet replica that comes, goes and restarts.

Source: design document 000 (view-building-coordinator, 2025-12), "Staging sstables". A staging sstable
waits until the node is a replica for good, as only then its view updates reach a view replica
(scylladb #19149). The worker's registrator stores a task for it in group0; a batch of such tasks generates
the updates and moves the sstables to the base directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Work
from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    Profile,
    SetVar,
    States,
    Term,
    accepts,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    only_when,
    per,
    profiles,
    require,
    scopes,
    set_of,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
MOST_TASKS = 4


class Sstable(Entity, scope=2):
    """An sstable that is written to the staging directory."""


class Standing(States):
    """What the node is to the tablet."""

    # fmt: off
    #         transition  paired  storage
    absent  = False,      False,  False
    pending = True,       False,  True   # it becomes a replica: a view update from it is dropped
    replica = False,      True,   True
    leaving = True,       True,   True   # it stops being one
    # fmt: on

    def __init__(self, transition: bool, paired: bool, storage: bool) -> None:
        self.transition = transition
        self.paired = paired  # with a view replica
        self.storage = storage


class Place(Enum):
    """Where an sstable is."""

    nowhere = auto()  # not written yet
    staging = auto()
    base = auto()  # moved to the base directory: its view updates have been generated
    removed = auto()  # its tablet replica was cleaned up


@dataclass(frozen=True)
class StagingRelease(Profile):
    """What a version does about the tasks of staging sstables."""

    dedupes: bool  # no task is created while one waits (2026-06)


SEED = StagingRelease("seed", dedupes=False)
SCYLLA_2026_2 = StagingRelease("scylla-2026.2", dedupes=True)


class ViewStaging(Machine):
    """One node's staging sstables of one tablet.

    What leaves with its tablet is out of sight here: that its rows reach the views is promised by
    `view_destinations.py`, which has the replica that the tablet moves to.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    moves = budget(2, doc="migrations of the tablet to the node or away from it")
    restarts = fault_budget(1, doc="restarts of the node")

    exercised_at = scopes({}, {moves: 1, restarts: 2}, {moves: 3})

    # the node's disk, and the tablet
    place = per(Sstable, one_of(Place, init=Place.nowhere))
    view: SetVar[Sstable] = set_of(Sstable)  # sstables whose updates have reached the view
    standing: OneVar[Standing] = one_of(Standing, init=Standing.absent)
    # process_staging tasks in group0
    waiting: NumberVar = number(0, MOST_TASKS)  # not started
    started: FlagVar = flag()  # those of the batch
    aborted: FlagVar = flag()  # aborted ones, until the operation ends
    # the worker's memory
    loaded: FlagVar = flag(init=True)  # the tables' sstables are loaded
    # staging sstables that a restart left have been looked for
    discovered: FlagVar = flag(init=True)
    to_register: SetVar[Sstable] = set_of(Sstable)  # _sstables_to_register
    registering: SetVar[Sstable] = set_of(Sstable)  # what the registrator's command is about
    staging: SetVar[Sstable] = set_of(Sstable)  # _staging_sstables: there is a task for them
    batch: OneVar[Work] = one_of(Work, init=Work.none)
    processing: SetVar[Sstable] = set_of(Sstable)  # what the batch found when it started

    # -- staging sstables --------------------------------------------------------------------------------

    @action(by=WORKER)
    def write_staging(self, s: Term[Sstable]) -> None:
        """Streaming or repair writes an sstable to the staging directory; the worker is told of it."""
        require(self.place[s] == Place.nowhere, "a new sstable")
        require(self.standing.any_of(Standing.pending, Standing.replica), "the node gets data")
        require(self.discovered, "the node serves")
        self.place[s] = Place.staging
        self.to_register.add(s)

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The registrator takes what there is to register; it holds no mutex from here on."""
        require(~self.to_register.is_empty(), "there is something to register")
        require(self.registering.is_empty(), "no command is under way")
        self.registering = self.to_register

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        """The command is applied: a task is stored, and the sstables that still exist wait for it.

        That is one step here: a batch that begins between the two would find no sstable.
        """
        require(~self.registering.is_empty(), "a command is under way")
        known = self.registering & self.to_register
        self.waiting = choose(self._needs_no_task(), self.waiting, self._one_more())
        self.staging = self.staging | known
        self.to_register = self.to_register - known
        self.registering = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def start_batch(self) -> None:
        """The coordinator has the waiting tasks executed, as the tablet is not in transition."""
        require((self.waiting > 0) & (self.batch == Work.none), "tasks wait for an idle worker")
        self._is_at_rest()
        self.batch = Work.executing
        self.waiting = 0
        self.started = True
        self.processing = self.staging

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """View updates are generated from the sstables, which then move to the base directory."""
        require(self.batch == Work.executing, "a batch is executed")
        for s in self.processing & self.staging:
            self.place[s] = Place.base
            self.view.put(s, self.standing.column(lambda standing: standing.paired))
            self.staging.discard(s)
        self.batch = Work.done
        self.processing = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the finished tasks, unless they were aborted."""
        require(self.batch == Work.done, "the batch is done")
        self.batch = Work.none
        self.started = False

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The worker sees that the batch's tasks are aborted or gone."""
        require(self.batch == Work.executing, "a batch is executed")
        require(~self.started, "its tasks are aborted or gone")
        self.batch = Work.none
        self.processing = frozenset()

    # -- the tablet ------------------------------------------------------------------------------------

    @standing.step(
        Standing.absent,
        Standing.pending,
        by=TOPOLOGY,
        spends=moves,
    )
    def come(self) -> None:
        """The tablet migrates to this node."""

    @standing.step(Standing.pending, Standing.replica, by=TOPOLOGY, fair=WEAK)
    def arrive(self) -> None:
        """The migration ends: the node is a replica, and paired."""

    @standing.step(Standing.pending, Standing.absent, by=TOPOLOGY)
    def give_up_coming(self) -> None:
        """The migration is undone: the replica is cleaned up. Its tasks stay; they will find nothing."""
        self._clean_up()

    @standing.step(Standing.replica, Standing.leaving, by=TOPOLOGY, spends=moves)
    def leave(self) -> None:
        """The tablet migrates away: the tasks are aborted."""
        self.aborted = self.started | (self.waiting > 0)
        self.started = False
        self.waiting = 0

    @standing.step(Standing.leaving, Standing.absent, by=TOPOLOGY, fair=WEAK)
    def end_leaving(self) -> None:
        """The replica is cleaned up; the tasks are deleted, and others created where the tablet is now."""
        self._clean_up()
        self.aborted = False
        self.waiting = 0

    @standing.step(
        Standing.leaving,
        Standing.replica,
        by=TOPOLOGY,
    )
    def give_up_leaving(self) -> None:
        """The migration is undone: tasks with new ids take the places of the aborted ones."""
        self.waiting = choose(self.aborted, self._one_more(), self.waiting)
        self.aborted = False

    # -- restart ---------------------------------------------------------------------------------------

    @action(by=WORKER, spends=restarts)
    def restart(self) -> None:
        """The node restarts: what the worker knew is lost, and tasks of the batch are not started any more."""
        self.discovered = False
        self.to_register = frozenset()
        self.staging = frozenset()
        self.processing = frozenset()
        self.waiting = choose(self.started, self._one_more(), self.waiting)
        self.loaded = False
        self.registering = frozenset()
        self.batch = Work.none
        self.started = False

    @action(by=WORKER, fair=WEAK)
    def load_sstables(self) -> None:
        """The tables' sstables are loaded from disk."""
        require(~self.loaded, "not loaded yet")
        self.loaded = True

    @action(by=WORKER, fair=WEAK)
    def discover(self) -> None:
        """The worker looks for staging sstables and queues them, once, when all sstables are loaded."""
        require(~self.discovered, "not discovered yet")
        self._is_loaded()
        for s in Sstable:
            self.to_register.put(s, self.loaded & (self.place[s] == Place.staging))
        self.discovered = True

    # -- helpers ---------------------------------------------------------------------------------------

    def _is_at_rest(self) -> None:
        moving = self.standing.column(lambda standing: standing.transition)
        require(~moving, "the tablet is not in transition")

    def _is_loaded(self) -> None:
        require(self.loaded, "sstables are loaded")

    def _needs_no_task(self) -> Bool:
        """A task that has not started will find the sstables."""
        return (self.waiting > 0) & self.release.dedupes

    def _one_more(self) -> Number:
        return choose(self.waiting < MOST_TASKS, self.waiting + 1, self.waiting)

    def _clean_up(self) -> None:
        """The tablet's storage is removed, and the worker forgets what was in it."""
        for s in Sstable:
            there = self.place[s] != Place.nowhere
            self.place[s] = choose(there, Place.removed, Place.nowhere)
        self._forget_registered()
        self._forget_unregistered()

    def _forget_registered(self) -> None:
        self.staging = frozenset()

    def _forget_unregistered(self) -> None:
        self.to_register = frozenset()

    # -- promises --------------------------------------------------------------------------------------

    @accepts(write_staging)
    def sstables_are_staged_at_any_time(self, s: Term[Sstable]) -> Bool:
        """000: tasks are created when "a staging sstable was registered", whatever the worker executes."""
        gets_data = self.standing.any_of(Standing.pending, Standing.replica)
        return (self.place[s] == Place.nowhere) & gets_data & self.discovered

    @accepts(discover)
    def sstables_are_found_at_any_time(self) -> Bool:
        """000, the same of a node that has restarted: what is on its disk is registered, also while the tablet moves."""
        return ~self.discovered & self.loaded

    @independent(
        load_sstables,
        of=(standing, waiting, started, aborted, place, batch, staging, to_register, registering),
    )
    def sstables_are_loaded_at_any_time(self) -> None:
        """000, the same: nothing is found before it is loaded, for which a node that has restarted waits neither for its tablet
        to come to rest, nor for a task to be stored or finished.
        """

    @accepts(begin_registering)
    def sstables_are_registered_at_any_time(self) -> Bool:
        """000, the same: the worker has the task stored whatever it executes, also before the tablet has arrived."""
        return ~self.to_register.is_empty() & self.registering.is_empty()

    @accepts(register)
    def tasks_are_stored_at_any_time(self) -> Bool:
        """000, the same: group0 applies the command, whatever becomes of the tablet."""
        return ~self.registering.is_empty()

    @accepts(leave)
    def tablets_leave_at_any_time(self) -> Bool:
        """000, "Tablet operations": tasks are aborted when a tablet moves, which does not wait for them."""
        return self.standing == Standing.replica

    @accepts(come)
    def tablets_come_at_any_time(self) -> Bool:
        """000, the same of a tablet that comes: what the worker still executes is no reason to wait."""
        return self.standing == Standing.absent

    @accepts(arrive)
    def tablets_arrive_at_any_time(self) -> Bool:
        """000, the same: what was streamed may still be to be registered."""
        return self.standing == Standing.pending

    @accepts(end_leaving)
    def tablets_are_gone_at_any_time(self) -> Bool:
        """000, the same: no batch is waited for."""
        return self.standing == Standing.leaving

    @accepts(start_batch)
    def batches_wait_for_no_registration(self) -> Bool:
        """000: tasks are stored "to be processed in the future", which does not wait until none is stored any more."""
        idle = (self.waiting > 0) & (self.batch == Work.none) & self.discovered
        return (self.standing == Standing.replica) & idle

    @accepts(finish_batch)
    def batches_are_finished_whatever_is_registered(self) -> Bool:
        """000: "Eventually" the worker answers that a task was finished: with no look at what is to come after it."""
        return (self.batch == Work.executing) & self.started

    @accepts(remove_finished)
    def finished_tasks_are_removed_at_any_time(self) -> Bool:
        """000: finished tasks are removed "in 200ms intervals", whether the tablet moves or more is registered."""
        return self.batch == Work.done

    @accepts(give_up_leaving)
    def operations_are_rolled_back_at_any_time(self) -> Bool:
        """000: "In case of failure, new copies of aborted tasks are created during rollback", whatever the worker does."""
        return self.standing == Standing.leaving

    @accepts(give_up_coming)
    def migrations_to_the_node_are_given_up_at_any_time(self) -> Bool:
        """000, the same of the replica that the tablet was to come to, though something waits there in staging."""
        return self.standing == Standing.pending

    @independent(observe_abort, of=(standing, waiting, aborted, to_register, registering, staging))
    def aborts_are_noticed_at_any_time(self) -> None:
        """000: "The worker also observes the group0 state to notice when tasks are aborted": whatever it registers meanwhile,
        and wherever the tablet is by then.
        """

    @invariant
    def processed_sstables_are_in_the_view(self, s: Term[Sstable]) -> Bool:
        """000: not "prematurely, before the writes are directed to the new replica" (scylladb #19149)."""
        return (self.place[s] == Place.base).implies(self.view.has(s))

    @invariant
    def no_reference_to_removed_sstables(self, s: Term[Sstable]) -> Bool:
        """The worker owns no reference to storage that was cleaned up (SCYLLADB-2312)."""
        known = self.to_register.has(s) | self.staging.has(s)
        return known.implies(self.place[s] == Place.staging)

    @lemma
    def worker_and_tablet_agree(self, s: Term[Sstable]) -> Bool:
        """Only a replica has sstables, each in one queue; a batch processes those of a paired one."""
        there = self.place[s].any_of(Place.staging, Place.base)
        held = self.staging.has(s) & self.processing.has(s)
        known = self.to_register.has(s) | self.staging.has(s) | self.processing.has(s)
        paired = self.standing.any_of(Standing.replica, Standing.leaving)
        return (
            there.implies(self.standing != Standing.absent)
            & ~(self.to_register.has(s) & self.staging.has(s))
            & held.implies(paired)
            & self.processing.has(s).implies(self.place[s] != Place.nowhere)
            & ~(self.processing.has(s) & self.to_register.has(s))
            & known.implies(self.discovered)
            & ~(self.started & (self.standing == Standing.leaving))
            & (self.started == (self.started & (self.batch != Work.none)))
        )

    @invariant
    def only_processed_rows_are_in_the_view(self, s: Term[Sstable]) -> Bool:
        """The view is updated from an sstable when it is processed, and not otherwise."""
        return self.view.has(s).implies(self.place[s].any_of(Place.base, Place.removed))

    @invariant
    def batches_hold_sstables_while_they_run(self) -> Bool:
        """000: the sstables of a batch are "moved to base directory", or left to another one."""
        return (self.batch != Work.executing).implies(self.processing.is_empty())

    @step_property
    def one_batch_on_the_shard(self, after: Self) -> Bool:
        """000: the worker "can execute only one batch per shard"."""
        same = after.processing <= self.processing
        goes_on = (self.batch == Work.executing) & (after.batch == Work.executing)
        again = (self.batch == Work.done) & (after.batch == Work.executing)
        return goes_on.implies(same) & ~again

    @step_property
    def batches_start_with_tasks(self, after: Self) -> Bool:
        """000: the worker executes tasks, and nothing of its own accord."""
        starts = (self.batch == Work.none) & (after.batch == Work.executing)
        return starts.implies(self.waiting > 0)

    @step_property
    def tasks_are_created_for_something(self, after: Self) -> Bool:
        """000: "a staging sstable was registered", or a task is rolled back, which "means creating its duplicate", and not
        two; or it has not started any more.
        """
        cause = ~self.registering.is_empty() | self.aborted | self.started
        one = after.waiting <= self.waiting + 1
        return (after.waiting > self.waiting).implies(cause & one)

    @step_property
    def completed_tasks_are_not_executed_again(self, after: Self) -> Bool:
        """000: "the worker will immediately response that those tasks were completed", also to a new coordinator: what is done
        waits to be done once more only where the node has restarted.
        """
        done = (self.batch == Work.done) & self.started
        again = ~after.started & (after.waiting > self.waiting)
        return (done & again).implies(~after.discovered)

    @step_property
    def work_goes_on_for_whoever_asks(self, after: Self) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result": a batch whose tasks are not aborted goes on,
        whatever is registered meanwhile, but where the node restarts.
        """
        alive = (self.batch == Work.executing) & self.started
        return (alive & (after.batch == Work.none)).implies(~after.discovered)

    @step_property
    def tasks_are_finished_or_deleted(self, after: Self) -> Bool:
        """000: group0 stores tasks until they are completed, or the operation is over."""
        stored = self.started | (self.waiting > 0) | self.aborted
        still = after.started | (after.waiting > 0) | after.aborted
        done = (self.batch == Work.done) | (after.standing == Standing.absent)
        return stored.implies(still | done)

    @step_property
    def tasks_go_with_their_replica(self, after: Self) -> Bool:
        """000: "the tasks are aborted at the start of the operation", and replaced at its end."""
        alive = after.started | (after.waiting > 0)
        leaves = (self.standing == Standing.replica) & (after.standing == Standing.leaving)
        gone = (self.standing == Standing.leaving) & (after.standing == Standing.absent)
        return (leaves | gone).implies(~alive)

    @step_property
    def only_nodes_that_leave_clean_up(self, after: Self, s: Term[Sstable]) -> Bool:
        """A replica's sstables are removed when the node is none any more."""
        removed = (self.place[s] != Place.removed) & (after.place[s] == Place.removed)
        return removed.implies(after.standing == Standing.absent)

    @step_property
    def standings_change_by_migrations(self, after: Self) -> Bool:
        """001: a node is pending before it is a replica, and leaving before it is none."""
        now, then = self.standing, after.standing
        return (
            (now == Standing.absent).implies(then.any_of(Standing.absent, Standing.pending))
            & (now == Standing.pending).implies(then != Standing.leaving)
            & (now == Standing.replica).implies(then.any_of(Standing.replica, Standing.leaving))
            & (now == Standing.leaving).implies(then != Standing.pending)
        )

    @sometimes(at={restarts: 0})
    def workers_notice_aborts(self, after: Self) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted": it leaves their batch before that is through."""
        leaves = (self.batch == Work.executing) & (after.batch == Work.none)
        return self.aborted & leaves

    @invariant
    def registered_sstables_have_a_task(self, s: Term[Sstable]) -> Bool:
        """000: "create view building tasks for this sstable": one that will find it, or has found it."""
        found = self.started & self.processing.has(s)
        return self.staging.has(s).implies((self.waiting > 0) | self.aborted | found)

    @invariant
    def staging_sstables_are_known(self, s: Term[Sstable]) -> Bool:
        """Every staging sstable on disk is queued or has a task, also after a restart (scylladb #27956)."""
        known = self.to_register.has(s) | self.staging.has(s)
        return ((self.place[s] == Place.staging) & self.discovered).implies(known)

    @step_property
    def waiting_tasks_suffice(self, after: Self) -> Bool:
        """2026-06: no task is registered while one is there that has not started."""
        only_when(self.release.dedupes)
        registers = ~(after.staging <= self.staging)
        return (registers & (self.waiting > 0)).implies(after.waiting <= self.waiting)

    @invariant
    def aborted_tasks_are_of_tablets_in_transition(self) -> Bool:
        """000: "new tasks are created at the end", or "during rollback"."""
        return self.aborted.implies(self.standing == Standing.leaving)

    @final
    def nothing_is_staged(self) -> Bool:
        """A node without staging sstables may stay as it is."""
        return every(self.place[s] != Place.staging for s in Sstable)

    @liveness
    def staging_sstables_are_processed(self, s: Term[Sstable]) -> LeadsTo:
        """Every staging sstable is processed in the end, or goes with its tablet."""
        return leads_to(self.place[s] == Place.staging, self.place[s] != Place.staging)

    @liveness
    def tasks_are_finished(self) -> LeadsTo:
        """Every task is finished in the end, though the sstables that it was for be gone."""
        there = self.started | (self.waiting > 0)
        return leads_to(there, ~self.started & (self.waiting == 0))

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_value(
            (Standing.absent, Standing.pending),
            lambda standing: standing.paired,
            because="a batch neither finds sstables where there are none, nor starts in transition",
        ),
        equivalent_drop(
            begin_registering,
            "there is something to register",
            "no command is under way",
            because="a command about nothing stores nothing; a later one is about all of it",
        ),
        equivalent_drop(
            observe_abort, "a batch is executed", because="a batch that is done is over as well"
        ),
        equivalent_replacement(
            give_up_coming,
            "staging for nowhere",
            because="what came to a replica that is given up may as well never have been written",
        ),
        equivalent_loss(give_up_leaving, standing, because="a migration may as well go on"),
        equivalent_replacement(
            give_up_leaving,
            "standing becomes: leaving for replica",
            because="a migration may as well go on",
        ),
        equivalent_loss(
            restart,
            loaded,
            registering,
            batch,
            because="what is remembered does no harm; the tasks are worked on once more",
        ),
        equivalent_drop(load_sstables, "not loaded yet", because="what is loaded is loaded"),
        equivalent_loss(
            _clean_up, place, because="an sstable that was not written yet is not missed"
        ),
    )
