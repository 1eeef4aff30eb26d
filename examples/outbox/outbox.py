"""A transactional outbox: an order and its event are stored together, and a relay publishes the event.

A relay that crashes publishes an event twice; the consumer knows which ones it has handled.
"""

from __future__ import annotations

import stagewright.spec as sw

ROOM = 3  # events that the topic holds


class Order(sw.Entity, scope=2):
    """A row of the service's table."""


SERVICE, RELAY, CONSUMER = sw.Actor("service"), sw.Actor("relay"), sw.Actor("consumer")


class Outbox(sw.Machine):
    """Every order that is stored is handled by the consumer, once."""

    crashes = sw.fault_budget(1, doc="of the relay")

    stored = sw.set_of(Order)
    outbox = sw.set_of(Order)  # rows that announce orders, in the same database
    taken: sw.SetVar[Order] = sw.set_of(Order)  # rows that the relay is at; lost when it crashes
    # and of which it knows that it has published them
    published: sw.SetVar[Order] = sw.set_of(Order)
    topic = sw.queue(sw.one_of(Order), ROOM)
    handled = sw.set_of(Order)  # stored by the consumer, with what it did
    effects = sw.per(Order, sw.number(0, 2))

    @sw.action(by=SERVICE)
    def place(self, o: sw.Term[Order]) -> None:
        """A transaction stores an order and a row of the outbox."""
        sw.require(~self.stored.has(o), "the order is new")
        self.stored.add(o)
        self.outbox.add(o)

    @sw.action(by=RELAY, fair=sw.Fairness.WEAK)
    def take(self, o: sw.Term[Order]) -> None:
        """The relay reads a row."""
        sw.require(self.outbox.has(o), "the row is there")
        sw.require(~self.taken.has(o), "it is not at it yet")
        self.taken.add(o)

    @sw.action(by=RELAY, fair=sw.Fairness.STRONG)
    def publish(self, o: sw.Term[Order]) -> None:
        """The relay publishes it."""
        sw.require(self.taken.has(o), "it is at it")
        sw.require(~self.published.has(o), "it has not published it")
        sw.require(~self.topic.is_full(), "the topic has room")
        self.published.add(o)
        self.topic.append(o)

    @sw.action(by=RELAY, fair=sw.Fairness.WEAK)
    def delete(self, o: sw.Term[Order]) -> None:
        """The relay deletes a row whose event is published."""
        sw.require(self.published.has(o), "it is published")
        self.outbox.discard(o)
        self.taken.discard(o)
        self.published.discard(o)

    @sw.action(by=RELAY, spends=crashes)
    def crash(self) -> None:
        """The relay restarts and knows nothing but the rows."""
        self.taken = frozenset()
        self.published = frozenset()

    @sw.action(by=CONSUMER, fair=sw.Fairness.WEAK)
    def handle(self, o: sw.Term[Order]) -> None:
        """The consumer does what a new event asks for, and remembers it, in one transaction."""
        sw.require(~self.topic.is_empty(), "an event waits")
        sw.require(self.topic.head == o, "it is the first")
        sw.require(~self.handled.has(o), "it was not handled")
        self.topic.drop_head()
        self.handled.add(o)
        self.effects[o] = self.effects[o] + 1

    @sw.action(by=CONSUMER, fair=sw.Fairness.WEAK)
    def skip(self, o: sw.Term[Order]) -> None:
        """The consumer passes over an event that it has handled."""
        sw.require(~self.topic.is_empty(), "an event waits")
        sw.require(self.topic.head == o, "it is the first")
        sw.require(self.handled.has(o), "it was handled")
        self.topic.drop_head()

    @sw.final
    def all_are_handled(self) -> sw.Bool:
        return sw.every(self.handled.has(o) for o in Order)

    @sw.invariant
    def nothing_is_handled_twice(self, o: sw.Term[Order]) -> sw.Bool:
        """The consumer does what an order asks for once."""
        return self.effects[o] <= 1

    @sw.invariant
    def no_order_is_lost(self, o: sw.Term[Order]) -> sw.Bool:
        """An order that is stored is in the outbox, on its way or handled."""
        known = self.outbox.has(o) | self.topic.has(o) | self.handled.has(o)
        return self.stored.has(o).implies(known)

    @sw.invariant
    def only_orders_are_handled(self, o: sw.Term[Order]) -> sw.Bool:
        """No event announces an order that was not stored."""
        return (self.topic.has(o) | self.handled.has(o)).implies(self.stored.has(o))

    @sw.liveness
    def every_order_is_handled(self, o: sw.Term[Order]) -> sw.LeadsTo:
        return sw.leads_to(self.stored.has(o), self.handled.has(o))


class DeletesFirst(Outbox):
    """The bug: the relay deletes a row as it reads it, and an event is lost when it crashes."""

    @sw.action(by=RELAY, fair=sw.Fairness.WEAK)
    def take(self, o: sw.Term[Order]) -> None:
        """The relay reads a row and deletes it."""
        sw.require(self.outbox.has(o), "the row is there")
        sw.require(~self.taken.has(o), "it is not at it yet")
        self.taken.add(o)
        self.outbox.discard(o)
