"""Small machines for the constructs about order, names and messages; see `constructs.py`."""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated

from stagewright.spec import (
    BagVar,
    Bool,
    Entity,
    Machine,
    Number,
    OneVar,
    OptionalVar,
    QueueVar,
    Record,
    RecordSetVar,
    SetVar,
    Term,
    action,
    bag,
    between,
    count,
    every,
    flag,
    invariant,
    named,
    number,
    one_of,
    optional,
    queue,
    require,
    set_of,
    some,
)


class Seat(Entity, scope=3, ring=True):
    """Round a table."""


class Rung(Entity, scope=3, ordered=True):
    """Of a ladder."""


class Peer(Entity, scope=3):
    """One of whom is special."""

    root = named()


class InOrder(Machine):
    """A dish goes round a table, and somebody climbs a ladder."""

    dish: OneVar[Seat] = one_of(Seat, init=Seat.first)
    rung: OptionalVar[Rung] = optional(Rung)

    @action
    def hand_on(self) -> None:
        self.dish = self.dish.next

    @action
    def hand_back(self, s: Term[Seat]) -> None:
        require((self.dish == s) & ~s.is_first, "not at the first seat")
        self.dish = s.previous

    @action
    def step_on(self) -> None:
        require(self.rung.is_none(), "not on the ladder")
        self.rung = Rung.first

    @action
    def climb(self, r: Term[Rung]) -> None:
        require((self.rung == r) & (r < Rung.last), "not on top")
        self.rung = r.next_or_none

    @invariant
    def rungs_are_on_the_ladder(self) -> Bool:
        return every(r <= Rung.last for r in self.rung)

    @invariant
    def never_on_top_at_the_last_seat(self) -> Bool:
        return ~(self.dish.is_last & some(r.is_last for r in self.rung))


class Names(Machine):
    """The root never leaves, and gives its vote to somebody."""

    up: SetVar[Peer] = set_of(Peer)
    leader: OneVar[Peer] = one_of(Peer, init=Peer.root)

    @action
    def join(self, p: Term[Peer]) -> None:
        require(~self.up.has(p), "is down")
        self.up.add(p)

    @action
    def leave(self, p: Term[Peer]) -> None:
        require(self.up.has(p) & (p != Peer.root), "is up, and not the root")
        self.up.discard(p)

    @action
    def elect(self, p: Term[Peer]) -> None:
        require(self.up.has(Peer.root) & self.up.has(p), "both are up")
        self.leader = p

    @invariant
    def the_root_has_voted(self) -> Bool:
        return self.up.has(Peer.root) | (self.leader == Peer.root)

    @invariant
    def who_is_elected_is_up(self) -> Bool:
        return self.up.has(self.leader) | (self.leader == Peer.root)


class Node(Entity, scope=2):
    """Interchangeable."""


class Kind(Enum):
    """What a message says."""

    ask = auto()
    answer = auto()


class Message(Record):
    """From one node, maybe to one."""

    kind = one_of(Kind)
    sender = one_of(Node)
    to = optional(Node)


class Packet(Record):
    """A number and a bit."""

    number = number(0, 1)
    bit = flag()


class MessageSets(Machine):
    """Nodes ask all others once, and answer whom they have heard."""

    sent: RecordSetVar[Message] = set_of(Message)
    answered: SetVar[Node] = set_of(Node)

    @action
    def ask(self, n: Term[Node]) -> None:
        self.sent.add(Message(kind=Kind.ask, sender=n))

    @action
    def answer(self, m: Message, n: Term[Node]) -> None:
        require(self.sent.has(m), "it was sent")
        require((m.kind == Kind.ask) & (m.sender != n), "another asks")
        self.sent.add(Message(kind=Kind.answer, sender=n, to=m.sender))

    @action
    def hear(self, n: Term[Node]) -> None:
        require(some((m.kind == Kind.answer) & (m.to == n) for m in self.sent), "has an answer")
        self.answered.add(n)

    @invariant
    def only_answers_go_to_somebody(self) -> Bool:
        return every((m.kind == Kind.answer) == m.to.is_some() for m in self.sent)

    @invariant
    def few_messages(self) -> Bool:
        return self.sent.size() < 4


class Bags(Machine):
    """Jobs that are given out, at least once each."""

    jobs: BagVar[Message, Message] = bag(Message, at_most=2)
    done: BagVar[Term[Node], Node] = bag(Node, at_most=2)

    @action
    def give(self, n: Term[Node]) -> None:
        require(self.jobs.count_of(Message(kind=Kind.ask, sender=n)) < 2, "not too often")
        self.jobs.add(Message(kind=Kind.ask, sender=n))

    @action
    def do(self, m: Message) -> None:
        require(self.jobs.has(m), "is there")
        require(self.done.count_of(m.sender) < 2, "not too often")
        self.jobs.remove(m)
        self.done.add(m.sender)

    @invariant
    def jobs_are_questions(self) -> Bool:
        return every((m.kind == Kind.ask) & m.to.is_none() for m in self.jobs)

    @invariant
    def a_bag_is_empty(self) -> Bool:
        return (
            self.jobs.is_empty()
            | self.done.is_empty()
            | (count(self.done.has(n) for n in Node) < 2)
        )


class Queues(Machine):
    """A channel that loses and repeats packets, and a queue of nodes that wait."""

    channel: QueueVar[Packet, Packet] = queue(Packet, 2)
    next_number = number(0, 1)
    seen = number(0, 1)
    waiting: QueueVar[Term[Node], Node] = queue(Node, 2)

    @action
    def send(self) -> None:
        require(~self.channel.is_full(), "there is room")
        self.channel.append(Packet(number=self.next_number, bit=self.next_number == 1))
        self.next_number = 1 - self.next_number

    @action
    def receive(self) -> None:
        require(~self.channel.is_empty(), "there is one")
        self.seen = self.channel.head.number
        self.channel.drop_head()

    @action
    def lose(self, i: Annotated[Number, between(0, 1)]) -> None:
        require(i < self.channel.length, "there is one")
        self.channel.lose(i)

    @action
    def repeat(self, i: Annotated[Number, between(0, 1)]) -> None:
        require((i < self.channel.length) & ~self.channel.is_full(), "there is one, and room")
        self.channel.duplicate(i)

    @action
    def wait(self, n: Term[Node]) -> None:
        require(~self.waiting.has(n), "does not wait")
        self.waiting.append(n)

    @action
    def serve(self, n: Term[Node]) -> None:
        require(~self.waiting.is_empty(), "somebody waits")
        require(self.waiting.head == n, "first in the queue")
        require(self.seen == 1, "open")
        self.waiting = self.waiting.tail

    @invariant
    def bits_belong_to_their_numbers(self) -> Bool:
        return every(p.bit == (p.number == 1) for p in self.channel)

    @invariant
    def the_last_is_not_the_first(self) -> Bool:
        alike = self.channel.head == self.channel.last
        return (self.channel.length < 2) | ~alike | (self.channel[1].number != 1)
