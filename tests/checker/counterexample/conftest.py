"""Small broken machines, one a kind of promise, and the runs that the reference interpreter finds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from typing import Self

import pytest

from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Machine,
    Record,
    States,
    Term,
    action,
    budget,
    constant,
    define,
    every,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    per,
    reachable,
    record,
    require,
    scope_of,
    set_of,
    some,
    step_property,
)
from stagewright.spec.actions import LeadsTo
from stagewright.spec.definition import Definition, Property
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step


class Replica(Enum):
    """Where a tablet's data lies."""

    old = auto()
    new = auto()


class Stage(States):
    """The stages of a migration: where writes go, where reads go."""

    rest = {Replica.old}, {Replica.old}
    write_both = {Replica.old, Replica.new}, {Replica.old}
    read_new = {Replica.old, Replica.new}, {Replica.new}
    cleanup = {Replica.new}, {Replica.new}

    def __init__(self, writes: set[Replica], reads: set[Replica]) -> None:
        self.writes = writes
        self.reads = reads


class Node(Entity, scope=2):
    """A coordinator of writes."""


COORDINATOR = Actor("topology coordinator")


class Migration(Machine):
    """A migration that forgot its barrier: a coordinator may lag behind by several stages."""

    stage = one_of(Stage, init=Stage.rest)
    learned = per(Node, one_of(Stage, init=Stage.rest))
    complete = set_of(Replica, init=set(Replica))

    @action
    def learn(self, n: Term[Node]) -> None:
        """Coordinator `n` applies the committed stage. It may do so late."""
        require(self.learned[n] != self.stage, "the stage is news")
        self.learned[n] = self.stage

    @action
    def write(self, n: Term[Node]) -> None:
        """Coordinator `n` acknowledges a write; a replica that it does not write to falls behind."""
        self.complete = self.complete & self.learned[n].column(lambda s: s.writes)

    @stage.step(Stage.rest, Stage.write_both, by=COORDINATOR)
    def write_both(self) -> None:
        """Writes go to both replicas from now on."""

    @stage.step(Stage.write_both, Stage.read_new, by=COORDINATOR)
    def read_new(self) -> None:
        """The new replica has all the data and is read from now on."""
        self.complete = self.complete | {Replica.new}

    @stage.step(Stage.read_new, Stage.cleanup, by=COORDINATOR)
    def clean_up(self) -> None:
        """Nothing is left to do."""

    @invariant
    def reads_are_complete(self) -> Bool:
        """A replica that some coordinator reads holds every acknowledged write."""
        return every(
            self.learned[n].column(lambda s: s.reads).has(r).implies(self.complete.has(r))
            for n in Node
            for r in Replica
        )

    @invariant
    def no_lag(self, n: Term[Node]) -> Bool:
        """No coordinator lags."""
        return self.learned[n] == self.stage

    @step_property
    def stages_go_up(self, after: Self) -> Bool:
        """A migration that reads from the new replica is not at rest after the next step."""
        return (self.stage == Stage.write_both).implies(after.stage == Stage.write_both)

    @reachable
    def back_to_rest(self) -> Bool:
        """A migration can be reverted."""
        return self.stage == Stage.rest

    @liveness
    def every_migration_ends(self) -> LeadsTo:
        """A migration that began comes to its end."""
        return leads_to(self.stage == Stage.write_both, self.stage == Stage.cleanup)


class Task(Entity, scope=2):
    """Something to be done."""


class Row(Record):
    """What is stored of a task."""

    version = number(0, 3)
    written = flag()


class Workers(Machine):
    """Workers claim tasks; every kind of sort is in use, and several promises do not hold."""

    owner = per(Task, optional(Node))
    done = set_of(Task)
    rows = per(Task, record(Row))
    patience = number(0, 2, init=1)
    leader = one_of(Node, init=ANY)
    limit = constant(number(0, 2, init=ANY))
    crashes = budget(1, doc="crashes of a worker")

    @initially
    def limit_is_one(self) -> Bool:
        return self.limit == 1

    @action
    def claim(self, n: Term[Node], t: Term[Task]) -> None:
        """Worker `n` claims task `t`."""
        require(self.owner[t] == None, "nobody owns the task")  # noqa: E711
        require(~self.done.has(t), "not done yet")
        self.owner[t] = n

    @action
    def finish(self, n: Term[Node], t: Term[Task]) -> None:
        """Worker `n` finishes task `t`."""
        require(self.owner[t] == n, "the task is its own")
        self.owner[t] = None
        self.done.add(t)
        self.rows[t].version = self.rows[t].version + 1
        self.rows[t].written = True

    @action(spends=crashes)
    def crash(self, n: Term[Node], heir: Term[Node]) -> None:
        """Worker `n` crashes, and `heir` leads."""
        require(self.leader == n, "it leads")
        require(some(self.owner[t] == n for t in Task), "it owns a task")
        self.leader = heir
        for t in Task:
            self.owner[t] = None

    @action
    def hurry(self) -> None:
        """Patience grows."""
        require(self.done.size() > self.limit, "more is done than the limit")
        self.patience = self.patience + 2

    @invariant
    def leader_works(self, t: Term[Task]) -> Bool:
        """Only the leader owns tasks."""
        return (self.owner[t] == None) | (self.owner[t] == self.leader)  # noqa: E711

    @invariant
    def little_is_done(self) -> Bool:
        """At most one task is done, and none of them is written."""
        return (self.done.size() <= 1) & ~some(self.rows[t].written for t in Task)


def search(
    definition: Definition, found: Callable[[Interpreter, Run], bool], **sizes: int
) -> Run:
    """The shortest run for which `found` holds, by breadth-first search with the interpreter."""
    interpreter = Interpreter(definition, scope_of(definition, sizes))
    queue = deque(Run((state,), ()) for state in interpreter.initial_states())
    seen: set[State] = {run.states[0] for run in queue}
    while queue:
        run = queue.popleft()
        if found(interpreter, run):
            return run
        for step, state in interpreter.successors(run.states[-1]):
            longer = Run((*run.states, state), (*run.steps, step))
            if found(interpreter, longer):
                return longer
            if state not in seen:
                seen.add(state)
                queue.append(longer)
    raise AssertionError("no such run")


def breaks(prop: Property, **arguments: object) -> Callable[[Interpreter, Run], bool]:
    """Whether a run's last state (or step) makes the property's condition false."""

    def found(interpreter: Interpreter, run: Run) -> bool:
        if prop.kind.name == "STEP":
            if not run.steps:
                return False
            return not interpreter.holds(prop, run.states[-2], run.states[-1])[0]
        return not interpreter.holds(prop, run.states[-1])[0]

    return found


def violation(definition: Definition, name: str, **sizes: int) -> PropertyVerdict:
    """The verdict that a check would give on a property whose violation is a state or a step."""
    prop = definition.property(name)
    run = search(definition, breaks(prop), **sizes)
    interpreter = Interpreter(definition, scope_of(definition, sizes))
    new = None if prop.kind.name != "STEP" else run.states[-1]
    old = run.states[-1] if new is None else run.states[-2]
    environment = interpreter.holds(prop, old, new)[1]
    arguments = FrozenMap({p.name: environment[p] for p in prop.params})
    return PropertyVerdict(name, Outcome.VIOLATED, "search", run=run, arguments=arguments)


def named(run: Run) -> list[str]:
    """The labels of a run's steps."""
    return [step.label for step in run.steps]


@pytest.fixture(scope="session")
def migration() -> Definition:
    return define(Migration)


@pytest.fixture(scope="session")
def workers() -> Definition:
    return define(Workers)


@pytest.fixture(scope="session")
def incomplete(migration: Definition) -> PropertyVerdict:
    """A violated invariant, four to six steps deep."""
    return violation(migration, "reads_are_complete")


@pytest.fixture(scope="session")
def lasso(migration: Definition) -> PropertyVerdict:
    """The stage stays `write_both` for ever, while a coordinator writes."""
    interpreter = Interpreter(migration, scope_of(migration))
    start = next(interpreter.initial_states())
    begin = Step("write_both")
    after = interpreter.take(begin, start)
    write = Step("write", FrozenMap({"n": Node(0)}))
    fallen = interpreter.take(write, after)
    run = Run((start, after, fallen), (begin, write), 2, write)
    return PropertyVerdict("every_migration_ends", Outcome.VIOLATED, "search", run=run)


@pytest.fixture(scope="session")
def stuck(workers: Definition) -> PropertyVerdict:
    """A deadlock: all tasks are done, and patience has run out of its bounds."""
    only_work = replace(workers, actions=tuple(a for a in workers.actions if a.name != "hurry"))
    run = search(only_work, lambda i, r: not list(i.successors(r.states[-1])))
    return PropertyVerdict("no deadlock", Outcome.VIOLATED, "search", run=run)
