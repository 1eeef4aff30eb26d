"""A batch of view building tasks: what the coordinator asks for, what the worker answers, what is removed.

Source: design document 000 (view-building-coordinator, 2025-12), sections "View building worker" and "RPC".
One tablet replica, whose tasks (one for each view) go to the worker as one batch. Views are created and
dropped meanwhile, so that a call may be for other tasks than those that are executed or completed.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    SetVar,
    Term,
    action,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalent_weakening,
    equivalents,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    require,
    scopes,
    set_of,
    some,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class View(Entity, scope=2):
    """A view, and its task for the tablet replica."""


class ViewBatches(Machine):
    """The tasks of one tablet replica: called for, executed, completed, removed."""

    drops = budget(1, doc="views that are dropped")
    leader_changes = budget(1, doc="changes of the view building coordinator")
    restarts = budget(1, doc="restarts of the worker's node")

    exercised_at = scopes({}, {drops: 0}, {View: 3, leader_changes: 0, restarts: 0})

    # group0
    created: SetVar[View] = set_of(View)
    dropped: SetVar[View] = set_of(View)
    tasks: SetVar[View] = set_of(View)  # not finished
    built: SetVar[View] = set_of(View)
    # the coordinator
    asked: SetVar[View] = set_of(View)  # the tasks of the call that is under way
    finished: SetVar[View] = set_of(View)  # what it will remove from group0
    # the worker
    batch: SetVar[View] = set_of(View)
    executing: FlagVar = flag()
    completed: SetVar[View] = set_of(View)
    # data
    rows: SetVar[View] = set_of(View)  # views that have the tablet's rows

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with its task."""
        require(~self.created.has(v), "not created yet")
        self.created.add(v)
        self.tasks.add(v)

    @action(by=CLIENT, spends=drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped: its task is deleted."""
        require(self.created.has(v), "the view is there")
        self.dropped.add(v)
        self.tasks.discard(v)

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
    def start_batch(self) -> None:
        """None is completed, and no batch is executed: the tasks are the batch."""
        require(~self.asked.is_empty(), "a call is under way")
        require((self.asked & self.completed).is_empty(), "none is completed")
        require(~self.executing, "no batch is executed")
        require(self.asked <= self.tasks, "every id is found in group0")
        self.batch = self.asked
        self.executing = True

    @action(by=WORKER, fair=WEAK)
    def refuse(self) -> None:
        """An id is not found in group0, or the batch is another one: the coordinator selects anew."""
        missing = ~(self.asked <= self.tasks)
        other = self.executing & (self.asked & self.batch).is_empty()
        require(missing | other, "an id is not found, or of no batch")
        self.asked = frozenset()

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self) -> None:
        """The batch has read the tablet and updated its views."""
        require(self.executing, "a batch is executed")
        self.rows = self.rows | self.batch
        self.completed = self.completed | self.batch
        self.batch = frozenset()
        self.executing = False

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The task of a dropped view leaves the batch, which is aborted if that was the last."""
        require(self.batch.has(v), "the task is in the batch")
        require(~self.tasks.has(v), "it is gone")
        self.executing = some(u != v for u in self.batch)
        self.batch.discard(v)

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

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: the new coordinator knows neither the call nor what is finished."""
        self.asked = frozenset()
        self.finished = frozenset()

    @action(by=WORKER, spends=restarts)
    def restart(self) -> None:
        """The worker's node restarts: batch and completed tasks are forgotten; the call fails."""
        self.asked = frozenset()
        self.completed = frozenset()
        self.batch = frozenset()
        self.executing = False

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self) -> Bool:
        """A view that is built has the tablet's rows."""
        return self.built <= self.rows

    @invariant
    def finished_tasks_were_worked_on(self) -> Bool:
        """000: "returns result when the tasks are finished": those, and no others that were asked for."""
        return (self.finished | self.completed) <= self.rows

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
        wanted = self.created.has(v) & ~self.dropped.has(v) & ~self.rows.has(v)
        return wanted.implies(self.tasks.has(v))

    @invariant
    def tasks_are_of_views(self) -> Bool:
        """000: a task is created with its view, and a dropped view's tasks are deleted."""
        return (self.tasks <= (self.created - self.dropped)) & (self.dropped <= self.created)

    @invariant
    def a_batch_has_tasks(self) -> Bool:
        """000: the worker notices "when tasks are aborted": a batch without any is not executed."""
        return self.executing == ~self.batch.is_empty()

    @step_property
    def one_batch_on_the_shard(self, after: Self) -> Bool:
        """000: "it can execute only one batch per shard"."""
        return (self.executing & after.executing).implies(after.batch <= self.batch)

    @step_property
    def completed_tasks_are_not_executed_again(self, after: Self) -> Bool:
        """000: "the worker will immediately response that those tasks were completed"."""
        starts = ~self.executing & after.executing
        return starts.implies((after.batch & self.completed).is_empty())

    @step_property
    def tasks_that_start_are_in_group0(self, after: Self) -> Bool:
        """Every id is found, after a read barrier, or the call fails."""
        return (~self.executing & after.executing).implies(after.batch <= self.tasks)

    @step_property
    def calls_are_for_what_is_to_be_done(self, after: Self) -> Bool:
        """A call is for unfinished tasks, and another one waits until it has ended."""
        sends = ~(after.asked <= self.asked)
        todo = (after.asked <= self.tasks) & (after.asked & self.finished).is_empty()
        return sends.implies(self.asked.is_empty() & todo)

    @step_property
    def finished_tasks_are_removed_once(self, after: Self) -> Bool:
        """000: the tasks are removed, "permanently marking them as finished"."""
        return after.tasks <= (self.tasks | (after.created - self.created))

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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            ask, "a task is not finished", because="a call for nothing asks for nothing"
        ),
        equivalent_weakening(
            refuse, "an id is not found, or of no batch", because="a call that fails is made again"
        ),
        equivalent_drop(
            finish_batch, "a batch is executed", because="a batch of nothing does nothing"
        ),
        equivalent_drop(
            observe_drop,
            "the task is in the batch",
            because="a task that is not in the batch cannot leave it",
        ),
        equivalent_drop(
            remove_finished, "there are some", because="a command about nothing removes nothing"
        ),
        equivalent_drop(mark_view_built, "not built yet", because="a view that is built stays so"),
        equivalent_loss(change_leader, asked, finished, because="what it knows is so"),
        equivalent_loss(
            restart,
            asked,
            completed,
            because="what it still knows is so",
        ),
    )
