"""View building on a table whose tablets split and merge: what becomes of tasks and staging sstables.

Source: design document 000 (view-building-coordinator, 2025-12), "Tablet operations", "tablet resize". One
table with one view, on one shard. Its token range is cut into four slots, and each tablet has some that follow each other.
A resize has no abort phase: the command that finalizes it deletes and creates tasks. Coordinators follow each other,
and the worker's node restarts, before a resize and after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Work
from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    between,
    budget,
    choose,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
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
    never_happens,
    number,
    numbers,
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
    unexercised,
    vacuous,
    volatile,
)

WEAK = Fairness.WEAK


class Slot(Entity, ordered=True, scope=4):
    """A part of the token range, up to and with its last token; no tablet is smaller."""


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

LAST = 3
Id = Annotated[Number, between(0, LAST)]
"""A tablet's id: its place in the table's tablet map."""

Ids = Callable[[Term[Slot]], Number]
"""For every slot the id of the tablet that has it."""

Becomes = Callable[[Term[Slot], Number], Bool]
"""Whether the task of the tablet that has a slot becomes one of the tablet with an id."""


class ViewResize(Machine):
    """Tasks follow the tablets that split and merge, and so do the staging sstables of the worker.

    The formulas of `seed` are right where all tablets split or merge at once. What the text says otherwise: it has
    tasks aborted at the start of every tablet operation, and a resize has no such phase.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    resizes = budget(2, doc="tablet resizes")
    staging_sstables = budget(1, doc="staging sstables that are registered")
    leader_changes = fault_budget(0, doc="changes of the view building coordinator")
    restarts = fault_budget(0, doc="restarts of the worker's node")

    exercised_at = scopes(
        {resizes: 1},
        {staging_sstables: 0},
        {resizes: 1, staging_sstables: 2},
        {},
        {resizes: 1, leader_changes: 1, restarts: 1},
        {resizes: 1, staging_sstables: 0, leader_changes: 2, restarts: 2},
    )

    id = per(Slot, number(0, LAST, init=ANY))  # of the tablet that has the slot
    # group0
    building = per(number(0, LAST), flag(init=ANY))  # a tablet has a build_range task
    staging = per(number(0, LAST), flag())  # it has a process_staging task that has not started
    built: FlagVar = flag()  # view build status: SUCCESS
    view: SetVar[Slot] = set_of(Slot)  # slots whose rows are in the view
    # the coordinator
    called: FlagVar = volatile(flag(), of=COORDINATOR)  # it waits for the worker's answer
    # the worker
    # by a tablet's last token: the slots of which it holds staging sstables, which are on its disk
    held = per(Slot, set_of(Slot))
    batch: OneVar[Work] = one_of(Work, init=Work.none)
    type: OptionalVar[Type] = optional(Type)
    tablet: NumberVar = number(0, LAST)  # whose task the batch executes
    reads: SetVar[Slot] = set_of(Slot)  # its slots when the batch started
    stale: FlagVar = flag()  # the task of the batch has been deleted from group0
    restarted: FlagVar = history(flag())  # the node has lost its last batch

    @initially
    def view_was_created(self) -> Bool:
        """A view has just been created: there is a task for every tablet of one, two or four even ones."""
        one = every(self.id[s] == 0 for s in Slot)
        two = every(self.id[s] == choose(self._before(s) >= 2, 1, 0) for s in Slot)
        four = every(self.id[s] == self._before(s) for s in Slot)
        tasks = every(self.building[t] == self._is_tablet(t) for t in numbers(0, LAST))
        return (one | two | four) & tasks

    # -- batches ---------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets the task to build the view from a tablet."""
        require(self.building[t], "the tablet has a task")
        self._start(t, Type.build_range)

    @action(by=COORDINATOR, fair=WEAK)
    def start_processing(self, t: Id) -> None:
        """The shard gets the task to process a tablet's staging sstables."""
        require(self.staging[t], "the tablet has a task")
        if self.release.ranges_first:
            require(~self.building[t], "its range is built")
        self._start(t, Type.process_staging)
        self.staging[t] = False

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self) -> None:
        """A coordinator that does not know of the batch calls for its task: it waits for the result, or has it at once."""
        require(self.batch != Work.none, "the worker has a batch")
        require(~self.stale, "its task is still in group0")
        require(~self.called, "no call is under way")
        self.called = True

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
        for token in Slot:
            for s in Slot:
                self.held[token].put(s, self.held[token].has(s) & ~self._is_read_last(token))
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
        require(self.called, "the coordinator waits for it")
        require(~self.stale, "its task is still in group0")
        built = self.type == Type.build_range
        self.building[self.tablet] = self.building[self.tablet] & ~built
        self._end_batch()

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left: the view is built."""
        left = some(self.building[t] | self.staging[t] for t in numbers(0, LAST))
        require(~left, "no task is left")
        require(self.batch == Work.none, "none is executed")
        require(~self.built, "not built yet")
        self.built = True

    @action(by=WORKER, spends=staging_sstables)
    def register_staging(self, s: Term[Slot]) -> None:
        """A staging sstable is registered: its tablet has a task that has not started."""
        require(~self.built, "a view is being built")
        for token in Slot:
            own = self._is_last_token(self._ids, token, s)
            self.held[token].put(s, self.held[token].has(s) | own)
        self.staging[self.id[s]] = True

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: its coordinator knows what group0 stores, and of no call."""
        self.called = False

    @action(by=WORKER, spends=restarts)
    def restart(self) -> None:
        """The worker's node restarts: its batch is lost, done or not, and the task is to be executed again.

        Staging sstables are found on disk, and held under the last tokens of the tablets as before.
        """
        require(self.batch != Work.none, "the worker has a batch")
        for t in numbers(0, LAST):
            self.staging[t] = self.staging[t] | self._started(t)
        self._end_batch()
        self.restarted = True

    # -- resizes ---------------------------------------------------------------------------------------

    @action(by=TOPOLOGY, spends=resizes)
    def split(self, s: Term[Slot]) -> None:
        """A tablet splits after slot `s`: its tasks become tasks for both parts."""
        only_when(self.release.arbitrary)
        require(~self._ends_at(s), "no tablet ends there")

        def after(u: Term[Slot]) -> Number:
            return choose(u > s, self.id[u] + 1, self.id[u])

        self._adjust(after, lambda u, new: self._becomes(after, u, new))

    @action(by=TOPOLOGY, spends=resizes)
    def merge(self, s: Term[Slot]) -> None:
        """Two tablets merge that meet after slot `s`: their tasks become one, if there is any."""
        only_when(self.release.arbitrary)
        require(self._ends_at(s), "a tablet ends there")
        require(s != Slot.last, "another begins")

        def after(u: Term[Slot]) -> Number:
            return choose(u > s, self.id[u] - 1, self.id[u])

        self._adjust(after, lambda u, new: self._becomes_in_merge(u, new, after))

    @action(by=TOPOLOGY, spends=resizes)
    def split_all(self) -> None:
        """All tablets split: the task of tablet n becomes tasks for 2n and 2n + 1."""
        only_when(not self.release.arbitrary)
        require(some(~self._ends_at(s) for s in Slot), "the tablets are not the smallest")

        def after(s: Term[Slot]) -> Number:
            own = count(self.id[u] == self.id[s] for u in Slot)
            before = count((self.id[u] == self.id[s]) & (u < s) for u in Slot)
            return choose(2 * before >= own, 2 * self.id[s] + 1, 2 * self.id[s])

        self._adjust(after, lambda s, new: (new == 2 * self.id[s]) | (new == 2 * self.id[s] + 1))

    @action(by=TOPOLOGY, spends=resizes)
    def merge_all(self) -> None:
        """All tablets merge, two and two: the task of tablet n becomes one for n / 2, if there is none yet."""
        only_when(not self.release.arbitrary)
        require(some(self.id[s] > 0 for s in Slot), "there is more than one tablet")
        self._adjust(lambda s: choose(self.id[s] > 1, 1, 0), self._halves)

    # -- helpers ---------------------------------------------------------------------------------------

    def _before(self, s: Term[Slot]) -> Number:
        """How many slots come before it."""
        return count(u < s for u in Slot)

    def _ends_at(self, s: Term[Slot]) -> Bool:
        """No later slot is the tablet's."""
        return ~some((u > s) & (self.id[u] == self.id[s]) for u in Slot)

    def _is_tablet(self, t: Number) -> Bool:
        return some(self.id[s] == t for s in Slot)

    def _is_last_token(self, ids: Ids, token: Term[Slot], s: Term[Slot]) -> Bool:
        """The tablet that has a slot ends with this one."""
        later = some((u > token) & (ids(u) == ids(s)) for u in Slot)
        return (ids(token) == ids(s)) & ~later

    def _ids(self, s: Term[Slot]) -> Number:
        return self.id[s]

    def _start(self, t: Number, kind: Type) -> None:
        self._is_idle()
        self.batch = Work.executing
        self.called = True
        self.restarted = False
        self.type = kind
        self.tablet = t
        for s in Slot:
            self.reads.put(s, self.id[s] == t)

    def _is_idle(self) -> None:
        require(self.batch == Work.none, "the shard has no batch")

    def _executes(self, kind: Type) -> None:
        require(self.batch == Work.executing, "a batch is executed")
        require(self.type == kind, "it is of this type")

    def _is_read_last(self, token: Term[Slot]) -> Bool:
        """The tablet of the batch ended with this slot when the batch started."""
        return self.reads.has(token) & ~some(u > token for u in self.reads)

    def _end_batch(self) -> None:
        self.batch = Work.none
        self.called = False
        self.type = None
        self.tablet = 0
        self.reads = frozenset()
        self.stale = False

    def _becomes(self, after: Ids, s: Term[Slot], new: Number) -> Bool:
        """A task of the tablet that has the slot is for the one that will have it."""
        return after(s) == new

    def _becomes_in_merge(self, s: Term[Slot], new: Number, _after: Ids) -> Bool:
        return self._becomes(_after, s, new)

    def _halves(self, s: Term[Slot], new: Number) -> Bool:
        """The new id is half of the old one."""
        return (self.id[s] == 2 * new) | (self.id[s] == 2 * new + 1)

    def _started(self, t: Number) -> Bool:
        """The tablet's process_staging task is executed."""
        executed = (self.batch != Work.none) & (self.type == Type.process_staging) & ~self.stale
        return executed & (self.tablet == t)

    def _adjust(self, after: Ids, becomes: Becomes) -> None:
        """One command deletes the tasks of the old tablets; a new one gets those of what it comes from, once."""
        for new in numbers(0, LAST):
            self.building[new] = some(self.building[self.id[s]] & becomes(s, new) for s in Slot)
        for new in numbers(0, LAST):
            self.staging[new] = self._is_to_process(new, becomes)
        self.stale = self.batch != Work.none
        self._find_anew(after)
        for s in Slot:
            self.id[s] = after(s)

    def _is_to_process(self, new: Number, becomes: Becomes) -> Bool:
        """A tablet that it comes from has a process_staging task, executed or not."""
        return some(
            (self.staging[self.id[s]] | self._started(self.id[s])) & becomes(s, new) for s in Slot
        )

    def _find_anew(self, after: Ids) -> None:
        """The worker finds its staging sstables under the last tokens of the new tablets."""
        for token in Slot:
            for s in Slot:
                self.held[token].put(s, self._is_held(s) & self._is_last_token(after, token, s))

    def _is_held(self, s: Term[Slot]) -> Bool:
        return some(self.held[token].has(s) for token in Slot)

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
        return every(self.view.has(s) | self.building[self.id[s]] for s in Slot)

    @step_property
    def ranges_are_built_once(self, after: Self) -> Bool:
        """000: in a resize the task is aborted and new ones are created with new tablet ids: those of a range that was
        built, and whose task was removed, had none.
        """
        return every(
            after.building[t].implies(
                some((after.id[s] == t) & self.building[self.id[s]] for s in Slot)
            )
            for t in numbers(0, LAST)
        )

    @step_property
    def finished_ranges_have_no_task(self, after: Self) -> Bool:
        """000: in a merge there is a new task "if such task doesn't exist": one for both ranges, so that none is left when
        it is finished, whoever asks for the result; but where the worker has restarted since.
        """
        done = (self.batch == Work.done) & (self.type == Type.build_range) & ~self.stale
        ends = done & (after.batch == Work.none) & ~after.restarted
        return ends.implies(~after.building[self.tablet])

    @step_property
    def work_goes_on_for_whoever_asks(self, after: Self) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result": the batch of a task that is stored goes on,
        whoever coordinates, but where the worker's node restarts.
        """
        alive = (self.batch == Work.executing) & ~self.stale
        return (alive & (after.batch == Work.none)).implies(after.restarted)

    @step_property
    def built_views_stay_built(self, after: Self) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": it goes with its view alone."""
        return self.built.implies(after.built)

    @invariant
    def built_views_have_no_ranges_to_build(self) -> Bool:
        """000: group0 stores "only tasks that haven't been completed yet", and a view is built when none of them is its
        own: a range that would be built again after a restart is not.
        """
        return self.built.implies(~some(self.building[t] for t in numbers(0, LAST)))

    @invariant
    def staging_sstables_have_a_task(self) -> Bool:
        """No staging sstable is left without a task that finds it (scylladb #26244)."""
        executing = (self.batch == Work.executing) & ~self.stale
        processing = executing & (self.type == Type.process_staging)
        return every(
            self.held[token]
            .has(s)
            .implies(
                (self.id[token] == self.id[s])
                & every((u > token).implies(self.id[u] != self.id[s]) for u in Slot)
                & (self.staging[self.id[s]] | (processing & self._ended_the_tablet(token)))
            )
            for token in Slot
            for s in Slot
        )

    def _ended_the_tablet(self, token: Term[Slot]) -> Bool:
        """The slot was the last of the tablet whose batch is executed."""
        later = every((u > token).implies(~self.reads.has(u)) for u in Slot)
        return self.reads.has(token) & later

    @step_property
    def staging_tasks_are_created_for_something(self, after: Self) -> Bool:
        """000: a process_staging task is created when "a staging sstable was registered"; in a resize for each that was
        aborted, and for no other tablet: one that there is no more has none.
        """
        given_up = after.stale | after.restarted

        def has_one(s: Term[Slot]) -> Bool:
            old = self.id[s]
            aborted = (self.type == Type.process_staging) & (self.tablet == old) & ~self.stale
            return self.staging[old] | (aborted & given_up) | after._is_held(s)

        return every(
            after.staging[t].implies(some((after.id[s] == t) & has_one(s) for s in Slot))
            for t in numbers(0, LAST)
        )

    @accepts(split)
    def splits_do_not_wait_for_views(self, s: Term[Slot]) -> Bool:
        """000, tablet resize: "abort the task and create new tasks", whatever the worker is doing with it."""
        only_when(self.release.arbitrary)
        return some((u > s) & (self.id[u] == self.id[s]) for u in Slot)

    @accepts(merge)
    def merges_do_not_wait_for_views(self, s: Term[Slot]) -> Bool:
        """The same of two tablets that meet there."""
        only_when(self.release.arbitrary)
        return some(u > s for u in Slot) & every(
            (u > s).implies(self.id[u] != self.id[s]) for u in Slot
        )

    @accepts(split_all)
    def all_tablets_split_whatever_is_executed(self) -> Bool:
        """The same of all tablets at once."""
        only_when(not self.release.arbitrary)
        whole = every((u == s) | (self.id[u] != self.id[s]) for s in Slot for u in Slot)
        return ~whole

    @accepts(merge_all)
    def all_tablets_merge_whatever_is_executed(self) -> Bool:
        """000, the same of a merge: "abort the task and create new task"."""
        only_when(not self.release.arbitrary)
        return some(self.id[s] != self.id[u] for s in Slot for u in Slot)

    @step_property
    def tasks_are_finished_by_answers(self, after: Self) -> Bool:
        """000: "After the coordinator gets the response from the worker" it removes tasks: one that was told of no result, as
        another coordinator had asked for it, asks first.
        """
        removed = (self.batch != Work.none) & (after.batch == Work.none) & ~self.stale
        return (removed & ~after.restarted).implies(self.called)

    @invariant
    def calls_are_to_shards_with_a_batch(self) -> Bool:
        """000: the coordinator waits for results of what "the worker is executing", and of nothing else."""
        return self.called.implies(self.batch != Work.none)

    @accepts(attach)
    def a_new_coordinator_waits_for_a_running_batch(self) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result", also of who did not send them."""
        return (self.batch != Work.none) & ~self.stale & ~self.called

    @accepts(register_staging)
    def sstables_are_staged_while_a_view_is_built(self, s: Term[Slot]) -> Bool:
        """000, Staging sstables: "Is any view started but not finished yet?" "create view building tasks"."""
        return ~self.built

    @sometimes(at={staging_sstables: 0})
    def workers_notice_deletions(self, after: Self) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted (by deleting them …)": a batch ends undone."""
        return (self.batch == Work.executing) & (after.batch == Work.none)

    @accepts(start_building)
    def ranges_are_built_in_any_order(self, t: Id) -> Bool:
        """000: "the view building coordinator will decide to process it": one tablet's range waits for nothing of another."""
        return self.building[t] & (self.batch == Work.none)

    @accepts(start_processing)
    def staging_waits_for_no_other_tablet(self, t: Id) -> Bool:
        """000, the same of its staging sstables: for the tablet's own range at most."""
        there = some(self.id[s] == t for s in Slot)
        return there & self.staging[t] & ~self.building[t] & (self.batch == Work.none)

    @independent(
        build_range, process_staging, observe_deletion, of=(called, id, building, staging, built)
    )
    def batches_end_whatever_becomes_of_the_tablets(self) -> None:
        """000: "each view building worker keeps track of finished tasks locally": whoever waits for the result, and whichever
        tablets and tasks there are by then.
        """

    @step_property
    def one_batch_on_the_shard(self, after: Self) -> Bool:
        """000: the worker "can execute only one batch per shard": of one tablet, whose id may change as others split
        or merge.
        """
        starts = after.batch == Work.executing
        goes_on = (self.reads == after.reads) & (self.type == after.type)
        return (starts & (self.batch != Work.none)).implies(
            (self.batch == Work.executing) & goes_on
        )

    @step_property
    def ranges_are_built_first(self, after: Self) -> Bool:
        """Staging sstables of a tablet wait until its range is built (the release's order of tasks)."""
        only_when(self.release.ranges_first)
        starts = (self.batch == Work.none) & (after.type == Type.process_staging)
        return starts.implies(~self.building[after.tablet])

    @invariant
    def batches_read_one_tablet(self) -> Bool:
        """000: tasks of one batch have the same tablet id: the batch reads that tablet, an idle shard none."""
        idle = self.type.is_none() & self.reads.is_empty() & ~self.stale
        read = every(self.reads.has(s) == (self.id[s] == self.tablet) for s in Slot)
        return choose(self.batch == Work.none, idle, ~self.reads.is_empty() & (self.stale | read))

    @step_property
    def staging_sstables_are_kept(self, after: Self) -> Bool:
        """A staging sstable is held until a batch has processed it."""
        processed = (self.batch == Work.executing) & (after.batch == Work.done)
        return every(
            (self.held[token].has(s) & ~after._is_held(s)).implies(
                processed & self._ended_the_tablet(token)
            )
            for token in Slot
            for s in Slot
        )

    @step_property
    def built_views_have_no_staged_rows(self, after: Self) -> Bool:
        """A view is built only when no staging sstable of its table is left to be processed."""
        staged = some(self._is_held(s) for s in Slot)
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
        waits = some(self._is_held(s) for s in Slot)
        return leads_to(waits, ~waits)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            _start,
            called,
            because="a call of which the coordinator does not know is made again",
        ),
        equivalent_loss(_start, restarted, because="then more is excused by an earlier restart"),
        equivalent_replacement(
            _start,
            "called becomes: no for yes",
            because="a call of which the coordinator does not know is made again",
        ),
        equivalent_replacement(
            _start,
            "restarted becomes: yes for no",
            because="then more is excused by an earlier restart",
        ),
        equivalent_loss(
            change_leader,
            called,
            because="a new coordinator that knows of the call need not make it again",
        ),
        equivalent_drop(
            attach,
            "its task is still in group0",
            "no call is under way",
            because="who asks in vain, or again, waits for the end of the batch",
        ),
        equivalent_drop(
            restart,
            "the worker has a batch",
            because="a node without a batch has none to lose",
        ),
        equivalent_drop(mark_view_built, "not built yet", because="a view that is built stays so"),
        equivalent_drop(
            register_staging,
            "a view is being built",
            because="a repair brings some later too; there may as well be none",
        ),
        equivalent_loss(
            _end_batch,
            tablet,
            because="of a shard without a batch nobody asks which tablet it reads",
        ),
        equivalent_replacement(
            _end_batch,
            "tablet becomes: 1 for 0",
            because="of a shard without a batch nobody asks which tablet it reads",
        ),
        equivalent_drop(merge, "another begins", because="else nothing changes"),
        equivalent_drop(_executes, "a batch is executed", because="a tablet may be read again"),
        equivalent_loss(
            remove_finished, stale, because="a finished task that is removed was there"
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            attach,
            change_leader,
            because="another coordinator takes over where there are `leader_changes`",
        ),
        vacuous(
            a_new_coordinator_waits_for_a_running_batch,
            because="another coordinator takes over where there are `leader_changes`",
        ),
        never_happens(restart, because="the worker's node restarts where there are `restarts`"),
        vacuous(
            work_goes_on_for_whoever_asks,
            because="a batch that is executed ends where there are `restarts`",
        ),
    )
