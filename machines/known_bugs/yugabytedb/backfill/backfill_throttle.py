"""Mistakes put back into `BackfillThrottle`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    RATE,
    ROWS,
    TABLET_SERVER,
    BackfillThrottle,
    Request,
    Task,
)
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.spec import (
    Bool,
    FlagVar,
    Term,
    action,
    choose,
    count,
    every,
    flag,
    least,
    number,
    per,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CHECKPOINTING = 'design document 002, "Checkpointing"'
RESTART = 'design document 002: the build "should not need to restart on a node failure"'
INDEPENDENT = 'design document 002: "the backfill process on any tablet can proceed independent"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-35",
    'design document 002: RPCs "as necessary for completing the entire key range"',
    breaks=BackfillThrottle.done_tablets_are_left_alone,
    sizes={Task: 1},
)
class AskedUntilNothingIsLeft(BackfillThrottle):
    """A tablet is asked for more until an answer is empty, which nobody writes down: it is asked for ever."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        """Whatever the checkpoint is."""
        require(self.request[task] == Request.none, "nothing is on its way")
        self.request[task] = Request.queued
        self.elapsed[task] = 0
        self.since_asked[task] = 0
        self.read[task] = 0

    @action(by=TABLET_SERVER, fair=WEAK)
    def answer(self, task: Term[Task]) -> None:
        """An empty answer ends the request."""
        require(self.request[task] == Request.running, "request has a slot")
        require(self._is_due(task), "tablet is done, or time is up")
        self.request[task] = choose(self.read[task] > 0, Request.answered, Request.none)
        self._free_slot(task)


@known_bug(
    "002-86",
    'design document 002: "how far it managed to successfully build"',
    breaks=BackfillThrottle.checkpoints_are_answers,
    sizes={Task: 1},
)
class ProgressIsTheCheckpoint(BackfillThrottle):
    """How far a tablet server is, it says while it reads: when its leader goes away that is what the master writes down."""

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """Entries may not be written yet of what was read."""
        super().lose_leader(task)
        self.recorded[task] = self._reached(task)


@known_bug(
    "002-87",
    'design document 002: "The entire build process should not need to restart"',
    breaks=BackfillThrottle.checkpoints_only_advance,
    sizes={Task: 1},
)
class CheckpointsAreOfOneRequest(BackfillThrottle):
    """The checkpoint is how many rows the last request has read, wherever that began."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """What is recorded already is not added."""
        require(self.request[task] == Request.answered, "an answer is there")
        self.recorded[task] = self.read[task]
        self._end(task)


@known_bug(
    "002-163",
    "design document 002, Throttling index build rate",
    breaks=BackfillThrottle.nothing_is_read_in_vain,
    budgets={BackfillThrottle.crashes: 0},
)
class TheSlotBeginsTheTime(BackfillThrottle):
    """A tablet server counted the time of a request from its slot on: what it then read came too late for the master."""

    @action(by=TABLET_SERVER, fair=WEAK)
    def start(self, task: Term[Task]) -> None:
        """A slot is free."""
        super().start(task)
        self.elapsed[task] = 0


@known_bug(
    "002-241",
    'design document 002: "how far it managed to successfully build"',
    breaks=BackfillThrottle.checkpoints_are_answers,
    sizes={Task: 1},
)
class LostRowsAreCounted(BackfillThrottle):
    """What a leader had read that went away is added to the next answer, whose request has read the same rows once more: as
    many rows at the end of the tablet are skipped.
    """

    carried = per(Task, number(0, ROWS))

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """What it had read is not forgotten."""
        super().lose_leader(task)
        self.carried[task] = self.read[task]

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """Both count."""
        require(self.request[task] == Request.answered, "an answer is there")
        self.recorded[task] = least(self._reached(task) + self.carried[task], ROWS)
        self.carried[task] = 0
        self._end(task)


@known_bug(
    "002-352",
    RESTART,
    breaks=BackfillThrottle.checkpoints_only_advance,
    sizes={Task: 1, Server: 1},
    budgets={BackfillThrottle.crashes: 2},
)
class TheSecondCrashBeginsTheTabletAnew(BackfillThrottle):
    """A tablet whose leader goes away once more is scanned from its start."""

    crashed: FlagVar = flag()

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        again = self.crashed
        self.recorded[task] = choose(again, 0, self.recorded[task])
        super().lose_leader(task)
        self.crashed = True


@known_bug("Y05", "design document 002", breaks=BackfillThrottle.rate_is_bounded)
class WaitingIsCredit(BackfillThrottle):
    """A request that has waited for its slot reads faster than it may: the average since it was sent is kept."""

    def _is_below_rate(self, task: Term[Task]) -> Bool:
        waited = (self.elapsed[task] >= 1) & (self.this_second[task] <= RATE)
        return super()._is_below_rate(task) | (waited & (self.read[task] <= RATE))


@known_bug(
    "Y32",
    "design document 002, Fault tolerance using checkpointing",
    breaks=BackfillThrottle.checkpoints_only_advance,
)
class CheckpointsGoWithTheLeader(BackfillThrottle):
    """A tablet whose leader goes away is scanned from its start: its checkpoint went with it."""

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """The tablet's leader goes away, and what it knew."""
        super().lose_leader(task)
        self.recorded[task] = 0


@known_bug(
    "002-406",
    "design document 002: the maximum number of backfill operations on any YB-TServer",
    breaks=BackfillThrottle.slots_are_given_back,
    sizes={Server: 1},
)
class SlotsGoWithTheLeader(BackfillThrottle):
    """A leader goes away, and all slots of its server are free: also those in which other tablets are read."""

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """What it was doing is gone, and the server counts from nought."""
        require(self.request[task] == Request.running, "request has a slot")
        self._end(task)
        self.slots_in_use[self.server[task]] = 0


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-18",
    "design document 002: the maximum number of backfill operations on any YB-TServer",
    breaks=BackfillThrottle.free_slots_are_given,
)
class SlotsAreFreeWhenTheMasterHasHeard(BackfillThrottle):
    """No slot is given anywhere while the master has an answer to record."""

    def _has_free_slot(self, task: Term[Task]) -> Bool:
        recorded = every(self.request[t] != Request.answered for t in Task)
        return super()._has_free_slot(task) & recorded


@known_bug(
    "002-34",
    'design document 002: "utilizing multiple/all nodes in the cluster"',
    breaks=BackfillThrottle.tablets_are_asked_independently,
)
class OneRequestAtATime(BackfillThrottle):
    """The master waits for the answer of one tablet before it asks the next."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        """Nothing is asked of other tablets."""
        super().ask(task)
        others = every(self.request[other] == Request.none for other in Task)
        require(others, "no request is on its way")


@known_bug(
    "002-153",
    'design document 002: "The YB-Master persists the checkpointing info"',
    breaks=BackfillThrottle.checkpoints_are_recorded_as_they_come,
    budgets={BackfillThrottle.crashes: 0},
)
class CheckpointsAreRecordedTogether(BackfillThrottle):
    """What tablets had answered was recorded when no other one was at work."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """The master hears how far the tablet server came."""
        running = some(self.request[o] == Request.running for o in Task)
        require(~running, "no tablet is read")
        super().record_checkpoint(task)


@known_bug("002-265", INDEPENDENT, breaks=BackfillThrottle.tablets_are_asked_independently)
class ChunksAreAskedForInRounds(BackfillThrottle):
    """The next chunks are asked for when those of all tablets are answered: the slowest one holds up the others."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        under_way = some(
            (o != task) & self.request[o].any_of(Request.running, Request.answered) for o in Task
        )
        require(~under_way, "the round is over")
        super().ask(task)


@known_bug("002-266", INDEPENDENT, breaks=BackfillThrottle.late_requests_are_made_again)
class LateTabletsComeLast(BackfillThrottle):
    """A request that is late is made again when no other tablet has one on its way."""

    @action(by=MASTER, fair=WEAK)
    def time_out(self, task: Term[Task]) -> None:
        others = some((o != task) & (self.request[o] != Request.none) for o in Task)
        require(~others, "no other request is on its way")
        super().time_out(task)


@known_bug("002-310", CHECKPOINTING, breaks=BackfillThrottle.answers_wait_for_no_other)
class AnswersAreHeardInTurn(BackfillThrottle):
    """A tablet that is done answers when the master has recorded the answer of another one."""

    @action(by=TABLET_SERVER, fair=WEAK)
    def answer(self, task: Term[Task]) -> None:
        heard = some((o != task) & (self.request[o] == Request.answered) for o in Task)
        require(~heard, "no other answer is to be recorded")
        super().answer(task)


@known_bug("Y06", "design document 002", breaks=BackfillThrottle.each_task_has_its_own_rate)
class OneCounterForAllTasks(BackfillThrottle):
    """All tasks share one counter: the more tablets there are, the slower is each."""

    def _is_below_rate(self, task: Term[Task]) -> Bool:
        first = every(self.this_second[o] == 0 for o in Task)
        return first | ((self.this_second[task] > 0) & super()._is_below_rate(task))


@known_bug("Y07", "design document 002", breaks=BackfillThrottle.free_slots_are_given)
class OneLimitForTheCluster(BackfillThrottle):
    """The slots of one server are taken for those of all."""

    def _has_free_slot(self, task: Term[Task]) -> Bool:
        return super()._has_free_slot(task) & (
            count(self.request[o] == Request.running for o in Task) < self.slots
        )


BUGS = known_bugs_in(globals())
