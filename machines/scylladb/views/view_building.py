"""View building on a tablet that moves: tasks, calls, batches, and the rows that must reach the view.

Source: design document 000 (view-building-coordinator, 2025-12), sections "Lifetime of a task" and "Tablet
operations". One tablet of a base table with one view: the operations that move its replicas, and what they do
to the view's tasks; `view_task.py` is the life of each task. Every base replica is paired with a view replica
of its own, and a replica that is not paired updates nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    BudgetName,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    count,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    independent,
    initially,
    invariant,
    leads_to,
    liveness,
    many,
    never_happens,
    observed,
    one_of,
    optional,
    per,
    profiles,
    require,
    restricted,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
)

WEAK = Fairness.WEAK
REPLICAS = Actor("replicas")
CLIENT = Actor("client")
FAULTLESS: dict[BudgetName | type[Entity], int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}


class Task(Entity, scope=2):
    """A task's id; ids are used once."""


class Stage(Enum):
    """The stages of a tablet operation that matter to view building."""

    none = auto()
    allow_write_both_read_old = auto()
    write_both_read_old = auto()
    streaming = auto()  # and those in which reads and writes move to the new replicas
    cleanup = auto()
    end_migration = auto()
    cleanup_target = auto()
    revert_migration = auto()


@dataclass(frozen=True)
class ViewRelease(Profile):
    """What a version does about the tasks of a tablet that moves."""

    aborts_at_the_start: bool  # or one stage later, when the replicas are ready for writes


SEED = ViewRelease("seed", aborts_at_the_start=True)
SCYLLA_2026_2 = ViewRelease("scylla-2026.2", aborts_at_the_start=False)


class ViewBuilding(Machine):
    """The tasks of one tablet's view, while the tablet migrates, is rolled back, and changes replicas.

    One thing is not promised, and is not so: that no batch works for an aborted task. The worker checks that group0
    stores a task, not that it is not aborted, so a call that is under way while the task is aborted starts a batch
    during the transition. It does no harm: the answer counts for nothing, as the coordinator removes no aborted task
    and the task that takes its place has another id; and the batch ends, or its task leaves it.

    One thing is more than 000 says: a worker refuses a task while a batch without it runs on the shard. The text
    leaves that to the coordinator ("it's the coordinator responsibility to schedule only batch per tablet
    replica"), which does not know of a batch that goes on after its task was aborted, and calls for the next.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    migrations = budget(1, doc="migrations that the load balancer starts")
    replica_changes = budget(0, doc="replicas that are added to the tablet or removed")
    drops = budget(0, doc="drops of the view")
    failures = fault_budget(1, doc="tablet operations that fail")

    exercised_at = scopes(
        {ViewTask.lost_calls: 0, ViewTask.leader_changes: 0},
        {ViewTask.leader_changes: 0, ViewTask.restarts: 0},
        {migrations: 0, failures: 0},
        {drops: 1, **FAULTLESS},
        {Task: 3, drops: 1, replica_changes: 1, migrations: 0, **FAULTLESS},
        {Task: 3, replica_changes: 2, migrations: 0, **FAULTLESS},
        {
            migrations: 0,
            failures: 0,
            ViewTask.lost_calls: 2,
            ViewTask.leader_changes: 2,
            ViewTask.restarts: 2,
        },
        {replica_changes: 1, migrations: 0, failures: 0},
        {Task: 3, replica_changes: 3, migrations: 0, failures: 0, **FAULTLESS},
        {Task: 4, migrations: 2, failures: 2, **FAULTLESS},
        {Node: 3, Task: 3, replica_changes: 1, failures: 0, **FAULTLESS},
    )

    # committed to group0
    tasks = many(
        ViewTask,
        over=Task,
        without=(ViewTask.abort, ViewTask.give_way, ViewTask.restart, ViewTask.change_leader),
        restricts=(
            restricted(
                ViewTask.tasks_are_deleted_at_any_time,
                because="tasks are deleted with their view, or by the tablet operation that ends",
            ),
            restricted(
                ViewTask.tasks_are_called_for_whoever_did_before,
                because="no task is sent of a tablet in transition, and one at a time of a replica",
            ),
        ),
    )
    replica = per(Task, optional(Node))
    stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    replicas: SetVar[Node] = set_of(Node, init=ANY)
    next: SetVar[Node] = set_of(Node, init=ANY)  # the same at rest
    status: OneVar[ViewStatus] = one_of(ViewStatus, init=ViewStatus.none)
    # data
    # replicas that store the row, older than the view; and those whose view replica has it
    base: SetVar[Node] = observed(set_of(Node, init=ANY), of=REPLICAS)
    view: SetVar[Node] = observed(set_of(Node), of=REPLICAS)

    # == a tablet that migrates, and its replicas ========================================================

    @initially
    def one_replica(self) -> Bool:
        """The tablet is at rest on one node, with a row written before there was a view."""
        at_rest = (self.next == self.replicas) & (self.base == self.replicas)
        return at_rest & (self.replicas.size() == 1)

    # -- tablet operations -------------------------------------------------------------------------------

    @action(by=TOPOLOGY, spends=migrations)
    def migrate(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer moves the tablet to another node."""
        require(self.replicas.has(leaving), "the leaving node is a replica")
        require(~self.replicas.has(pending), "the pending node is not")
        self._begin()
        for n in Node:
            self.next.put(n, (self.replicas.has(n) & (n != leaving)) | (n == pending))
        if self.release.aborts_at_the_start:
            self._abort(lambda n: n == leaving)

    @action(by=TOPOLOGY, spends=replica_changes)
    def add_replica(self, pending: Term[Node]) -> None:
        """The keyspace's RF grows: the tablet gets a replica more."""
        require(~self.replicas.has(pending), "not a replica yet")
        self._begin()
        self.next.add(pending)

    @action(by=TOPOLOGY, spends=replica_changes)
    def remove_replica(self, leaving: Term[Node]) -> None:
        """The keyspace's RF shrinks: the tablet loses a replica, whose tasks are aborted at once."""
        require(self.replicas.has(leaving), "a replica")
        require(self.replicas.size() > 1, "one of several replicas")
        self._begin()
        self.next.discard(leaving)
        self._abort(lambda n: n == leaving)

    @stage.step(Stage.allow_write_both_read_old, Stage.write_both_read_old, by=TOPOLOGY, fair=WEAK)
    def write_both(self) -> None:
        """The replicas are ready for writes; the tasks of the leaving one are aborted with this stage."""
        if not self.release.aborts_at_the_start:
            self._abort(lambda n: ~self.next.has(n))

    @stage.step(Stage.write_both_read_old, Stage.streaming, by=TOPOLOGY, fair=WEAK)
    def begin_streaming(self) -> None:
        """Every write reaches both replica sets: what was there before is streamed."""

    @action(by=TOPOLOGY, fair=WEAK)
    def stream(self, n: Term[Node]) -> None:
        """The pending replica gets the row."""
        require(self.stage == Stage.streaming, "stage is streaming")
        require(self.next.has(n), "the node is a new replica")
        require(~self.base.has(n), "it has no row yet")
        self.base.add(n)

    @stage.step(Stage.streaming, Stage.cleanup, by=TOPOLOGY, fair=WEAK)
    def read_new(self) -> None:
        """All is streamed; reads and writes use the new replicas from now on, and nothing else."""
        require(self.next <= self.base, "all is streamed")

    @stage.step(Stage.cleanup, Stage.end_migration, by=TOPOLOGY, fair=WEAK)
    def end(self) -> None:
        """The leaving replica has removed its rows."""
        self.base = self.base & self.next

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self) -> None:
        """The new replicas are the replicas; no task is concerned."""
        concerned = some(self.is_stored(t) & (self._is_of_leaving(t) | self._grows()) for t in Task)
        require(~concerned, "no task to adjust")
        self._adopt()

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_task(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The same command deletes the leaving replica's task and creates its copy on the pending one."""
        require(self._is_of_leaving(t), "the task is the leaving replica's")
        require(self._is_pending(pending), "a replica is pending")
        self._adopt()
        self._replace(t, new, pending)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_copy(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The RF has grown while the view is being built: the new replica gets a task too."""
        require(self.is_stored(t), "the view has a task")
        require(self._is_pending(pending), "a replica is pending")
        require(self._grows(), "no replica is leaving")
        self._adopt()
        self._create(new, pending)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_without_replica(self, t: Term[Task]) -> None:
        """The RF has shrunk: the same command deletes the task of the replica that is abandoned."""
        require(self._is_of_leaving(t), "the task is the leaving replica's")
        require(self.next <= self.replicas, "no replica is pending")
        self._adopt()
        self.tasks[t].drop()

    @stage.step(
        (Stage.allow_write_both_read_old, Stage.write_both_read_old, Stage.streaming),
        Stage.cleanup_target,
        by=TOPOLOGY,
        spends=failures,
    )
    def give_up(self) -> None:
        """The operation failed: undo it."""

    @stage.step(Stage.cleanup_target, Stage.revert_migration, by=TOPOLOGY, fair=WEAK)
    def revert(self) -> None:
        """The pending replica has removed its rows."""
        self.base = self.base & self.replicas

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_revert(self) -> None:
        """The old replicas stay; no task was aborted."""
        require(~some(self._is_rolled_back(t) for t in Task), "no task to roll back")
        self._stay()

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_revert_with_task(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """The same command replaces the task that was aborted by its duplicate, with a new id."""
        require(self._is_rolled_back(t), "the task was aborted")
        require(self.replica[t] == n, "the task is the replica's")
        self._stay()
        self._replace(t, new, n)

    # -- helpers ---------------------------------------------------------------------------------------

    def _create(self, t: Term[Task], n: Term[Node]) -> None:
        self.tasks[t].create()
        self.replica[t] = n

    def _replace(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """A task is deleted, and another one, with a new id, takes its place."""
        require(t != new, "the id is new")
        self.tasks[t].drop()
        self._create(new, n)

    def is_stored(self, t: Term[Task]) -> Bool:
        return self.tasks[t].life.column(lambda life: life.stored)

    def _is_pending(self, n: Term[Node]) -> Bool:
        return self.next.has(n) & ~self.replicas.has(n)

    def _grows(self) -> Bool:
        """No replica is leaving."""
        return self.replicas <= self.next

    def _begin(self) -> None:
        require(self.stage == Stage.none, "the tablet is not in transition")
        bounded(self._ids_are_left(), "ids are left for the tasks that are to come")
        self.stage = Stage.allow_write_both_read_old

    def _ids_are_left(self) -> Bool:
        """Those of a view that is still to be created, and one for a task that takes another's place."""
        unused = count(self.tasks[t].life == Life.absent for t in Task)
        stored = some(self.is_stored(t) for t in Task)
        view = choose(self.status == ViewStatus.none, self.replicas.size() + 1, 0)
        return unused >= choose(stored, 1, view)

    def _abort(self, leaving: Callable[[Term[Node]], Bool]) -> None:
        """The aborted flag of the tasks of the leaving replica is set."""
        for t in Task:
            task = self.tasks[t]
            meant = some(leaving(n) & (self.replica[t] == n) for n in Node)
            task.life = choose(meant & (task.life == Life.normal), Life.aborted, task.life)

    def _is_of_leaving(self, t: Term[Task]) -> Bool:
        """Tasks are of replicas: those of replicas that do not stay are adjusted, aborted or not."""
        return some((self.replica[t] == n) & ~self.next.has(n) for n in Node)

    def _is_rolled_back(self, t: Term[Task]) -> Bool:
        """The task is rolled back when the operation has failed: it is the leaving replica's."""
        return (self.tasks[t].life == Life.aborted) & self._is_of_leaving(t)

    def _adopt(self) -> None:
        """The pending replica takes the leaving one's place, beside the view replica of that place."""
        require(self.stage == Stage.end_migration, "the operation ends")
        left = some(self.view.has(r) & ~self.next.has(r) for r in Node)
        copied = some(self.view.has(r) for r in Node)
        inherited = choose(self._grows(), copied, left)
        for n in Node:
            kept = self.view.has(n) & self.next.has(n)
            self.view.put(n, kept | (self._is_pending(n) & inherited))
        self.stage = Stage.none
        self.replicas = self.next

    def _stay(self) -> None:
        require(self.stage == Stage.revert_migration, "the operation is undone")
        self.stage = Stage.none
        self.next = self.replicas

    # == tasks ===========================================================================================

    # -- the view --------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def create_view(self, t: Term[Task], n: Term[Node]) -> None:
        """A view is created: the same command stores a task for the tablet's replica, also in transition."""
        require(self.status == ViewStatus.none, "there is no view yet")
        require(self.replicas.has(n) & (self.replicas.size() == 1), "the tablet's replica")
        self.status = ViewStatus.started
        self._create(t, n)

    @action(by=CLIENT)
    def create_view_on_two(
        self, t: Term[Task], u: Term[Task], n: Term[Node], m: Term[Node]
    ) -> None:
        """The same where the tablet has two replicas: one task for each."""
        require(self.status == ViewStatus.none, "there is no view yet")
        require((t != u) & (n != m), "two tasks, of two replicas")
        bounded(self.replicas.size() == 2, "the tablet has two replicas")
        require(self.replicas.has(n), "a replica")
        require(self.replicas.has(m), "the other replica")
        self.status = ViewStatus.started
        self._create(t, n)
        self._create(u, m)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """The view has no task any more: it is built."""
        require(self.status == ViewStatus.started, "the view is being built")
        require(~some(self.is_stored(t) for t in Task), "it has no task")
        self.status = ViewStatus.success

    @action(by=CLIENT, spends=drops)
    def drop_view(self) -> None:
        """The view is dropped: its tasks are deleted, as they are no longer needed."""
        require(self.status.any_of(ViewStatus.started, ViewStatus.success), "there is a view")
        self.status = ViewStatus.dropped
        for t in Task:
            self.tasks[t].life = choose(self.is_stored(t), Life.dropped, self.tasks[t].life)

    # -- the coordinator and the workers -----------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, t: Term[Task], n: Term[Node]) -> None:
        """The coordinator sends a task to its replica's worker."""
        require(self.replica[t] == n, "the task is the replica's")
        require(self.stage == Stage.none, "the tablet is not in transition")
        require(~some(self._is_called(u) & (self.replica[u] == n) for u in Task), "replica is idle")
        self.tasks[t].send()

    @action(by=WORKER, fair=WEAK)
    def start(self, t: Term[Task], n: Term[Node]) -> None:
        """The replica's worker starts a batch with the task."""
        self.tasks[t].start()
        self._has_no_batch(t, n)

    @action(by=WORKER, fair=WEAK)
    def start_late(self, t: Term[Task], n: Term[Node]) -> None:
        """A request that its sender has given up does the same."""
        self.tasks[t].start_late()
        self._has_no_batch(t, n)

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, t: Term[Task], n: Term[Node]) -> None:
        """The batch has read its replica, and updated the view replica that this one is paired with."""
        require(self.replica[t] == n, "the task is the replica's")
        self.tasks[t].finish()
        paired = self.replicas.has(n)
        self.view.put(n, self.view.has(n) | (self.base.has(n) & paired))

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: a new coordinator starts, which knows what group0 stores."""
        for t in Task:
            self.tasks[t].change_leader()

    @action(by=WORKER, spends=ViewTask.restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node restarts: its worker's batch and its list of completed tasks are lost."""
        known = some((self.replica[t] == n) & (self.tasks[t].work != Work.none) for t in Task)
        require(known, "the worker knows of a task")
        for t in Task:
            task = self.tasks[t]
            lost = self.replica[t] == n
            task.forgotten = task.forgotten | (lost & (task.work != Work.none))
            task.work = choose(lost, Work.none, task.work)

    # -- helpers ---------------------------------------------------------------------------------------

    def _is_called(self, t: Term[Task]) -> Bool:
        return self.tasks[t].call.any_of(Call.sent, Call.attached)

    def _has_no_batch(self, t: Term[Task], n: Term[Node]) -> None:
        """The handler refuses a task while a batch without it runs on the shard; the sender tries again."""
        require(self.replica[t] == n, "the task is the replica's")
        running = some(
            (self.replica[u] == n) & (self.tasks[u].work == Work.executing) for u in Task
        )
        require(~running, "no other batch runs on the shard")

    # -- promises --------------------------------------------------------------------------------------

    @accepts(create_view)
    def views_are_created_at_any_time(self, t: Term[Task], n: Term[Node]) -> Bool:
        """000: tasks are created when "a view/index is created", also while the tablet is in transition."""
        one = self.replicas.has(n) & (self.replicas.size() == 1)
        return (self.status == ViewStatus.none) & one & (self.tasks[t].life == Life.absent)

    @accepts(create_view_on_two)
    def views_are_created_on_two_at_any_time(
        self, t: Term[Task], u: Term[Task], n: Term[Node], m: Term[Node]
    ) -> Bool:
        """The same where the keyspace has two replicas."""
        two = self.replicas.has(n) & self.replicas.has(m) & (n != m)
        unused = (self.tasks[t].life == Life.absent) & (self.tasks[u].life == Life.absent)
        return (self.status == ViewStatus.none) & two & (t != u) & unused

    @accepts(drop_view)
    def views_are_dropped_at_any_time(self) -> Bool:
        """000: "we simply delete relevant view building tasks", also while the tablet is in transition."""
        return self.status.any_of(ViewStatus.started, ViewStatus.success)

    @accepts(mark_view_built)
    def views_are_built_while_their_tablet_moves(self) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": when group0 stores no task of it."""
        none = every(~self.is_stored(t) for t in Task)
        return (self.status == ViewStatus.started) & (self.replicas <= self.view) & none

    @sometimes
    def built_views_get_their_entry(self) -> Bool:
        """000, the same: there comes a time when the view is built."""
        return self.status == ViewStatus.success

    @accepts(migrate)
    def tablets_are_moved_at_any_time(self, leaving: Term[Node], pending: Term[Node]) -> Bool:
        """000: it is for the coordinator "to react to following tablet operations": they do not wait for it."""
        moves = self.replicas.has(leaving) & ~self.replicas.has(pending)
        return (self.stage == Stage.none) & moves

    @accepts(add_replica)
    def replicas_are_added_at_any_time(self, pending: Term[Node]) -> Bool:
        """000: "keyspace RF change / add_tablet_replica REST API": the same, of a replica more."""
        return (self.stage == Stage.none) & ~self.replicas.has(pending)

    @accepts(remove_replica)
    def replicas_are_removed_at_any_time(self, leaving: Term[Node]) -> Bool:
        """000: "In case of RF decrease: abort tasks on abandoning replicas": it does not wait for them."""
        several = self.replicas.has(leaving) & (self.replicas.size() > 1)
        return (self.stage == Stage.none) & several

    @accepts(write_both)
    def aborts_wait_for_no_batch(self) -> Bool:
        """000: "the tasks are aborted at the start of the operation", which waits for none of them to be finished."""
        return self.stage == Stage.allow_write_both_read_old

    @accepts(give_up)
    def operations_are_undone_at_any_time(self) -> Bool:
        """000: "In case of failure, new copies of aborted tasks are created during rollback": no batch is waited for."""
        return self.stage.any_of(
            Stage.allow_write_both_read_old, Stage.write_both_read_old, Stage.streaming
        )

    @accepts(begin_streaming)
    def streaming_waits_for_no_batch(self) -> Bool:
        """000, the same: what a worker executes for an aborted task is for nothing, and nobody waits for its end."""
        return self.stage == Stage.write_both_read_old

    @accepts(end)
    def cleanup_waits_for_no_batch(self) -> Bool:
        """000, the same where the leaving replica removes its rows."""
        return self.stage == Stage.cleanup

    @accepts(finish_with_task)
    def operations_end_whatever_is_executed(
        self, t: Term[Task], new: Term[Task], pending: Term[Node]
    ) -> Bool:
        """000: "the tasks are aborted at the start of the operation and new tasks are created at the end"."""
        moves = self.next.has(pending) & ~self.replicas.has(pending)
        adjusted = self.is_stored(t) & every(
            (self.replica[t] == n).implies(~self.next.has(n)) for n in Node
        )
        return (
            (self.stage == Stage.end_migration)
            & moves
            & adjusted
            & (self.tasks[new].life == Life.absent)
        )

    @accepts(revert)
    def targets_are_cleaned_up_whatever_is_executed(self) -> Bool:
        """000: "In case of failure, new copies of aborted tasks are created during rollback", and not when a batch is over."""
        return self.stage == Stage.cleanup_target

    @accepts(finish_revert_with_task)
    def rollbacks_end_whatever_is_executed(
        self, t: Term[Task], new: Term[Task], n: Term[Node]
    ) -> Bool:
        """000, the same where the copy is made: "rolling back a task means creating its duplicate and removing the original"."""
        aborted = (self.tasks[t].life == Life.aborted) & (self.replica[t] == n)
        ends = (self.stage == Stage.revert_migration) & aborted
        return ends & (self.tasks[new].life == Life.absent)

    @accepts(finish_with_copy)
    def replicas_are_added_whatever_is_executed(
        self, t: Term[Task], new: Term[Task], pending: Term[Node]
    ) -> Bool:
        """000: "In case of RF increase: create tasks for new replica": no batch of another replica is waited for."""
        grows = self.next.has(pending) & ~self.replicas.has(pending) & (self.replicas <= self.next)
        ends = (self.stage == Stage.end_migration) & grows
        return ends & self.is_stored(t) & (self.tasks[new].life == Life.absent)

    @accepts(read_new)
    def replicas_are_left_whatever_is_executed(self) -> Bool:
        """000: what a worker still executes for an aborted task is for nothing: reads go to the new replica when it has the
        rows.
        """
        return (self.stage == Stage.streaming) & (self.next <= self.base)

    @accepts(finish)
    def operations_without_tasks_end_whatever_is_executed(self) -> Bool:
        """000, "Tablet operations": an operation reacts to tasks that group0 stores: where there are none, its end waits for
        nothing.
        """
        none = every(~self.is_stored(t) for t in Task)
        return (self.stage == Stage.end_migration) & none

    @accepts(finish_revert)
    def rollbacks_without_tasks_end_whatever_is_executed(self) -> Bool:
        """000, the same where it has failed: no "new copies of aborted tasks" are to be created."""
        none = every(self.tasks[t].life != Life.aborted for t in Task)
        return (self.stage == Stage.revert_migration) & none

    @accepts(finish_without_replica)
    def replicas_are_abandoned_whatever_is_executed(self, t: Term[Task]) -> Bool:
        """000: "In case of RF decrease: abort tasks on abandoning replicas": nor is their own."""
        shrinks = (self.stage == Stage.end_migration) & (self.next <= self.replicas)
        abandoned = every((self.replica[t] == n).implies(~self.next.has(n)) for n in Node)
        return shrinks & self.is_stored(t) & abandoned

    @accepts(start)
    def each_worker_starts_its_batch(self, t: Term[Task], n: Term[Node]) -> Bool:
        """000: "only batch per tablet replica": a worker that is called waits for no other replica's."""
        task = self.tasks[t]
        called = (task.life == Life.normal) & (task.call == Call.sent) & (task.work == Work.none)
        own = (self.replica[t] == n) & every(
            (self.replica[u] == n).implies(self.tasks[u].work != Work.executing) for u in Task
        )
        return called & own

    @accepts(send)
    def each_replica_works(self, t: Term[Task], n: Term[Node]) -> Bool:
        """000: "only batch per tablet replica": each replica's worker has its own, whatever another one executes."""
        task = self.tasks[t]
        waits = (task.life == Life.normal) & (task.call == Call.none) & (self.replica[t] == n)
        free = every(~self._waits_for_its_worker(u) | ~(self.replica[u] == n) for u in Task)
        return waits & free & (self.stage == Stage.none)

    def _waits_for_its_worker(self, t: Term[Task]) -> Bool:
        """The coordinator has called for the task, and knows of no result."""
        return ~self.tasks[t].call.any_of(Call.none, Call.answered)

    @independent(stream, of=(tasks, status, view))
    def rows_are_streamed_whatever_is_executed(self) -> None:
        """000, "Tablet operations": an operation has its tasks "aborted at the start", and waits for none while it streams."""

    @independent(finish_batch, of=(stage, next, status, base, view, Task))
    def batches_end_whatever_the_tablet_does(self) -> None:
        """000: "Unless the task was aborted, the worker will eventually reply that the task was finished": also while the tablet
        is in transition, and whatever other replicas' workers do.
        """

    @invariant
    def built_views_are_complete(self) -> Bool:
        """A view that is built has every row that existed before it, whatever happened on the way."""
        complete = every(self.view.has(n) for n in self.replicas)
        return (self.status == ViewStatus.success).implies(complete)

    @invariant
    def missing_rows_have_a_task(self, n: Term[Node]) -> Bool:
        """000: "group0 state stores only tasks that haven't been completed yet": but all of those."""
        missing = self.replicas.has(n) & ~self.view.has(n) & (self.status == ViewStatus.started)
        return missing.implies(some(self.is_stored(t) & (self.replica[t] == n) for t in Task))

    @invariant
    def aborted_tasks_are_of_tablets_in_transition(self, t: Term[Task]) -> Bool:
        """000: aborted tasks wait for the operation's end, when they are adjusted or rolled back."""
        return (self.tasks[t].life == Life.aborted).implies(self.stage != Stage.none)

    @invariant
    def tasks_are_of_replicas(self, t: Term[Task]) -> Bool:
        """000: "Each task is associated with particular tablet replica": no other node has one."""
        own = some((self.replica[t] == n) for n in self.replicas)
        return self.is_stored(t).implies(own)

    @step_property
    def tasks_of_replicas_that_stay_are_kept(self, after: Self, t: Term[Task]) -> Bool:
        """000, "Tablet operations": aborted is a task of which "replica == source replica", or on one of the "abandoning
        replicas": whoever stays goes on building, and need not begin anew.
        """
        aborted = (self.tasks[t].life != Life.aborted) & (after.tasks[t].life == Life.aborted)
        stays = some(self.replica[t] == n for n in after.next)
        return aborted.implies(~stays)

    @step_property
    def new_tasks_take_the_place_of_others(self, after: Self, n: Term[Node]) -> Bool:
        """000, migration: "Create new task on destination replica" is said "for each task" that was aborted: where a view
        is built already, or a replica's part of it, nothing is to be done again. A grown RF has another task copied, and
        in "case of RF decrease" nobody gets what was abandoned.
        """
        new = some(~self.is_stored(t) & after.is_stored(t) & (after.replica[t] == n) for t in Task)
        comes = self._is_pending(n)
        old = some(
            self.is_stored(t)
            & ((self.replica[t] == n) | (comes & (self._is_of_leaving(t) | self._grows())))
            for t in Task
        )
        return new.implies((self.status == ViewStatus.none) | old)

    @step_property
    def workers_forget_their_own_tasks_alone(
        self, after: Self, t: Term[Task], u: Term[Task]
    ) -> Bool:
        """000: "each view building worker keeps track of finished tasks locally": what is forgotten at once is one node's, and
        the worker of another replica goes on.
        """
        lost = [~self.tasks[x].forgotten & after.tasks[x].forgotten for x in (t, u)]
        own = some((self.replica[t] == n) & (self.replica[u] == n) for n in Node)
        return (lost[0] & lost[1]).implies(own)

    @step_property
    def built_views_stay_built(self, after: Self) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": it goes with its view alone."""
        ends = after.status.any_of(ViewStatus.success, ViewStatus.dropped)
        return (self.status == ViewStatus.success).implies(ends)

    @invariant
    def built_views_have_no_task(self, t: Term[Task]) -> Bool:
        """000, the same: the view is built when its tasks are removed, "permanently marking them as finished": an
        answer may be lost, and then the coordinator "will have to redo the work".
        """
        return (self.status == ViewStatus.success).implies(~self.is_stored(t))

    @invariant
    def one_task_for_a_replica(self, n: Term[Node]) -> Bool:
        """000, "Tablet operations": the old task is aborted, and there is one new one."""
        return count(self.is_stored(t) & (self.replica[t] == n) for t in Task) <= 1

    @invariant
    def one_call_for_a_replica(self, n: Term[Node]) -> Bool:
        """000: "it's the coordinator responsibility to schedule only batch per tablet replica"."""
        return count(self._waits_for_its_worker(t) & (self.replica[t] == n) for t in Task) <= 1

    @invariant
    def one_batch_on_a_shard(self, n: Term[Node]) -> Bool:
        """000: "it can execute only one batch per shard"."""
        executing = count(
            (self.tasks[t].work == Work.executing) & (self.replica[t] == n) for t in Task
        )
        return executing <= 1

    @invariant
    def dropped_views_have_no_tasks(self, t: Term[Task]) -> Bool:
        """000: "In the first case we simply delete relevant view building tasks"."""
        return (self.status == ViewStatus.dropped).implies(~self.is_stored(t))

    @invariant
    def tasks_under_way_are_aborted(self, t: Term[Task]) -> Bool:
        """000: "In all of the cases, the tasks are aborted at the start of the operation"; those that a
        new view brings in the meantime are not, but are not sent either.
        """
        task = self.tasks[t]
        under_way = (task.call != Call.none) | (task.work != Work.none)
        begun = self.stage.any_of(
            Stage.write_both_read_old, Stage.streaming, Stage.cleanup, Stage.end_migration
        )
        at_once = (self.next <= self.replicas) | self.release.aborts_at_the_start
        begun = begun | (at_once & (self.stage == Stage.allow_write_both_read_old))
        of_leaving = begun & self._is_of_leaving(t)
        return (of_leaving & under_way).implies(task.life != Life.normal)

    @invariant
    def rows_are_where_they_are_needed(self, n: Term[Node]) -> Bool:
        """Rows are streamed before the leaving replica removes its own, and an operation that ends leaves
        none behind.
        """
        ended = self.stage == Stage.end_migration
        streamed = ended | (self.stage == Stage.cleanup)
        holds = choose(
            ended, self.next.has(n), self.replicas.has(n) | (streamed & self.next.has(n))
        )
        undone = self.stage.any_of(Stage.streaming, Stage.cleanup_target)
        return (self.base.has(n) == holds) | (undone & self._is_pending(n))

    @invariant
    def only_replicas_have_view_rows(self) -> Bool:
        """The view's rows are beside replicas; at rest no other node is named."""
        at_rest = (self.stage == Stage.none).implies(self.next == self.replicas)
        return (self.view <= self.replicas) & at_rest

    @final
    def at_rest(self) -> Bool:
        """A tablet at rest may stay where it is, when its view is built, or there is none."""
        idle = ~some(self._waits_for_its_worker(t) | self.is_stored(t) for t in Task)
        return (self.stage == Stage.none) & (self.status != ViewStatus.started) & idle

    @liveness
    def views_are_built(self) -> LeadsTo:
        """Every view is built in the end, unless it is dropped."""
        ended = self.status.any_of(ViewStatus.success, ViewStatus.dropped)
        return leads_to(self.status == ViewStatus.started, ended)

    @liveness
    def operations_end(self) -> LeadsTo:
        """View building holds up no tablet operation."""
        return leads_to(self.stage != Stage.none, self.stage == Stage.none)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            migrate,
            "the leaving node is a replica",
            because="a tablet that no replica leaves gets one more, as by `add_replica`",
        ),
        equivalent_drop(
            remove_replica,
            "a replica",
            because="where there are several replicas, all of two nodes are; else nothing changes",
        ),
        equivalent_replacement(
            add_replica,
            "write_both_read_old for allow_write_both_read_old",
            because="tasks of a leaving replica are aborted where that stage ends: here there is none",
        ),
        equivalent_replacement(
            remove_replica,
            "write_both_read_old for allow_write_both_read_old",
            because="its tasks are aborted at once, and not where that stage ends",
        ),
        equivalent_replacement(
            write_both,
            "streaming for write_both_read_old",
            because="that every write reaches both replicas before one streams is tablet-migration's to promise",
        ),
        equivalent_drop(stream, "it has no row yet", because="a row may be streamed again"),
        equivalent_loss(
            finish_with_copy, view, because="what is not inherited is built by the task"
        ),
        equivalent_replacement(
            finish_with_copy,
            "view[n] becomes: every n in Node: n is in view",
            "view[n] becomes: pending for n (2)",
            because="what is not inherited is built by the task",
        ),
        equivalent_replacement(
            finish_with_task,
            "view[n] becomes: every n in Node: n is in view and n is not in next",
            "view[n] becomes: pending for n (3)",
            because="a replica that lacks the row has a task, the new one or its own, that builds it",
        ),
        equivalent_disabled(start_late, because="a late request may as well be lost"),
        equivalent_loss(give_up, stage, because="an operation that does not fail goes on"),
        equivalent_loss(
            finish_revert_with_task,
            stage,
            because="the stage is left as well when no aborted task is there any more",
        ),
        equivalent_drop(
            _replace,
            "life is normal or aborted",
            because="an aborted task is stored, and a stored one is not new",
        ),
        equivalent_drop(
            create_view, "life is absent", because="before there is a view no id was used"
        ),
        equivalent_drop(
            create_view_on_two, "life is absent", because="before there is a view no id was used"
        ),
        equivalent_value(
            (Life.absent, Life.aborted),
            lambda life: life.executable,
            because="nothing is sent of an unknown replica, or while a tablet is in transition",
        ),
        equivalent_weakening(
            finish_revert_with_task,
            "the task was aborted",
            because="the duplicate of a task that was not aborted builds what that one would have",
        ),
        equivalent_step(
            stage,
            Stage.revert_migration,
            Stage.allow_write_both_read_old,
            because="an operation may be tried again; aborted tasks wait for its end",
        ),
        equivalent_step(
            stage,
            Stage.allow_write_both_read_old,
            Stage.revert_migration,
            because="a replica to which nothing is streamed has nothing to remove",
        ),
        equivalent_step(
            stage,
            Stage.write_both_read_old,
            Stage.revert_migration,
            because="a replica to which nothing is streamed has nothing to remove",
        ),
        equivalent_step(
            stage,
            Stage.cleanup,
            Stage.cleanup_target,
            because="the leaving replica has its rows yet; up to where an operation may be undone is tablet's to promise",
        ),
        equivalent_drop(drop_view, "there is a view", because="what is not there can be dropped"),
        equivalent_loss(
            start, ViewTask.call, because="a call that does not wait yet attaches to the batch"
        ),
        equivalent_replacement(
            start,
            "forgotten[t] becomes: yes for no",
            because="then more is excused by an earlier restart",
        ),
        equivalent_drop(
            restart,
            "the worker knows of a task",
            because="a restart that loses nothing, or more, does no harm",
        ),
        equivalent_loss(
            restart, ViewTask.work, because="a restart that loses nothing, or more, does no harm"
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            create_view_on_two,
            finish_with_copy,
            finish_without_replica,
            because="the tablet has another number of replicas where there are `replica_changes`",
        ),
        vacuous(
            replicas_are_removed_at_any_time,
            views_are_created_on_two_at_any_time,
            replicas_are_added_whatever_is_executed,
            replicas_are_abandoned_whatever_is_executed,
            because="there is another replica where there are `replica_changes`",
        ),
        vacuous(dropped_views_have_no_tasks, because="the view is dropped where there are `drops`"),
    )
