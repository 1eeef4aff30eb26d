"""The alternating bit protocol over two lossy channels, as in the TLA+ examples: 240 distinct states.

`alternating_bit.tla` is the same written by hand.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated

from stagewright.spec import (
    ANY,
    Bool,
    FlagVar,
    Machine,
    Number,
    OneVar,
    QueueVar,
    Record,
    Term,
    action,
    between,
    flag,
    initially,
    invariant,
    one_of,
    queue,
    require,
)


class Data(Enum):
    """What is sent."""

    FIRST = auto()
    SECOND = auto()


class Packet(Record):
    """A value with the bit that numbers it."""

    bit = flag()
    data = one_of(Data)


class AlternatingBit(Machine):
    """The sender repeats a packet until the bit that numbers it comes back."""

    bit: FlagVar = flag(init=ANY)
    acknowledged: FlagVar = flag(init=ANY)
    received_bit: FlagVar = flag(init=ANY)
    sent: OneVar[Data] = one_of(Data)
    received: OneVar[Data] = one_of(Data)
    packets: QueueVar[Packet, Packet] = queue(Packet, 2)
    answers = queue(flag(), 2)

    @initially
    def all_agree(self) -> Bool:
        return (self.acknowledged == self.bit) & (self.received_bit == self.bit)

    @action
    def send_new(self, data: Term[Data]) -> None:
        """The sender takes up the next value."""
        require(self.acknowledged == self.bit, "the last value has arrived")
        require(~self.packets.is_full(), "there is room")
        next_bit = ~self.bit
        self.sent = data
        self.bit = next_bit
        self.packets.append(Packet(bit=next_bit, data=data))

    @action
    def send_again(self) -> None:
        """The sender repeats the packet."""
        require(self.acknowledged != self.bit, "the last value may not have arrived")
        require(~self.packets.is_full(), "there is room")
        self.packets.append(Packet(bit=self.bit, data=self.sent))

    @action
    def receive(self) -> None:
        """A packet arrives."""
        require(~self.packets.is_empty(), "there is a packet")
        packet = self.packets.head
        self.received_bit = packet.bit
        self.received = packet.data
        self.packets.drop_head()

    @action
    def answer(self) -> None:
        """The receiver sends back the bit that it has."""
        require(~self.answers.is_full(), "there is room")
        self.answers.append(self.received_bit)

    @action
    def receive_answer(self) -> None:
        """A bit comes back."""
        require(~self.answers.is_empty(), "there is an answer")
        self.acknowledged = self.answers.head
        self.answers.drop_head()

    @action
    def lose_packet(self, i: Annotated[Number, between(0, 1)]) -> None:
        """The channel loses a packet."""
        require(i < self.packets.length, "there is one")
        self.packets.lose(i)

    @action
    def lose_answer(self, i: Annotated[Number, between(0, 1)]) -> None:
        """The channel loses an answer."""
        require(i < self.answers.length, "there is one")
        self.answers.lose(i)

    @invariant
    def what_was_received_was_sent(self) -> Bool:
        """When the bits agree, the receiver has the value."""
        return (self.received_bit == self.bit).implies(self.received == self.sent) | (
            self.acknowledged == self.bit
        )


class OneBitIsNoBit(AlternatingBit):
    """The bug: the sender takes any answer as one to its last packet."""

    @action
    def receive_answer(self) -> None:
        """A bit comes back."""
        require(~self.answers.is_empty(), "there is an answer")
        self.acknowledged = self.bit
        self.answers.drop_head()
