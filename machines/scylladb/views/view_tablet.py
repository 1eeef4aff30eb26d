"""A tablet with a view: the operations that move its replicas, and what they do to the view's tasks.

Source: design document 000 (view-building-coordinator, 2025-12), "Tablet operations". One tablet of a base
table with one view; every base replica is paired with a view replica of its own. `view_building.py` adds
the coordinator, the workers and the promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.machines.scylladb.tablets.tablet_nodes import Node
from stagewright.machines.scylladb.views.view_task import TOPOLOGY, Life, ViewTask
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    Machine,
    OneVar,
    Profile,
    SetVar,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    initially,
    many,
    observed,
    one_of,
    optional,
    per,
    profiles,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK


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


class ViewStatus(Enum):
    """The view build status."""

    none = auto()  # no such view
    started = auto()
    success = auto()
    dropped = auto()


REPLICAS = Actor("replicas")


@dataclass(frozen=True)
class ViewRelease(Profile):
    """What a version does about the tasks of a tablet that moves."""

    aborts_at_the_start: bool  # or one stage later, when the replicas are ready for writes


SEED = ViewRelease("seed", aborts_at_the_start=True)
SCYLLA_2026_2 = ViewRelease("scylla-2026.2", aborts_at_the_start=False)


class ViewTablet(Machine):
    """One tablet's replicas, rows and tasks, while it migrates, is rolled back, and changes replicas."""

    release = profiles(SEED, SCYLLA_2026_2)
    migrations = budget(1, doc="migrations that the load balancer starts")
    replica_changes = budget(0, doc="replicas that are added to the tablet or removed")
    failures = budget(1, doc="tablet operations that fail")

    # committed to group0
    tasks = many(
        ViewTask,
        over=Task,
        without=(ViewTask.abort, ViewTask.give_way, ViewTask.restart, ViewTask.change_leader),
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

    # -- what recurs -----------------------------------------------------------------------------------

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
        self.stage = Stage.allow_write_both_read_old

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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            remove_replica,
            "a replica",
            because="where there are several replicas, all of two nodes are; else nothing changes",
        ),
        equivalent_drop(stream, "it has no row yet", because="a row may be streamed again"),
        equivalent_drop(
            finish_with_copy,
            "the operation ends",
            because="what is not inherited is built by the task",
        ),
        equivalent_loss(
            finish_with_copy,
            view,
            stage,
            replicas,
            because="what is not inherited is built by the task",
        ),
        equivalent_drop(
            give_up,
            "stage is allow_write_both_read_old or write_both_read_old or streaming",
            because="an operation that does not fail goes on",
        ),
        equivalent_loss(give_up, stage, because="an operation that does not fail goes on"),
        equivalent_drop(
            finish_revert_with_task,
            "the task was aborted",
            because="aborted tasks are the leaving replica's; others may be replaced as well",
        ),
        equivalent_drop(
            finish_revert_with_task,
            "the operation is undone",
            because="the stage is left as well when no aborted task is there any more",
        ),
        equivalent_loss(
            finish_revert_with_task,
            stage,
            next,
            because="the stage is left as well when no aborted task is there any more",
        ),
        equivalent_drop(
            _replace,
            "the id is new",
            "life is normal or aborted",
            because="an aborted task is stored, and a stored one is not new",
        ),
        equivalent_loss(
            _replace,
            ViewTask.life,
            because="an aborted task is stored, and a stored one is not new",
        ),
    )
