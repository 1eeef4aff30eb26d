"""A view built across a migration, a split and a change of the leader, with staging: design document 000 end to end.

A table of one tablet, or two when it has split, whose replicas migrate by the stages of 001 (`tablet_migration.py`).
Clients write rows, a repair brings one to the staging directory, a view is created, and the view building coordinator
has its tasks executed while all of that happens. What is promised is what a user sees: a view that is built has every
row that was written before.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cluster import CLIENT, Node
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import NEXT, PREVIOUS, Kind, Stage
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import Destination, Views
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Life
from stagewright.machines.systems.sound_migration import LEFT_OUT, RESTRICTED
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    Profile,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    checked_alone,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalent_without,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    initially,
    invariant,
    leads_to,
    liveness,
    many,
    never_happens,
    one_of,
    optional,
    per,
    profiles,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
    volatile,
    wording,
)

WEAK = Fairness.WEAK
# of repairs, rebuilds, and migrations that are undone
UNUSED_STAGES = (
    Stage.rebuild_repair,
    Stage.write_both_read_old_fallback_cleanup,
    Stage.cleanup_target,
    Stage.revert_migration,
    Stage.repair,
    Stage.end_repair,
)


class Tablet(Enum):
    """The tablets of the table."""

    t0 = auto()  # all of it, until it splits
    t1 = auto()  # then the upper half


class Row(Enum):
    """A row of each half."""

    lower = auto()
    upper = auto()


class Batch(Record):
    """What a worker executes; no tablet: nothing."""

    tablet = optional(Tablet)
    type = optional(Type)
    rows = set_of(Row)  # those of the tablet when the batch began, until they are cleaned up
    done = flag()
    stale = flag()  # group0 does not store its task any more


class TabletViews(Machine):
    """One view of a table whose tablet moves and splits; a node has one shard."""

    release = profiles(Profile("scylla-2026.2"))
    migrations = budget(1, doc="migrations for balance")
    splits = budget(1, doc="splits of the table's tablet")
    repairs = budget(1, doc="repairs that bring a row")
    leader_changes = fault_budget(1, doc="changes of the raft leader, with all coordinators on it")
    restarts = fault_budget(0, doc="restarts of a node")

    exercised_at = scopes(
        {},
        {restarts: 1, leader_changes: 0},
        {restarts: 2, leader_changes: 2, splits: 0, repairs: 0},
        {migrations: 2, splits: 0, leader_changes: 0},
        {repairs: 2, splits: 0, leader_changes: 0},
        {migrations: 2, splits: 2, repairs: 0},
    )

    tablets = many(
        TabletMigration,
        over=Tablet,
        without=LEFT_OUT,
        restricts=RESTRICTED,
    )
    host = per(Tablet, one_of(Node, init=ANY))
    pending = per(Tablet, optional(Node))
    split: FlagVar = flag()
    # the view in group0
    status: OneVar[ViewStatus] = one_of(ViewStatus, init=ViewStatus.none)
    tasks = per(Tablet, per(Type, one_of(Life, init=Life.absent)))
    # coordinator and workers
    called: SetVar[Node] = volatile(set_of(Node), of=COORDINATOR)
    batch = volatile(per(Node, record(Batch)), of=WORKER)
    # data
    base = per(Node, set_of(Row))
    staged = per(Node, set_of(Row))  # in the staging directory
    view: SetVar[Row] = set_of(Row)
    written: SetVar[Row] = history(set_of(Row))
    restarted: SetVar[Node] = history(set_of(Node))  # nodes that have lost their last batch

    each_alone = checked_alone(tablets)

    @initially
    def the_second_tablet_is_not_there(self) -> Bool:
        """It is named by where the first one is."""
        return self.host[Tablet.t1] == self.host[Tablet.t0]

    # -- clients, and repair -----------------------------------------------------------------------------

    @action(by=CLIENT)
    def write(self, r: Term[Row]) -> None:
        """A row is written to the replicas that the stage's writes go to, and to the view if there is one."""
        require(self._is_new(r), "a new row")
        self.written.add(r)
        t = self._owner(r)
        writes = self.tablets[t].stage.column(lambda stage: stage.writes)
        for n in Node:
            old = (self.host[t] == n) & (writes != NEXT)
            new = (self.pending[t] == n) & (writes != PREVIOUS)
            self.base[n].put(r, old | new)
        self.view.put(r, self.status != ViewStatus.none)

    @action(by=TOPOLOGY, spends=repairs)
    def repair(self, r: Term[Row], n: Term[Node]) -> None:
        """A repair brings a row that the replica, and with it the view, did not have.

        `view_destinations.py` has repairs of tables whose views are built.
        """
        require(self._is_new(r), "a new row")
        t = self._owner(r)
        require(self._is_at_rest(t) & (self.host[t] == n), "the tablet's replica, at rest")
        require(self.status != ViewStatus.success, "the view is not built")
        self.written.add(r)
        staged = self._destination() != Destination.normal_directory
        self.base[n].put(r, ~staged)
        self.staged[n].put(r, staged)
        self._register(t, staged)

    @action(by=CLIENT)
    def create_view(self) -> None:
        """A view is created, with a task for each tablet."""
        require(self.status == ViewStatus.none, "there is no view yet")
        self.status = ViewStatus.started
        self.tasks[Tablet.t0][Type.build_range] = Life.normal
        self.tasks[Tablet.t1][Type.build_range] = choose(self.split, Life.normal, Life.absent)

    # -- the view building coordinator and its workers ---------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The coordinator has a task executed where its tablet is."""
        self._may_call(n, t, k)
        require(self.batch[n].tablet.is_none(), "the worker has no batch")
        built = self.tasks[t][Type.build_range] == Life.absent
        require((k == Type.build_range) | built, "ranges are built first")
        self.batch[n].tablet = t
        self.batch[n].type = k
        self.restarted.discard(n)
        for r in Row:
            self.batch[n].rows.put(r, self._owner(Term.of(r)) == t)

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """A coordinator that does not know of the batch calls for its task: it waits for the result."""
        self._may_call(n, t, k)
        require(self._is_batch(n, t, k), "the worker has the task's batch")

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, n: Term[Node]) -> None:
        """The worker has read its replica; what is not paired with a view replica updates none."""
        batch = self.batch[n]
        require(batch.tablet.is_some() & ~batch.done, "a batch is executed")
        batch.done = True
        processes = batch.type == Type.process_staging
        for r in Row:
            there = choose(processes, self.staged[n].has(r), self.base[n].has(r))
            read = batch.rows.has(r) & there
            paired = self.host[self._owner(Term.of(r))] == n
            self.view.put(r, self.view.has(r) | (read & paired))
            self.base[n].put(r, self.base[n].has(r) | (read & processes))
            self.staged[n].put(r, self.staged[n].has(r) & ~(read & processes))

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The worker sees that the batch's task is aborted, or gone."""
        require((self.batch[n].tablet == t) & (self.batch[n].type == k), "a batch of the task")
        require(self.batch[n].stale | (self.tasks[t][k] != Life.normal), "aborted or gone")
        self._end_batch(n)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The worker has answered: the coordinator removes the task from group0, if it was not aborted."""
        require(self._is_batch(n, t, k) & self.batch[n].done, "the batch is done")
        require(self.called.has(n), "the coordinator waits for it")
        require(self.tasks[t][k] == Life.normal, "the task is not aborted")
        self.tasks[t][k] = Life.absent
        self._end_batch(n)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left: the view is built."""
        require(self.status == ViewStatus.started, "the view is being built")
        require(
            ~some(self.tasks[t][k] != Life.absent for t in Tablet for k in Type), "no task is left"
        )
        self.status = ViewStatus.success

    @action(by=WORKER, spends=restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node restarts: its batch is lost, done or not."""
        require(self.batch[n].tablet.is_some(), "the worker has a batch")
        self.restarted.add(n)
        self._end_batch(n)

    # -- a migration -------------------------------------------------------------------------------------

    @action(by=TOPOLOGY, spends=migrations)
    def migrate(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The load balancer moves a tablet to another node."""
        require((t == Tablet.t0) | self.split, "there is such a tablet")
        require(self.host[t] != n, "to another node")
        self.tablets[t].start(Term.of(Kind.migration))
        self.pending[t] = n

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Tablet]) -> None:
        """The replicas are ready for writes; the tasks of the leaving one are aborted in the same commit."""
        self.tablets[t].write_both()
        for k in Type:
            alive = self.tasks[t][k] == Life.normal
            self.tasks[t][k] = choose(alive, Life.aborted, self.tasks[t][k])

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_operation(self, t: Term[Tablet], old: Term[Node]) -> None:
        """What is streamed has arrived; or the leaving replica is cleaned up."""
        require(self.host[t] == old, "the leaving node")
        streams = self.tablets[t].stage == Stage.streaming
        self.tablets[t].finish_operation()
        stays = self._stays_staged()
        for n in Node:
            comes, goes = streams & (self.pending[t] == n), ~streams & (n == old)
            for r in Row:
                own = self._owner(Term.of(r)) == t
                base, staged = self.base[old].has(r), self.staged[old].has(r)
                base, staged = own & (base | (staged & ~stays)), own & staged & stays
                self.base[n].put(r, (self.base[n].has(r) & ~(goes & own)) | (comes & base))
                self.staged[n].put(r, (self.staged[n].has(r) & ~(goes & own)) | (comes & staged))
                self._leave_batch(n, r, goes & own)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[Tablet], new: Term[Node]) -> None:
        """The same commit ends the migration and creates new tasks on the new replica for the old ones."""
        self.tablets[t].finish()
        require(self.pending[t] == new, "the pending node")
        self.host[t] = new
        self.pending[t] = None
        for k in Type:
            there = self.tasks[t][k] != Life.absent
            self.tasks[t][k] = choose(there, Life.normal, Term.of(Life.absent))
        self._replace_batches(t)

    # -- a split, and the leader -------------------------------------------------------------------------

    @action(by=TOPOLOGY, spends=splits)
    def split_tablet(self) -> None:
        """The tablet splits, at rest: each of its tasks becomes one for both parts, in the same commit."""
        require(~self.split, "not split yet")
        require(self._is_at_rest(Term.of(Tablet.t0)), "the tablet is not in transition")
        self.split = True
        self.host[Tablet.t1] = self.host[Tablet.t0]
        for k in Type:
            self.tasks[Tablet.t1][k] = self._task_of_second_half(k)
        self._replace_batches(Term.of(Tablet.t0))

    @action(by=TOPOLOGY, spends=leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: all coordinators start anew, with what group0 stores."""
        for t in Tablet:
            self.tablets[t].fail_over()
        self.called = frozenset()

    # -- helpers -----------------------------------------------------------------------------------------

    def _owner(self, r: Term[Row], /) -> Term[Tablet]:
        """The tablet that a row is in."""
        upper = self.split & (r == Row.upper)
        return choose(upper, Tablet.t1, Term.of(Tablet.t0))

    def _is_new(self, r: Term[Row]) -> Bool:
        return ~some(self.base[n].has(r) | self.staged[n].has(r) for n in Node)

    def _is_at_rest(self, t: Term[Tablet], /) -> Bool:
        return self.tablets[t].stage == Stage.none

    def _destination(self) -> Term[Destination]:
        """Where a repaired sstable goes, as the views are."""
        started = self.status == ViewStatus.started
        far = choose(started, Views.started, Term.of(Views.none))
        return far.column(lambda views: views.repair)

    def _register(self, t: Term[Tablet], staged: Bool) -> None:
        """The worker's registrator stores a task for it (`view_wakeups.py` has what happens in between).

        One that has begun may not find it, and another takes its place.
        """
        kind = Type.process_staging
        self.tasks[t][kind] = choose(staged, Life.normal, self.tasks[t][kind])
        for n in Node:
            begun = (self.batch[n].tablet == t) & (self.batch[n].type == kind)
            self.batch[n].stale = self.batch[n].stale | (begun & staged)

    def _leave_batch(self, n: Term[Node], r: Row, gone: Bool) -> None:
        """A batch of a replica that was cleaned up finds nothing any more, also of what comes back when the tablet does."""
        self.batch[n].rows.put(r, self.batch[n].rows.has(r) & ~gone)

    def _stays_staged(self) -> Bool:
        """A staging sstable that is streamed is one at the new replica, too (scylladb PR #25776)."""
        return self.status != ViewStatus.none

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        return self.tasks[Tablet.t0][k]

    def _may_call(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        require(self.tasks[t][k] == Life.normal, "the task is alive")
        require(self.host[t] == n, "the tablet is on the node")
        require(self._is_at_rest(t), "the tablet is not in transition")
        require(~self.called.has(n), "no call to the node is under way")
        self.called.add(n)

    def _is_batch(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> Bool:
        return (self.batch[n].tablet == t) & (self.batch[n].type == k) & ~self.batch[n].stale

    def _replace_batches(self, t: Term[Tablet]) -> None:
        """Tasks with new ids have taken the place of those that batches are executing."""
        for n in Node:
            mine = self.batch[n].tablet == t
            self.batch[n].stale = self.batch[n].stale | mine

    def _end_batch(self, n: Term[Node]) -> None:
        self.batch[n].tablet = None
        self.batch[n].type = None
        self.batch[n].rows = frozenset()
        self.batch[n].done = False
        self.batch[n].stale = False
        self.called.discard(n)

    def _is_read(self, r: Row) -> Bool:
        """The row is where the stage's reads go."""
        t = self._owner(Term.of(r))
        new = self.tablets[t].stage.column(lambda stage: stage.reads) == NEXT
        return some(
            (self.base[n].has(r) | self.staged[n].has(r))
            & choose(new, self.pending[t] == n, self.host[t] == n)
            for n in Node
        )

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self) -> Bool:
        """SUCCESS of a view means that every row written before is in it, whatever happened on the way."""
        return (self.status == ViewStatus.success).implies(self.written <= self.view)

    @invariant
    def rows_are_kept(self) -> Bool:
        """What was written is at the replica that reads go to, staged or not, whichever tablet it is in."""
        return every(self.written.has(r).implies(self._is_read(r)) for r in Row)

    @invariant
    def views_have_rows_of_the_table(self) -> Bool:
        """A view has no row that its table does not have, and none before there is a view."""
        none = (self.status == ViewStatus.none).implies(self.view.is_empty())
        return (self.view <= self.written) & none

    def _is_stored(self, t: Tablet, k: Type) -> Bool:
        """Group0 has the task: it is alive, or aborted and waits for the operation's end."""
        return self.tasks[t][k].any_of(Life.normal, Life.aborted)

    @invariant
    def missing_rows_have_a_task(self) -> Bool:
        """000: group0 stores the tasks that "haven't been completed yet": those of the tablet as it is now."""
        return every(
            (self.written.has(r) & ~self.view.has(r) & (self.status != ViewStatus.none)).implies(
                some(
                    (self._owner(Term.of(r)) == t) & self._is_stored(t, k)
                    for t in Tablet
                    for k in Type
                )
            )
            for r in Row
        )

    @invariant
    def staged_rows_have_a_task(self) -> Bool:
        """000: a process_staging task waits for what is staged at a tablet's replica, also after it has moved."""
        return every(
            ((self.host[t] == n) & self.staged[n].has(r) & (self._owner(Term.of(r)) == t)).implies(
                self._is_stored(t, Type.process_staging)
            )
            for n in Node
            for r in Row
            for t in Tablet
        )

    @step_property
    def sstables_go_to_one_directory(self, after: Self, n: Term[Node]) -> Bool:
        """000, Staging sstables: "use normal directory" or "use staging directory": a new row is in one of them."""
        new = after.written - self.written
        return (new & after.base[n] & after.staged[n]).is_empty()

    @invariant
    def tasks_are_of_tablets(self, k: Term[Type]) -> Bool:
        """000: each task is associated with a tablet: there is such a tablet."""
        second = self.tasks[Tablet.t1][k] != Life.absent
        return second.implies(self.split)

    @invariant
    def aborted_tasks_are_of_tablets_in_transition(self, t: Term[Tablet], k: Term[Type]) -> Bool:
        """000: aborted tasks wait for the operation's end, when new ones take their places."""
        return (self.tasks[t][k] == Life.aborted).implies(~self._is_at_rest(t))

    @invariant
    def idle_workers_hold_nothing(self, n: Term[Node]) -> Bool:
        """A worker without a tablet to work on has no batch, and no coordinator waits for it."""
        batch = self.batch[n]
        empty = batch.type.is_none() & batch.rows.is_empty() & ~batch.done & ~batch.stale
        return batch.tablet.is_none().implies(empty & ~self.called.has(n))

    @invariant
    def calls_are_for_stored_tasks(self, n: Term[Node]) -> Bool:
        """000: a call waits for tasks that group0 stores, or for one whose place another has taken."""
        batch = self.batch[n]
        stored = some(
            (batch.tablet == t) & (batch.type == k) & self._is_stored(t, k)
            for t in Tablet
            for k in Type
        )
        return self.called.has(n).implies(stored | batch.stale)

    @invariant
    def tablets_are_stored_by_their_replicas(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """001: a tablet not in transition is in the storage layer of a node "only if that shard is one of the current
        tablet replicas": neither its rows nor what was staged stay behind.
        """
        here = some(
            (self._owner(Term.of(r)) == t) & (self.base[n].has(r) | self.staged[n].has(r))
            for r in Row
        )
        return (self._is_at_rest(t) & here).implies(self.host[t] == n)

    @step_property
    def aborts_are_not_revoked(self, after: Self, t: Term[Tablet], k: Term[Type]) -> Bool:
        """000: "Once a task is aborted by setting the flag, this cannot be revoked": another one takes its place, and not
        before the operation has ended.
        """
        revived = (self.tasks[t][k] == Life.aborted) & (after.tasks[t][k] == Life.normal)
        return revived.implies(after._is_at_rest(t))

    @step_property
    def tasks_keep_their_ids(self, after: Self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """000: a new coordinator sends "the same view building tasks", of which the worker answers that they were completed:
        a task takes another's place where a tablet operation ends, or one that processes staging where more is staged there.
        """
        replaced = (self.batch[n].tablet == t) & ~self.batch[n].stale & after.batch[n].stale
        ended = (~self._is_at_rest(t) & after._is_at_rest(t)) | (~self.split & after.split)
        staged = some(
            ~self.staged[n].has(r) & after.staged[n].has(r) & (self._owner(Term.of(r)) == t)
            for r in Row
        )
        processes = self.batch[n].type == Type.process_staging
        return replaced.implies(ended | (staged & processes))

    @wording('000, tablet resize: "abort the task and create new tasks with new tablet ids"')
    @step_property
    def tasks_of_tablets_that_split_are_aborted(self, after: Self, n: Term[Node]) -> Bool:
        """A batch that has begun before its tablet splits is of a task that is gone; rows do not need it, as it has read
        both halves.
        """
        splits = ~self.split & after.split
        of_whole = self.batch[n].tablet == Tablet.t0
        return (splits & of_whole).implies(after.batch[n].stale | after.batch[n].tablet.is_none())

    @step_property
    def work_goes_on_for_whoever_asks(
        self, after: Self, n: Term[Node], t: Term[Tablet], k: Term[Type]
    ) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result": the batch of a task that is alive goes on,
        whoever coordinates, but where the worker's node restarts.
        """
        batch = self.batch[n]
        alive = (batch.tablet == t) & (batch.type == k) & ~batch.stale
        ends = alive & (self.tasks[t][k] == Life.normal) & after.batch[n].tablet.is_none()
        return ends.implies((after.tasks[t][k] == Life.absent) | after.restarted.has(n))

    @step_property
    def staging_tasks_are_created_for_something(self, after: Self, t: Term[Tablet]) -> Bool:
        """000: a process_staging task is created when "a staging sstable was registered", and of its tablet; or for each half of one
        that had a task when it splits.
        """
        kind = Type.process_staging
        created = (self.tasks[t][kind] == Life.absent) & (after.tasks[t][kind] != Life.absent)
        registered = some(
            after.staged[n].has(r) & (self.host[t] == n) & (self._owner(Term.of(r)) == t)
            for n in Node
            for r in Row
        )
        splits = after.split & ~self.split & (self.tasks[Tablet.t0][kind] != Life.absent)
        return created.implies(registered | splits)

    @step_property
    def ranges_are_built_once(self, after: Self, t: Term[Tablet]) -> Bool:
        """000: "Create new task" is said "for each task" of the tablet: a range that was built gets none when it moves or
        splits.
        """
        kind = Type.build_range
        created = (self.tasks[t][kind] == Life.absent) & (after.tasks[t][kind] != Life.absent)
        of_whole = ~self.split & after.split & (self.tasks[Tablet.t0][kind] != Life.absent)
        return created.implies((self.status == ViewStatus.none) | of_whole)

    @step_property
    def built_views_stay_built(self, after: Self) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": it goes with its view alone."""
        built = self.status == ViewStatus.success
        return built.implies(after.status == ViewStatus.success)

    @invariant
    def built_views_have_no_task(self, t: Term[Tablet]) -> Bool:
        """000, the same: it is built when its tasks are removed, "permanently marking them as finished", and not when a
        worker has answered.
        """
        kept = some(self.tasks[t][k] != Life.absent for k in Type)
        return (self.status == ViewStatus.success).implies(~kept)

    @step_property
    def one_batch_on_a_shard(self, after: Self, n: Term[Node]) -> Bool:
        """000: the worker "can execute only one batch per shard"."""
        now, then = self.batch[n], after.batch[n]
        goes_on = (now.tablet == then.tablet) & (now.type == then.type)
        return (now.tablet.is_some() & then.tablet.is_some()).implies(goes_on)

    @step_property
    def batches_begin_at_rest(self, after: Self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """000: not "prematurely, before the writes are directed to the new replica" (scylladb #19149)."""
        begins = self.batch[n].tablet.is_none() & (after.batch[n].tablet == t)
        return begins.implies(self._is_at_rest(t) & (self.host[t] == n))

    @accepts(migrate)
    def tablets_migrate_while_views_are_built(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """000: the coordinator "needs to react to" migrations, whatever a worker is executing."""
        there = (t == Tablet.t0) | self.split
        return there & (self.host[t] != n) & self._is_at_rest(t)

    @accepts(split_tablet)
    def tablets_split_while_views_are_built(self) -> Bool:
        """000: the coordinator "needs to react to" a resize, whatever a worker is executing."""
        return ~self.split & self._is_at_rest(Term.of(Tablet.t0))

    @accepts(repair)
    def tables_are_repaired_while_views_are_built(self, r: Term[Row], n: Term[Node]) -> Bool:
        """000, Staging sstables: "Is any view started but not finished yet?": sstables come all the same, whatever the
        worker executes.
        """
        rests = self._is_at_rest(self._owner(r)) & (self.host[self._owner(r)] == n)
        return ~self.written.has(r) & rests & (self.status != ViewStatus.success)

    @accepts(send)
    def each_tablet_is_worked_on(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> Bool:
        """000: "only batch per tablet replica": each has its own, whatever becomes of other tablets."""
        waits = (self.tasks[t][k] == Life.normal) & (self.host[t] == n) & self._is_at_rest(t)
        ranges = (k == Type.build_range) | (self.tasks[t][Type.build_range] == Life.absent)
        return waits & ranges & self.batch[n].tablet.is_none()

    @accepts(remove_finished)
    def finished_tasks_are_removed_at_any_time(
        self, n: Term[Node], t: Term[Tablet], k: Term[Type]
    ) -> Bool:
        """000: finished tasks are removed "in 200ms intervals": before a tablet that begins to move has them aborted."""
        batch = self.batch[n]
        finished = (batch.tablet == t) & (batch.type == k) & batch.done & ~batch.stale
        return finished & self.called.has(n) & (self.tasks[t][k] == Life.normal)

    @accepts(write_both)
    def aborts_wait_for_the_barrier_alone(self, t: Term[Tablet]) -> Bool:
        """000: "the tasks are aborted at the start of the operation": when its first barrier has passed, and not when another
        tablet has moved, or a batch is over.
        """
        ready = self.tablets[t].stage == Stage.allow_write_both_read_old
        return ready & (self.tablets[t].barrier == Progress.done)

    @accepts(finish_operation)
    def replicas_are_streamed_and_cleaned_up_whatever_is_executed(
        self, t: Term[Tablet], old: Term[Node]
    ) -> Bool:
        """000, the same of the action of a stage: what it moves or removes a batch may still read, for nothing."""
        return (self.tablets[t].operation == Progress.running) & (self.host[t] == old)

    @accepts(attach)
    def a_new_coordinator_waits_for_a_running_batch(
        self, n: Term[Node], t: Term[Tablet], k: Term[Type]
    ) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result", also of who did not send them."""
        batch = self.batch[n]
        runs = (batch.tablet == t) & (batch.type == k) & ~batch.stale & ~self.called.has(n)
        return runs & (self.tasks[t][k] == Life.normal) & self._is_at_rest(t)

    @independent(finish_batch, observe_abort, of=(tablets, called, status, host, pending, Node))
    def workers_wait_for_no_other(self) -> None:
        """000: "only batch per tablet replica": it ends, or its abort is noticed, whatever stage a tablet is in, and whatever
        other nodes execute.
        """

    @accepts(finish)
    def migrations_end_whatever_is_executed(self, t: Term[Tablet], new: Term[Node]) -> Bool:
        """000: "new tasks are created at the end" of the operation, which waits for no batch of an aborted one."""
        ends = (self.tablets[t].stage == Stage.end_migration) & (self.pending[t] == new)
        return ends & (self.tablets[t].barrier == Progress.done)

    @accepts(mark_view_built)
    def views_are_built_while_their_tablets_move(self) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": it waits for tasks alone."""
        none = every(self.tasks[t][k] == Life.absent for t in Tablet for k in Type)
        return (self.status == ViewStatus.started) & (self.written <= self.view) & none

    @sometimes(at={restarts: 0})
    def workers_notice_aborts(self, after: Self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted": it leaves a batch that is not through."""
        executed = (self.batch[n].tablet == t) & ~self.batch[n].done
        aborted = some((self.batch[n].type == k) & (self.tasks[t][k] == Life.aborted) for k in Type)
        return executed & aborted & after.batch[n].tablet.is_none()

    @accepts(create_view)
    def views_are_created_while_tablets_change(self) -> Bool:
        """000: tasks are created when "a view/index is created": at any time, also while the table's tablets move."""
        return self.status == ViewStatus.none

    @accepts(write)
    def rows_are_written_at_any_time(self, r: Term[Row]) -> Bool:
        """000: view building locks nobody out, and neither does a tablet operation."""
        return ~self.written.has(r)

    @final
    def at_rest(self) -> Bool:
        """A table at rest may stay as it is, when its view is built or there is none."""
        idle = every(self._is_at_rest(Term.of(t)) for t in Tablet)
        return idle & (self.status != ViewStatus.started)

    @liveness
    def views_are_built(self) -> LeadsTo:
        """Every view is built in the end."""
        return leads_to(self.status == ViewStatus.started, self.status == ViewStatus.success)

    @liveness
    def migrations_end(self, t: Term[Tablet]) -> LeadsTo:
        """View building holds up no migration."""
        return leads_to(~self._is_at_rest(t), self._is_at_rest(t))

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(write, "a new row", because="a row may be written again"),
        equivalent_replacement(write, "a new row", because="a row may be written again"),
        equivalent_weakening(
            repair, "a new row", because="a repair may bring a row that is staged once more"
        ),
        equivalent_drop(
            send, "ranges are built first", because="in which order is view-coordinator's to say"
        ),
        equivalent_drop(
            send,
            "no call to the node is under way",
            because="a call is under way only while the worker has a batch",
        ),
        equivalent_loss(send, restarted, because="then more is excused by an earlier restart"),
        equivalent_replacement(
            send,
            "restarted[n] becomes: yes for no",
            because="then more is excused by an earlier restart",
        ),
        equivalent_loss(
            _may_call, called, because="a call of which the coordinator does not know is made again"
        ),
        equivalent_replacement(
            _may_call,
            "no for yes",
            because="a call of which the coordinator does not know is made again",
        ),
        equivalent_drop(
            attach,
            "the tablet is not in transition",
            "no call to the node is under way",
            because="a call may be made again, and starts nothing where a batch runs",
        ),
        equivalent_drop(
            attach,
            "the task is alive",
            "the tablet is on the node",
            because="a batch at rest that is not stale is of a task that is alive, where its tablet is",
        ),
        equivalent_weakening(
            attach,
            "the worker has the task's batch",
            because="a worker has one batch, and a finished one counts for its own task alone",
        ),
        equivalent_weakening(
            finish_batch, "a batch is executed", because="a batch may be executed again"
        ),
        equivalent_drop(
            remove_finished,
            "the coordinator waits for it",
            because="what a worker has done is done, whoever asks for it",
        ),
        equivalent_loss(
            remove_finished, Batch.stale, because="a batch whose task is removed is not stale"
        ),
        equivalent_drop(
            restart, "the worker has a batch", because="a restart that loses nothing does no harm"
        ),
        equivalent_loss(restart, _end_batch, because="a restart that loses nothing does no harm"),
        equivalent_replacement(
            _leave_batch,
            "write_both_read_new for streaming",
            because="what an aborted batch does not read is read for the task that takes its place",
        ),
        equivalent_loss(finish, pending, because="at rest nobody asks which node is pending"),
        equivalent_loss(
            split_tablet, batch, because="what was read of the whole was read of its first half"
        ),
        equivalent_replacement(
            split_tablet,
            "batch[n].stale becomes: t1 for t0",
            because="what was read of the whole was read of its first half",
        ),
        equivalent_loss(
            change_leader, called, because="what a new coordinator knows of calls is so"
        ),
        equivalent_without(
            TabletMigration.start,
            TabletMigration.fail_over,
            because="a migration may as well not begin, and what is known of it is so",
        ),
        equivalent_value(
            UNUSED_STAGES, lambda stage: stage.writes, because="no tablet comes to this stage here"
        ),
        equivalent_value(
            UNUSED_STAGES, lambda stage: stage.reads, because="no tablet comes to this stage here"
        ),
        equivalent_value(
            (Views.not_started, Views.built),
            lambda views: views.repair,
            because="no table is repaired here whose views are so: view-destinations has them",
        ),
        equivalent_value(
            Views.started,
            lambda views: views.repair,
            Destination.staging_directly_to_generator,
            because="whatever is staged has a task here",
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(restart, because="a node restarts where there are `restarts`"),
        vacuous(
            TabletMigration.only_rebuild_v2_repairs,
            TabletMigration.a_failed_repair_is_drained_after_it_failed,
            because="the tablets are neither repaired nor rebuilt here: tablet-migration has that",
        ),
        vacuous(
            TabletMigration.the_target_is_cleaned_up_after_a_barrier,
            TabletMigration.a_transition_is_undone_only_for_a_reason,
            TabletMigration.what_is_undone_is_not_taken_up_again,
            TabletMigration.nothing_is_unwanted_before_it_streams,
            because="no migration is undone here: cluster-views has that",
        ),
        vacuous(
            TabletMigration.nobody_waits_for_a_leaving_replica_that_is_gone,
            because="no replica's node is gone for good here: tablet has that",
        ),
    )
