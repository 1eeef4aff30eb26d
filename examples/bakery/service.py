"""Customers of a bakery that share nothing but two arrays, and the adapter through which tests drive them."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

TICKETS = 4
CUSTOMERS = 2


class Bakery:
    """Shared memory: who is choosing, and which ticket each has."""

    def __init__(self) -> None:
        self.choosing = [False] * CUSTOMERS
        self.tickets = [0] * CUSTOMERS


class Customer:
    """One process; every method is one atomic read or write of what is shared, or a wait that is over."""

    def __init__(self, number: int, bakery: Bakery) -> None:
        self.number, self.bakery = number, bakery
        self.seen = 0
        self.at = "home"

    def look(self) -> bool:
        if self.at != "home":
            return False
        self.bakery.choosing[self.number] = True
        self.seen = max(self.bakery.tickets)
        self.at = "choosing"
        return True

    def take(self) -> bool:
        if self.at != "choosing" or self.seen == TICKETS:
            return False
        self.bakery.tickets[self.number] = self.seen + 1
        self.bakery.choosing[self.number] = False
        self.seen = 0
        self.at = "waiting"
        return True

    def enter(self) -> bool:
        tickets = self.bakery.tickets
        own = (tickets[self.number], self.number)
        ahead = any(ticket > 0 and (ticket, i) < own for i, ticket in enumerate(tickets))
        if self.at != "waiting" or any(self.bakery.choosing) or ahead:
            return False
        self.at = "served"
        return True

    def leave(self) -> bool:
        if self.at != "served":
            return False
        self.bakery.tickets[self.number] = 0
        self.at = "home"
        return True


class Adapter:
    """The definition's steps as calls."""

    def reset(self, initial: State) -> None:
        self.bakery = Bakery()
        self.customers = [Customer(i, self.bakery) for i in range(CUSTOMERS)]

    def do(self, step: Step) -> None:
        customer = self.customers[int(str(step.arguments["p"]).removeprefix("process"))]
        steps = {
            "look": customer.look,
            "take": customer.take,
            "enter": customer.enter,
            "leave": customer.leave,
        }
        if not steps[step.action]():
            raise RefusedEvent("it waits")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {}
        for customer in self.customers:
            name = f"[process{customer.number}]"
            seen[f"at{name}"] = customer.at
            seen[f"ticket{name}"] = self.bakery.tickets[customer.number]
            seen[f"seen{name}"] = customer.seen
        return seen
