"""The view building coordinator: one base table at a time, a batch for every shard, on whichever node leads.

Source: design document 000 (view-building-coordinator, 2025-12). Base tables with views and staging
sstables, tablets on shards; the coordinator chooses a base table, has the tasks of its tablets executed in
batches, and marks views as built, while views are dropped and another node becomes the leader. A call arrives
at once here, and nothing moves: `view_worker.py` has the worker's part, `view_building.py` tablets that move.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OptionalVar,
    Profile,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    only_when,
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
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class Base(Entity, scope=2):
    """A base table."""


class View(Entity, scope=2):
    """A view."""


class Tablet(Entity, scope=2):
    """A tablet id; every base table has a tablet of that id."""


class Shard(Entity, scope=2):
    """A shard with a view building worker."""


class ViewStatus(Enum):
    """The view build status, on all normal nodes."""

    none = auto()  # no such view
    created = auto()
    started = auto()
    success = auto()
    dropped = auto()


class Batch(Record):
    """What a shard executes."""

    base = optional(Base)
    tablet = optional(Tablet)
    views = set_of(View)  # whose ranges it builds; none: it processes staging sstables
    done = flag()


@dataclass(frozen=True)
class ChoiceRelease(Profile):
    """In which order a version works."""

    has_an_order: bool  # tables with staging tasks alone first, and a tablet's ranges before its staging sstables


SEED = ChoiceRelease("seed", has_an_order=False)
SCYLLA_2026_2 = ChoiceRelease("scylla-2026.2", has_an_order=True)


class ViewCoordinator(Machine):
    """The coordinator's choices: a base table, batches for its tablets, views that are built.

    Under `seed` any table with tasks may be the next, and any task of a tablet: 000 has no order of them.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    staging_sstables = budget(1, doc="staging sstables that are registered")
    drops = budget(1, doc="views that are dropped, or tables with all their views")
    leader_changes = fault_budget(1, doc="changes of the view building coordinator")
    restarts = fault_budget(0, doc="restarts of a shard's node")

    exercised_at = scopes(
        {},
        {Tablet: 1, Shard: 1, restarts: 1},
        {Base: 1, Tablet: 1, Shard: 1, restarts: 2, leader_changes: 2},
        {Base: 1, staging_sstables: 0},
        {Base: 1, View: 1, Tablet: 1, Shard: 1, staging_sstables: 3},
        {Base: 1, View: 1, restarts: 2, leader_changes: 2},
        {Base: 1, View: 3, Tablet: 1, Shard: 1, drops: 2, staging_sstables: 0, leader_changes: 0},
        {Base: 1, View: 1, staging_sstables: 2},
        {Tablet: 1, Shard: 1, staging_sstables: 2},
    )

    table = constant(per(View, one_of(Base, init=ANY)))  # of a view
    shard = constant(per(Tablet, one_of(Shard, init=ANY)))  # of a tablet's replica
    # group0
    building = per(View, set_of(Tablet))  # build_range tasks
    staging = per(Base, set_of(Tablet))  # process_staging tasks
    processed: OptionalVar[Base] = optional(Base)  # view_building_processing_base
    status = per(View, one_of(ViewStatus, init=ViewStatus.none))
    dropped_tables: SetVar[Base] = set_of(Base)  # a table that is created anew is another one
    # the coordinator
    called: SetVar[Shard] = volatile(set_of(Shard), of=COORDINATOR)  # whose answer it waits for
    # the workers
    batch = volatile(per(Shard, record(Batch)), of=WORKER)
    # data
    scanned = per(View, set_of(Tablet))  # tablets whose rows are in a view
    restarted: SetVar[Shard] = history(set_of(Shard))  # shards whose node has lost their last batch
    staged = per(Base, set_of(Tablet))  # those with staging sstables, of rows that no view has

    # -- tasks are created -------------------------------------------------------------------------------

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with a task for every tablet of its base table."""
        require(self.status[v] == ViewStatus.none, "not created yet")
        require(~self._is_dropped_with_its_table(v), "its table is there")
        self.status[v] = ViewStatus.created
        for t in Tablet:
            self.building[v].add(t)

    @action(by=WORKER, spends=staging_sstables)
    def register_staging(self, b: Term[Base], t: Term[Tablet]) -> None:
        """A staging sstable is registered: of streaming while a view is being built, or of a repair."""
        require(~self.staging[b].has(t), "no such task waits")
        require(self._has_views(b), "the table has a view")
        self.staging[b].add(t)
        self.staged[b].add(t)

    # -- and deleted -------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, being built or not: "we simply delete relevant view building tasks"."""
        require(self._exists(v), "there is such a view")
        self.status[v] = ViewStatus.dropped
        self.building[v] = frozenset()

    @action(by=CLIENT, spends=drops)
    def drop_table(self, b: Term[Base]) -> None:
        """A table is dropped with its keyspace, all its views and tasks, even while it is processed."""
        require(self._has_views(b), "the table has a view")
        self.dropped_tables.add(b)
        for v in View:
            dropped = (self.table[v] == b) & self._exists(v)
            self.status[v] = choose(dropped, ViewStatus.dropped, self.status[v])
            for t in Tablet:
                self.building[v].put(t, self.building[v].has(t) & (self.table[v] != b))
        self.staging[b] = frozenset()
        self.staged[b] = frozenset()

    # -- the base table ----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The coordinator chooses a base table with tasks."""
        require(self.processed.is_none(), "no base table is processed")
        require(self._has_tasks(b), "the table has tasks")
        if self.release.has_an_order:
            require(
                ~self._has_to_build(b) | ~some(self._has_only_staging(o) for o in Base),
                "tables with staging tasks alone come first",
            )
        self.processed = b
        for v in View:
            starts = (self.table[v] == b) & (self.status[v] == ViewStatus.created)
            self.status[v] = choose(starts, ViewStatus.started, self.status[v])

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """A view was created on the table that is processed already: it is started too."""
        require(self.status[v] == ViewStatus.created, "not started yet")
        require(self.processed == self.table[v], "its table is processed")
        self.status[v] = ViewStatus.started

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task, and its table no staging task: it is built."""
        require(self.status[v] == ViewStatus.started, "the view is being built")
        self._has_no_work(v)
        self.status[v] = ViewStatus.success

    @action(by=COORDINATOR, fair=WEAK)
    def leave_base(self, b: Term[Base]) -> None:
        """No task of the table is left: the coordinator is done with it."""
        require(self.processed == b, "the table is processed")
        require(self.staging[b].is_empty(), "the table has no staging task")
        finished = every((self.table[v] == b).implies(~self._is_unfinished(v)) for v in View)
        require(finished, "its views are built")
        self.processed = None

    # -- batches -----------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def send_build_range(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the build_range tasks of one tablet: one batch, for all views of the table."""
        self._may_send(s, t, b)
        require(some(self._is_to_build(v, t) for v in View), "a view has a task for the tablet")
        for v in View:
            self.batch[s].views.put(v, self._is_to_build(v, t))

    @action(by=COORDINATOR, fair=WEAK)
    def send_process_staging(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the process_staging tasks of one tablet."""
        self._may_send(s, t, b)
        require(self.staging[b].has(t), "the tablet has a staging task")
        if self.release.has_an_order:
            none = ~some(self._is_to_build(v, t) for v in View)
            require(none, "no range of the tablet is to be built")

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A coordinator that does not know of the batch calls for its tasks: the call waits for their result.

        A call for other tasks is refused for as long as the batch runs.
        """
        require(self.processed == b, "the table is processed")
        require(~self.called.has(s), "no call to the shard is under way")
        require(self._is_batch(s, t, b), "the shard has a batch")
        require(self._is_still_wanted(s, t, b), "a task of it is in group0")
        self.called.add(s)

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views: from the tablet, or from its staging sstables."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b), "the shard has a batch")
        require(~batch.done, "it is executed")
        batch.done = True
        for v in batch.views:
            self.scanned[v].add(t)
        self.staged[b].put(t, self.staged[b].has(t) & ~batch.views.is_empty())

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker sees that no task of its batch is in group0 any more: the batch is given up."""
        require(self._is_batch(s, t, b), "the shard has a batch")
        require(~self._is_still_wanted(s, t, b), "no task of it is in group0")
        self._end_batch(s)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker has answered: the coordinator removes the batch's tasks from group0."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b) & batch.done, "the batch is done")
        require(self.called.has(s), "the coordinator waits for it")
        for v in batch.views:
            self.building[v].discard(t)
        self.staging[b].put(t, self.staging[b].has(t) & ~batch.views.is_empty())
        self._end_batch(s)

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: the new coordinator knows what group0 stores, and of no call."""
        self.called = frozenset()

    @action(by=WORKER, spends=restarts)
    def restart(self, s: Term[Shard]) -> None:
        """The shard's node restarts: its batch is lost, done or not."""
        require(self.batch[s].tablet.is_some(), "the shard has a batch")
        self.restarted.add(s)
        self._end_batch(s)

    # -- helpers ---------------------------------------------------------------------------------------

    def _exists(self, v: Term[View]) -> Bool:
        return ~self.status[v].any_of(ViewStatus.none, ViewStatus.dropped)

    def _is_dropped_with_its_table(self, v: Term[View]) -> Bool:
        return some((self.table[v] == b) for b in self.dropped_tables)

    def _has_views(self, b: Term[Base]) -> Bool:
        return some((self.table[v] == b) & self._exists(v) for v in View)

    def _is_unfinished(self, v: Term[View]) -> Bool:
        return self.status[v].any_of(ViewStatus.created, ViewStatus.started)

    def _has_to_build(self, b: Term[Base]) -> Bool:
        return some((self.table[v] == b) & ~self.building[v].is_empty() for v in View)

    def _has_tasks(self, b: Term[Base]) -> Bool:
        return self._has_to_build(b) | ~self.staging[b].is_empty()

    def _has_only_staging(self, b: Term[Base]) -> Bool:
        return ~self._has_to_build(b) & ~self.staging[b].is_empty()

    def _is_to_build(self, v: Term[View], t: Term[Tablet]) -> Bool:
        """Only views of the table that is processed are started."""
        return self.building[v].has(t) & (self.status[v] == ViewStatus.started)

    def _may_send(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        require(self.processed == b, "the table is processed")
        require(self.shard[t] == s, "the tablet is on the shard")
        require(self.batch[s].tablet.is_none(), "the shard has no batch")
        self.batch[s].base = b
        self.batch[s].tablet = t
        self.called.add(s)
        self.restarted.discard(s)

    def _is_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> Bool:
        return (self.batch[s].tablet == t) & (self.batch[s].base == b)

    def _is_still_wanted(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> Bool:
        """A task of the batch is in group0."""
        views = self.batch[s].views
        return choose(
            views.is_empty(), self.staging[b].has(t), some(self.building[v].has(t) for v in views)
        )

    def _end_batch(self, s: Term[Shard]) -> None:
        self.batch[s].base = None
        self.batch[s].tablet = None
        self.batch[s].views = frozenset()
        self.batch[s].done = False
        self.called.discard(s)

    def _has_no_work(self, v: Term[View]) -> None:
        require(self.building[v].is_empty(), "the view has no task")
        left = some((self.table[v] == b) & ~self.staging[b].is_empty() for b in Base)
        require(~left, "its table has no staging task")

    # -- promises --------------------------------------------------------------------------------------

    @accepts(send_build_range)
    def shards_work_at_once(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> Bool:
        """000: a worker "can execute only one batch per shard": each shard its own, whatever the others execute."""
        wanted = some(
            (self.table[v] == b) & (self.status[v] == ViewStatus.started) & self.building[v].has(t)
            for v in View
        )
        free = (self.shard[t] == s) & self.batch[s].tablet.is_none()
        return (self.processed == b) & free & wanted

    @accepts(send_process_staging)
    def shards_process_staging_at_once(
        self, s: Term[Shard], t: Term[Tablet], b: Term[Base]
    ) -> Bool:
        """The same of process_staging tasks: once the tablet's own ranges are built, no other shard is waited for."""
        ranges = some((self.table[v] == b) & self.building[v].has(t) for v in View)
        free = (self.shard[t] == s) & self.batch[s].tablet.is_none()
        return (self.processed == b) & free & self.staging[b].has(t) & ~ranges

    @accepts(remove_finished)
    def finished_tasks_are_removed_at_any_time(
        self, s: Term[Shard], t: Term[Tablet], b: Term[Base]
    ) -> Bool:
        """000: finished tasks are removed "in 200ms intervals", whatever other shards execute."""
        batch = self.batch[s]
        return (batch.tablet == t) & (batch.base == b) & batch.done & self.called.has(s)

    @accepts(choose_base)
    def tables_are_chosen_whatever_is_executed(self, b: Term[Base]) -> Bool:
        """000: the coordinator processes "at most only one base table at the time", and waits for nothing else: not for a
        shard that has not seen yet that its batch is for a table that was dropped.
        """
        ranges = some((self.table[v] == b) & ~self.building[v].is_empty() for v in View)
        others_first = some(self._is_staged_alone(other) for other in Base)
        chosen = self._is_staged_alone(b) | (ranges & ~others_first)
        return self.processed.is_none() & chosen

    def _is_staged_alone(self, b: Term[Base]) -> Bool:
        """The table has tasks, and none is to build a range."""
        none = every((self.table[v] == b).implies(self.building[v].is_empty()) for v in View)
        return none & ~self.staging[b].is_empty()

    @lemma
    @sometimes
    def ranges_are_built_for_all_views(self, s: Term[Shard]) -> Bool:
        """000: "The worker groups multiple view building tasks into a batch": those of all views of the table. A lemma: one of
        them could not leave it otherwise.
        """
        return every(self.batch[s].views.has(v) for v in View)

    @lemma
    @sometimes
    def views_are_built_one_by_one(self, after: Self, v: Term[View]) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": while another of the same table has
        tasks. A lemma: no view waits for another one's.
        """
        built = (self.status[v] == ViewStatus.started) & (after.status[v] == ViewStatus.success)
        return built & some((self.table[v] == b) & self._has_to_build(b) for b in Base)

    @step_property
    def built_views_stay_built(self, after: Self, v: Term[View]) -> Bool:
        """000, the same: an entry goes with its view alone."""
        ends = after.status[v].any_of(ViewStatus.success, ViewStatus.dropped)
        return (self.status[v] == ViewStatus.success).implies(ends)

    @step_property
    def views_that_were_started_are_built(self, after: Self, v: Term[View]) -> Bool:
        """000, "Is any view started but not finished yet?": what is started stays so until it is built or dropped, whoever
        coordinates; sstables of views that are not go to the normal directory.
        """
        onwards = (ViewStatus.started, ViewStatus.success, ViewStatus.dropped)
        return (self.status[v] == ViewStatus.started).implies(after.status[v].any_of(*onwards))

    @accepts(create_view)
    def views_are_created_at_any_time(self, v: Term[View]) -> Bool:
        """000: tasks are created when "a view/index is created", whatever is processed at that time; its table
        is there.
        """
        there = every((self.table[v] == b).implies(~self.dropped_tables.has(b)) for b in Base)
        return (self.status[v] == ViewStatus.none) & there

    @accepts(start_view)
    def views_of_the_table_are_started_at_any_time(self, v: Term[View]) -> Bool:
        """000: the coordinator is "building all views for this base table": one that is created meanwhile waits for no
        other, and for nothing that is staged.
        """
        return (self.status[v] == ViewStatus.created) & (self.processed == self.table[v])

    @accepts(drop_view)
    def views_are_dropped_at_any_time(self, v: Term[View]) -> Bool:
        """000: when a view was dropped "we simply delete relevant view building tasks", executed or not."""
        return ~self.status[v].any_of(ViewStatus.none, ViewStatus.dropped)

    @accepts(drop_table)
    def tables_are_dropped_at_any_time(self, b: Term[Base]) -> Bool:
        """000: the same of "a keyspace", whichever table is processed."""
        return self._is_built_for(b)

    @accepts(register_staging)
    def sstables_are_staged_at_any_time(self, b: Term[Base], t: Term[Tablet]) -> Bool:
        """000: tasks are created when "a staging sstable was registered", whatever the shard executes."""
        return ~self.staging[b].has(t) & self._is_built_for(b)

    def _is_built_for(self, b: Term[Base]) -> Bool:
        """000, "Does the table have any views?": one is built, or is to be."""
        return some(
            (self.table[v] == b)
            & self.status[v].any_of(ViewStatus.created, ViewStatus.started, ViewStatus.success)
            for v in View
        )

    @invariant
    def dropped_tables_have_no_tasks(self, b: Term[Base]) -> Bool:
        """000: tasks of a keyspace that was dropped are deleted "as they are no longer needed", of either type."""
        return self.dropped_tables.has(b).implies(~self._has_tasks(b))

    @invariant
    def one_base_at_a_time(self, s: Term[Shard]) -> Bool:
        """000: "Currently the coordinator processes at most only one base table at the time"."""
        live = some(
            self._is_batch(s, t, b) & self._is_still_wanted(s, t, b) for t in Tablet for b in Base
        )
        return live.implies(self.batch[s].base == self.processed)

    @invariant
    def batches_are_of_one_table_and_tablet(self, s: Term[Shard], v: Term[View]) -> Bool:
        """000: tasks of one batch have the same base_id, tablet replica and tablet id. A worker may keep its notes of one that
        is done until it sees that the tasks are removed.
        """
        batch = self.batch[s]
        stored = some((batch.tablet == t) & self.building[v].has(t) for t in Tablet)
        gone = batch.done | (self.status[v] == ViewStatus.dropped)
        return batch.views.has(v).implies((batch.base == self.table[v]) & (stored | gone))

    @step_property
    def batches_are_of_one_type(self, after: Self, b: Term[Base], t: Term[Tablet]) -> Bool:
        """000: tasks of one batch have the same type: what is staged is left to process_staging tasks, or goes to the
        base directory with the last view, when they are "no longer needed".
        """
        processed = self.staged[b].has(t) & ~after.staged[b].has(t)
        by_its_task = some(
            (self.batch[s].tablet == t) & (self.batch[s].base == b) & self.batch[s].views.is_empty()
            for s in Shard
        )
        return processed.implies(by_its_task | ~after._is_built_for(b))

    @invariant
    def idle_shards_hold_nothing(self, s: Term[Shard]) -> Bool:
        """A shard without a tablet to work on has no batch."""
        batch = self.batch[s]
        empty = batch.base.is_none() & batch.views.is_empty() & ~batch.done
        return batch.tablet.is_none().implies(empty)

    @invariant
    def tasks_are_of_views(self, v: Term[View]) -> Bool:
        """000: build_range tasks are created when "a view/index is created", and no row is there before."""
        none = (self.status[v] == ViewStatus.none).implies(self.scanned[v].is_empty())
        return none & (self._exists(v) | self.building[v].is_empty())

    @step_property
    def staging_tasks_are_of_tables_with_views(self, after: Self, b: Term[Base]) -> Bool:
        """000: "Does the table have any views? NO: use normal directory"."""
        return (after.staging[b] <= self.staging[b]) | self._is_built_for(b)

    @step_property
    def staging_tasks_are_created_for_something(self, after: Self, b: Term[Base]) -> Bool:
        """000: a process_staging task is created when "a staging sstable was registered", and of its tablet: for no other, and
        by no coordinator that takes over.
        """
        return (after.staging[b] - self.staging[b]) <= after.staged[b]

    @step_property
    def ranges_are_built_once(self, after: Self, v: Term[View], t: Term[Tablet]) -> Bool:
        """000: build_range tasks are removed, "permanently marking them as finished": whoever coordinates, and whichever view is
        created after that, a range that is in the view gets no task.
        """
        created = ~self.building[v].has(t) & after.building[v].has(t)
        return created.implies(~self.scanned[v].has(t))

    @invariant
    def batches_run_where_the_tablet_is(self, s: Term[Shard], t: Term[Tablet]) -> Bool:
        """000: a task is "associated with particular tablet replica (host_id, shard, tablet_id)"."""
        return (self.batch[s].tablet == t).implies(self.shard[t] == s)

    @invariant
    def calls_are_to_shards_with_a_batch(self, s: Term[Shard]) -> Bool:
        """000: the coordinator waits for results of what "the worker is executing", and of nothing else."""
        return self.called.has(s).implies(self.batch[s].tablet.is_some())

    @step_property
    def calls_are_for_tasks_of_the_table(self, after: Self, s: Term[Shard]) -> Bool:
        """000: the coordinator has tasks of the table that it processes executed, which group0 stores."""
        calls = ~self.called.has(s) & after.called.has(s)
        of_table = after.batch[s].base == self.processed
        stored = some(
            after._is_batch(s, t, b) & after._is_still_wanted(s, t, b) for t in Tablet for b in Base
        )
        return calls.implies(of_table & stored)

    @step_property
    def tasks_are_finished_by_answers(self, after: Self, v: Term[View], t: Term[Tablet]) -> Bool:
        """000: "After the coordinator gets the response from the worker", it removes the tasks, of either type: "the view building
        worker doesn't mark tasks as finished".
        """
        answered = some((self.batch[s].tablet == t) & self.called.has(s) for s in Shard)
        built = self.building[v].has(t) & ~after.building[v].has(t)
        processed = some(
            (self.table[v] == b) & self.staging[b].has(t) & ~after.staging[b].has(t) for b in Base
        )
        removed = built.implies(answered & self.scanned[v].has(t)) & processed.implies(answered)
        return after._exists(v).implies(removed)

    @step_property
    def running_batches_are_not_replaced(self, after: Self, s: Term[Shard]) -> Bool:
        """000: "it can execute only one batch per shard": another starts when this one is gone, which takes no task in on its
        way, as it has read a part of the tablet by then.
        """
        batch, new = self.batch[s], after.batch[s]
        goes_on = (new.tablet == batch.tablet) & (new.views <= batch.views)
        return batch.tablet.is_some().implies(new.tablet.is_none() | goes_on)

    @step_property
    def ranges_are_built_first(self, after: Self, s: Term[Shard], t: Term[Tablet]) -> Bool:
        """Staging sstables of a tablet wait until its ranges are built (the release's order of tasks)."""
        only_when(self.release.has_an_order)
        batch, new = self.batch[s], after.batch[s]
        starts = batch.tablet.is_none() & (new.tablet == t) & new.views.is_empty()
        return starts.implies(
            every((new.base == self.table[v]).implies(~self._is_to_build(v, t)) for v in View)
        )

    @step_property
    def staging_alone_comes_first(self, after: Self, b: Term[Base]) -> Bool:
        """A table with staging tasks alone goes before those that have views to build, as the release has it."""
        only_when(self.release.has_an_order)
        chosen = self.processed.is_none() & (after.processed == b)
        views_to_build = some((self.table[v] == b) & ~self.building[v].is_empty() for v in View)
        staging_alone = some(
            ~self.staging[other].is_empty()
            & every((self.table[v] == other).implies(self.building[v].is_empty()) for v in View)
            for other in Base
        )
        return (chosen & staging_alone).implies(~views_to_build)

    @step_property
    def bases_are_left_when_done(self, after: Self, b: Term[Base]) -> Bool:
        """A table is processed until it has no task at all, or has none any more."""
        leaves = (self.processed == b) & (after.processed != b)
        return leaves.implies(~after._has_tasks(b))

    @invariant
    def views_are_started_with_their_base(self, v: Term[View]) -> Bool:
        """A view is STARTED while its table is processed."""
        return (self.status[v] == ViewStatus.started).implies(self.processed == self.table[v])

    @invariant
    def built_views_are_complete(self, v: Term[View], t: Term[Tablet]) -> Bool:
        """A view is built only when every tablet of its table is in it."""
        return (self.status[v] == ViewStatus.success).implies(self.scanned[v].has(t))

    @step_property
    def built_views_have_no_staged_rows(self, after: Self, v: Term[View]) -> Bool:
        """A view is built only when no staging sstable of its table is left to be processed."""
        built = (self.status[v] == ViewStatus.started) & (after.status[v] == ViewStatus.success)
        staged = some((self.table[v] == b) & ~self.staged[b].is_empty() for b in Base)
        return built.implies(~staged)

    @invariant
    def staged_rows_have_a_task(self, b: Term[Base], t: Term[Tablet]) -> Bool:
        """No staging sstable is left without a task."""
        return self.staged[b].has(t).implies(self.staging[b].has(t))

    @independent(leave_base, of=(called, batch, scanned, restarted))
    def tables_are_left_whatever_is_executed(self) -> None:
        """000: the coordinator processes "at most only one base table at the time": this one, until group0 stores no task of
        it, and not until each shard has seen that its batch is for nothing: others are to be processed.
        """

    @step_property
    def work_goes_on_for_whoever_asks(self, after: Self, s: Term[Shard], t: Term[Tablet]) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result": a batch of which group0 stores a task goes on,
        whoever coordinates and whichever other view was dropped, but where the shard's node restarts.
        """
        batch = self.batch[s]
        wanted = some(batch.views.has(v) & after.building[v].has(t) for v in View)
        staged = some((batch.base == b) & after.staging[b].has(t) for b in Base)
        wanted = wanted | (batch.views.is_empty() & staged)
        ends = (batch.tablet == t) & after.batch[s].tablet.is_none()
        return ends.implies(~wanted | after.restarted.has(s))

    @lemma
    @sometimes
    def others_stay_in_their_batch(self, s: Term[Shard]) -> Bool:
        """000: "we simply delete relevant view building tasks": a batch goes on without the one that was dropped. A lemma:
        work goes on for whoever asks.
        """
        views = self.batch[s].views
        dropped = some(self.status[v] == ViewStatus.dropped for v in views)
        return dropped & some(self.status[v] == ViewStatus.started for v in views)

    @accepts(attach)
    def a_new_coordinator_waits_for_a_running_batch(
        self, s: Term[Shard], t: Term[Tablet], b: Term[Base]
    ) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result", also of who did not send them."""
        batch = self.batch[s]
        wanted = some(batch.views.has(v) & self.building[v].has(t) for v in View)
        wanted = wanted | (batch.views.is_empty() & self.staging[b].has(t))
        return (batch.tablet == t) & (batch.base == b) & wanted & ~self.called.has(s)

    @accepts(mark_view_built)
    def views_are_built_while_shards_work(self, v: Term[View]) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": for tasks of its own, and of its table's
        staging sstables, it waits alone.
        """
        staged = some((self.table[v] == b) & ~self.staging[b].is_empty() for b in Base)
        return (self.status[v] == ViewStatus.started) & self.building[v].is_empty() & ~staged

    @sometimes(at={restarts: 0})
    def workers_notice_deletions(self, after: Self, s: Term[Shard]) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted (by deleting them …)": a batch ends undone."""
        return self._is_executed(s) & after.batch[s].tablet.is_none()

    def _is_executed(self, s: Term[Shard]) -> Bool:
        return self.batch[s].tablet.is_some() & ~self.batch[s].done

    @sometimes
    def a_new_coordinator_finds_a_finished_batch(self, s: Term[Shard]) -> Bool:
        """000: "it is possible that the coordinator may lose this information (e.g. due to Raft leader change)"."""
        return self.batch[s].done & ~self.called.has(s)

    @independent(finish_batch, observe_deletion, of=(called, processed, status, scanned, restarted))
    def workers_wait_for_no_coordinator(self) -> None:
        """000: "each view building worker keeps track of finished tasks locally", and it "observes the group0 state": a batch
        ends whether or not a coordinator waits for it, and whichever table is processed.
        """

    @independent(finish_batch, observe_deletion, of=Shard)
    def shards_wait_for_no_other(self) -> None:
        """000: a worker "can execute only one batch per shard": its own, which ends whatever the others execute."""

    @final
    def nothing_to_do(self) -> Bool:
        """When every view is built, and no task is left, the coordinator waits for events."""
        idle = self.processed.is_none() & ~some(self._has_tasks(b) for b in Base)
        return idle & every(~self._is_unfinished(v) for v in View)

    @liveness
    def views_are_built(self, v: Term[View]) -> LeadsTo:
        """Every view is built in the end, unless it is dropped."""
        built = self.status[v].any_of(ViewStatus.success, ViewStatus.dropped)
        return leads_to(self._is_unfinished(v), built)

    @liveness
    def staging_sstables_are_processed(self, b: Term[Base], t: Term[Tablet]) -> LeadsTo:
        """Every staging sstable is processed in the end."""
        return leads_to(self.staged[b].has(t), ~self.staged[b].has(t))

    @liveness
    def batches_end(self, s: Term[Shard]) -> LeadsTo:
        """000: the worker answers "once the tasks are finished", or notices that they are deleted, of either type."""
        has_batch = self.batch[s].tablet.is_some()
        return leads_to(has_batch, ~has_batch)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(
            attach, "the shard has a batch", because="a shard has one batch: that is the one meant"
        ),
        equivalent_drop(
            attach,
            "the table is processed",
            because="a table is left when it has no task, and a batch that is wanted has one",
        ),
        equivalent_drop(
            drop_view, "there is such a view", because="what is not there can be dropped"
        ),
        equivalent_drop(
            drop_table, "the table has a view", because="a table is dropped with none, too"
        ),
        equivalent_loss(
            _may_send, called, because="a call of which the coordinator does not know is made again"
        ),
        equivalent_loss(_may_send, restarted, because="then more is excused by an earlier restart"),
        equivalent_replacement(
            _may_send,
            "restarted[s] becomes: yes for no",
            because="then more is excused by an earlier restart",
        ),
        equivalent_replacement(
            _may_send,
            "called[s] becomes: no for yes",
            because="a call of which the coordinator does not know is made again",
        ),
        equivalent_drop(
            attach, "no call to the shard is under way", because="a call may be made again"
        ),
        equivalent_loss(choose_base, status, because="they may be started a step later"),
        equivalent_replacement(
            choose_base, "started for created", because="they may be started a step later"
        ),
        equivalent_drop(finish_batch, "it is executed", because="a batch may be executed again"),
        equivalent_drop(
            restart, "the shard has a batch", because="a restart of an idle shard loses nothing"
        ),
        equivalent_loss(
            restart, _end_batch, because="a batch that outlasts the restart comes to its end"
        ),
        equivalent_replacement(
            drop_view,
            "there is such a view: none for dropped",
            because="what was dropped is so once more",
        ),
        equivalent_replacement(
            drop_table,
            "the table has a view: none for dropped",
            because="what was dropped is so once more",
        ),
    )

    beyond_the_default_scope = unexercised(
        vacuous(
            work_goes_on_for_whoever_asks,
            because="a batch that is still asked for ends where a node restarts, with `restarts`",
        ),
    )
