"""Throttling of the backfill: slots of each tablet server, rows per second of a task, and the time of a request.

A request gets a slot of its server, reads rows just as fast as it may, and answers before its deadline; then another
one gets the slot. A second is as long as it takes every running task to read what it may. The tasks may be of one
job, or of the jobs of several tables, which share the slots.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    Term,
    accepts,
    action,
    always_reachable,
    choose,
    constant,
    count,
    equivalent_disabled,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    history,
    invariant,
    leads_to,
    least,
    lemma,
    liveness,
    number,
    one_of,
    per,
    require,
    scopes,
    some,
    sometimes,
    step_property,
)

TABLET_SERVER = Actor("tablet server")
SLOTS_MAX = 2  # of `num_concurrent_backfills_allowed`
RATE = 2  # `backfill_index_rate_rows_per_sec`
ROWS = 5  # of a tablet
DEADLINE = 3  # seconds: `index_backfill_rpc_timeout_ms`
GRACE = 1  # seconds: `backfill_index_timeout_grace_margin_ms`


class Task(Entity, scope=2):
    """The backfill of a tablet; its leader is on one of the tablet servers."""


class Request(Enum):
    """A BackfillIndex request, as the master and the tablet server know it."""

    none = auto()
    queued = auto()  # sent; it has no slot yet
    running = auto()  # has a slot
    answered = auto()  # its slot is free again
    late = auto()  # past its deadline: the master does not hear the answer, and asks again


class BackfillThrottle(Machine):
    """Tasks share the slots of their tablet servers, and each has a rate of its own."""

    crashes = fault_budget(1, doc="tablet leaders that go away while a request runs")
    exercised_at = scopes({}, {Task: 1, Server: 1, crashes: 2})

    request = per(Task, one_of(Request, init=Request.none))
    elapsed = per(Task, number(0, DEADLINE - 1))  # seconds since the request was sent
    read = per(Task, number(0, ROWS))  # rows that were read and not yet answered
    recorded = per(Task, number(0, ROWS))  # the checkpoint
    server = constant(per(Task, one_of(Server, init=ANY)))
    slots: NumberVar = constant(number(1, SLOTS_MAX, init=ANY))  # of each tablet server
    slots_in_use = per(Server, number(0, SLOTS_MAX + 1))
    this_second = per(Task, number(0, ROWS))  # "the number of rows being processed per second"
    # what has happened
    read_in_second = history(per(Task, number(0, ROWS)))
    since_asked = history(per(Task, number(0, DEADLINE)))  # seconds, on the clock of the master

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        """BackfillChunk: from the checkpoint."""
        require(self.request[task] == Request.none, "nothing is on its way")
        require(self.recorded[task] < ROWS, "tablet is not done")
        self.request[task] = Request.queued
        self.elapsed[task] = 0
        self.since_asked[task] = 0
        self.read[task] = 0

    @action(by=TABLET_SERVER, fair=WEAK)
    def start(self, task: Term[Task]) -> None:
        """A slot is free, and at least half of the request's time is left."""
        require(self.request[task] == Request.queued, "request is there")
        require(self._has_free_slot(task), "a slot of the server is free")
        require(self._has_time(task), "half of its time is left")
        self.request[task] = Request.running
        server = self.server[task]
        self.slots_in_use[server] = self.slots_in_use[server] + 1

    @action(by=TABLET_SERVER, fair=WEAK)
    def refuse(self, task: Term[Task]) -> None:
        """The answer is "Not enough time left": the master asks again, with a new deadline."""
        require(self.request[task] == Request.queued, "request is there")
        require(~self._has_time(task), "more than half of its time is gone")
        self._end(task)

    @action(by=TABLET_SERVER, fair=WEAK)
    def read_row(self, task: Term[Task]) -> None:
        """A row is read and its entries are written, if the task has not read too many in this second."""
        require(self.request[task] == Request.running, "request has a slot")
        require(self._reached(task) < ROWS, "a row is left")
        require(self._is_below_rate(task), "the rate is not reached in this second")
        self.read[task] = self.read[task] + 1
        self.this_second[task] = self.this_second[task] + 1
        self.read_in_second[task] = self.read_in_second[task] + 1

    @action(by=TABLET_SERVER, fair=WEAK)
    def answer(self, task: Term[Task]) -> None:
        """The tablet is read to its end, or the time is up but for a margin: the answer tells how far it came."""
        require(self.request[task] == Request.running, "request has a slot")
        require(self._is_due(task), "tablet is done, or time is up")
        self.request[task] = Request.answered
        self._free_slot(task)

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, task: Term[Task]) -> None:
        """The master hears how far the tablet server came."""
        require(self.request[task] == Request.answered, "an answer is there")
        self.recorded[task] = self._reached(task)
        self._end(task)

    @action(spends=crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """The tablet's leader goes away with what it was doing; its slot is free."""
        require(self.request[task] == Request.running, "request has a slot")
        self._end(task)
        self._free_slot(task)

    @action(by=MASTER, fair=WEAK)
    def time_out(self, task: Term[Task]) -> None:
        """The deadline has passed: what was read is read again."""
        require(self.request[task] == Request.late, "deadline has passed")
        self._end(task)

    @action(fair=WEAK)
    def second_passes(self) -> None:
        """A second goes by; by then whoever could take a slot, read, answer or hear an answer has done so."""
        busy = some(self._is_busy(task) for task in Task)
        require(~busy, "nothing can be done in this second")
        for task in Task:
            waits = self.request[task].any_of(Request.queued, Request.running)
            in_time = self.elapsed[task] + 1 < DEADLINE
            self.elapsed[task] = choose(waits & in_time, self.elapsed[task] + 1, self.elapsed[task])
            late = choose(waits & ~in_time, Request.late, self.request[task])
            self.request[task] = late
            self.this_second[task] = 0
            self.read_in_second[task] = 0
            counted = least(self.since_asked[task] + 1, DEADLINE)
            self.since_asked[task] = choose(waits, counted, self.since_asked[task])

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _has_free_slot(self, task: Term[Task]) -> Bool:
        return self.slots_in_use[self.server[task]] < self.slots

    def _free_slot(self, task: Term[Task]) -> None:
        server = self.server[task]
        self.slots_in_use[server] = self.slots_in_use[server] - 1

    def _has_time(self, task: Term[Task]) -> Bool:
        return self.elapsed[task] <= DEADLINE // 2

    def _is_below_rate(self, task: Term[Task]) -> Bool:
        return self.this_second[task] < RATE

    def _reached(self, task: Term[Task]) -> Number:
        return self.recorded[task] + self.read[task]

    def _is_due(self, task: Term[Task]) -> Bool:
        return (self._reached(task) >= ROWS) | (self.elapsed[task] >= DEADLINE - GRACE)

    def _is_busy(self, task: Term[Task]) -> Bool:
        """Something of it happens before the second is over."""
        request = self.request[task]
        starts = (request == Request.queued) & self._has_time(task) & self._has_free_slot(task)
        reads = (request == Request.running) & (self._is_due(task) | self._is_below_rate(task))
        return starts | reads

    def _end(self, task: Term[Task]) -> None:
        self.request[task] = Request.none

    # -- promises ----------------------------------------------------------------------------------------------------

    @invariant
    def slots_are_bounded(self, s: Term[Server]) -> Bool:
        """002: "the maximum number of backfill operations happening on any YB-TServer across tablets can also be
        specified in order to rate-limit backfilling".
        """
        return self._running(s) <= self.slots

    @invariant
    def slots_are_given_back(self, s: Term[Server]) -> Bool:
        """A slot is held by a request that runs, and by no other: also when a tablet's leader goes away."""
        return self.slots_in_use[s] == self._running(s)

    @accepts(start)
    def free_slots_are_given(self, task: Term[Task]) -> Bool:
        """The limit is that of "any YB-TServer": what runs on other servers, for whichever table, takes no slot.
        Of several that wait for one slot, which comes first is the server's affair.
        """
        free = every(
            (self.server[task] == s).implies(self._running(s) < self.slots) for s in Server
        )
        rival = some(
            (other != task)
            & (self.server[other] == self.server[task])
            & (self.request[other] == Request.queued)
            for other in Task
        )
        waits = (self.request[task] == Request.queued) & (self.elapsed[task] == 0)
        return waits & free & ~rival

    @lemma
    @sometimes
    def servers_work_in_parallel(self) -> Bool:
        """002, Design Goals: the build is distributed, "utilizing multiple/all nodes in the cluster". A lemma: tablets are asked
        independently, and free slots are given.
        """
        return every(self._running(s) > 0 for s in Server)

    @invariant
    def rate_is_bounded(self, task: Term[Task]) -> Bool:
        """002: "the desired number of rows of the primary table MyTable to process per second", in each second: the
        time that a request has waited for its slot is no credit.
        """
        return self.read_in_second[task] <= RATE

    @accepts(read_row)
    def each_task_has_its_own_rate(self, task: Term[Task]) -> Bool:
        """002: "Note that this counter is maintained per backfill task", and a task may read as fast as is desired."""
        unread = self.recorded[task] + self.read[task] < ROWS
        return (self.request[task] == Request.running) & unread & (self.read_in_second[task] < RATE)

    @invariant
    def nothing_is_read_in_vain(self, task: Term[Task]) -> Bool:
        """A request that has read rows answers before its deadline, which the master has begun to count as it asked: else they
        are read again (yugabyte-db #28584).
        """
        late = (self.request[task] == Request.running) & (self.since_asked[task] == DEADLINE)
        return ((self.request[task] == Request.late) | late).implies(self.read[task] == 0)

    @invariant
    def answers_tell_of_progress(self, task: Term[Task]) -> Bool:
        """A request that gets a slot has time for a row: the next one begins further on."""
        return (self.request[task] == Request.answered).implies(self.read[task] > 0)

    @lemma
    @sometimes
    def large_tablets_take_several_requests(self, task: Term[Task]) -> Bool:
        """002, "Checkpointing": a request covers "only a portion of the tablet's key range", for its time is up. A lemma:
        whoever reads on after its deadline reads in vain.
        """
        return (self.request[task] == Request.answered) & (self._reached(task) < ROWS)

    @step_property
    def done_tablets_are_left_alone(self, after: Self, task: Term[Task]) -> Bool:
        """002: requests are issued "as necessary for completing the entire key range for the tablet"."""
        asks = (self.request[task] == Request.none) & (after.request[task] != Request.none)
        return asks.implies(self.recorded[task] < ROWS)

    @accepts(record_checkpoint)
    def checkpoints_are_recorded_as_they_come(self, task: Term[Task]) -> Bool:
        """002, "Checkpointing": the master persists what one tablet has answered, whatever others are at."""
        return self.request[task] == Request.answered

    @accepts(answer)
    def answers_wait_for_no_other(self, task: Term[Task]) -> Bool:
        """002, "Checkpointing": a server is to "respond with a checkpointing info" to "each of these RPC calls": whatever other
        tablets are at, the master hears of one that is done, or whose time is up.
        """
        done = self.recorded[task] + self.read[task] == ROWS
        time_is_up = self.since_asked[task] >= DEADLINE - GRACE
        return (self.request[task] == Request.running) & (done | time_is_up)

    @accepts(ask)
    def tablets_are_asked_independently(self, task: Term[Task]) -> Bool:
        """002, "The index backfill process": "the backfill process on any tablet can proceed independent of the others": the
        master issues "futher RPCs as necessary" without waiting for the answers of other tablets.
        """
        return (self.request[task] == Request.none) & (self.recorded[task] < ROWS)

    @accepts(time_out)
    def late_requests_are_made_again(self, task: Term[Task]) -> Bool:
        """The same of a request whose deadline has passed: nobody else has to come to an end before."""
        return self.request[task] == Request.late

    @step_property
    def checkpoints_only_advance(self, after: Self, task: Term[Task]) -> Bool:
        """002: "The entire build process should not need to restart"."""
        return after.recorded[task] >= self.recorded[task]

    @step_property
    def checkpoints_are_answers(self, after: Self, task: Term[Task]) -> Bool:
        """002, "Checkpointing": servers "respond with a checkpointing info representing how far it managed": what a leader
        that went away had read, nobody has answered, and the next one reads it again.
        """
        recorded = after.recorded[task] > self.recorded[task]
        answered = self.request[task] == Request.answered
        read = after.recorded[task] <= self.recorded[task] + self.read[task]
        return recorded.implies(answered & read)

    def _running(self, s: Term[Server]) -> Number:
        return count(
            (self.request[task] == Request.running) & (self.server[task] == s) for task in Task
        )

    @final
    def all_tablets_are_done(self) -> Bool:
        """A table that is backfilled may stay as it is."""
        return every(self.recorded[task] == ROWS for task in Task)

    @always_reachable
    def every_tablet_can_be_done(self, task: Term[Task]) -> Bool:
        """Whatever went away, the tablet can be backfilled."""
        return self.recorded[task] == ROWS

    @liveness
    def every_tablet_is_done(self, task: Term[Task]) -> LeadsTo:
        """However slow, the backfill of each tablet comes to an end."""
        return leads_to(self.recorded[task] < ROWS, self.recorded[task] == ROWS)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_disabled(
            refuse, because="a request that nobody refuses is late in the end, and made again then"
        ),
        equivalent_weakening(
            refuse,
            "more than half of its time is gone",
            because="the next request has its whole time",
        ),
        equivalent_weakening(
            second_passes,
            "nothing can be done in this second",
            because="how much is done in a second is assumed, and a little less would do",
        ),
        equivalent_loss(
            second_passes,
            request,
            because="a request that is queued for too long is refused, if it is not late",
        ),
        equivalent_loss(
            second_passes,
            since_asked,
            because="what is noted for a promise alone: where no time is noted, less is promised",
        ),
        equivalent_loss(_end, request, because="a request that is not answered times out"),
        equivalent_replacement(
            refuse,
            "queued for none",
            because="a request that nobody refuses is late in the end, and made again then",
        ),
        equivalent_replacement(
            second_passes,
            "nothing can be done in this second",
            because="how much is done in a second is assumed, and a little less would do",
        ),
        equivalent_replacement(
            second_passes,
            "request[t] becomes: running for queued",
            because="a request that is queued for too long is refused, if it is not late",
        ),
        equivalent_replacement(
            second_passes,
            "request[t] becomes: none for late",
            because="what is late may be asked for again at once",
        ),
        equivalent_replacement(
            second_passes,
            "request[t] becomes: 0 for 1",
            "request[t] becomes: 4 for 3",
            because="who answers before a deadline does so before one that is a second later",
        ),
        equivalent_replacement(
            second_passes,
            "since_asked[t] becomes",
            because="what is noted for a promise alone: where less is noted, less is promised",
        ),
    )
