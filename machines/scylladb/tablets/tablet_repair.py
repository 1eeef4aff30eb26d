"""Repair of a tablet: locks on its replicas, which the session that took them is to release.

The stages `repair` and `end_repair`, and the locks that keep compaction from mixing what is repaired with what is
not. A replica takes its lock when the repair reaches it. In `end_repair`, after the barrier, the coordinator tells
every replica to release the lock of that session (`repair_update_compaction_ctrl`).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    per,
    record,
    require,
    scopes,
    set_of,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
NETWORK = Actor("network")
LAST_SESSION = 8


class Node(Entity, scope=2):
    """A node with a replica of the tablet."""


class Stage(Enum):
    """The stages of a tablet's repair; `none` is a tablet at rest."""

    none = auto()
    repair = auto()
    end_repair = auto()


class Operation(Enum):
    """What the coordinator knows of the repair that it asked for; volatile."""

    none = auto()
    running = auto()
    done = auto()
    failed = auto()


class Replica(Record):
    """What a node knows of the tablet and does for it, all in its memory; sessions are numbers, 0 is none."""

    session = number(0, LAST_SESSION)  # open, as far as the node has learned
    lock = number(0, LAST_SESSION)  # the session that holds the lock
    repairs = number(0, LAST_SESSION)  # the session that it works for
    repaired = number(0, LAST_SESSION)  # the last session that it has worked for


class TabletRepair(Machine):
    """One tablet that is repaired, by coordinators that change and requests that arrive more than once."""

    requests = budget(2, doc="repairs that are requested")
    failures = fault_budget(1, doc="answers that are lost")
    failovers = fault_budget(1, doc="changes of the topology coordinator")
    restarts = fault_budget(1, doc="nodes that restart")

    exercised_at = scopes(
        {},
        {requests: 1, failures: 2, failovers: 2, restarts: 0},
        {requests: 1, failures: 0, failovers: 0, restarts: 2},
    )

    # committed to group0
    stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    requested: FlagVar = flag()  # a repair of the tablet
    session: NumberVar = number(0, LAST_SESSION)  # of this repair, or of the one before
    open: FlagVar = flag()  # it is open
    # the topology coordinator
    operation: OneVar[Operation] = one_of(Operation, init=Operation.none)
    barrier: FlagVar = flag()  # that of `end_repair` has passed
    unlocked: SetVar[Node] = set_of(Node)  # they answered that they have released the lock
    # on the wire: what was sent last, which may arrive more than once
    asked = per(Node, number(0, LAST_SESSION))  # to repair in a session; 0: nothing
    told = per(Node, number(0, LAST_SESSION))  # to release the lock of a session
    # the nodes
    replica = per(Node, record(Replica))

    # -- the coordinator -------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=requests)
    def request_repair(self) -> None:
        """The operator asks for a repair of the tablet."""
        self.requested = True

    @stage.step(Stage.none, Stage.repair, by=COORDINATOR, fair=WEAK)
    def start_repair(self) -> None:
        """A repair is requested: a session of its own is opened."""
        require(self.requested, "a repair is requested")
        self.session = self.session + 1
        self.open = True

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_repair(self) -> None:
        """The replicas are asked to repair, in the session."""
        require(self.stage == Stage.repair, "stage is repair")
        require(self.operation == Operation.none, "not asked yet")
        self.operation = Operation.running
        for n in Node:
            self.asked[n] = self.session

    @action(by=COORDINATOR, fair=WEAK)
    def hear_of_success(self) -> None:
        """The replicas answer that they have repaired."""
        require(self.operation == Operation.running, "the replicas are asked")
        have = every(self.replica[n].repaired == self.session for n in Node)
        require(have, "every replica has repaired")
        self.operation = Operation.done

    @action(by=COORDINATOR, fair=WEAK)
    def hear_of_failure(self, n: Term[Node]) -> None:
        """A replica has restarted since it was asked."""
        require(self.operation == Operation.running, "the replicas are asked")
        require(self.asked[n] == 0, "the replica knows of nothing")
        self.operation = Operation.failed

    @action(by=NETWORK, spends=failures)
    def lose_answer(self) -> None:
        """The answer is lost: the coordinator takes the repair for failed, but it goes on."""
        require(self.operation == Operation.running, "the replicas are asked")
        self.operation = Operation.failed

    @stage.step(
        Stage.repair,
        Stage.end_repair,
        by=COORDINATOR,
        fair=WEAK,
    )
    def end_repair(self) -> None:
        """The repair is done, or is to be started again: in either case the session is closed."""
        done = self.operation == Operation.done
        require(done | (self.operation == Operation.failed), "repair is done, or has failed")
        self.open = False
        self.requested = self.requested & ~done
        self.operation = Operation.none

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """Every node has learned that the session is closed, and works in it no more."""
        require(self.stage == Stage.end_repair, "stage is end_repair")
        learned = every(self._is_current(n) for n in Node)
        require(learned, "every node has learned that the session is closed")
        idle = every(self.replica[n].repairs == 0 for n in Node)
        require(idle, "the closed session is drained")
        self.barrier = True

    @action(by=COORDINATOR, fair=WEAK)
    def tell_to_unlock(self, n: Term[Node]) -> None:
        """A replica is told to release the lock of the session."""
        require(self.barrier, "barrier done before locks are released")
        self.told[n] = self._session_to_unlock()

    @stage.step(
        Stage.end_repair,
        Stage.none,
        by=COORDINATOR,
        fair=WEAK,
    )
    def finish_repair(self) -> None:
        """Every replica has released its lock: the transition is deleted."""
        require(every(self.unlocked.has(n) for n in Node), "every replica has answered")
        self.barrier = False
        self.unlocked = frozenset()

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.operation = Operation.none
        self.barrier = False
        self.unlocked = frozenset()

    # -- the replicas ----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node learns which session is open, if any."""
        self.replica[n].session = self._open_session()

    @action(fair=WEAK)
    def begin_to_repair(self, n: Term[Node]) -> None:
        """A replica takes its lock, if its session does not hold it already, and repairs."""
        replica, session = self.replica[n], self.asked[n]
        require(replica.session == session, "the session is open, as far as the node has learned")
        free = (replica.lock == 0) | (replica.lock == session)
        require(free, "no other session holds the lock")
        replica.lock = session
        replica.repairs = session

    @action(fair=WEAK)
    def have_repaired(self, n: Term[Node]) -> None:
        """A replica has repaired; it keeps its lock until all have."""
        replica = self.replica[n]
        require(replica.repairs > 0, "the node repairs")
        replica.repaired = replica.repairs
        replica.repairs = 0

    @action(fair=WEAK)
    def unlock(self, n: Term[Node]) -> None:
        """A replica releases the lock, if the session that is named holds it, and answers."""
        held = self.replica[n].lock
        self.replica[n].lock = choose(held == self.told[n], 0, held)
        is_asked = self.barrier & (self.told[n] == self._session_to_unlock())
        self.unlocked.put(n, self.unlocked.has(n) | is_asked)

    @action(spends=restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node restarts: what was in its memory and on its connections is gone."""
        replica = self.replica[n]
        replica.session = 0
        replica.lock = 0
        self.asked[n] = 0
        replica.repairs = 0

    # -- helpers ---------------------------------------------------------------------------------------

    def _session_to_unlock(self) -> Number:
        """The session stays with the tablet in group0 after it is closed."""
        return self.session

    def _open_session(self) -> Number:
        return choose(self.open, self.session, 0)

    def _is_current(self, n: Term[Node]) -> Bool:
        return self.replica[n].session == self._open_session()

    # -- promises --------------------------------------------------------------------------------------

    @accepts(request_repair)
    def repairs_are_asked_for_at_any_time(self) -> Bool:
        """ScyllaDB's code: the request is a field of its own beside the tablet's stage: it waits for the last repair to end."""
        return ~self.requested

    @sometimes(at={failures: 0, failovers: 0, restarts: 0})
    def each_request_is_a_repair(self) -> Bool:
        """ScyllaDB's code: a request is deleted when its repair is done, and the next one is another repair: where nothing
        fails, the second session is that of the second request.
        """
        again = every(self.replica[n].repaired == 2 for n in Node)
        return (self.stage == Stage.none) & ~self.requested & again

    @sometimes(at={failures: 0, failovers: 0, restarts: 0})
    def repairs_are_asked_for_while_one_ends(self, after: Self) -> Bool:
        """ScyllaDB's code: nor is a request lost that comes when the repair before it is done, and its locks are held still."""
        asked = ~self.requested & after.requested
        return asked & (self.stage == Stage.end_repair)

    @independent(
        learn,
        begin_to_repair,
        have_repaired,
        tell_to_unlock,
        unlock,
        of=(Node, requested, operation),
    )
    def replicas_wait_for_no_other(self) -> None:
        """001, stage 2: all replicas "see the transition info … via local token metadata", each its own: none waits
        with that until another one has repaired, nor with its own repair, and what it is told when that is to end.
        """

    @invariant
    def locks_are_released(self, n: Term[Node]) -> Bool:
        """Every lock that a repair took is released when it ends (scylladb #26346)."""
        return (self.stage == Stage.none).implies(self.replica[n].lock == 0)

    @invariant
    def who_repairs_holds_the_lock(self, n: Term[Node]) -> Bool:
        """While a replica repairs, its lock is held by that repair."""
        replica = self.replica[n]
        return (replica.repairs > 0).implies(replica.lock == replica.repairs)

    @step_property
    def locks_are_held_until_the_repair_is_to_end(self, after: Self, n: Term[Node]) -> Bool:
        """Compaction must not mix what is repaired with what is not: a replica that has repaired keeps its lock until
        all have; one that restarts forgets it, and the session, or that it was asked.
        """
        released = (self.replica[n].lock > 0) & (after.replica[n].lock == 0)
        restarted = (after.replica[n].session == 0) | (after.asked[n] == 0)
        return ((self.stage == Stage.repair) & released).implies(restarted)

    @invariant
    def nothing_of_a_repair_outlives_it(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: a stale request to repair is rejected, joined, or waited for by the next barrier."""
        return (self.stage == Stage.none).implies(self.replica[n].repairs == 0)

    @invariant
    def what_is_done_was_done_everywhere(self, n: Term[Node]) -> Bool:
        """A repair that the coordinator takes for done has run on every replica, in its own session."""
        return (self.operation == Operation.done).implies(self.replica[n].repaired == self.session)

    @invariant
    def session_is_open_in_the_stage_that_repairs(self) -> Bool:
        """The session is open in `repair` and closed when the repair is to end (ScyllaDB's code)."""
        return self.open == (self.stage == Stage.repair)

    @invariant
    def what_the_coordinator_knows_belongs_to_the_stage(self) -> Bool:
        """001: a tablet that is not in transition has no transition info; nor has it that of another
        stage.
        """
        of_repair = self.operation != Operation.none
        of_end = self.barrier | ~self.unlocked.is_empty()
        return of_repair.implies(self.stage == Stage.repair) & of_end.implies(
            self.stage == Stage.end_repair
        )

    @step_property
    def a_repair_has_a_session_of_its_own(self, after: Self) -> Bool:
        """ScyllaDB's code: the session is set when the repair is scheduled; nothing stale has its name."""
        starts = (self.stage == Stage.none) & (after.stage == Stage.repair)
        return starts.implies(after.session > self.session)

    @step_property
    def a_request_is_done_when_every_replica_has_repaired(self, after: Self) -> Bool:
        """The request is deleted "on success" (ScyllaDB's code): no replica is left out."""
        deleted = self.requested & ~after.requested
        everywhere = every(self.replica[n].repaired == self.session for n in Node)
        return deleted.implies(everywhere & (self.stage == Stage.repair))

    @lemma
    def all_is_of_the_last_session(self, n: Term[Node]) -> Bool:
        """Nothing at a replica is of another session than the last, and nothing is of a later one."""
        replica = self.replica[n]
        session, lock = replica.session, replica.lock
        of_last = ((session == 0) | (session == self.session)) & (
            (lock == 0) | (lock == self.session)
        )
        works = (replica.repairs == 0) | (replica.repairs == self.session)
        known = (self.asked[n] <= self.session) & (self.told[n] <= self.session)
        return of_last & works & known & (replica.repaired <= self.session)

    @lemma
    def nobody_works_when_locks_are_released(self, n: Term[Node]) -> Bool:
        """Once the barrier has passed, its session is over at every replica, and stays so."""
        told = (self.told[n] == self.session) & (self.session > 0)
        over = (self.replica[n].session == 0) & (self.replica[n].repairs == 0)
        passed = told | self.barrier | (self.stage == Stage.none)
        return passed.implies(over) & told.implies(self.stage != Stage.repair)

    @lemma
    def who_has_answered_holds_no_lock(self, n: Term[Node]) -> Bool:
        """A replica answers when its lock is released, and that is after the barrier."""
        return self.unlocked.has(n).implies(self.barrier & (self.replica[n].lock == 0))

    @final
    def at_rest(self) -> Bool:
        """A tablet at rest may stay as it is."""
        return (self.stage == Stage.none) & ~self.requested

    @liveness
    def requests_are_done(self) -> LeadsTo:
        """Every repair that was requested is done: none hangs at a lock (scylladb #26346)."""
        return leads_to(self.requested, ~self.requested)

    @liveness
    def repairs_end(self) -> LeadsTo:
        """Every repair ends, and its transition with it."""
        return leads_to(self.stage != Stage.none, self.stage == Stage.none)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            start_repair, "2 for 1", because="any number that was not used yet names a session"
        ),
        equivalent_replacement(
            hear_of_failure,
            "operation becomes: none for failed",
            because="the replicas may be asked again, in the same session",
        ),
        equivalent_loss(
            restart, asked, because="a replica that restarts may still find what it was asked"
        ),
        equivalent_loss(lose_answer, operation, because="an answer that is not lost after all"),
        equivalent_drop(
            end_repair,
            "stage is repair",
            because="the coordinator has asked for a repair in that stage only",
        ),
        equivalent_drop(
            finish_repair,
            "stage is end_repair",
            because="replicas answer that they released their locks in that stage only",
        ),
        equivalent_loss(
            fail_over,
            operation,
            barrier,
            because="a node that knows what the last one knew goes on as that would have",
        ),
        equivalent_drop(
            begin_to_repair,
            "no other session holds the lock",
            because="locks of earlier repairs are released; if one were not, this would hang",
        ),
        equivalent_loss(
            restart,
            Replica.session,
            Replica.lock,
            because="what is not lost is as it would be without the restart",
        ),
    )
