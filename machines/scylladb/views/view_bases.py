"""What the view building coordinator works on: one base table at a time, a batch for every shard.

Source: design document 000 (view-building-coordinator, 2025-12). Base tables with views and staging
sstables, tablets on shards; the coordinator chooses a base table, has the tasks of its tablets executed in
batches, and marks views as built. Calls do not fail and nothing moves here; `view_building.py` has that.
"""

from __future__ import annotations

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
    Record,
    Term,
    action,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    one_of,
    optional,
    per,
    record,
    require,
    scopes,
    set_of,
    some,
    step_property,
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


class Batch(Record):
    """What a shard executes."""

    base = optional(Base)
    tablet = optional(Tablet)
    views = set_of(View)  # whose ranges it builds; none: it processes staging sstables
    done = flag()


class ViewBases(Machine):
    """The coordinator's choices: a base table, batches for its tablets, views that are built."""

    staging_sstables = budget(1, doc="staging sstables that are registered")
    restarts = budget(1, doc="restarts of a shard's node")

    exercised_at = scopes(
        {Tablet: 1, Shard: 1},
        {Base: 1, staging_sstables: 0},
        {Base: 1, View: 1, Tablet: 1, Shard: 1, staging_sstables: 3},
        {Base: 1, View: 1, staging_sstables: 2},
        {Tablet: 1, Shard: 1, staging_sstables: 2, restarts: 0},
    )

    table = constant(per(View, one_of(Base, init=ANY)))  # of a view
    shard = constant(per(Tablet, one_of(Shard, init=ANY)))  # of a tablet's replica
    # group0
    building = per(View, set_of(Tablet))  # build_range tasks
    staging = per(Base, set_of(Tablet))  # process_staging tasks
    processed: OptionalVar[Base] = optional(Base)  # view_building_processing_base
    status = per(View, one_of(ViewStatus, init=ViewStatus.none))
    # the workers
    batch = per(Shard, record(Batch))
    # data
    scanned = per(View, set_of(Tablet))  # tablets whose rows are in a view
    staged = per(
        Base, set_of(Tablet)
    )  # tablets with rows in staging sstables that are not in views

    # -- tasks are created -------------------------------------------------------------------------------

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with a task for every tablet of its base table."""
        require(self.status[v] == ViewStatus.none, "not created yet")
        self.status[v] = ViewStatus.created
        for t in Tablet:
            self.building[v].add(t)

    @action(by=WORKER, spends=staging_sstables)
    def register_staging(self, b: Term[Base], t: Term[Tablet]) -> None:
        """A staging sstable is registered: of streaming while a view is being built, or of a repair."""
        require(~self.staging[b].has(t), "no such task waits")
        viewed = some((self.table[v] == b) & (self.status[v] != ViewStatus.none) for v in View)
        require(viewed, "the table has a view")
        self.staging[b].add(t)
        self.staged[b].add(t)

    # -- the base table ----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The coordinator chooses a base table, one with staging tasks alone if there is one."""
        require(self.processed.is_none(), "no base table is processed")
        require(self._has_tasks(b), "the table has tasks")
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
        """A shard gets the process_staging tasks of one tablet, where no range is to be built."""
        self._may_send(s, t, b)
        require(self.staging[b].has(t), "the tablet has a staging task")
        none = ~some(self._is_to_build(v, t) for v in View)
        require(none, "no range of the tablet is to be built")

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views: from the tablet, or from its staging sstables."""
        batch = self.batch[s]
        require((batch.tablet == t) & (batch.base == b), "the shard has a batch")
        require(~batch.done, "it is executed")
        batch.done = True
        for v in batch.views:
            self.scanned[v].add(t)
        self.staged[b].put(t, self.staged[b].has(t) & ~batch.views.is_empty())

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The coordinator removes the batch's tasks from group0."""
        batch = self.batch[s]
        require((batch.tablet == t) & (batch.base == b) & batch.done, "the batch is done")
        for v in batch.views:
            self.building[v].discard(t)
        self.staging[b].put(t, self.staging[b].has(t) & ~batch.views.is_empty())
        self._end_batch(s)

    @action(by=WORKER, spends=restarts)
    def restart(self, s: Term[Shard]) -> None:
        """The shard's node restarts: its batch is lost, done or not."""
        require(self.batch[s].tablet.is_some(), "the shard has a batch")
        self._end_batch(s)

    # -- what recurs -----------------------------------------------------------------------------------

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

    def _end_batch(self, s: Term[Shard]) -> None:
        self.batch[s].base = None
        self.batch[s].tablet = None
        self.batch[s].views = frozenset()
        self.batch[s].done = False

    def _has_no_work(self, v: Term[View]) -> None:
        require(self.building[v].is_empty(), "the view has no task")
        left = some((self.table[v] == b) & ~self.staging[b].is_empty() for b in Base)
        require(~left, "its table has no staging task")

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def one_base_at_a_time(self, s: Term[Shard]) -> Bool:
        """000: "Currently the coordinator processes at most only one base table at the time"."""
        batch = self.batch[s]
        return batch.tablet.is_some().implies(batch.base.is_some() & (batch.base == self.processed))

    @invariant
    def batches_are_of_one_table_and_tablet(self, s: Term[Shard], v: Term[View]) -> Bool:
        """000: tasks of one batch have the same base_id, tablet replica and tablet id."""
        batch = self.batch[s]
        stored = some((batch.tablet == t) & self.building[v].has(t) for t in Tablet)
        return batch.views.has(v).implies((batch.base == self.table[v]) & stored)

    @invariant
    def idle_shards_hold_nothing(self, s: Term[Shard]) -> Bool:
        """A shard without a tablet to work on has no batch."""
        batch = self.batch[s]
        empty = batch.base.is_none() & batch.views.is_empty() & ~batch.done
        return batch.tablet.is_none().implies(empty)

    @invariant
    def tasks_are_of_views(self, v: Term[View]) -> Bool:
        """000: build_range tasks are created when "a view/index is created", and no row is there before."""
        none = self.building[v].is_empty() & self.scanned[v].is_empty()
        return (self.status[v] == ViewStatus.none).implies(none)

    @invariant
    def staging_tasks_are_of_tables_with_views(self, b: Term[Base]) -> Bool:
        """000: "Does the table have any views? NO: use normal directory"."""
        views = some((self.table[v] == b) & (self.status[v] != ViewStatus.none) for v in View)
        return self.staging[b].is_empty() | views

    @invariant
    def batches_run_where_the_tablet_is(self, s: Term[Shard], t: Term[Tablet]) -> Bool:
        """000: a task is "associated with particular tablet replica (host_id, shard, tablet_id)"."""
        return (self.batch[s].tablet == t).implies(self.shard[t] == s)

    @step_property
    def running_batches_are_not_replaced(self, after: Self, s: Term[Shard]) -> Bool:
        """000: "it can execute only one batch per shard": another starts when this one is gone."""
        batch, new = self.batch[s], after.batch[s]
        ends = new.tablet.is_none()
        return batch.tablet.is_some().implies(ends | (new.tablet == batch.tablet))

    @step_property
    def ranges_are_built_first(self, after: Self, s: Term[Shard], t: Term[Tablet]) -> Bool:
        """Staging sstables of a tablet wait until its ranges are built (the coordinator's order of tasks)."""
        batch, new = self.batch[s], after.batch[s]
        starts = batch.tablet.is_none() & (new.tablet == t) & new.views.is_empty()
        return starts.implies(
            every((new.base == self.table[v]).implies(~self._is_to_build(v, t)) for v in View)
        )

    @step_property
    def staging_alone_comes_first(self, after: Self, b: Term[Base]) -> Bool:
        """A table with staging tasks alone goes before those that have views to build."""
        chosen = self.processed.is_none() & (after.processed == b)
        others = some(self._has_only_staging(o) for o in Base)
        return (chosen & others).implies(self._has_only_staging(b))

    @step_property
    def bases_are_left_when_done(self, after: Self, b: Term[Base]) -> Bool:
        """A table is processed until it has no task at all."""
        leaves = (self.processed == b) & (after.processed != b)
        return leaves.implies(~self._has_tasks(b))

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

    @final
    def nothing_to_do(self) -> Bool:
        """When every view is built, and no task is left, the coordinator waits for events."""
        idle = self.processed.is_none() & ~some(self._has_tasks(b) for b in Base)
        return idle & every(~self._is_unfinished(v) for v in View)

    @liveness
    def views_are_built(self, v: Term[View]) -> LeadsTo:
        """Every view is built in the end."""
        return leads_to(self._is_unfinished(v), self.status[v] == ViewStatus.success)

    @liveness
    def staging_sstables_are_processed(self, b: Term[Base], t: Term[Tablet]) -> LeadsTo:
        """Every staging sstable is processed in the end."""
        return leads_to(self.staged[b].has(t), ~self.staged[b].has(t))

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            register_staging, staged, because="a staging sstable may be of rows that the views have"
        ),
        equivalent_loss(choose_base, status, because="they may be started a step later"),
        equivalent_drop(finish_batch, "it is executed", because="a batch may be executed again"),
        equivalent_drop(
            restart, "the shard has a batch", because="a restart of an idle shard loses nothing"
        ),
    )
