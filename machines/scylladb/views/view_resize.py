"""View building on a table whose tablets split and merge: what becomes of tasks and staging sstables.

Source: design document 000 (view-building-coordinator, 2025-12), "Tablet operations", "tablet resize". One
table with one view, on one shard. Its token range is cut into four slots, and tablets end at some of them.
A resize has no abort phase: the command that finalizes it deletes and creates tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Work
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    OneVar,
    OptionalVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    choose,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
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


class Type(Enum):
    """The type of a task, and of a batch."""

    build_range = auto()
    process_staging = auto()


@dataclass(frozen=True)
class ResizeRelease(Profile):
    """What a version says about resizes."""

    # a tablet may split or merge alone, and tasks are looked up by their tokens (2026.2)
    arbitrary: bool
    # a tablet's range is built before its staging sstables are processed; 000 has no order of them
    ranges_first: bool


SEED = ResizeRelease("seed", arbitrary=False, ranges_first=False)
SCYLLA_2026_2 = ResizeRelease("scylla-2026.2", arbitrary=True, ranges_first=True)

Ends = Mapping[Slot, Bool]
"""For every slot whether a tablet ends with it."""


def _number(tablet: Tablet) -> int:
    return tablet.value


class ViewResize(Machine):
    """Tasks follow the tablets that split and merge, and so do the staging sstables of the worker.

    The formulas of `seed` are right where all tablets split or merge at once. What the text says otherwise: it has
    tasks aborted at the start of every tablet operation, and a resize has no such phase.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    resizes = budget(2, doc="tablet resizes")
    staging_sstables = budget(1, doc="staging sstables that are registered")

    exercised_at = scopes(
        {resizes: 1}, {staging_sstables: 0}, {resizes: 1, staging_sstables: 2}, {}
    )

    ends: SetVar[Slot] = set_of(Slot, init=ANY)  # the last tokens of the tablets
    # group0
    building = per(Tablet, flag(init=ANY))  # a tablet has a build_range task
    staging = per(Tablet, flag())  # it has a process_staging task that has not started
    built: FlagVar = flag()  # view build status: SUCCESS
    view: SetVar[Slot] = set_of(Slot)  # slots whose rows are in the view
    # the worker
    # the last token under which it holds a staging sstable of a slot
    held = per(Slot, optional(Slot))
    batch: OneVar[Work] = one_of(Work, init=Work.none)
    type: OptionalVar[Type] = optional(Type)
    tablet: OptionalVar[Tablet] = optional(Tablet)  # whose task the batch executes
    # the last token of that tablet when the batch started
    token: OptionalVar[Slot] = optional(Slot)
    reads: SetVar[Slot] = set_of(Slot)  # its slots then
    stale: FlagVar = flag()  # the task of the batch has been deleted from group0

    @initially
    def view_was_created(self) -> Bool:
        """A view has just been created: there is a task for every tablet of one, two or four even ones."""
        quarters = self.ends.has(Slot.a)
        even = self.ends.has(Slot.d) & (self.ends.has(Slot.c) == quarters)
        even = even & quarters.implies(self.ends.has(Slot.b))
        tablets = self.ends.size()
        return even & every(self.building[t] == (tablets > t.value) for t in Tablet)

    # -- batches ---------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Term[Tablet]) -> None:
        """The shard gets the task to build the view from a tablet."""
        require(self.building[t], "the tablet has a task")
        self._start(t, Type.build_range)

    @action(by=COORDINATOR, fair=WEAK)
    def start_processing(self, t: Term[Tablet]) -> None:
        """The shard gets the task to process a tablet's staging sstables."""
        require(self.staging[t], "the tablet has a task")
        if self.release.ranges_first:
            require(~self.building[t], "its range is built")
        self._start(t, Type.process_staging)
        self.staging[t] = False

    @action(by=WORKER, fair=WEAK)
    def build_range(self) -> None:
        """The batch has read the tablet and updated the view."""
        self._executes(Type.build_range)
        self.view = self.view | self.reads
        self.batch = Work.done

    @action(by=WORKER, fair=WEAK)
    def process_staging(self) -> None:
        """The batch has processed the staging sstables that the worker holds under the tablet's last token."""
        self._executes(Type.process_staging)
        for s in Slot:
            self.held[s] = choose(self.held[s] == self.token, None, self.held[s])
        self.batch = Work.done

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self) -> None:
        """The worker sees that the task of its batch is gone, or the coordinator that it was for nothing."""
        require(self.stale, "the task is gone")
        self._end_batch()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the finished task from group0."""
        require(self.batch == Work.done, "the batch is done")
        require(~self.stale, "its task is still in group0")
        for t in Tablet:
            removed = (self.tablet == t) & (self.type == Type.build_range)
            self.building[t] = self.building[t] & ~removed
        self._end_batch()

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left: the view is built."""
        require(~some(self.building[t] | self.staging[t] for t in Tablet), "no task is left")
        require(self.batch == Work.none, "none is executed")
        require(~self.built, "not built yet")
        self.built = True

    @action(by=WORKER, spends=staging_sstables)
    def register_staging(self, s: Term[Slot]) -> None:
        """A staging sstable is registered: its tablet has a task that has not started."""
        require(~self.built, "a view is being built")
        for slot in Slot:
            own = self._last_token(self._ends(), slot)
            self.held[slot] = choose(s == slot, own, self.held[slot])
        for t in Tablet:
            own_task = some((s == slot) & self._owns(self._ends(), t, slot) for slot in Slot)
            self.staging[t] = self.staging[t] | own_task

    # -- resizes ---------------------------------------------------------------------------------------

    @action(by=TOPOLOGY, spends=resizes)
    def split(self, s: Term[Slot]) -> None:
        """A tablet splits after slot `s`: its tasks become tasks for both parts."""
        only_when(self.release.arbitrary)
        require(~self.ends.has(s), "no tablet ends there")
        after = {slot: self.ends.has(slot) | (s == slot) for slot in Slot}
        self._adjust(after, lambda slot, new: self._becomes(after, slot, new))

    @action(by=TOPOLOGY, spends=resizes)
    def merge(self, s: Term[Slot]) -> None:
        """Two tablets merge that meet after slot `s`: their tasks become one, if there is any."""
        only_when(self.release.arbitrary)
        require(self.ends.has(s), "a tablet ends there")
        require(s != Slot.d, "another begins")
        after = {slot: self.ends.has(slot) & (s != slot) for slot in Slot}
        self._adjust(after, lambda slot, new: self._becomes_in_merge(slot, new, after))

    @action(by=TOPOLOGY, spends=resizes)
    def split_all(self) -> None:
        """All tablets split: the task of tablet n becomes tasks for 2n and 2n + 1."""
        only_when(not self.release.arbitrary)
        require(~self.ends.has(Slot.a), "the tablets are not the smallest")
        # one tablet becomes two halves, or two halves become four quarters
        after = {
            slot: self.ends.has(slot) | (slot == Slot.b) | self.ends.has(Slot.b) for slot in Slot
        }
        self._adjust(after, lambda slot, new: self._id(self._ends(), slot) == new.value // 2)

    @action(by=TOPOLOGY, spends=resizes)
    def merge_all(self) -> None:
        """All tablets merge, two and two: the task of tablet n becomes one for n / 2, if there is none yet."""
        only_when(not self.release.arbitrary)
        require(self.ends.has(Slot.b), "there is more than one tablet")
        after = {
            slot: self.ends.has(slot)
            & ((slot == Slot.d) | ((slot == Slot.b) & self.ends.has(Slot.a)))
            for slot in Slot
        }
        self._adjust(after, self._halves)

    # -- what recurs -----------------------------------------------------------------------------------

    def _ends(self) -> Ends:
        return {s: self.ends.has(s) for s in Slot}

    def _id(self, ends: Ends, s: Slot) -> Number:
        """The id of the tablet that owns a slot: how many tablets end before it."""
        return count(ends[e] for e in Slot) - count(ends[e] for e in Slot if e.value >= s.value)

    def _owns(self, ends: Ends, t: Tablet, s: Slot) -> Bool:
        return self._id(ends, s) == t.value

    def _last_token(self, ends: Ends, s: Slot) -> Term[Slot]:
        """The last token of the tablet that owns a slot."""
        last = Term.of(Slot.d)
        for end in (Slot.c, Slot.b, Slot.a):
            if end.value >= s.value:
                last = choose(ends[end], end, last)
        return last

    def _start(self, t: Term[Tablet], kind: Type) -> None:
        self._is_idle()
        self.batch = Work.executing
        self.type = kind
        self.tablet = t
        own = {s: self._id(self._ends(), s) == t.number_column(_number) for s in Slot}
        for s in Slot:
            self.reads.put(s, own[s])
        token = Term.of(Slot.a)
        for s in (Slot.b, Slot.c, Slot.d):
            token = choose(own[s], s, token)
        self.token = token

    def _is_idle(self) -> None:
        require(self.batch == Work.none, "the shard has no batch")

    def _executes(self, kind: Type) -> None:
        require(self.batch == Work.executing, "a batch is executed")
        require(self.type == kind, "it is of this type")

    def _end_batch(self) -> None:
        self.batch = Work.none
        self.type = None
        self.tablet = None
        self.token = None
        self.reads = frozenset()
        self.stale = False

    def _becomes(self, after: Ends, s: Slot, new: Tablet) -> Bool:
        """A task of the tablet that owns the slot is for the one that will own it."""
        return self._owns(after, new, s)

    def _becomes_in_merge(self, s: Slot, new: Tablet, _after: Ends) -> Bool:
        return self._becomes(_after, s, new)

    def _halves(self, s: Slot, new: Tablet) -> Bool:
        """The new id is half of the old one."""
        old = self._id(self._ends(), s)
        return (old >= 2 * new.value) & (old <= 2 * new.value + 1)

    def _comes_from(
        self, new: Tablet, old: Tablet, becomes: Callable[[Slot, Tablet], Bool]
    ) -> Bool:
        """The new tablet has a part of the token range that is the old one's."""
        slots = [s for s in Slot if s.value >= old.value]  # as many tablets end before it
        return some(self._owns(self._ends(), old, s) & becomes(s, new) for s in slots)

    def _started(self, t: Tablet) -> Bool:
        """The tablet's process_staging task is executed."""
        executed = (self.batch != Work.none) & (self.type == Type.process_staging) & ~self.stale
        return executed & (self.tablet == t)

    def _adjust(self, after: Ends, becomes: Callable[[Slot, Tablet], Bool]) -> None:
        """One command deletes the tasks of the old tablets; a new one gets those of what it comes from, once."""
        adjusted: dict[Tablet, tuple[Bool, Bool]] = {}
        for new in Tablet:
            comes_from = {old: self._comes_from(new, old, becomes) for old in Tablet}
            adjusted[new] = (
                some(self.building[old] & comes_from[old] for old in Tablet),
                self._is_to_process(new, comes_from),
            )
        inner = (Slot.a, Slot.b, Slot.c)  # the last slot always ends a tablet
        tokens: dict[Slot, Term[Slot]] = {s: self._last_token(after, s) for s in inner}
        for t, (builds, processes) in adjusted.items():
            self.building[t] = builds
            self.staging[t] = processes
        self.stale = self.batch != Work.none
        self._find_anew(tokens)
        for s in inner:
            self.ends.put(s, after[s])

    def _is_to_process(self, _new: Tablet, comes_from: Mapping[Tablet, Bool]) -> Bool:
        """A tablet that it comes from has a process_staging task, executed or not."""
        return some((self.staging[old] | self._started(old)) & comes_from[old] for old in Tablet)

    def _find_anew(self, tokens: Mapping[Slot, Term[Slot]]) -> None:
        """The worker finds its staging sstables under the last tokens of the new tablets."""
        for s, token in tokens.items():
            self.held[s] = choose(self.held[s].is_some(), token, self.held[s])

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
            (~self.view.has(s) & self._owns(self._ends(), t, s)).implies(self.building[t])
            for s in Slot
            for t in Tablet
        )

    @step_property
    def ranges_are_built_once(self, after: Self) -> Bool:
        """000: in a resize the task is aborted and new ones are created with new tablet ids: those of a range that was
        built, and whose task was removed, had none.
        """
        now, then = self._ends(), after._ends()
        had = {s: some(self._owns(now, t, s) & self.building[t] for t in Tablet) for s in Slot}
        return every(
            after.building[t].implies(some(self._owns(then, t, s) & had[s] for s in Slot))
            for t in Tablet
        )

    @step_property
    def finished_ranges_have_no_task(self, after: Self) -> Bool:
        """000: in a merge there is a new task "if such task doesn't exist": one for both ranges, so that none is left when
        it is finished.
        """
        done = (self.batch == Work.done) & (self.type == Type.build_range) & ~self.stale
        left = some((self.tablet == t) & after.building[t] for t in Tablet)
        return (done & (after.batch == Work.none)).implies(~left)

    @step_property
    def built_views_stay_built(self, after: Self) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": it goes with its view alone."""
        return self.built.implies(after.built)

    @invariant
    def tasks_are_of_tablets(self) -> Bool:
        """000: each task is associated with a tablet id: there is such a tablet."""
        tablets = self.ends.size()
        return every(
            (self.building[t] | self.staging[t]).implies(tablets > t.value) for t in Tablet
        )

    @invariant
    def staging_sstables_have_a_task(self) -> Bool:
        """No staging sstable is left without a task that finds it (scylladb #26244)."""
        executing = (self.batch == Work.executing) & ~self.stale
        processing = executing & (self.type == Type.process_staging)
        return every(
            (self.held[s].is_some() & self._owns(self._ends(), t, s)).implies(
                (self.held[s] == self._last_token(self._ends(), s))
                & (self.staging[t] | (processing & (self.token == self.held[s])))
            )
            for s in Slot
            for t in Tablet
        )

    @accepts(split)
    def splits_do_not_wait_for_views(self, s: Term[Slot]) -> Bool:
        """000, tablet resize: "abort the task and create new tasks", whatever the worker is doing with it."""
        only_when(self.release.arbitrary)
        return ~self.ends.has(s)

    @accepts(merge)
    def merges_do_not_wait_for_views(self, s: Term[Slot]) -> Bool:
        """The same of two tablets that meet there."""
        only_when(self.release.arbitrary)
        return self.ends.has(s) & (s != Slot.d)

    @accepts(register_staging)
    def sstables_are_staged_while_a_view_is_built(self, s: Term[Slot]) -> Bool:
        """000, Staging sstables: "Is any view started but not finished yet?" "create view building tasks"."""
        del s
        return ~self.built

    @sometimes(at={staging_sstables: 0})
    def workers_notice_deletions(self, after: Self) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted (by deleting them …)": a batch ends undone."""
        return (self.batch == Work.executing) & (after.batch == Work.none)

    @accepts(start_building)
    def ranges_are_built_in_any_order(self, t: Term[Tablet]) -> Bool:
        """000: "the view building coordinator will decide to process it": one tablet's range waits for nothing of another."""
        return self.building[t] & (self.batch == Work.none)

    @accepts(start_processing)
    def staging_waits_for_no_other_tablet(self, t: Term[Tablet]) -> Bool:
        """000, the same of its staging sstables: for the tablet's own range at most."""
        there = some((t == u) & (self.ends.size() > u.value) for u in list(Tablet))
        return there & self.staging[t] & ~self.building[t] & (self.batch == Work.none)

    @step_property
    def one_batch_on_the_shard(self, after: Self) -> Bool:
        """000: the worker "can execute only one batch per shard"."""
        starts = after.batch == Work.executing
        goes_on = (self.tablet == after.tablet) & (self.type == after.type)
        return (starts & (self.batch != Work.none)).implies(
            (self.batch == Work.executing) & goes_on
        )

    @step_property
    def ranges_are_built_first(self, after: Self) -> Bool:
        """Staging sstables of a tablet wait until its range is built (the release's order of tasks)."""
        only_when(self.release.ranges_first)
        starts = (self.batch == Work.none) & (after.type == Type.process_staging)
        return starts.implies(~some((after.tablet == t) & self.building[t] for t in Tablet))

    @invariant
    def batches_read_one_tablet(self) -> Bool:
        """000: tasks of one batch have the same tablet id: the batch reads that tablet, an idle shard none."""
        idle = self.tablet.is_none() & self.type.is_none() & self.token.is_none()
        idle = idle & self.reads.is_empty() & ~self.stale
        ends = every(
            (self.token == s).implies(
                self.reads.has(s) & every(~self.reads.has(u) for u in Slot if u.value > s.value)
                if s is not Slot.d
                else self.reads.has(s)
            )
            for s in Slot
        )
        read = every(
            ((self.tablet == t) & ~self.stale).implies(
                self.reads.has(s) == self._owns(self._ends(), t, s)
            )
            for s in Slot
            for t in Tablet
        )
        return choose(self.batch == Work.none, idle, self.token.is_some() & ends & read)

    @step_property
    def staging_sstables_are_kept(self, after: Self) -> Bool:
        """A staging sstable is held until a batch has processed it."""
        processed = (self.batch == Work.executing) & (after.batch == Work.done)
        return every(
            (self.held[s].is_some() & after.held[s].is_none()).implies(
                processed & (self.held[s] == self.token)
            )
            for s in Slot
        )

    @step_property
    def built_views_have_no_staged_rows(self, after: Self) -> Bool:
        """A view is built only when no staging sstable of its table is left to be processed."""
        staged = some(self.held[s].is_some() for s in Slot)
        return (~self.built & after.built).implies(~staged)

    @final
    def all_is_done(self) -> Bool:
        """A table whose view is built may stay as it is."""
        return self.built

    @liveness
    def views_are_built(self) -> LeadsTo:
        """Every view is built in the end."""
        return leads_to(~self.built, self.built)

    @liveness
    def staging_sstables_are_processed(self) -> LeadsTo:
        """Every staging sstable is processed in the end."""
        waits = some(self.held[s].is_some() for s in Slot)
        return leads_to(waits, ~waits)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(mark_view_built, "not built yet", because="a view that is built stays so"),
        equivalent_drop(
            register_staging,
            "a view is being built",
            because="a repair brings some later too; there may as well be none",
        ),
        equivalent_loss(
            register_staging,
            held,
            because="a repair brings some later too; there may as well be none",
        ),
        equivalent_drop(split, "no tablet ends there", because="else nothing changes"),
        equivalent_drop(
            merge, "a tablet ends there", "another begins", because="else nothing changes"
        ),
        equivalent_drop(_executes, "a batch is executed", because="a tablet may be read again"),
        equivalent_loss(
            remove_finished, stale, because="a finished task that is removed was there"
        ),
        equivalent_loss(split, building, because="in a split the first tablet keeps its id"),
    )
