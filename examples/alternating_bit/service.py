"""A sender and a receiver in plain Python, and the adapter that is the network between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

ROOM = 2  # packets that a channel holds
Packet = tuple[bool, str]


class Sender:
    """Repeats a packet until the bit that numbers it comes back."""

    def __init__(self, bit: bool, data: str) -> None:
        self.bit = self.acknowledged = bit
        self.data = data

    def next(self, data: str) -> Packet | None:
        """The packet of the next value; None while the last one may not have arrived."""
        if self.acknowledged != self.bit:
            return None
        self.bit, self.data = not self.bit, data
        return self.bit, self.data

    def repeated(self) -> Packet | None:
        """The packet once more; None if it has arrived."""
        return None if self.acknowledged == self.bit else (self.bit, self.data)


class Receiver:
    """Answers with the bit of the last packet."""

    def __init__(self, bit: bool, data: str) -> None:
        self.bit, self.data = bit, data


class Adapter:
    """The definition's steps as calls; the channels are the network's."""

    def reset(self, initial: State) -> None:
        bit = bool(initial["bit"])
        self.sender = Sender(bit, getattr(initial["sent"], "name", ""))
        self.receiver = Receiver(bit, getattr(initial["received"], "name", ""))
        self.packets: deque[Packet] = deque()
        self.answers: deque[bool] = deque()

    def do(self, step: Step) -> None:
        match step.action:
            case "send_new":
                self._room(self.packets)
                self._send(self.sender.next(getattr(step.arguments["data"], "name", "")))
            case "send_again":
                self._room(self.packets)
                self._send(self.sender.repeated())
            case "receive":
                self._something(self.packets)
                self.receiver.bit, self.receiver.data = self.packets.popleft()
            case "answer":
                self._room(self.answers)
                self.answers.append(self.receiver.bit)
            case "receive_answer":
                self._something(self.answers)
                self.sender.acknowledged = self.answers.popleft()
            case "lose_packet":
                self._lose(self.packets, step)
            case _:
                self._lose(self.answers, step)

    def observe(self) -> Mapping[str, object]:
        return {
            "bit": self.sender.bit,
            "acknowledged": self.sender.acknowledged,
            "sent": self.sender.data,
            "received_bit": self.receiver.bit,
            "received": self.receiver.data,
        }

    def _send(self, packet: Packet | None) -> None:
        if packet is None:
            raise RefusedEvent("the sender has nothing to send")
        self.packets.append(packet)

    def _room(self, channel: deque[Packet] | deque[bool]) -> None:
        if len(channel) == ROOM:
            raise RefusedEvent("the channel is full")

    def _something(self, channel: deque[Packet] | deque[bool]) -> None:
        if not channel:
            raise RefusedEvent("the channel is empty")

    def _lose(self, channel: deque[Packet] | deque[bool], step: Step) -> None:
        index = int(str(step.arguments["i"]))
        if index >= len(channel):
            raise RefusedEvent("there is no such packet")
        del channel[index]
