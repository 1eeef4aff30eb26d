"""A view building worker: what the coordinator asks for, what the worker reads and answers, what is removed.

Source: design document 000 (view-building-coordinator, 2025-12), sections "View building worker" and "RPC".
One tablet replica, whose tasks (one for each view) go to the worker as one batch. Views are created and dropped
meanwhile, so that a call may be for other tasks than those that are executed or completed. A batch reads sstables:
rows that were in the memtable when a view was created have no view update of their own, and are flushed first.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    history,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    volatile,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class View(Entity, scope=2):
    """A view, and its task for the tablet replica."""


class Row(Entity, scope=1):
    """A row of the base table."""


class Flush(Enum):
    """The flush of the base table."""

    none = auto()
    begun = auto()
    done = auto()  # the rows are in sstables; the worker has not noted it yet


class ViewWorker(Machine):
    """The tasks of one tablet replica: called for, executed, completed, removed."""

    drops = budget(1, doc="views that are dropped")
    leader_changes = fault_budget(1, doc="changes of the view building coordinator")
    restarts = fault_budget(1, doc="restarts of the worker's node")

    exercised_at = scopes(
        {},
        {drops: 0, Row: 2, leader_changes: 0},
        {drops: 0, leader_changes: 0},
        {leader_changes: 2, restarts: 2},
    )

    # group0
    created: SetVar[View] = set_of(View)
    dropped: SetVar[View] = set_of(View)
    tasks: SetVar[View] = set_of(View)  # not finished
    built: SetVar[View] = set_of(View)
    # the coordinator
    asked: SetVar[View] = volatile(set_of(View), of=COORDINATOR)  # by the call that is under way
    finished: SetVar[View] = volatile(set_of(View), of=COORDINATOR)  # what it will remove
    # the worker
    batch: SetVar[View] = volatile(set_of(View), of=WORKER)
    completed: SetVar[View] = volatile(set_of(View), of=WORKER)
    flush: OneVar[Flush] = volatile(one_of(Flush, init=Flush.none), of=WORKER)
    to_flush_for: SetVar[View] = volatile(set_of(View), of=WORKER)  # views when the flush began
    flushed_views: SetVar[View] = volatile(set_of(View), of=WORKER)
    # data
    memtable: SetVar[Row] = set_of(Row)
    sstables: SetVar[Row] = set_of(Row)
    rows = per(View, set_of(Row))  # of a view
    worked: SetVar[View] = history(set_of(View))  # tasks that were executed to their end
    # what the worker executed, or had executed, when its node restarted, and has not begun anew since
    forgotten: SetVar[View] = history(set_of(View))

    # -- clients -----------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def write(self, r: Term[Row]) -> None:
        """A row is written to the memtable, and to every view that there is."""
        require(~self.memtable.has(r) & ~self.sstables.has(r), "a new row")
        self.memtable.add(r)
        for v in View:
            self.rows[v].put(r, self._exists(v))

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with its task."""
        require(~self.created.has(v), "not created yet")
        self.created.add(v)
        self.tasks.add(v)

    @action(by=CLIENT, spends=drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped: its task is deleted, and its entry in system.built_views."""
        require(self.created.has(v), "the view is there")
        self.dropped.add(v)
        self.tasks.discard(v)
        self.built.discard(v)

    # -- the call ----------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def ask(self) -> None:
        """The coordinator calls the worker for the tasks that it does not know to be finished."""
        require(self.asked.is_empty(), "no call is under way")
        require(~(self.tasks <= self.finished), "a task is not finished")
        self.asked = self.tasks - self.finished

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed: the worker returns those, and no others."""
        done = self.asked & self.completed
        require(~done.is_empty(), "some are completed")
        self.finished = self.finished | done
        self.asked = frozenset()

    @action(by=WORKER, fair=WEAK)
    def refuse(self) -> None:
        """An id is not found in group0, or the batch is another one: the coordinator selects anew."""
        missing = ~(self.asked <= self.tasks)
        other = self._executes() & (self.asked & self.batch).is_empty()
        require(missing | other, "an id is not found, or of no batch")
        self.asked = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator removes the finished tasks, in one command for all."""
        require(~self.finished.is_empty(), "there are some")
        self.tasks = self.tasks - self.finished
        self.finished = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task any more: it is built."""
        require(self.created.has(v) & ~self.tasks.has(v), "the view has no task")
        require(~self.dropped.has(v), "it is not dropped")
        require(~self.built.has(v), "not built yet")
        self.built.add(v)

    # -- the batch ---------------------------------------------------------------------------------------

    @action(by=WORKER, fair=WEAK)
    def begin_flush(self) -> None:
        """A task is for a view that was not flushed for: the worker notes the views, and flushes."""
        require(self.flush == Flush.none, "no flush goes on")
        require(~(self.asked <= self.flushed_views), "a view was not flushed for")
        self.flush = Flush.begun
        self.to_flush_for = self.created

    @flush.step(Flush.begun, Flush.done, by=WORKER, fair=WEAK)
    def flush_memtable(self) -> None:
        """What is in the memtable goes to sstables."""
        self.sstables = self.sstables | self.memtable
        self.memtable = frozenset()

    @flush.step(Flush.done, Flush.none, by=WORKER, fair=WEAK)
    def end_flush(self) -> None:
        """The worker knows now that it has flushed for the views which there were before."""
        self._note_flushed()

    @action(by=WORKER, fair=WEAK)
    def start_batch(self) -> None:
        """None is completed, and no batch is executed: the tasks are the batch."""
        require(~self.asked.is_empty(), "a call is under way")
        require((self.asked & self.completed).is_empty(), "none is completed")
        require(~self._executes(), "no batch is executed")
        require(self.asked <= self.tasks, "every id is found in group0")
        require(self.asked <= self.flushed_views, "the table was flushed for the views")
        self.forgotten = self.forgotten - self.asked
        self.batch = self.asked

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """The batch has read the tablet and updated its views."""
        require(self._executes(), "a batch is executed")
        for v in View:
            for r in Row:
                read = self.batch.has(v) & self.sstables.has(r)
                self.rows[v].put(r, self.rows[v].has(r) | read)
        self.worked = self.worked | self.batch
        self.completed = self.completed | self.batch
        self.batch = frozenset()

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The task of a dropped view leaves the batch, which is aborted if that was the last."""
        require(self.batch.has(v), "the task is in the batch")
        require(~self.tasks.has(v), "it is gone")
        self.batch.discard(v)

    # -- what is forgotten -------------------------------------------------------------------------------

    @action(by=WORKER, fair=WEAK)
    def leave_base(self) -> None:
        """No task is left, and another base table is processed: the worker's notes are cleared."""
        require(self.tasks.is_empty() & ~self._executes(), "no task is left")
        require(~(self.completed | self.flushed_views).is_empty(), "there are notes")
        self.completed = frozenset()
        self.flushed_views = frozenset()

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: the new coordinator knows neither the call nor what is finished."""
        self.asked = frozenset()
        self.finished = frozenset()

    @action(by=WORKER, spends=restarts)
    def restart(self) -> None:
        """The worker's node restarts: batch, flush and notes are forgotten; the call fails."""
        self.asked = frozenset()
        self.forgotten = self.forgotten | self.completed | self.batch
        self.completed = frozenset()
        self.batch = frozenset()
        self.flush = Flush.none
        self.to_flush_for = frozenset()
        self.flushed_views = frozenset()

    # -- helpers -----------------------------------------------------------------------------------------

    def _exists(self, v: Term[View], /) -> Bool:
        return self.created.has(v) & ~self.dropped.has(v)

    def _executes(self) -> Bool:
        """A batch without tasks is not executed."""
        return ~self.batch.is_empty()

    def _note_flushed(self) -> None:
        self.flushed_views = self.flushed_views | self.to_flush_for
        self.to_flush_for = frozenset()

    # -- promises --------------------------------------------------------------------------------------

    @accepts(write)
    def tables_are_written_while_views_are_built(self, r: Term[Row]) -> Bool:
        """A client writes to the base table whatever the worker does with it."""
        return ~self.memtable.has(r) & ~self.sstables.has(r)

    @accepts(create_view)
    def views_are_created_at_any_time(self, v: Term[View]) -> Bool:
        """000: tasks are created when "a view/index is created", whatever the worker executes."""
        return ~self.created.has(v)

    @accepts(drop_view)
    def views_are_dropped_at_any_time(self, v: Term[View]) -> Bool:
        """000: when a view was dropped "we simply delete relevant view building tasks", also of a batch."""
        return self.created.has(v)

    @invariant
    def built_views_are_complete(self, v: Term[View]) -> Bool:
        """SUCCESS of a view means that every row is in it (SCYLLADB-2781)."""
        complete = (self.memtable | self.sstables) <= self.rows[v]
        return (self.built.has(v) & ~self.dropped.has(v)).implies(complete)

    @invariant
    def view_rows_are_rows_of_the_base(self, v: Term[View]) -> Bool:
        """A view has no row that its base table does not have."""
        return self.rows[v] <= (self.memtable | self.sstables)

    @step_property
    def rows_are_kept(self, after: Self) -> Bool:
        """A flush loses no row."""
        return (self.memtable | self.sstables) <= (after.memtable | after.sstables)

    @invariant
    def finished_tasks_were_worked_on(self) -> Bool:
        """000: "returns result when the tasks are finished": those, and no others that were asked for."""
        return (self.finished | self.completed) <= self.worked

    @invariant
    def executed_tasks_leave_no_row(self, v: Term[View]) -> Bool:
        """000, build_range: "generate view updates from the tablet replica": of all its rows."""
        complete = (self.memtable | self.sstables) <= self.rows[v]
        return (self.worked.has(v) & ~self.dropped.has(v)).implies(complete)

    @invariant
    def removed_tasks_are_forgotten(self) -> Bool:
        """000: the list of finished tasks is kept "temporarily", until they are removed; nobody asks on."""
        known = self.asked | self.finished
        return (known <= (self.tasks | self.dropped)) & (self.asked & self.finished).is_empty()

    @step_property
    def an_answer_ends_the_call(self, after: Self) -> Bool:
        """000: the handler "returns result", and that is all."""
        return (after.finished <= self.finished) | after.asked.is_empty()

    @invariant
    def unfinished_views_have_a_task(self, v: Term[View]) -> Bool:
        """000: group0 stores all "tasks that haven't been completed yet"."""
        return (self._exists(v) & ~self.worked.has(v)).implies(self.tasks.has(v))

    @invariant
    def built_views_have_no_task(self) -> Bool:
        """000: a view is built when its tasks are removed, "permanently marking them as finished": one that was only
        answered is executed again if "both the coordinator and worker nodes are restarted".
        """
        return (self.built & self.tasks).is_empty()

    @invariant
    def tasks_are_of_views(self) -> Bool:
        """000: a task is created with its view, and a dropped view's tasks are deleted."""
        return (self.tasks <= (self.created - self.dropped)) & (self.dropped <= self.created)

    @lemma
    @sometimes
    def tasks_are_executed_together(self, after: Self) -> Bool:
        """000: "The worker groups multiple view building tasks into a batch": one starts for all views of the tablet. A lemma:
        one of them could not leave it otherwise.
        """
        return self.batch.is_empty() & every(after.batch.has(v) for v in View)

    @lemma
    @sometimes(at={restarts: 0})
    def workers_notice_deletions(self, after: Self, v: Term[View]) -> Bool:
        """000: the worker observes group0 "to notice when tasks are aborted (by deleting them …)": one leaves the batch. A
        lemma: it does where others stay.
        """
        return self.dropped.has(v) & self.batch.has(v) & ~(after.batch | after.worked).has(v)

    @sometimes
    def others_stay_in_their_batch(self, after: Self, v: Term[View]) -> Bool:
        """000: "we simply delete relevant view building tasks": a batch goes on without the one that was dropped."""
        leaves = self.dropped.has(v) & self.batch.has(v) & ~after.batch.has(v)
        return leaves & ~after.batch.is_empty()

    @step_property
    def one_batch_on_the_shard(self, after: Self) -> Bool:
        """000: "it can execute only one batch per shard"."""
        return self._executes().implies(after.batch <= self.batch)

    @invariant
    def completed_tasks_are_not_executed_again(self) -> Bool:
        """000: "the worker will immediately response that those tasks were completed"."""
        return (self.batch & self.completed).is_empty()

    @step_property
    def finished_tasks_are_remembered(self, after: Self) -> Bool:
        """000: the worker "keeps track of finished tasks locally" for whoever coordinates, also when it has answered: none
        is executed again, but where the worker's node has restarted since.
        """
        return ((after.batch - self.batch) & self.worked) <= self.forgotten

    @step_property
    def work_goes_on_for_whoever_asks(self, after: Self) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result": a task that is stored leaves its batch when it
        is executed, whoever coordinates, or the worker's node restarts.
        """
        left = (self.batch - after.batch) & self.tasks
        return left <= (after.completed | after.forgotten)

    @step_property
    def finished_tasks_are_removed_together(self, after: Self) -> Bool:
        """000: "This batching of removing finished tasks is done in order to reduce number of generated group0 operations":
        a command removes all that the coordinator knows to be finished.
        """
        return (self.finished <= after.finished) | after.finished.is_empty()

    @accepts(ask)
    def tasks_are_called_for_whatever_is_to_be_removed(self) -> Bool:
        """000: finished tasks are removed "in 200ms intervals", and that "in order to reduce number of generated group0
        operations": others are called for meanwhile.
        """
        left = some(self._exists(v) & self.tasks.has(v) & ~self.worked.has(v) for v in View)
        return left & self.asked.is_empty()

    @accepts(remove_finished)
    def finished_tasks_are_removed_at_any_time(self) -> Bool:
        """000: finished tasks are removed "in 200ms intervals", whatever else is asked for or executed."""
        return ~self.finished.is_empty()

    @accepts(answer)
    def completed_tasks_are_answered_immediately(self) -> Bool:
        """000: "the worker will immediately response that those tasks were completed", whatever others are asked for, and
        whatever the worker does for them.
        """
        return some(self.asked.has(v) & self.completed.has(v) for v in View)

    @accepts(start_batch)
    def batches_start_whatever_is_to_be_removed(self) -> Bool:
        """000, the same: the worker executes what it is called for, whatever becomes of what it has answered."""
        called = ~self.asked.is_empty() & (self.asked <= (self.tasks & self.flushed_views))
        new = (self.asked & self.completed).is_empty()
        return called & new & self.batch.is_empty()

    @accepts(finish_batch)
    def batches_are_finished_whatever_is_flushed(self) -> Bool:
        """000: "Unless the task was aborted, the worker will eventually reply", and not when a flush for another view
        is over.
        """
        return ~self.batch.is_empty()

    @accepts(mark_view_built)
    def views_are_built_whatever_the_worker_does(self, v: Term[View]) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": no other view is waited for."""
        complete = self.worked.has(v) & ((self.memtable | self.sstables) <= self.rows[v])
        return self._exists(v) & complete & ~self.tasks.has(v) & ~self.built.has(v)

    @lemma
    @sometimes
    def views_are_built_one_by_one(self, after: Self, v: Term[View]) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": while another one has a task. A
        lemma: no view waits for another one's.
        """
        return (~self.built.has(v)) & after.built.has(v) & ~self.tasks.is_empty()

    @step_property
    def built_views_stay_built(self, after: Self) -> Bool:
        """000, the same: an entry goes with its view alone."""
        return (self.built - self.dropped) <= (after.built | after.dropped)

    @invariant
    def dropped_views_are_not_built(self) -> Bool:
        """A view that is gone has no entry in system.built_views, and gets none."""
        return self.built <= (self.created - self.dropped)

    @step_property
    def tasks_that_start_are_in_group0(self, after: Self) -> Bool:
        """Every id is found, after a read barrier, or the call fails."""
        return (after.batch - self.batch) <= self.tasks

    @step_property
    def calls_are_for_what_is_to_be_done(self, after: Self) -> Bool:
        """A call is for unfinished tasks, and another one waits until it has ended."""
        sends = ~(after.asked <= self.asked)
        todo = (after.asked <= self.tasks) & (after.asked & self.finished).is_empty()
        return sends.implies(self.asked.is_empty() & todo)

    @step_property
    def finished_tasks_are_removed_once(self, after: Self) -> Bool:
        """000: the tasks are removed, "permanently marking them as finished": none is stored again."""
        return ((after.tasks - self.tasks) & self.worked).is_empty()

    @invariant
    def flushed_views_miss_no_row(self, v: Term[View]) -> Bool:
        """A row that is not in an sstable, after the flush for a view, has updated the view itself."""
        flushing = (self.flush == Flush.done) & self.to_flush_for.has(v)
        flushed = (self.flushed_views.has(v) | flushing) & ~self.dropped.has(v)
        return flushed.implies(self.memtable <= self.rows[v])

    @lemma
    def what_was_done_is_known_or_forgotten(self) -> Bool:
        """A stored task that was executed is completed, or executed anew, or was when the worker's node restarted."""
        return (self.worked & self.tasks) <= (self.completed | self.batch | self.forgotten)

    @lemma
    def the_worker_knows_views_that_are(self) -> Bool:
        """What is flushed for, executed or built is created, and a batch is flushed for."""
        known = self.to_flush_for | self.flushed_views | self.built | self.worked
        flushing = (self.flush == Flush.none).implies(self.to_flush_for.is_empty())
        return (known <= self.created) & flushing & (self.batch <= self.flushed_views)

    @independent(
        observe_drop, of=(asked, finished, completed, flush, to_flush_for, flushed_views, built)
    )
    def deletions_are_noticed_at_any_time(self) -> None:
        """000: "The worker also observes the group0 state to notice when tasks are aborted": whoever waits for a result, and
        whatever is flushed.
        """

    @independent(
        begin_flush,
        flush_memtable,
        end_flush,
        refuse,
        of=(finished, built, worked, forgotten, rows),
    )
    def workers_flush_whatever_the_coordinator_does(self) -> None:
        """000: the worker is "node-local", and "will eventually reply": what it does before that, or in its place, waits for
        no command to group0 of the coordinator's.
        """

    @final
    def nothing_to_do(self) -> Bool:
        """Every view is built or dropped."""
        return self.created <= (self.built | self.dropped)

    @liveness
    def views_are_built(self, v: Term[View]) -> LeadsTo:
        """Every view is built in the end, unless it is dropped."""
        return leads_to(self.created.has(v), self.built.has(v) | self.dropped.has(v))

    @liveness
    def calls_end(self) -> LeadsTo:
        """No call waits for nothing."""
        return leads_to(~self.asked.is_empty(), self.asked.is_empty())

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(write, "a new row", because="a row may be written again"),
        equivalent_drop(
            ask, "a task is not finished", because="a call for nothing asks for nothing"
        ),
        equivalent_weakening(
            refuse, "an id is not found, or of no batch", because="a call that fails is made again"
        ),
        equivalent_drop(
            begin_flush, "a view was not flushed for", because="a flush too many does no harm"
        ),
        equivalent_loss(
            start_batch, forgotten, because="then more is excused by an earlier restart"
        ),
        equivalent_drop(start_batch, "a call is under way", because="a batch of nothing is none"),
        equivalent_drop(
            finish_batch, "a batch is executed", because="a batch of nothing does nothing"
        ),
        equivalent_drop(
            observe_drop,
            "the task is in the batch",
            because="a task that is not in the batch cannot leave it",
        ),
        equivalent_drop(
            leave_base, "there are notes", because="where there are none none are lost"
        ),
        equivalent_disabled(
            leave_base,
            because="a worker may keep its notes of a table for ever: what it knows is so",
        ),
        equivalent_loss(leave_base, completed, flushed_views, because="what it still knows is so"),
        equivalent_drop(
            remove_finished, "there are some", because="a command about nothing removes nothing"
        ),
        equivalent_drop(mark_view_built, "not built yet", because="a view that is built stays so"),
        equivalent_loss(change_leader, asked, finished, because="what it knows is so"),
        equivalent_loss(
            restart,
            asked,
            completed,
            flush,
            flushed_views,
            because="what it still knows is so",
        ),
    )
