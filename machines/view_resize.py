"""View building on a table whose tablets split and merge: what becomes of tasks and staging sstables.

Source: design document 000 (view-building-coordinator, 2025-12), "Tablet operations", "tablet resize". One
table with one view, on one shard. Its token range is cut into four slots; a layout says which tablet owns
which slot. A resize has no abort phase: the command that finalizes it deletes and creates tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.machines.view_task import COORDINATOR, TOPOLOGY, WORKER
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    Profile,
    SetVar,
    States,
    Term,
    action,
    budget,
    choose,
    every,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    per,
    profiles,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK


class Slot(Enum):
    """A part of the token range, named by its last token; no tablet is smaller."""

    a = 0
    b = 1
    c = 2
    d = 3


class Tablet(Enum):
    """A tablet's id: its place in the table's tablet map."""

    t0 = 0
    t1 = 1
    t2 = 2
    t3 = 3


class Layout(States):
    """A tablet map: which tablet owns each of the four slots."""

    # fmt: off
    #             a  b  c  d
    whole       = 0, 0, 0, 0
    halves      = 0, 0, 1, 1
    quarters    = 0, 1, 2, 3
    first_apart = 0, 1, 1, 1  # from here on: only where layouts are arbitrary
    last_apart  = 0, 0, 0, 1
    first_split = 0, 1, 2, 2
    last_split  = 0, 0, 1, 2
    ends_apart  = 0, 1, 1, 2
    # fmt: on

    def __init__(self, *tablets: int) -> None:
        self.tablets = tablets

    def owns(self, tablet: Tablet, slot: Slot) -> bool:
        """Whether the tablet owns the slot."""
        return self.tablets[slot.value] == tablet.value

    def has(self, tablet: Tablet) -> bool:
        """Whether there is such a tablet."""
        return tablet.value in self.tablets

    def last_token(self, slot: Slot) -> Slot:
        """The last token of the tablet that owns a slot."""
        own = self.tablets[slot.value]
        return max((s for s in Slot if self.tablets[s.value] == own), key=lambda s: s.value)

    def is_split_of(self, other: Layout) -> bool:
        """Whether every tablet of this layout is a part of one of the other, and some are smaller."""
        ends = {self.last_token(s) for s in Slot}
        return ends > {other.last_token(s) for s in Slot}

    @property
    def is_even(self) -> bool:
        """Whether all tablets are of one size."""
        return self.name in {"whole", "halves", "quarters"}


class Type(Enum):
    """The type of a task, and of a batch."""

    build_range = auto()
    process_staging = auto()


class Batch(Enum):
    """The batch on the shard, up to when the coordinator has removed its tasks."""

    none = auto()
    executing = auto()
    done = auto()


@dataclass(frozen=True)
class ResizeRelease(Profile):
    """What a version says about resizes."""

    arbitrary: bool  # some tablets may split or merge while others stay (2026.2)
    token_lookup: bool  # new ids by the tasks' tokens, not n -> 2n, 2n+1 and n -> n/2 (2026-06)


SEED = ResizeRelease("seed", arbitrary=False, token_lookup=False)
SCYLLA_2026_2 = ResizeRelease("scylla-2026.2", arbitrary=True, token_lookup=True)


class ViewResize(Machine):
    """Tasks follow the tablets that split and merge, and so do the staging sstables of the worker.

    Every promise holds under both profiles: the formulas of `seed` are right where all tablets split or
    merge at once. What the profiles say differently: the text has tasks aborted at the start of every
    tablet operation, but a resize has no such phase.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    resizes = budget(2, doc="tablet resizes")
    staging_sstables = budget(1, doc="staging sstables that are registered")

    layout: OneVar[Layout] = one_of(Layout, init=ANY)
    # the tasks of each tablet in group0
    building = per(Tablet, number(0, 3, init=ANY))
    staging = per(Tablet, number(0, 3))
    built: FlagVar = flag()  # view build status: SUCCESS
    view: SetVar[Slot] = set_of(Slot)  # slots whose rows are in the view
    # the worker
    sstables: SetVar[Slot] = set_of(Slot)  # staging sstables that are not processed, by their slot
    key = per(Slot, one_of(Slot, init=Slot.d))  # the last token under which the worker holds them
    batch: OneVar[Batch] = one_of(Batch, init=Batch.none)
    type: OneVar[Type] = one_of(Type, init=Type.build_range)
    tablet: OptionalVar[Tablet] = optional(Tablet)  # whose tasks the batch executes
    reads: SetVar[Slot] = set_of(Slot)  # the slots of that tablet
    stale: FlagVar = flag()  # the tasks of the batch have been deleted from group0

    @initially
    def view_was_created(self) -> Bool:
        """A view has just been created: there is one task for every tablet of an even layout."""
        tasks = every(
            self.building[t] == choose(self.layout.column(lambda layout, t=t: layout.has(t)), 1, 0)
            for t in Tablet
        )
        return tasks & self.layout.column(lambda layout: layout.is_even)

    # -- batches ---------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_batch(self, tablet: Term[Tablet], kind: Term[Type]) -> None:
        """A worker gets the tasks of one type of one tablet; building ranges goes first."""
        require(self.batch == Batch.none, "the shard has no batch")
        require(self._has_task(tablet, kind), "the tablet has a task of the type")
        first = (kind == Type.build_range) | (self.building[tablet] == 0)
        require(first, "ranges are built before staging sstables are processed")
        self.batch = Batch.executing
        self.type = kind
        self.tablet = tablet
        for s in Slot:
            self.reads.put(s, some((tablet == t) & self._owns(t, s) for t in Tablet))

    @action(by=WORKER, fair=WEAK)
    def build_range(self) -> None:
        """The batch has read the tablet and updated the view."""
        require(self.batch == Batch.executing, "a batch is executed")
        require(self.type == Type.build_range, "it builds a range")
        self.view = self.view | self.reads
        self.batch = Batch.done

    @action(by=WORKER, fair=WEAK)
    def process_staging(self) -> None:
        """The batch has processed the staging sstables that the worker holds for the tablet."""
        require(self.batch == Batch.executing, "a batch is executed")
        require(self.type == Type.process_staging, "it processes staging sstables")
        for s in self.sstables:
            self.sstables.put(s, ~some(self._ends(end) & (self.key[s] == end) for end in Slot))
        self.batch = Batch.done

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self) -> None:
        """The worker sees that the tasks of its batch are gone: it gives the batch up."""
        require(self.batch == Batch.executing, "a batch is executed")
        require(self.stale, "its tasks are gone")
        self._end_batch()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the tasks that were in the batch from group0."""
        require(self.batch == Batch.done, "the batch is done")
        require(~self.stale, "its tasks are still in group0")
        for t in Tablet:
            mine = self.tablet == t
            builds, processes = self.type == Type.build_range, self.type == Type.process_staging
            left = choose(self.staging[t] > 1, 1, 0)  # for what was registered since it started
            self.building[t] = choose(mine & builds, 0, self.building[t])
            self.staging[t] = choose(mine & processes, left, self.staging[t])
        self._end_batch()

    @action(by=COORDINATOR, fair=WEAK)
    def forget_finished(self) -> None:
        """Tasks that a resize has deleted in the mean time were finished for nothing."""
        require(self.batch == Batch.done, "the batch is done")
        require(self.stale, "its tasks are gone")
        self._end_batch()

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left: the view is built."""
        require(~self.built, "not built yet")
        require(every(self.building[t] + self.staging[t] == 0 for t in Tablet), "no task is left")
        self.built = True

    @action(by=WORKER, spends=staging_sstables)
    def register_staging(self, s: Term[Slot]) -> None:
        """A staging sstable is registered: a task for its tablet, unless one is there that has not started."""
        require(~self.sstables.has(s) & ~self.built, "no such sstable yet")
        self.sstables.add(s)
        for slot in Slot:
            self.key[slot] = choose(s == slot, self._last_token(slot), self.key[slot])
        for t in Tablet:
            own = some((s == slot) & self._owns(t, slot) for slot in Slot)
            started = (self.type == Type.process_staging) & (self.tablet == t)
            started = started & (self.batch != Batch.none) & ~self.stale
            enough = self.staging[t] >= choose(started, 2, 1)
            self.staging[t] = choose(own & ~enough, choose(started, 2, 1), self.staging[t])

    # -- resizes ---------------------------------------------------------------------------------------

    @action(by=TOPOLOGY, spends=resizes)
    def split(self, to: Term[Layout]) -> None:
        """Tablets split: a task of each becomes one task for every part."""
        require(self._splits(to), "tablets split")
        self._adjust(to, lambda old, new: self._becomes_in_split(old, new, to))

    @action(by=TOPOLOGY, spends=resizes)
    def merge(self, to: Term[Layout]) -> None:
        """Tablets merge: their tasks become one task for the whole, if it has none yet."""
        require(self._merges(to), "tablets merge")
        self._adjust(to, lambda old, new: self._becomes_in_merge(old, new, to))

    # -- what recurs -----------------------------------------------------------------------------------

    def _owns(self, t: Tablet, s: Slot) -> Bool:
        return self.layout.column(lambda layout: layout.owns(t, s))

    def _has_task(self, tablet: Term[Tablet], kind: Term[Type]) -> Bool:
        builds = (kind == Type.build_range) & (self.building[tablet] > 0)
        return builds | ((kind == Type.process_staging) & (self.staging[tablet] > 0))

    def _ends(self, end: Slot) -> Bool:
        """The tablet that the batch reads has this last token."""
        after = [s for s in Slot if s.value > end.value]
        last = self.reads.has(end)
        return last & ~some(self.reads.has(s) for s in after) if after else last

    def _end_batch(self) -> None:
        self.batch = Batch.none
        self.type = Type.build_range
        self.tablet = None
        self.reads = frozenset()
        self.stale = False

    def _splits(self, to: Term[Layout]) -> Bool:
        return some(
            (self.layout == old) & to.column(lambda new, old=old: self._may_split(old, new))
            for old in Layout
        )

    def _merges(self, to: Term[Layout]) -> Bool:
        return some(
            (self.layout == old) & to.column(lambda new, old=old: self._may_split(new, old))
            for old in Layout
        )

    def _may_split(self, old: Layout, new: Layout) -> bool:
        if self.release.arbitrary:
            return new.is_split_of(old)
        return (old, new) in {(Layout.whole, Layout.halves), (Layout.halves, Layout.quarters)}

    def _becomes_in_split(self, old: Tablet, new: Tablet, to: Term[Layout]) -> Bool:
        """A task of tablet `old` is needed for tablet `new` after the split."""
        if self.release.token_lookup:
            return self._share_a_token(old, new, to)
        return to.column(lambda layout: layout.has(new) and new.value // 2 == old.value)

    def _becomes_in_merge(self, old: Tablet, new: Tablet, to: Term[Layout]) -> Bool:
        """A task of tablet `old` is needed for tablet `new` after the merge."""
        if self.release.token_lookup:
            return self._share_a_token(old, new, to)
        return to.column(lambda layout: layout.has(new) and old.value // 2 == new.value)

    def _share_a_token(self, old: Tablet, new: Tablet, to: Term[Layout]) -> Bool:
        return some(
            self._owns(old, s) & to.column(lambda layout, s=s: layout.owns(new, s)) for s in Slot
        )

    def _last_token(self, s: Slot) -> Term[Slot]:
        return self.layout.column(lambda layout: layout.last_token(s))

    def _adjust(self, to: Term[Layout], becomes: Callable[[Tablet, Tablet], Bool]) -> None:
        """One command deletes the tasks of the old tablets and creates those of the new ones."""
        adjusted = {
            new: (
                some((self.building[old] > 0) & becomes(old, new) for old in Tablet),
                some((self.staging[old] > 0) & becomes(old, new) for old in Tablet),
            )
            for new in Tablet
        }
        for new, (builds, processes) in adjusted.items():
            self.building[new] = choose(builds, 1, 0)
            self.staging[new] = choose(processes, 1, 0)
        self.layout = to
        self.stale = self.batch != Batch.none
        self._find_anew(to)

    def _find_anew(self, to: Term[Layout]) -> None:
        """The worker finds its staging sstables under the last tokens of the new tablets."""
        for s in Slot:
            end = to.column(lambda layout, s=s: layout.last_token(s))
            self.key[s] = choose(self.sstables.has(s), end, self.key[s])

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self) -> Bool:
        """A view that is built has every row that existed before it, however the tablets were resized."""
        return self.built.implies(every(self.view.has(s) for s in Slot))

    @invariant
    def missing_ranges_have_a_task(self) -> Bool:
        """000: in a split "new tasks with new tablet ids", in a merge a "task with new tablet id": each
        task covers the right new tablet, so that nothing is left out.
        """
        return every(
            (~self.view.has(s) & self._owns(t, s)).implies(self.building[t] > 0)
            for s in Slot
            for t in Tablet
        )

    @invariant
    def tasks_are_of_tablets(self) -> Bool:
        """000: each task is associated with a tablet id: there is such a tablet."""
        return every(
            (self.building[t] + self.staging[t] > 0).implies(
                self.layout.column(lambda layout, t=t: layout.has(t))
            )
            for t in Tablet
        )

    @invariant
    def one_task_to_build_a_tablet(self) -> Bool:
        """000, merge: a new task "if such task doesn't exist"."""
        return every(self.building[t] <= 1 for t in Tablet)

    @invariant
    def one_staging_task_waits(self) -> Bool:
        """The same for staging sstables: beside the task that is executed at most one waits."""
        executed = (self.batch != Batch.none) & ~self.stale & (self.type == Type.process_staging)
        return every(self.staging[t] <= choose(executed & (self.tablet == t), 2, 1) for t in Tablet)

    @invariant
    def staging_sstables_have_a_task(self) -> Bool:
        """No staging sstable is left without a task that finds it (scylladb #26244)."""
        return every(
            (self.sstables.has(s) & self._owns(t, s)).implies(
                (self.staging[t] > 0) & (self.key[s] == self._last_token(s))
            )
            for s in Slot
            for t in Tablet
        )

    @final
    def all_is_done(self) -> Bool:
        """A table whose view is built may stay as it is."""
        return self.built

    @liveness
    def views_are_built(self) -> LeadsTo:
        """Every view is built in the end."""
        return leads_to(~self.built, self.built)

    @liveness
    def staging_sstables_are_processed(self, s: Term[Slot]) -> LeadsTo:
        """Every staging sstable is processed in the end."""
        return leads_to(self.sstables.has(s), ~self.sstables.has(s))
