"""Small machines and implementations of them, for tests of the suites themselves."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.checker.conformance import RefusedEvent
from stagewright.spec import (
    Entity,
    Machine,
    Record,
    Term,
    action,
    bag,
    budget,
    constant,
    flag,
    initially,
    number,
    one_of,
    per,
    queue,
    require,
    set_of,
    some,
)
from stagewright.spec.declarations.variables import ANY, NumberVar
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


class Node(Entity, scope=2):
    """A node."""


class Counter(Machine):
    """Counts up to three, and back to where it began."""

    resets = budget(1)
    count: NumberVar = number(0, 3)

    @action
    def up(self) -> None:
        """One more."""
        require(self.count < 3, "not full")
        self.count = self.count + 1

    @action(spends=resets)
    def reset(self) -> None:
        """Back to none."""
        require(self.count > 0, "not empty")
        self.count = 0


class Letter(Record):
    """What is sent."""

    to = one_of(Node)
    urgent = flag()


class Mailbox(Machine):
    """Letters on their way, and what is in the tray."""

    post = bag(Letter, at_most=2)
    tray = queue(Letter, 2)

    @action
    def write(self, m: Letter) -> None:
        require(self.post.count_of(m) < 2, "there is room")
        self.post.add(m)

    @action
    def carry(self, m: Letter) -> None:
        require(self.post.has(m), "it is on its way")
        require(~self.tray.is_full(), "the tray has room")
        self.post.remove(m)
        self.tray.append(m)


class Fragile(Machine):
    """Only a budgeted action, whose requirement has two sides."""

    falls = budget(1)
    up = flag(init=True)

    @action(spends=falls)
    def fall(self) -> None:
        require(self.up | ~self.up, "up or down")
        self.up = ~self.up


class Votes(Machine):
    """Nodes vote, each once, and any of them may lead at the start."""

    leads = constant(per(Node, flag(init=ANY)))
    voted = set_of(Node)

    @initially
    def one_leads(self) -> Bool:
        """At least one."""
        return some(self.leads[n] for n in Node)

    @action
    def vote(self, n: Term[Node]) -> None:
        """A node votes."""
        require(~self.voted.has(n), "not voted yet")
        self.voted.add(n)


class Stuck(Machine):
    """Comes to an end in which nothing can happen and nothing is refused, for want of requirements."""

    once = budget(1)
    done = flag()

    @action(spends=once)
    def finish(self) -> None:
        """Without any requirement."""
        self.done = True


class CounterAdapter:
    """A right implementation of `Counter`, with what a test wants to know of it."""

    closed = 0

    def __init__(self) -> None:
        self.count = 0

    def reset(self, initial: State) -> None:
        assert initial["count"] == 0
        self.count = 0

    def do(self, step: Step) -> None:
        if step.action == "up":
            if self.count == 3:
                raise RefusedEvent
            self.count += 1
        else:
            if self.count == 0:
                raise RefusedEvent
            self.count = 0

    def observe(self) -> Mapping[str, object]:
        return {"count": self.count}


class VotesAdapter:
    """A right implementation of `Votes`, which observes the definition's own values and whole maps."""

    def __init__(self) -> None:
        self.leads: object = {}
        self.voted: set[object] = set()

    def reset(self, initial: State) -> None:
        self.leads = initial["leads"]
        self.voted = set()

    def do(self, step: Step) -> None:
        node = step.arguments["n"]
        if node in self.voted:
            raise RefusedEvent(f"{node} has voted")
        self.voted.add(node)

    def observe(self) -> Mapping[str, object]:
        return {"leads": self.leads, "voted": self.voted}
