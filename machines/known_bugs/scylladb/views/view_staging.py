"""Mistakes put back into `ViewStaging`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_staging import (
    WEAK,
    Place,
    Sstable,
    Standing,
    ViewStaging,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Work
from stagewright.spec import FlagVar, Term, action, choose, fault_budget, flag, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ABORTED = "design document 000, Tablet operations: it waits for no task that is aborted"
REGISTERED = (
    "design document 000: process_staging tasks are created when a staging sstable was registered"
)
REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "000-14",
    "design document 000, View building task",
    breaks=(
        ViewStaging.staging_sstables_are_known,
        ViewStaging.staging_sstables_are_processed,
    ),
    sizes={Sstable: 1},
    budgets={ViewStaging.moves: 1, ViewStaging.restarts: 0},
)
class TasksAreStoredBeforeTheirSstablesAreHeld(ViewStaging):
    """The registrator takes sstables off its queue when their task is stored, and holds them for the task a step
    later: a batch that begins in between finds none, its task is removed, and they wait for ever.
    """

    stored: FlagVar = flag()

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        require(~self.registering.is_empty() & ~self.stored, "a command is under way")
        self.waiting = choose(self._needs_no_task(), self.waiting, self._one_more())
        self.to_register = self.to_register - self.registering
        self.stored = True

    @action(by=WORKER, fair=WEAK)
    def hold(self) -> None:
        """What was to be registered waits for the batch."""
        require(self.stored, "the task is stored")
        for s in Sstable:
            there = self.registering.has(s) & (self.place[s] == Place.staging)
            self.staging.put(s, self.staging.has(s) | there)
        self.registering = frozenset()
        self.stored = False


@known_bug(
    "000-47",
    REGISTERED,
    breaks=ViewStaging.registered_sstables_have_a_task,
    sizes={Sstable: 1},
    budgets={ViewStaging.moves: 1},
)
class SstablesWaitBeforeTheirTaskIsStored(ViewStaging):
    """The worker took sstables off its queue when it sent the command that stores their task, not when that was applied."""

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The worker sends the command for what there is to register."""
        require(~self.to_register.is_empty(), "there is something to register")
        require(self.registering.is_empty(), "no command is under way")
        self.registering = self.to_register
        self.staging = self.staging | self.to_register
        self.to_register = frozenset()

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        """The command is applied: a task is stored."""
        require(~self.registering.is_empty(), "a command is under way")
        self.waiting = choose(self._needs_no_task(), self.waiting, self._one_more())
        self.registering = frozenset()


@known_bug("000-118", OBSERVED, breaks=ViewStaging.workers_notice_aborts)
class AbortedStagingTasksAreExecuted(ViewStaging):
    """A batch of staging sstables was executed to its end when its tasks were aborted: the node generated view updates from
    what it was about to remove.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The worker sees that the batch's tasks are gone."""
        super().observe_abort()
        require(~self.aborted, "its tasks are gone")


@known_bug(
    "000-210",
    REMEMBERED,
    breaks=ViewStaging.completed_tasks_are_not_executed_again,
)
class NewLeadersHaveStagingProcessedAgain(ViewStaging):
    """A new coordinator did not know that the tasks of a batch were done, and its worker did not say so: they were executed
    again, for nothing.
    """

    leader_changes = fault_budget(1, doc="changes of the view building coordinator")

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """The tasks of a batch that is done wait to be executed."""
        require(self.batch == Work.done, "a batch is done")
        self.batch = Work.none
        self.waiting = choose(self.started, self._one_more(), self.waiting)
        self.started = False


@known_bug(
    "000-214",
    "design document 000, Staging sstables: create view building tasks for this sstable",
    breaks=(ViewStaging.staging_sstables_are_known, ViewStaging.staging_sstables_are_processed),
    budgets={ViewStaging.restarts: 2},
)
class StagingIsDiscoveredOnce(ViewStaging):
    """What a restart had left in the staging directory was looked for once, as it was when a node was upgraded."""

    upgraded: FlagVar = flag()

    @action(by=WORKER, fair=WEAK)
    def discover(self) -> None:
        """The worker looks for staging sstables if it has never done so."""
        require(~self.discovered, "not discovered yet")
        self._is_loaded()
        for s in Sstable:
            found = ~self.upgraded & (self.place[s] == Place.staging)
            self.to_register.put(s, found)
        self.upgraded = True
        self.discovered = True


@known_bug(
    "000-235",
    "design document 000, In case of failure, new copies of aborted tasks are created during rollback",
    breaks=(
        ViewStaging.tasks_are_finished_or_deleted,
        ViewStaging.registered_sstables_have_a_task,
    ),
    budgets={ViewStaging.moves: 3, ViewStaging.restarts: 0},
)
class TasksAreRolledBackOnce(ViewStaging):
    """A tablet whose migration had failed before got no copy of its tasks when another one failed."""

    rolled_back: FlagVar = flag()

    @ViewStaging.standing.step(Standing.leaving, Standing.replica, by=TOPOLOGY)
    def give_up_leaving(self) -> None:
        """The first time the migration is undone, tasks with new ids take the places of the aborted ones."""
        again = self.aborted & ~self.rolled_back
        self.waiting = choose(again, self._one_more(), self.waiting)
        self.aborted = False
        self.rolled_back = True


@known_bug(
    "V01",
    "scylladb #19149",
    breaks=ViewStaging.processed_sstables_are_in_the_view,
    budgets={ViewStaging.moves: 1, ViewStaging.restarts: 0},
)
class StagingIsProcessedInTransition(ViewStaging):
    """A pending replica processes a staging sstable as it comes, before it is paired with a view replica:
    its view updates are dropped silently, and the sstable leaves the staging directory.
    """

    def _is_at_rest(self) -> None:
        """Nobody asks."""


@known_bug(
    "V06",
    "SCYLLADB-2312",
    breaks=ViewStaging.no_reference_to_removed_sstables,
    sizes={Sstable: 1},
    budgets={ViewStaging.restarts: 0},
)
class CleanupForgetsOneQueue(ViewStaging):
    """The cleanup of a tablet purges the staging sstables that have a task, not those that are queued: the
    registrator creates a task for an sstable which is gone, and that is tried again for ever.
    """

    def _forget_unregistered(self) -> None:
        """The queue is left as it is."""


@known_bug(
    "V16",
    "scylladb #27956",
    breaks=(ViewStaging.staging_sstables_are_known, ViewStaging.staging_sstables_are_processed),
    sizes={Sstable: 1},
    budgets={ViewStaging.moves: 1},
)
class DiscoveryBeforeLoading(ViewStaging):
    """After a restart the worker looks for staging sstables before the tables' sstables are loaded: it
    finds none, and does not look again.
    """

    def _is_loaded(self) -> None:
        """Nobody asks."""


@known_bug(
    "000-339",
    "design document 000, RPC: the handler attaches to the tasks and waits for the result",
    breaks=ViewStaging.work_goes_on_for_whoever_asks,
)
class BatchesBeginAnewWithEachSstable(ViewStaging):
    """A batch was given up when another sstable was registered, and begun anew for all of them: under a repair of the whole
    table none was ever done.
    """

    @action(by=WORKER, fair=WEAK)
    def begin_anew(self) -> None:
        """The batch, for which a task waits again, makes way for one with what was registered since."""
        require((self.batch == Work.executing) & self.started, "a batch is executed")
        require(~(self.staging <= self.processing), "more was registered")
        self.waiting = self._one_more()
        self.started = False
        self.batch = Work.none
        self.processing = frozenset()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-53",
    REGISTERED,
    breaks=ViewStaging.sstables_are_staged_at_any_time,
)
class StreamsWaitForTheBatch(ViewStaging):
    """Nothing is written to the staging directory while a batch reads it."""

    @action(by=WORKER)
    def write_staging(self, s: Term[Sstable]) -> None:
        """Streaming or repair writes an sstable when no batch is executed."""
        require(self.batch == Work.none, "no batch is executed")
        super().write_staging(s)


@known_bug(
    "000-54",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewStaging.tablets_leave_at_any_time,
)
class StagedTabletsStay(ViewStaging):
    """A tablet is moved when its staging sstables have been processed, so that no task has to be aborted."""

    @ViewStaging.standing.step(
        Standing.replica, Standing.leaving, by=TOPOLOGY, spends=ViewStaging.moves
    )
    def leave(self) -> None:
        """The tablet migrates away, without tasks."""
        require(~self.started & (self.waiting == 0), "the tablet has no task")
        self.aborted = False


@known_bug(
    "000-82",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewStaging.sstables_are_registered_at_any_time,
)
class PendingReplicasRegisterNothing(ViewStaging):
    """What was streamed to a pending replica was registered when the tablet had arrived: no task stood for it meanwhile."""

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The registrator takes what there is to register of a tablet at rest."""
        self._is_at_rest()
        super().begin_registering()


@known_bug(
    "000-120",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewStaging.tablets_leave_at_any_time,
)
class TabletsLeaveWhenAllIsRegistered(ViewStaging):
    """A tablet was not moved while an sstable of it waited for its task to be stored."""

    @ViewStaging.standing.step(
        Standing.replica, Standing.leaving, by=TOPOLOGY, spends=ViewStaging.moves
    )
    def leave(self) -> None:
        """The tablet migrates away when nothing waits to be registered."""
        require(self.to_register.is_empty(), "nothing is to be registered")
        self.aborted = self.started | (self.waiting > 0)
        self.started = False
        self.waiting = 0


@known_bug(
    "000-124",
    "design document 000: in case of failure, new copies are created during rollback",
    breaks=ViewStaging.operations_are_rolled_back_at_any_time,
)
class TabletsComeBackWhenTheirBatchHasEnded(ViewStaging):
    """A migration that had failed was undone when the batch of its aborted tasks was over."""

    @ViewStaging.standing.step(Standing.leaving, Standing.replica, by=TOPOLOGY)
    def give_up_leaving(self) -> None:
        """The migration is undone at an idle worker."""
        require(self.batch == Work.none, "no batch is executed")
        self.waiting = choose(self.aborted, self._one_more(), self.waiting)
        self.aborted = False


@known_bug(
    "000-125",
    "design document 000: in case of failure, new copies are created during rollback",
    breaks=ViewStaging.migrations_to_the_node_are_given_up_at_any_time,
)
class PendingReplicasAreKeptForTheirTasks(ViewStaging):
    """A migration was not given up once a task was stored for what had been streamed: it had to succeed."""

    @ViewStaging.standing.step(Standing.pending, Standing.absent, by=TOPOLOGY)
    def give_up_coming(self) -> None:
        """The migration is undone, before a task was stored."""
        require(self.staging.is_empty(), "nothing is registered")
        self._clean_up()


@known_bug(
    "000-126",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewStaging.tasks_are_stored_at_any_time,
)
class CommandsWaitForTheTablet(ViewStaging):
    """The command that stores a task was not applied while its tablet left: its sstable had no task to be aborted, and none
    to come back.
    """

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        """The command is applied, of a tablet that does not leave."""
        require(self.standing != Standing.leaving, "the tablet does not leave")
        super().register()


@known_bug("000-150", ABORTED, breaks=ViewStaging.tablets_come_at_any_time)
class BusyWorkersGetNoTablet(ViewStaging):
    """No tablet came to a node whose worker still executed a batch, for what had left."""

    @ViewStaging.standing.step(
        Standing.absent, Standing.pending, by=TOPOLOGY, spends=ViewStaging.moves
    )
    def come(self) -> None:
        """The tablet migrates to this node, whose worker is idle."""
        require(self.batch == Work.none, "no batch is executed")


@known_bug("000-151", ABORTED, breaks=ViewStaging.tablets_arrive_at_any_time)
class TabletsArriveWhenAllIsRegistered(ViewStaging):
    """A migration did not end while an sstable that it had streamed waited for its task to be stored."""

    @ViewStaging.standing.step(Standing.pending, Standing.replica, by=TOPOLOGY, fair=WEAK)
    def arrive(self) -> None:
        """The migration ends: all that was streamed is registered."""
        require(self.to_register.is_empty(), "nothing is to be registered")


@known_bug("000-152", ABORTED, breaks=ViewStaging.tablets_are_gone_at_any_time)
class TabletsAreGoneWhenTheirBatchHasEnded(ViewStaging):
    """A replica was cleaned up when the batch of its aborted tasks was over."""

    @ViewStaging.standing.step(Standing.leaving, Standing.absent, by=TOPOLOGY, fair=WEAK)
    def end_leaving(self) -> None:
        """The replica, of which no batch is executed, is cleaned up."""
        require(self.batch == Work.none, "no batch is executed")
        self._clean_up()
        self.aborted = False
        self.waiting = 0


@known_bug(
    "000-153",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=ViewStaging.batches_wait_for_no_registration,
)
class BatchesWaitForTheQueue(ViewStaging):
    """A batch began when nothing was left to be registered: while a repair went on none did."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_batch(self) -> None:
        """The coordinator has the waiting tasks executed when all that is staged has one."""
        require(self.to_register.is_empty(), "nothing is to be registered")
        super().start_batch()


@known_bug(
    "000-236",
    "design document 000: a staging sstable was registered to view_building_worker",
    breaks=(
        ViewStaging.sstables_are_registered_at_any_time,
        ViewStaging.staging_sstables_are_processed,
    ),
    budgets={ViewStaging.moves: 3, ViewStaging.restarts: 0},
)
class TabletsThatComeBackAreNotRegistered(ViewStaging):
    """The registrator kept in mind which tablets had left, and passed over what was staged of one that came back."""

    left: FlagVar = flag()

    @ViewStaging.standing.step(Standing.leaving, Standing.absent, by=TOPOLOGY, fair=WEAK)
    def end_leaving(self) -> None:
        """The replica is cleaned up, and its tablet has left."""
        self._clean_up()
        self.aborted = False
        self.waiting = 0
        self.left = True

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The registrator takes what there is of tablets that have not left."""
        require(~self.left, "the tablet has not left")
        super().begin_registering()


@known_bug(
    "000-267",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewStaging.sstables_are_found_at_any_time,
)
class SstablesAreFoundAtRest(ViewStaging):
    """A node that had restarted while its tablet moved looked for staging sstables when that was over: till then it took in
    none.
    """

    @action(by=WORKER, fair=WEAK)
    def discover(self) -> None:
        """The worker looks for staging sstables when the tablet is not in transition."""
        super().discover()
        self._is_at_rest()


@known_bug(
    "000-275",
    "design document 000: those tasks are removed from group0 state in 200ms intervals",
    breaks=ViewStaging.finished_tasks_are_removed_at_any_time,
)
class FinishedTasksStayWhileTheTabletMoves(ViewStaging):
    """A coordinator removed nothing of a tablet in transition, and had its worker wait until the operation was over."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the finished tasks of a tablet at rest."""
        self._is_at_rest()
        super().remove_finished()


@known_bug(
    "000-276",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=ViewStaging.batches_are_finished_whatever_is_registered,
)
class BatchesWaitForTheRegistrator(ViewStaging):
    """A batch took the mutex that the registrator held until its command was applied, to move its sstables."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """View updates are generated while nothing is registered."""
        require(self.registering.is_empty(), "no command is under way")
        super().finish_batch()


@known_bug("000-305", OBSERVED, breaks=ViewStaging.aborts_are_noticed_at_any_time)
class AbortsAreNoticedBetweenRegistrations(ViewStaging):
    """A worker did not look for aborted tasks while the registrator's command was under way, which waits for group0."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The worker sees that the batch's tasks are aborted or gone, and registers nothing."""
        require(self.registering.is_empty(), "no command is under way")
        super().observe_abort()


@known_bug(
    "000-326",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewStaging.sstables_are_loaded_at_any_time,
)
class SstablesAreLoadedAtRest(ViewStaging):
    """A node that had restarted while its tablet moved loaded its sstables when that was over."""

    @action(by=WORKER, fair=WEAK)
    def load_sstables(self) -> None:
        """The tables' sstables are loaded from disk: no tablet moves."""
        super().load_sstables()
        self._is_at_rest()


BUGS = known_bugs_in(globals())
