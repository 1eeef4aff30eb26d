"""Replicas of a table that are built on nodes, the table's tracks, and recorders of what they do."""

import dataclasses
import random
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from pathlib import Path

import pytest

from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    Term,
    action,
    count,
    every,
    flag,
    invariant,
    many,
    number,
    one_of,
    optional,
    require,
    some,
)
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.trace import Event, observation
from stagewright.spec.values import State, plain
from stagewright.traces.engines.engine import Embedded, Engine
from stagewright.traces.options import Options, unbounded_scope
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate


class Node(Entity, scope=2):
    """Where replicas are."""


class Slot(Entity, scope=3):
    """A replica's place in the table."""


class Lane(Entity, scope=2):
    """A track's place."""


class Phase(Enum):
    """How far a replica is."""

    none = auto()
    pending = auto()
    ready = auto()


class Mode(Enum):
    """What a track does."""

    idle = auto()
    splitting = auto()


class Replica(Machine):
    """One replica: nothing in it says that it is complete before it is ready."""

    phase: OneVar[Phase] = one_of(Phase, init=Phase.none)
    host: OptionalVar[Node] = optional(Node)
    complete: FlagVar = flag()

    @action
    def begin(self, n: Term[Node]) -> None:
        """It is built on a node."""
        require(self.phase == Phase.none, "there is none")
        self.phase = Phase.pending
        self.host = n

    @action
    def copy(self) -> None:
        """It has all data."""
        require(self.phase == Phase.pending, "it is built")
        self.complete = True

    @action
    def finish(self) -> None:
        """It is used."""
        require(self.phase == Phase.pending, "it is built")
        self.phase = Phase.ready

    @action
    def drop(self) -> None:
        """It is removed."""
        require(self.phase == Phase.ready, "it is used")
        self.phase = Phase.none
        self.host = None
        self.complete = False


class Track(Machine):
    """What a table does besides."""

    mode: OneVar[Mode] = one_of(Mode, init=Mode.idle)

    @action
    def turn(self, to: Term[Mode]) -> None:
        """It does something else."""
        require(self.mode != to, "it does not yet")
        self.mode = to


class Table(Machine):
    """A table with its replicas and tracks."""

    replicas = many(Replica, over=Slot)
    tracks = many(Track, over=Lane)
    epoch: NumberVar = number(0, 3)

    @action
    def advance(self) -> None:
        """A new epoch begins."""
        require(self.epoch < 3, "there is one left")
        self.epoch = self.epoch + 1

    @invariant
    def one_is_pending(self) -> Bool:
        """At most one replica is built at a time."""
        return count(self.replicas[r].phase == Phase.pending for r in Slot) <= 1

    @invariant
    def ready_is_complete(self) -> Bool:
        """A replica that is used has all data."""
        return every(
            (self.replicas[r].phase == Phase.ready).implies(self.replicas[r].complete) for r in Slot
        )

    @invariant
    def nothing_is_built_while_splitting(self) -> Bool:
        """Replicas are not built while a track splits."""
        builds = some(self.replicas[r].phase == Phase.pending for r in Slot)
        return ~(builds & some(self.tracks[t].mode == Mode.splitting for t in Lane))

    @invariant
    def a_node_has_one(self, n: Term[Node]) -> Bool:
        """No two replicas are on one node."""
        return count(self.replicas[r].host == n for r in Slot) <= 1

    @invariant
    def hosts_differ(self, a: Term[Slot], b: Term[Slot]) -> Bool:
        """The same, said of every two."""
        both = self.replicas[a].host.is_some() & (a != b)
        return both.implies(self.replicas[a].host != self.replicas[b].host)

    @invariant
    def built_from_another(self) -> Bool:
        """While three are built or used, one of them is used."""
        active = count(self.replicas[r].phase != Phase.none for r in Slot)
        return (active < 3) | some(self.replicas[r].phase == Phase.ready for r in Slot)

    @invariant
    def more_complete_than_pending(self) -> Bool:
        """Two counts are compared, so that no number of entities is too large to matter."""
        pending = count(self.replicas[r].phase == Phase.pending for r in Slot)
        return pending <= count(self.replicas[r].complete for r in Slot) + 1

    @invariant
    def tracks_agree(self) -> Bool:
        """All tracks do the same."""
        return every(every(self.tracks[a].mode == self.tracks[b].mode for b in Lane) for a in Lane)

    @invariant
    def the_epoch_fits(self) -> Bool:
        """It reads what no part has."""
        return (self.epoch < 3) | some(self.replicas[r].complete for r in Slot)


Step = tuple[str, str, dict[str, object]]  # entity, action, parameters


class Recorder:
    """Writes the events of replicas and tracks, each with a time."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._states: dict[str, tuple[Interpreter, State, int]] = {}
        self.time = 0

    def start(self, *entities: str) -> None:
        """Begin the traces of replicas, and of tracks: names of these begin with t."""
        for entity in entities:
            definition = define(Track if entity.rpartition(":")[2].startswith("t") else Replica)
            interpreter = Interpreter(definition, unbounded_scope(definition))
            state = next(iter(interpreter.initial_states()))
            self._states[entity] = interpreter, state, 1
            self._event(entity, 0, None, {}, observation(state))

    def do(self, entity: str, name: str, *, at: int | None = None, **arguments: object) -> None:
        """One step of an entity."""
        if entity not in self._states:
            self.start(entity)
        interpreter, state, number = self._states[entity]
        self.time = self.time + 1 if at is None else at
        for step, after in interpreter.successors(state):
            values = {n: plain(v) for n, v in step.arguments.items()}
            if step.action == name and values == arguments:
                self._states[entity] = interpreter, after, number + 1
                self._event(entity, number, name, arguments, observation(after))
                return
        raise AssertionError(f"{entity} cannot {name}{arguments}")

    def walk(self, rng: random.Random, steps: int) -> None:
        """Random steps of all entities."""
        for _ in range(steps):
            entity = rng.choice(list(self._states))
            interpreter, state, _ = self._states[entity]
            step, _ = rng.choice(list(interpreter.successors(state)))
            values = {n: plain(v) for n, v in step.arguments.items()}
            self.do(entity, step.action, at=self.time + rng.choice([0, 1, 1, 2]), **values)

    def end(self) -> list[Event]:
        """All events, with the ends."""
        self.time += 1
        for entity, (_, _, sequence) in self._states.items():
            self._event(entity, sequence, None, {}, {}, end=True)
        return self.events

    def _event(
        self,
        entity: str,
        sequence: int,
        name: str | None,
        arguments: dict[str, object],
        observed: dict[str, object],
        *,
        end: bool = False,
    ) -> None:
        d = self._states[entity][0].source
        self.events.append(
            Event(
                "run",
                d.name,
                d.profile,
                d.fingerprint(),
                entity,
                sequence,
                action=name,
                parameters=arguments,
                observed=observed,
                end=end,
                time=self.time,
            )
        )


Evaluator = Callable[..., TraceReport]


@pytest.fixture
def recorder() -> Recorder:
    """A recorder that has recorded nothing."""
    return Recorder()


@pytest.fixture
def recorders() -> type[Recorder]:
    """More recorders."""
    return Recorder


@pytest.fixture
def table() -> type[Machine]:
    """The system."""
    return Table


@pytest.fixture
def replica() -> type[Machine]:
    """The part of the system that has hosts."""
    return Replica


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluator:
    """Evaluates events, in one file or in several."""
    made = [0]

    def write(events: Iterable[Event]) -> Path:
        made[0] += 1
        path = tmp_path / f"{made[0]:03}.jsonl"
        path.write_text("".join(e.to_json() + "\n" for e in events))
        return path

    def evaluated(
        *files: Sequence[Event], engine: Engine | None = None, group: str = "", **options: object
    ) -> TraceReport:
        paths = [write(events) for events in files if events]
        found = Options(**{"together": (Table,), "group": group, **options})  # type: ignore[arg-type]
        definitions = {"Replica": define(Replica), "Track": define(Track)}
        return validate(
            paths, lambda machine, _: definitions[machine], found, engine=engine or Embedded(2)
        )

    return evaluated


@pytest.fixture
def untimed() -> Callable[[Iterable[Event]], list[Event]]:
    """Events without their times."""
    return lambda events: [dataclasses.replace(e, time=None) for e in events]
