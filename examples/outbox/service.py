"""A database with an outbox, its relay and a consumer, and the adapter through which tests drive them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

ORDERS = ("order0", "order1")
ROOM = 3


class Database:
    """Orders, and the rows that announce them."""

    def __init__(self) -> None:
        self.orders: set[str] = set()
        self.outbox: set[str] = set()

    def place(self, order: str) -> bool:
        """One transaction: the order and its row."""
        if order in self.orders:
            return False
        self.orders.add(order)
        self.outbox.add(order)
        return True


class Relay:
    """Publishes rows, then deletes them; knows nothing after a restart."""

    def __init__(self, database: Database, topic: deque[str]) -> None:
        self.database, self.topic = database, topic
        self.taken: set[str] = set()
        self.published: set[str] = set()

    def take(self, order: str) -> bool:
        if order not in self.database.outbox or order in self.taken:
            return False
        self.taken.add(order)
        return True

    def publish(self, order: str) -> bool:
        if order not in self.taken - self.published or len(self.topic) == ROOM:
            return False
        self.topic.append(order)
        self.published.add(order)
        return True

    def delete(self, order: str) -> bool:
        if order not in self.published:
            return False
        for rows in (self.database.outbox, self.taken, self.published):
            rows.discard(order)
        return True


class Consumer:
    """Handles each order once: what it has handled is stored with what it did."""

    def __init__(self, topic: deque[str]) -> None:
        self.topic = topic
        self.handled: set[str] = set()
        self.effects: dict[str, int] = dict.fromkeys(ORDERS, 0)

    def receive(self) -> bool:
        """Take the first event; whether it was new."""
        order = self.topic.popleft()
        if order in self.handled:
            return False
        self.handled.add(order)
        self.effects[order] += 1
        return True


class Adapter:
    """The definition's steps as calls."""

    def reset(self, initial: State) -> None:
        self.database, self.topic = Database(), deque[str]()
        self.relay = Relay(self.database, self.topic)
        self.consumer = Consumer(self.topic)

    def do(self, step: Step) -> None:
        order = str(step.arguments.get("o", ""))
        match step.action:
            case "place":
                done = self.database.place(order)
            case "take":
                done = self.relay.take(order)
            case "publish":
                done = self.relay.publish(order)
            case "delete":
                done = self.relay.delete(order)
            case "crash":
                self.relay = Relay(self.database, self.topic)
                done = True
            case how:
                done = self._receive(order, new=how == "handle")
        if not done:
            raise RefusedEvent("it cannot happen now")

    def observe(self) -> Mapping[str, object]:
        effects = {f"effects[{order}]": n for order, n in self.consumer.effects.items()}
        events = {f"topic[{i}]": order for i, order in enumerate(self.topic)}
        return {
            **effects,
            **events,
            "stored": sorted(self.database.orders),
            "outbox": sorted(self.database.outbox),
            "taken": sorted(self.relay.taken),
            "published": sorted(self.relay.published),
            "topic.length": len(self.topic),
            "handled": sorted(self.consumer.handled),
        }

    def _receive(self, order: str, *, new: bool) -> bool:
        waits = bool(self.topic) and self.topic[0] == order
        if not waits or (order not in self.consumer.handled) != new:
            return False
        self.consumer.receive()
        return True
