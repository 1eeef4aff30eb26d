"""Four releases of a lease, of which some do what others refuse or do not know, and random runs of them."""

import dataclasses
import random
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

from stagewright.spec import (
    Entity,
    Machine,
    OneVar,
    OptionalVar,
    Term,
    action,
    flag,
    one_of,
    optional,
    per,
    require,
    set_of,
)
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import Event, observation
from stagewright.spec.values import plain


class Node(Entity, scope=2):
    """Who may hold the lease."""


class Phase(Enum):
    """Where a lease is in its life."""

    free = auto()
    held = auto()
    closed = auto()


class First(Machine):
    """A node takes the lease and gives it back; it is closed once."""

    phase: OneVar[Phase] = one_of(Phase, init=Phase.free)
    owner: OptionalVar[Node] = optional(Node)

    @action
    def take(self, node: Term[Node]) -> None:
        """The lease is free: take it."""
        require(self.phase == Phase.free, "lease is free")
        self.phase = Phase.held
        self.owner = node

    @action
    def give_back(self) -> None:
        """The owner lets go."""
        require(self.phase == Phase.held, "lease is held")
        self.phase = Phase.free
        self.owner = None

    @action
    def close(self) -> None:
        """Nobody holds it: close it for ever."""
        require(self.phase == Phase.free, "lease is free")
        self.phase = Phase.closed


class Second(First):
    """As the first, but only a watcher takes the lease."""

    watchers = set_of(Node)

    @action
    def watch(self, node: Term[Node]) -> None:
        """A node starts to watch."""
        require(~self.watchers.has(node), "node does not watch yet")
        self.watchers.add(node)

    @action
    def take(self, node: Term[Node]) -> None:
        """The lease is free: a watcher takes it."""
        require(self.phase == Phase.free, "lease is free")
        require(self.watchers.has(node), "a lease is taken by watchers only")
        self.phase = Phase.held
        self.owner = node


class Third(First):
    """As the first, but nodes look, and a held lease may be closed."""

    seen = per(Node, flag())

    @action
    def look(self, node: Term[Node]) -> None:
        """A node looks again."""
        self.seen[node] = ~self.seen[node]

    @action
    def close(self) -> None:
        """Close it for ever, whoever holds it."""
        require(self.phase != Phase.closed, "lease is not closed")
        self.phase = Phase.closed
        self.owner = None


RELEASES: dict[str, Definition] = {
    "1": define(First),
    "2": define(Second),
    "3": define(Third),
}


def resolve(machine: str, profile: str) -> Definition:
    """The definition of a release."""
    assert machine == "Lease"
    return RELEASES[profile or "3"]


def walk(release: str, entity: str, seed: int, steps: int) -> list[Event]:
    """The events of a random run, completely observed, with its end marker."""
    definition = RELEASES[release]
    rng, interpreter = random.Random(seed), Interpreter(definition, scope_of(definition))
    state = rng.choice(list(interpreter.initial_states()))
    events = [_event(entity, 0, observed=observation(state))]
    while len(events) <= steps and (nexts := list(interpreter.successors(state))):
        step, state = rng.choice(nexts)
        values = {name: plain(value) for name, value in step.arguments.items()}
        events.append(_event(entity, len(events), step.action, values, observation(state)))
    return [*events, dataclasses.replace(_event(entity, len(events)), end=True)]


def _event(
    entity: str,
    sequence: int,
    action: str | None = None,
    parameters: dict[str, object] | None = None,
    observed: dict[str, object] | None = None,
) -> Event:
    return Event(
        "run",
        "Lease",
        "",
        "",
        entity,
        sequence,
        action=action,
        parameters=parameters or {},
        observed=observed or {},
    )


def recorded(entity: str, seed: int) -> list[Event]:
    """Events of one release, or of two after another, of which some are lost, wrong or say less."""
    rng = random.Random(seed)
    events = walk(rng.choice([*RELEASES]), entity, seed, rng.randrange(4, 12))
    hides = rng.choice([(), ("watchers",), ("watchers", "seen[node0]", "seen[node1]"), ("owner",)])
    events = [_without(event, hides) for event in events]
    for change in rng.sample(_CHANGES, rng.choice([0, 0, 1, 2])):
        if len(events) > 3:
            events = change(rng, events)
    return events


def _without(event: Event, names: Sequence[str]) -> Event:
    observed = {n: v for n, v in event.observed.items() if n not in names}
    return dataclasses.replace(event, observed=observed)


def _upgraded(rng: random.Random, events: list[Event]) -> list[Event]:
    other = walk(rng.choice([*RELEASES]), events[0].entity, rng.randrange(1 << 30), 12)
    cut = rng.randrange(1, len(events))
    return [*events[:cut], *(e for e in other if e.sequence >= cut)]


def _dropped(rng: random.Random, events: list[Event]) -> list[Event]:
    gone = rng.randrange(len(events))
    return [e for i, e in enumerate(events) if i != gone]


def _doubled(rng: random.Random, events: list[Event]) -> list[Event]:
    return [*events, rng.choice(events)]


def _contradicted(rng: random.Random, events: list[Event]) -> list[Event]:
    one = rng.choice(events[1:])
    return [*events, dataclasses.replace(one, action="close", parameters={}, end=False)]


def _changed(rng: random.Random, events: list[Event]) -> list[Event]:
    i = rng.randrange(1, len(events))
    change: Any = rng.choice(
        [
            {"observed": {"phase": "held"}},
            {"action": "close", "parameters": {}},
            {"action": None, "parameters": {}, "observed": {}},
            {"action": "jump"},
            {"observed": {"phase": "lost"}},
        ]
    )
    return [*events[:i], dataclasses.replace(events[i], end=False, **change), *events[i + 1 :]]


_CHANGES = [_upgraded, _dropped, _doubled, _contradicted, _changed, _changed]
