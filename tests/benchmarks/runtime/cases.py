"""Machines at living sizes, in a state in which they have much to do, and a recorded walk of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random

from stagewright.impl.runtime import Instance, Program
from stagewright.machines import SHIPPED
from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.scylladb.views.view_building import Task
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.spec.entities import Entity
from stagewright.spec.loading import find
from stagewright.spec.machine import Machine
from stagewright.spec.sorts import EntitySort
from stagewright.spec.values import Value
from stagewright.spec.verdict import Step

State = Mapping[str, Value]
ATTEMPTS = 3  # random arguments, before enabled ones are searched for
LISTED = 8


@dataclass(frozen=True)
class Case:
    """`instances` of a shipped machine, each with these entities, from this state."""

    name: str
    machine: str
    size: str
    entities: tuple[Entity, ...] = ()
    state: Callable[[], State | None] = lambda: None
    instances: int = 1
    steps: int = 5_000

    def definition(self) -> type[Machine]:
        """The class that defines it."""
        return find(self.machine, SHIPPED)

    def started(self, program: Program) -> list[Instance]:
        """New instances."""
        state = self.state()
        return [Instance(program, state, entities=self.entities) for _ in range(self.instances)]


def _members(kind: type[Entity], number: int) -> tuple[Entity, ...]:
    return tuple(kind(i) for i in range(number))


def _topology() -> State:
    nodes = [Node(i) for i in range(100)]
    present = frozenset(nodes[:60])
    rows = {n: NodeState.normal if n in present else NodeState.absent for n in nodes}
    return {
        "node_state": rows,  # type: ignore[dict-item]  # a plain mapping does as well
        "tokens": present,
        "members": present,
        "tablet_hosts": frozenset(nodes[:30]),
    }


def _views() -> State:
    replica = frozenset({Node(0)})
    return {"replicas": replica, "next": replica, "base": replica}


CASES = (
    Case("partitions", "partition-states", "1,024 partitions", _members(Partition, 1024)),
    Case(
        "views",
        "view-building",
        "100 tablets of 10 tasks, an instance each",
        (*_members(Task, 10), *_members(Node, 6)),
        _views,
        100,
    ),
    Case(
        "backfill",
        "backfill-job",
        "256 tablets, 3 indexes",
        (*_members(Tablet, 256), *_members(Index, 3)),
        steps=2_500,
    ),
    Case("topology", "topology-control", "100 nodes", _members(Node, 100), _topology, steps=2_500),
    Case("migrations", "tablet-migration", "1 tablet"),
)


def recorded(case: Case, program: Program, seed: int = 0) -> list[tuple[int, Step]]:
    """A random walk: which instance takes which step."""
    chance, running = Random(seed), case.started(program)
    walk: list[tuple[int, Step]] = []
    for number in range(case.steps):
        for at in range(len(running)):
            chosen = (number + at) % len(running)
            step = _next(running[chosen], chance)
            if step is not None:
                running[chosen].fire(step)
                walk.append((chosen, step))
                break
        else:
            break
    return walk


def _next(one: Instance, chance: Random) -> Step | None:
    actions = list(one.program.actions)
    # What spends a budget is rare.
    actions.sort(key=lambda a: (one.program.actions[a].budget is not None, chance.random()))
    for action in actions:
        for step in islice(_guesses(one, action, chance), ATTEMPTS):
            if one.can(step):
                return step
    for action in actions:
        if steps := list(islice(one.search(action), LISTED)):
            return chance.choice(steps)
    return None


def _guesses(one: Instance, action: str, chance: Random) -> Iterator[Step]:
    """Steps of an action with random arguments, of which there may be none."""
    from stagewright.spec.grounding.domains import values_of
    from stagewright.spec.scope import Scope
    from stagewright.spec.values import FrozenMap

    nothing = Scope(FrozenMap({}), FrozenMap({}))
    params = one.program.actions[action].params
    values = [
        one.live(p.sort.kind) if isinstance(p.sort, EntitySort) else values_of(p.sort, nothing)
        for p in params
    ]
    while all(values):
        chosen = {p.name: chance.choice(v) for p, v in zip(params, values, strict=True)}
        yield Step(action, FrozenMap(chosen))
