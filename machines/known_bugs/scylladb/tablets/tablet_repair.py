"""Mistakes put back into `TabletRepair`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_repair import (
    COORDINATOR,
    LAST_SESSION,
    OPERATOR,
    Node,
    Operation,
    Stage,
    TabletRepair,
)
from stagewright.spec import Fairness, Number, NumberVar, Term, action, every, number, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-183",
    "design document 001, in the releases: compaction keeps what is repaired apart from what is not",
    breaks=TabletRepair.locks_are_held_until_the_repair_is_to_end,
)
class EachUnlocksWhenItIsDone(TabletRepair):
    """A replica released its lock as soon as it had repaired, before the coordinator knew of all."""

    @action(fair=WEAK)
    def have_repaired(self, n: Term[Node]) -> None:
        """A replica has repaired, and needs no lock any more."""
        super().have_repaired(n)
        self.replica[n].lock = 0


@known_bug(
    "001-242",
    "design document 001, in the releases: a request is one of the tablet's, and deleted when it is done",
    breaks=TabletRepair.each_request_is_a_repair,
)
class TheSecondRequestIsTakenForTheFirst(TabletRepair):
    """A request of a tablet that had been repaired was taken for the one that was done: it was acknowledged, and dropped."""

    @action(by=OPERATOR, spends=TabletRepair.requests)
    def request_repair(self) -> None:
        """The operator asks for a repair of the tablet, which has had none."""
        self.requested = self.requested | (self.session == 0)


@known_bug(
    "001-346",
    "design document 001: a tablet's request to repair is a field of its own beside its stage",
    breaks=TabletRepair.repairs_are_asked_for_while_one_ends,
    budgets={TabletRepair.failures: 0, TabletRepair.failovers: 0, TabletRepair.restarts: 0},
)
class RequestsJoinARepairThatIsDone(TabletRepair):
    """A request that came while a repair was in transition was taken for a part of it, also when that had run: nothing came
    of it, and the operator was told that it was done.
    """

    @action(by=OPERATOR, spends=TabletRepair.requests)
    def request_repair(self) -> None:
        """The operator asks for a repair of the tablet, if none goes on."""
        self.requested = self.requested | (self.stage == Stage.none)


@known_bug(
    "T24",
    "scylladb #26346",
    breaks=(TabletRepair.locks_are_released, TabletRepair.requests_are_done),
    budgets={TabletRepair.restarts: 0},
)
class SessionIsRememberedByTheCoordinatorAlone(TabletRepair):
    """The session that the locks belong to is only in the coordinator's memory once it is closed. Another node
    takes over between `repair` and `end_repair`, tells the replicas to release the locks of no session, and
    the next repair hangs.
    """

    remembered: NumberVar = number(0, LAST_SESSION)  # by the topology coordinator; volatile

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_repair(self) -> None:
        """The replicas are asked to repair; the coordinator notes the session."""
        require(self.stage == Stage.repair, "stage is repair")
        require(self.operation == Operation.none, "not asked yet")
        self.operation = Operation.running
        self.remembered = self.session
        for n in Node:
            self.asked[n] = self.session

    @action(by=COORDINATOR, spends=TabletRepair.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.operation = Operation.none
        self.barrier = False
        self.unlocked = frozenset()
        self.remembered = 0

    def _session_to_unlock(self) -> Number:
        return self.remembered


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-55",
    "design document 001: a request is pending until it is its turn",
    breaks=TabletRepair.repairs_are_asked_for_at_any_time,
)
class RepairIsRefusedUntilTheTabletRests(TabletRepair):
    """A repair is refused while the last one of the tablet has not ended, instead of waiting for it."""

    @action(by=OPERATOR, spends=TabletRepair.requests)
    def request_repair(self) -> None:
        """The operator asks for a repair of a tablet at rest."""
        super().request_repair()
        require(self.stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-543",
    'design document 001, stage 2: replicas "see the transition info … via local token metadata"',
    breaks=TabletRepair.replicas_wait_for_no_other,
    budgets={TabletRepair.requests: 1, TabletRepair.failures: 1},
)
class RepairsEndWhenAllKnowTheSession(TabletRepair):
    """A replica that had repaired asked all others which session they knew, and was done when that was its own: one that
    was behind kept the locks of all.
    """

    @action(fair=WEAK)
    def have_repaired(self, n: Term[Node]) -> None:
        """A replica has repaired, and all others know the same session."""
        known = every(self.replica[m].session == self.replica[n].session for m in Node)
        require(known, "all know the same session")
        super().have_repaired(n)


@known_bug(
    "001-691",
    'design document 001, stage 2: each replica for itself "via local token metadata"',
    breaks=TabletRepair.replicas_wait_for_no_other,
    budgets={TabletRepair.requests: 1, TabletRepair.failures: 0},
)
class LocksAreReleasedOneByOne(TabletRepair):
    """A replica was told to release its lock when all that had been told before had answered: one that was slow kept the
    locks of the rest.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def tell_to_unlock(self, n: Term[Node]) -> None:
        """The next replica is told, once the last one has answered."""
        super().tell_to_unlock(n)
        answered = every(
            (m == n) | (self.told[m] != self.session) | self.unlocked.has(m) for m in Node
        )
        require(answered, "whoever was told has answered")


@known_bug(
    "001-692",
    'design document 001, stage 2: each replica for itself "via local token metadata"',
    breaks=TabletRepair.replicas_wait_for_no_other,
    budgets={TabletRepair.requests: 1, TabletRepair.failures: 0},
)
class LocksAreReleasedTogether(TabletRepair):
    """A replica released its lock when all had been told to."""

    @action(fair=WEAK)
    def unlock(self, n: Term[Node]) -> None:
        """The lock is released, once everybody is to release it."""
        require(every(self.told[m] == self.told[n] for m in Node), "all are told the same")
        super().unlock(n)


BUGS = known_bugs_in(globals())
