"""A work queue at the end of a network that reorders, repeats and loses messages.

`tla/work_queue.tla` is the same written by hand.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    Record,
    Term,
    action,
    bag,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    per,
    queue,
    require,
    set_of,
)

MOST = 2  # copies of a message on their way


class Job(Entity, scope=2):
    """What is to be done once."""


class Kind(Enum):
    """What a message says."""

    ASKED = auto()
    DONE = auto()


class Message(Record):
    """Between the client and the queue."""

    kind = one_of(Kind)
    job = optional(Job)


def asked(j: Term[Job]) -> Message:
    """The client wants a job done."""
    return Message(kind=Kind.ASKED, job=j)


def done(j: Term[Job]) -> Message:
    """The job is done."""
    return Message(kind=Kind.DONE, job=j)


class WorkQueue(Machine):
    """Jobs are asked for at least once, queued once, done in the order in which they came, and answered."""

    network = bag(Message, at_most=MOST)
    waiting = queue(Job, 3)
    wanted = set_of(Job)
    taken = set_of(Job)
    times = per(Job, number(0, 2))
    answered = set_of(Job)

    @action
    def want(self, j: Term[Job]) -> None:
        """A client comes with a job."""
        require(~self.wanted.has(j), "it is new")
        self.wanted.add(j)

    @action(fair=Fairness.WEAK)
    def ask(self, j: Term[Job]) -> None:
        """The client asks, again and again until it has an answer."""
        require(self.wanted.has(j) & ~self.answered.has(j), "the client waits")
        require(self.network.count_of(asked(j)) < MOST, "the network takes it")
        self.network.add(asked(j))

    @action(fair=Fairness.STRONG)
    def enqueue(self, j: Term[Job]) -> None:
        """A job that was not seen before joins the queue."""
        require(self.network.has(asked(j)), "it is asked for")
        require(~self.taken.has(j), "for the first time")
        self.network.remove(asked(j))
        self.waiting.append(j)
        self.taken.add(j)

    @action(fair=Fairness.STRONG)
    def answer_again(self, j: Term[Job]) -> None:
        """The answer may have got lost: who asks for what is done gets another one."""
        require(self.network.has(asked(j)), "it is asked for")
        require(self.times[j] > 0, "it is done")
        require(self.network.count_of(done(j)) < MOST, "the network takes it")
        self.network.remove(asked(j))
        self.network.add(done(j))

    @action(fair=Fairness.WEAK)
    def work(self, j: Term[Job]) -> None:
        """The job that waits longest is done, and its client hears of it."""
        require(~self.waiting.is_empty() & (self.waiting.head == j), "it is first in the queue")
        self.waiting.drop_head()
        self.times[j] = self.times[j] + 1
        self.network.add(done(j))

    @action(fair=Fairness.STRONG)
    def learn(self, j: Term[Job]) -> None:
        """The client hears that its job is done."""
        require(self.network.has(done(j)), "an answer is there")
        self.network.remove(done(j))
        self.answered.add(j)

    @action
    def lose(self, m: Message) -> None:
        """A message gets lost."""
        require(self.network.has(m), "it is on its way")
        self.network.remove(m)

    @final
    def all_is_answered(self) -> Bool:
        """Nothing is left to do."""
        return every(self.answered.has(j) for j in Job)

    @invariant
    def jobs_are_done_once(self) -> Bool:
        """However often it is asked for."""
        return every(self.times[j] <= 1 for j in Job)

    @invariant
    def answers_are_true(self, j: Term[Job]) -> Bool:
        """A client that has its answer has its job done."""
        return self.answered.has(j).implies(self.times[j] == 1)

    @liveness
    def who_asks_is_answered(self, j: Term[Job]) -> LeadsTo:
        """Though messages get lost, if not all of them do."""
        return leads_to(self.wanted.has(j), self.answered.has(j))
