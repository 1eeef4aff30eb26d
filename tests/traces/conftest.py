"""A small machine with much that traces can hide, random runs of it, and a slow, obvious validator."""

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

import pytest

from stagewright.spec import (
    Entity,
    FlagVar,
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
from stagewright.spec.declarations.variables import ANY
from stagewright.spec.definition import Definition
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.trace import Event, TraceVerdict, observation
from stagewright.spec.values import State, plain


class Node(Entity, scope=2):
    """Who may hold the lease."""


class Phase(Enum):
    """Where a lease is in its life."""

    free = auto()
    held = auto()
    closed = auto()


class Lease(Machine):
    """One lease: a node takes it, others may watch, and it is closed once."""

    phase: OneVar[Phase] = one_of(Phase, init=Phase.free)
    owner: OptionalVar[Node] = optional(Node)
    watchers = set_of(Node)
    seen = per(Node, flag())
    strict: FlagVar = flag(init=ANY)  # never observed directly by some recorders

    @action
    def take(self, node: Term[Node]) -> None:
        """The lease is free: take it."""
        require(self.phase == Phase.free, "lease is free")
        require(~self.strict | self.watchers.has(node), "a strict lease is taken by watchers only")
        self.phase = Phase.held
        self.owner = node

    @action
    def give_back(self) -> None:
        """The owner lets go."""
        require(self.phase == Phase.held, "lease is held")
        self.phase = Phase.free
        self.owner = None

    @action
    def watch(self, node: Term[Node]) -> None:
        """A node starts to watch."""
        require(~self.watchers.has(node), "node does not watch yet")
        self.watchers.add(node)

    @action
    def look(self, node: Term[Node]) -> None:
        """A node looks again."""
        self.seen[node] = ~self.seen[node]

    @action
    def close(self) -> None:
        """Nobody holds it: close it for ever."""
        require(self.phase == Phase.free, "lease is free")
        self.phase = Phase.closed
        self.strict = False


@dataclasses.dataclass(frozen=True)
class Bench:
    """One definition at one scope, with its interpreter."""

    definition: Definition
    scope: Scope

    def walk(self, entity: str, seed: int, steps: int) -> list[Event]:
        """The events of a random run, completely observed, with its end marker."""
        rng, interpreter = random.Random(seed), Interpreter(self.definition, self.scope)
        state = rng.choice(list(interpreter.initial_states()))
        events = [self.event(entity, 0, None, {}, observation(state))]
        for number in range(1, steps + 1):
            step, state = rng.choice(list(interpreter.successors(state)))
            values = {name: plain(value) for name, value in step.arguments.items()}
            events.append(self.event(entity, number, step.action, values, observation(state)))
        return [*events, self.event(entity, steps + 1, None, {}, {}, end=True)]

    def event(
        self,
        entity: str,
        sequence: int,
        action: str | None,
        parameters: dict[str, object],
        observed: dict[str, object],
        *,
        end: bool = False,
    ) -> Event:
        """One event of this definition."""
        d = self.definition
        return Event(
            "run", d.name, d.profile, d.fingerprint(), entity, sequence, node="n1", action=action,
            parameters=parameters, observed=observed, end=end,
        )  # fmt: skip

    def evaluate(self, events: Sequence[Event]) -> tuple[TraceVerdict, int]:
        """The verdict on one entity and the sequence number where it is reached: slow and obvious."""
        interpreter = Interpreter(self.definition, self.scope)
        at: dict[int, list[Event]] = {}
        for event in events:
            if event not in at.setdefault(event.sequence, []):
                at[event.sequence].append(event)
        possible: list[State] | None = None
        for number in range(len(at) + 1):
            here = at.get(number, [])
            if len(here) > 1:
                return TraceVerdict.VIOLATION, number
            if not here:
                return TraceVerdict.GAP, number
            event = here[0]
            if not self._understood(interpreter, event, first=possible is None):
                return TraceVerdict.UNPARSED, number
            if event.end:
                later = max(at) > number
                if not later:
                    return TraceVerdict.OK, number + 1
                if number + 1 not in at:
                    return TraceVerdict.GAP, number + 1
                clash = len(at[number + 1]) > 1
                known = self._understood(interpreter, at[number + 1][0], first=False)
                verdict = TraceVerdict.VIOLATION if clash or known else TraceVerdict.UNPARSED
                return verdict, number + 1
            possible = self._after(interpreter, possible, event)
            if not possible:
                return TraceVerdict.VIOLATION, number
        raise AssertionError("every trace ends in one of the cases above")

    def _after(
        self, interpreter: Interpreter, possible: list[State] | None, event: Event
    ) -> list[State]:
        reached: list[State] = []
        if possible is None:
            reached = list(interpreter.initial_states())
        for state in possible or ():
            for step, after in interpreter.successors(state):
                values = {name: plain(value) for name, value in step.arguments.items()}
                wanted = {**values, **event.parameters}
                if event.action in (None, step.action) and wanted == values:
                    reached.append(after)
        return list(dict.fromkeys(s for s in reached if _fits(observation(s), event.observed)))

    def _understood(self, interpreter: Interpreter, event: Event, *, first: bool) -> bool:
        if event.action is None:
            values_known = not event.parameters
        else:
            actions = {a.name: a for a in self.definition.actions}
            if event.action not in actions:
                return False
            params = actions[event.action].params
            choices = [
                {p.name: plain(v) for p, v in env.items()} for env in interpreter.instances(params)
            ]
            values_known = any(c.items() >= event.parameters.items() for c in choices)
        if event.end:
            return not (event.action or event.parameters or event.observed or first)
        return values_known and not (first and event.action) and self._observable(event)

    def _observable(self, event: Event) -> bool:
        values: dict[str, Callable[[object], bool]] = {
            "phase": lambda v: v in [p.name for p in Phase],
            "owner": lambda v: v in (None, "node0", "node1"),
            "watchers": lambda v: isinstance(v, list) and set(v) <= {"node0", "node1"},
            "seen[node0]": lambda v: isinstance(v, bool),
            "seen[node1]": lambda v: isinstance(v, bool),
            "strict": lambda v: isinstance(v, bool),
        }
        return all(name in values and values[name](v) for name, v in event.observed.items())


def _fits(leaves: Mapping[str, object], observed: Mapping[str, object]) -> bool:
    return all(
        leaves[name] == (sorted(value) if isinstance(value, list) else value)
        for name, value in observed.items()
    )


@pytest.fixture(scope="session")
def lease() -> Bench:
    """The lease at its default scope."""
    from stagewright.spec.define import define

    definition = define(Lease)
    return Bench(definition, scope_of(definition))


def _mutations() -> dict[str, Callable[[random.Random, list[Event]], list[Event]]]:
    replace = dataclasses.replace

    def at(rng: random.Random, events: list[Event]) -> int:
        return rng.randrange(1, len(events) - 1)

    def wrong_value(rng: random.Random, events: list[Event]) -> list[Event]:
        i = at(rng, events)
        observed = {**events[i].observed, "phase": rng.choice([p.name for p in Phase])}
        return [*events[:i], replace(events[i], observed=observed), *events[i + 1 :]]

    def wrong_action(rng: random.Random, events: list[Event]) -> list[Event]:
        i = at(rng, events)
        changed = replace(events[i], action=rng.choice(["close", "give_back"]), parameters={})
        return [*events[:i], changed, *events[i + 1 :]]

    def dropped(rng: random.Random, events: list[Event]) -> list[Event]:
        i = rng.randrange(len(events))
        return [*events[:i], *events[i + 1 :]]

    def swapped(rng: random.Random, events: list[Event]) -> list[Event]:
        i = rng.randrange(1, len(events) - 2)
        one, two = events[i], events[i + 1]
        pair = [replace(two, sequence=one.sequence), replace(one, sequence=two.sequence)]
        return [*events[:i], *pair, *events[i + 2 :]]

    def duplicated(rng: random.Random, events: list[Event]) -> list[Event]:
        return [*events, rng.choice(events)]

    def contradicted(rng: random.Random, events: list[Event]) -> list[Event]:
        one = events[at(rng, events)]
        return [*events, replace(one, observed={**one.observed, "strict": None}), one]

    def unknown(rng: random.Random, events: list[Event]) -> list[Event]:
        i = at(rng, events)
        change = rng.choice(
            [{"action": "jump"}, {"observed": {"phase": "lost"}}, {"parameters": {"node": "node7"}}]
        )
        return [*events[:i], replace(events[i], **change), *events[i + 1 :]]  # type: ignore[arg-type]

    def partial(rng: random.Random, events: list[Event]) -> list[Event]:
        kept = rng.choice([{"phase"}, {"owner", "watchers"}, {"seen[node1]"}, set[str]()])
        return [
            replace(e, observed={n: v for n, v in e.observed.items() if n in kept}) for e in events
        ]

    def unnamed(rng: random.Random, events: list[Event]) -> list[Event]:
        hidden = set(rng.sample(range(1, len(events) - 1), 3))
        return [
            replace(e, action=None, parameters={}) if i in hidden else e
            for i, e in enumerate(events)
        ]

    def after_end(rng: random.Random, events: list[Event]) -> list[Event]:
        return [*events, replace(rng.choice(events[1:]), sequence=len(events))]

    return {
        f.__name__: f
        for f in (
            wrong_value, wrong_action, dropped, swapped, duplicated, contradicted, unknown, partial,
            unnamed, after_end,
        )
    }  # fmt: skip


@pytest.fixture(scope="session")
def mutated(lease: Bench) -> Callable[[str, int], list[Event]]:
    """The events of a random run with none, one or two random mutations, in random order."""
    mutations = list(_mutations().values())

    def make(entity: str, seed: int) -> list[Event]:
        rng = random.Random(seed)
        events = lease.walk(entity, seed, rng.randrange(5, 12))
        for mutation in rng.sample(mutations, rng.randrange(3)):
            if len(events) > 6:
                events = mutation(rng, events)
        rng.shuffle(events)
        return events

    return make
