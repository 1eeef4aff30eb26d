"""View building on a tablet that moves: tasks, calls, batches, and the rows that must reach the view.

Source: design document 000 (view-building-coordinator, 2025-12), sections "Lifetime of a task" and "Tablet
operations". One tablet of a base table with one view; `view_task.py` is the life of each task. Every base
replica is paired with a view replica of its own, and a replica that is not paired updates nothing.
"""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_nodes import Node
from stagewright.machines.scylladb.views.view_tablet import Stage, Task, ViewStatus, ViewTablet
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.spec import (
    Actor,
    Bool,
    BudgetName,
    Entity,
    Fairness,
    LeadsTo,
    Term,
    action,
    budget,
    choose,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_step,
    equivalent_value,
    equivalents,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    require,
    scopes,
    some,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
NEVER_CREATED = "a task may as well never be created"


FAULTLESS: dict[BudgetName | type[Entity], int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}


class ViewBuilding(ViewTablet):
    """The tasks of one tablet's view, while the tablet migrates, is rolled back, and changes replicas.

    Every promise holds, under both profiles. One thing is not promised, and is not so: that no batch
    works for an aborted task. The worker checks that group0 stores a task, not that it is not aborted, so
    a call that is under way while the task is aborted starts a batch during the transition. It does no
    harm: the answer counts for nothing, as the coordinator removes no aborted task and the task that
    takes its place has another id; and the batch ends, or its task leaves it.
    """

    drops = budget(0, doc="drops of the view")

    exercised_at = scopes(
        {ViewTask.lost_calls: 0, ViewTask.leader_changes: 0},
        {ViewTask.leader_changes: 0, ViewTask.restarts: 0},
        {ViewTablet.migrations: 0, ViewTablet.failures: 0},
        {drops: 1, **FAULTLESS},
        {
            Task: 3,
            ViewTablet.replica_changes: 3,
            ViewTablet.migrations: 0,
            ViewTablet.failures: 0,
            **FAULTLESS,
        },
        {Task: 3, ViewTablet.migrations: 2, **FAULTLESS},
        {Node: 3, Task: 3, ViewTablet.replica_changes: 1, ViewTablet.failures: 0, **FAULTLESS},
    )

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
            lost = self.replica[t] == n
            self.tasks[t].work = choose(lost, Work.none, self.tasks[t].work)

    # -- what recurs -----------------------------------------------------------------------------------

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

    @invariant
    def one_task_for_a_replica(self, n: Term[Node]) -> Bool:
        """000, "Tablet operations": the old task is aborted, and there is one new one."""
        return count(self.is_stored(t) & (self.replica[t] == n) for t in Task) <= 1

    @invariant
    def one_call_for_a_replica(self, n: Term[Node]) -> Bool:
        """000: "it's the coordinator responsibility to schedule only batch per tablet replica"."""
        return count(self._is_called(t) & (self.replica[t] == n) for t in Task) <= 1

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
        idle = ~some(self._is_called(t) | self.is_stored(t) for t in Task)
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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(create_view, "life is absent", because=NEVER_CREATED),
        equivalent_drop(create_view_on_two, "life is absent", because=NEVER_CREATED),
        equivalent_value(
            (Life.absent, Life.aborted),
            lambda life: life.executable,
            because="nothing is sent of an unknown replica, or while a tablet is in transition",
        ),
        equivalent_step(
            ViewTablet.stage,
            Stage.revert_migration,
            Stage.allow_write_both_read_old,
            because="an operation may be tried again; aborted tasks wait for its end",
        ),
        equivalent_drop(drop_view, "there is a view", because="what is not there can be dropped"),
        equivalent_loss(
            start, ViewTask.call, because="a call that does not wait yet attaches to the batch"
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
