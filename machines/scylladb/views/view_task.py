"""A view building task: its life in group0, the coordinator's call for it, and the worker's part.

Source: design document 000 (view-building-coordinator, 2025-12), section "Lifetime of a task". This is the
state diagram of that section, with what the coordinator and the worker know only in memory; both may
forget. `view_building.py` puts a tablet, its migrations and the view's rows around it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    States,
    Term,
    accepts,
    action,
    always_reachable,
    assume,
    budget,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalents,
    fault_budget,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    observed,
    one_of,
    require,
    scopes,
    set_of,
    sometimes,
    step_property,
    volatile,
    wording,
)


class Life(States):
    """What group0 says of a task; the document's NORMAL, ABORTED, and the two ways to be gone."""

    # fmt: off
    #          stored  executable
    absent   = False,  False  # not created yet
    normal   = True,   True
    aborted  = True,   False  # kept so that an adjusted task, or its duplicate, can be created
    finished = False,  False  # deleted: the work is done
    dropped  = False,  False  # deleted: no longer needed, or another task has taken its place
    # fmt: on

    def __init__(self, stored: bool, executable: bool) -> None:
        self.stored = stored  # a row of system.view_building_tasks
        self.executable = executable  # the coordinator may send it to a worker


class Call(Enum):
    """The coordinator's `work_on_view_building_tasks` RPC for a task; volatile."""

    none = auto()
    sent = auto()
    attached = auto()  # the worker's handler waits for the result
    answered = auto()  # the id is in the coordinator's list of finished tasks


class Work(Enum):
    """The task at its worker; volatile."""

    none = auto()
    executing = auto()  # in the batch that runs
    done = auto()  # in the worker's completed tasks


class RaftTerm(Enum):
    """The `raft::term_t` with which a call was sent."""

    current = auto()
    older = auto()


COORDINATOR = Actor("view building coordinator")
WORKER = Actor("view building worker")
TOPOLOGY = Actor("topology coordinator")
NETWORK = Actor("network")
WEAK = Fairness.WEAK


class ViewTask(Machine):
    """One view building task, from its creation until group0 stores it no longer."""

    aborts = budget(1, doc="tablet operations that begin")
    deletions = budget(1, doc="drops of the view")
    lost_calls = fault_budget(
        1, doc="calls whose request or answer is lost, or whose request comes twice"
    )
    leader_changes = fault_budget(1, doc="changes of the view building coordinator")
    restarts = fault_budget(1, doc="restarts of a worker")

    exercised_at = scopes(
        {},
        {aborts: 0, deletions: 0},
        {aborts: 0, deletions: 0, lost_calls: 2, leader_changes: 2, restarts: 2},
    )

    life: OneVar[Life] = one_of(Life, init=Life.absent)
    call: OneVar[Call] = volatile(one_of(Call, init=Call.none), of=COORDINATOR)
    # requests whose sender has given them up, and copies of requests; they may still arrive
    late: SetVar[RaftTerm] = observed(set_of(RaftTerm), of=NETWORK)
    work: OneVar[Work] = volatile(one_of(Work, init=Work.none), of=WORKER)
    worked: FlagVar = history(flag())  # the worker has executed it to the end
    forgotten: FlagVar = history(flag())  # its node has restarted, and not begun it anew since

    # -- group0 ----------------------------------------------------------------------------------------

    @life.step(Life.absent, Life.normal)
    def create(self) -> None:
        """A view is created, a staging sstable registered, or a tablet operation ends: the task is stored."""

    @life.step(
        Life.normal,
        Life.aborted,
        by=TOPOLOGY,
        spends=aborts,
    )
    def abort(self) -> None:
        """A tablet operation sets the aborted flag; the task itself is still needed."""

    @life.step((Life.normal, Life.aborted), Life.dropped, spends=deletions)
    def drop(self) -> None:
        """The view is dropped, and its tasks with it."""

    @life.step(Life.aborted, Life.dropped, by=TOPOLOGY)
    def give_way(self) -> None:
        """The operation that set the flag ends: an adjusted task or a duplicate takes this one's place."""

    @life.step(Life.normal, Life.finished, by=COORDINATOR, fair=WEAK)
    def remove(self) -> None:
        """Every 200 ms the coordinator removes the tasks that it knows to be finished, and are not aborted."""
        require(self.call == Call.answered, "the worker has answered that it is finished")
        self.call = Call.none

    # -- the coordinator's call ------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def send(self) -> None:
        """The coordinator decides to process the task: it calls the worker."""
        require(
            self.life.column(lambda life: life.executable), "the task is alive, and not aborted"
        )
        require(self.call == Call.none, "it is neither being worked on nor known to be finished")
        self.call = Call.sent

    @action(by=WORKER, fair=WEAK)
    def start(self) -> None:
        """The call finds the task in group0, and no work on it: a batch with it starts."""
        require(self.call == Call.sent, "the call arrives")
        self._start()
        self.call = Call.attached

    @action(by=WORKER, fair=WEAK)
    def start_late(self) -> None:
        """A request that its sender has given up, or a copy, arrives under the current term: it starts a batch too."""
        self._has_current_term()
        self._start()
        self.late.discard(RaftTerm.current)

    @action(by=WORKER, fair=WEAK)
    def attach(self) -> None:
        """The call joins the batch that runs, or finds the task completed."""
        require(self.call == Call.sent, "the call arrives")
        require(self.work != Work.none, "it is executed, or completed")
        self.call = Call.attached

    @action(by=WORKER, fair=WEAK)
    def refuse(self) -> None:
        """The call fails: group0 stores no such task any more, or the worker has given it up."""
        require(self.call.any_of(Call.sent, Call.attached), "a call is under way")
        gone = ~self.life.column(lambda life: life.stored)
        given_up = (self.call == Call.attached) & (self.work == Work.none)
        require(gone | given_up, "there is nothing to wait for")
        self.call = Call.none

    @action(by=COORDINATOR, fair=WEAK)
    def answer(self) -> None:
        """The worker answers that the task is finished; the coordinator keeps the id."""
        require(self.call == Call.attached, "a call waits")
        require(self.work == Work.done, "the worker has completed it")
        self.call = Call.answered

    @action(by=NETWORK, spends=lost_calls)
    def lose_call(self) -> None:
        """The request or the answer is lost; the coordinator waits a second, and selects anew."""
        require(self.call.any_of(Call.sent, Call.attached), "a call is under way")
        self.late.put(RaftTerm.current, self.late.has(RaftTerm.current) | (self.call == Call.sent))
        self.call = Call.none

    @action(by=NETWORK, spends=lost_calls)
    def repeat_call(self) -> None:
        """The request comes twice; the copy may find the worker's node restarted while the call still waits."""
        require(self.call.any_of(Call.sent, Call.attached), "a call is under way")
        self.late.add(RaftTerm.current)

    @action(by=NETWORK, fair=WEAK)
    def drop_late(self, term: Term[RaftTerm]) -> None:
        """Such a request is lost too, or refused: its term is over, its task is gone or worked on."""
        require(self.late.has(term), "a request given up is under way")
        self.late.discard(term)

    @action(by=COORDINATOR, fair=WEAK)
    def forget_answer(self) -> None:
        """A finished task was aborted or deleted in the mean time: its id is of no use."""
        require(self.call == Call.answered, "it is known to be finished")
        require(self.life != Life.normal, "it is aborted or deleted")
        self.call = Call.none

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: the new coordinator knows neither calls nor finished tasks."""
        under_way = (self.call == Call.sent) | ~self.late.is_empty()
        self.late.put(RaftTerm.older, under_way)
        self.late.discard(RaftTerm.current)
        self.call = Call.none

    # -- the worker ------------------------------------------------------------------------------------

    @action(by=WORKER, fair=WEAK)
    def finish(self) -> None:
        """The batch is through: the worker keeps the id among the completed tasks."""
        require(self.work == Work.executing, "it is executed")
        self.work = Work.done
        self.worked = True

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The worker's observer of group0 sees that the task is aborted or gone: it leaves its batch."""
        require(self.work == Work.executing, "it is executed")
        require(~self.life.column(lambda life: life.executable), "it is aborted or gone")
        self.work = Work.none

    @action(by=WORKER, spends=restarts)
    def restart(self) -> None:
        """The worker's node restarts: batches and completed tasks are forgotten; a waiting call fails."""
        require(self.work != Work.none, "it is executed or completed")
        self.forgotten = True
        self.work = Work.none

    # -- helpers ---------------------------------------------------------------------------------------

    def _start(self) -> None:
        """What the worker's handler does when no batch has the task."""
        assume(
            self.life.column(lambda life: life.stored),
            "group0 stores the task",
            because='000: the worker "also observes the group0 state", and is taken to have applied it when a call '
            "arrives; what one that lags behind does for a task that is gone, no row misses: view-building says so",
        )
        require(self.work == Work.none, "it is neither executed nor completed")
        self.work = Work.executing
        self.forgotten = False

    def _has_current_term(self) -> None:
        require(self.late.has(RaftTerm.current), "a request of the current term arrives")

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def finished_tasks_were_worked_on(self) -> Bool:
        """000: "Unless the task was aborted, the worker will eventually reply that the task was finished",
        and only then is it removed, "permanently marking them as finished".
        """
        return (self.life == Life.finished).implies(self.worked)

    @wording('000, "Lifetime of a task": "permanently marking them as finished"')
    @sometimes
    def finished_tasks_are_marked_so(self) -> Bool:
        """A task that leaves group0 after the worker's answer is finished, and not one that is no longer needed."""
        return self.life == Life.finished

    @invariant
    def answers_are_true(self) -> Bool:
        """000: "each view building worker keeps track of finished tasks locally": what it answers was done."""
        done = (self.work == Work.done) | (self.call == Call.answered)
        return done.implies(self.worked)

    @invariant
    def only_tasks_of_group0_are_worked_on(self) -> Bool:
        """Nothing is called, executed or completed before it is created."""
        unused = (self.call == Call.none) & (self.work == Work.none)
        return (self.life == Life.absent).implies(unused)

    @invariant
    def finished_tasks_are_not_called(self) -> Bool:
        """000: the tasks are removed, "permanently marking them as finished": no call is for them."""
        return (self.life == Life.finished).implies(self.call == Call.none)

    @step_property
    def answers_are_asked_for(self, after: Self) -> Bool:
        """000: "it is the coordinator who asks the worker what is the result of some tasks"."""
        answers = (self.call != Call.answered) & (after.call == Call.answered)
        return answers.implies(self.call == Call.attached)

    @step_property
    def tasks_begin_alive(self, after: Self) -> Bool:
        """000, the state diagram: a task is created as NORMAL."""
        return (self.life == Life.absent).implies(after.life.any_of(Life.absent, Life.normal))

    @step_property
    def aborts_are_not_revoked(self, after: Self) -> Bool:
        """000: "Once a task is aborted by setting the flag, this cannot be revoked"."""
        ends = after.life.any_of(Life.aborted, Life.dropped)
        return (self.life == Life.aborted).implies(ends)

    @step_property
    def ids_are_used_once(self, after: Self) -> Bool:
        """000: what is rolled back gets a new id, so a task that is gone stays gone."""
        gone = self.life.any_of(Life.finished, Life.dropped)
        return gone.implies(after.life == self.life)

    @step_property
    def only_executed_tasks_are_completed(self, after: Self) -> Bool:
        """000, the state diagram: EXECUTE comes before DONE."""
        completes = (self.work != Work.done) & (after.work == Work.done)
        return completes.implies(self.work == Work.executing)

    @step_property
    def only_stored_tasks_start(self, after: Self) -> Bool:
        """000: "The worker also observes the group0 state": it starts no task that is not stored there."""
        starts = (self.work != Work.executing) & (after.work == Work.executing)
        return starts.implies(self.life.column(lambda life: life.stored))

    @step_property
    def only_the_current_coordinator_starts_work(self, after: Self) -> Bool:
        """000: the RPC carries a `raft::term_t term`: work starts for the coordinator of this term alone.

        These are the text's words; rows do not need it, as a task that is executed twice is done once.
        """
        starts = (self.work != Work.executing) & (after.work == Work.executing)
        return starts.implies((self.call == Call.sent) | self.late.has(RaftTerm.current))

    @step_property
    def aborted_tasks_are_not_sent(self, after: Self) -> Bool:
        """The coordinator sends no task that is aborted or gone."""
        sends = (self.call != Call.sent) & (after.call == Call.sent)
        return sends.implies(self.life == Life.normal)

    @step_property
    def work_in_progress_is_not_sent_again(self, after: Self) -> Bool:
        """One call for a task at a time; a finished task is only removed."""
        sends = (self.call != Call.sent) & (after.call == Call.sent)
        return sends.implies(self.call == Call.none)

    @step_property
    def completed_tasks_are_not_executed_again(self, after: Self) -> Bool:
        """000: "the worker will immediately response that those tasks were completed", whoever asks and however often:
        what was done is done again only where the worker's node has restarted since, or of a task that is aborted.
        """
        starts = (self.work != Work.executing) & (after.work == Work.executing)
        alive = starts & (self.life == Life.normal)
        return alive.implies(~self.worked | self.forgotten)

    @step_property
    def work_goes_on_for_whoever_asks(self, after: Self) -> Bool:
        """000, RPC: the handler "attaches to the tasks and waits for the result": of a task that is alive a batch goes on, whoever
        coordinates, but where the worker's node restarts.
        """
        given_up = (self.work == Work.executing) & (after.work == Work.none)
        return given_up.implies((self.life != Life.normal) | after.forgotten)

    @sometimes(at={restarts: 0})
    def workers_notice_aborts(self, after: Self) -> Bool:
        """000: the worker "also observes the group0 state to notice when tasks are aborted (by deleting them or by setting
        the aborted flag)": a task leaves the batch that executes it, here for the flag.
        """
        return self._leaves_its_batch(after) & (self.life == Life.aborted)

    @sometimes(at={restarts: 0})
    def workers_notice_deletions(self, after: Self) -> Bool:
        """The same of a task that is deleted."""
        return self._leaves_its_batch(after) & (self.life == Life.dropped)

    def _leaves_its_batch(self, after: Self) -> Bool:
        return (self.work == Work.executing) & (after.work == Work.none)

    @lemma
    def what_was_done_is_known_or_forgotten(self) -> Bool:
        """A task that was executed was created, and is completed, or executed anew, unless its worker's node has restarted."""
        known = (self.work != Work.none) | self.forgotten
        alive = (self.life == Life.normal) & self.worked
        return (self.life == Life.absent).implies(~self.worked) & alive.implies(known)

    @final
    def not_waiting(self) -> Bool:
        """A task that nobody creates, whose operation goes on, or that is gone, may stay so."""
        return self.life != Life.normal

    @always_reachable
    def can_leave_group0(self) -> Bool:
        """Whatever happened, a time can come when group0 does not store the task."""
        return ~self.life.column(lambda life: life.stored)

    @liveness
    def tasks_are_processed(self) -> LeadsTo:
        """000: a task "is stored in group0 state … to be processed in the future": it is, or is aborted."""
        return leads_to(self.life == Life.normal, self.life != Life.normal)

    @liveness
    def calls_end(self) -> LeadsTo:
        """000: the handler "returns result when the tasks are finished"; no call waits for nothing, and the list of
        finished tasks is kept "temporarily".
        """
        gone = ~self.life.column(lambda life: life.stored)
        waits = self.call.any_of(Call.sent, Call.attached) | ((self.call == Call.answered) & gone)
        return leads_to(waits, ~waits)

    @accepts(abort)
    def tasks_are_aborted_at_any_time(self) -> Bool:
        """000, "Tablet operations": "the tasks are aborted at the start of the operation", whatever the worker does."""
        return self.life == Life.normal

    @accepts(send)
    def tasks_are_called_for_whoever_did_before(self) -> Bool:
        """000: a new coordinator "will send an RPC with the same view building tasks", whatever a worker still executes, and
        whichever request is still under way.
        """
        return (self.life == Life.normal) & (self.call == Call.none)

    @accepts(remove)
    def finished_tasks_are_removed_at_any_time(self) -> Bool:
        """000: a task that is known to be finished is removed "in 200ms intervals", whatever becomes of its tablet."""
        return (self.life == Life.normal) & (self.call == Call.answered)

    @accepts(drop)
    def tasks_are_deleted_at_any_time(self) -> Bool:
        """000: when a view is dropped "we simply delete relevant view building tasks", executed or not."""
        return self.life.any_of(Life.normal, Life.aborted)

    @independent(finish, observe_abort, of=(call, late, worked, forgotten))
    def workers_wait_for_no_coordinator(self) -> None:
        """000: "each view building worker keeps track of finished tasks locally", and it "observes the group0 state": whoever
        waits for the result, and whether anybody does.
        """

    @independent(start, attach, refuse, answer, forget_answer, of=(late, worked, forgotten))
    def calls_wait_for_no_lost_request(self) -> None:
        """000: "the worker will immediately response that those tasks were completed", or that they are gone: whatever was asked
        for before that, and is still under way.
        """

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_value(
            Life.absent, lambda life: life.stored, because="no call is for a task not yet created"
        ),
        equivalent_value(
            Life.aborted,
            lambda life: life.stored,
            because="a worker that refuses aborted tasks does as well",
        ),
        equivalent_loss(drop, life, because="a view may as well not be dropped"),
        equivalent_loss(_start, forgotten, because="then more is excused by an earlier restart"),
        equivalent_replacement(
            _start,
            "forgotten becomes: yes for no",
            because="then more is excused by an earlier restart",
        ),
        equivalent_disabled(start_late, because="a late request may as well be lost"),
        equivalent_disabled(drop_late, because="a request may as well be under way for ever"),
        equivalent_loss(start_late, late, because="a late request may as well arrive once more"),
        equivalent_replacement(
            start_late,
            "becomes: yes for no",
            "older for current",
            because="a late request may as well arrive once more",
        ),
        equivalent_drop(
            refuse,
            "a call is under way",
            because="the answer for a task that is gone is of no use either",
        ),
        equivalent_drop(
            lose_call,
            "a call is under way",
            because="an id that the coordinator loses is asked for again",
        ),
        equivalent_loss(lose_call, late, call, because="what is not lost does no harm"),
        equivalent_drop(
            repeat_call,
            "a call is under way",
            because="a copy that nobody sent is one of a call that was lost",
        ),
        equivalent_loss(repeat_call, late, because="a request may as well come once"),
        equivalent_drop(
            drop_late,
            "a request given up is under way",
            because="a request that nobody sent cannot be lost",
        ),
        equivalent_loss(drop_late, late, because="a request may as well be under way for ever"),
        equivalent_replacement(
            drop_late, "yes for no", because="a request may as well be under way for ever"
        ),
        equivalent_drop(
            forget_answer,
            "it is known to be finished",
            because="a call for such a task is of no use either",
        ),
        equivalent_loss(
            change_leader,
            late,
            call,
            because="raft gives every leader a new term; what is known or lost does no harm",
        ),
        equivalent_drop(
            observe_abort,
            "it is executed",
            because="that an aborted task was completed is of no use",
        ),
        equivalent_drop(
            restart,
            "it is executed or completed",
            because="a restart that loses nothing does no harm",
        ),
        equivalent_loss(restart, work, because="a restart that loses nothing does no harm"),
    )
