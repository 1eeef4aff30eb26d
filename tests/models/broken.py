"""Two machines whose promises do not all hold: a migration without a barrier, and careless workers.

Between them they break every kind of promise, and use every sort.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    Record,
    SetVar,
    States,
    Term,
    action,
    always_reachable,
    constant,
    every,
    fault_budget,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    per,
    record,
    require,
    set_of,
    some,
    step_property,
)


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
    complete: SetVar[Replica] = set_of(Replica, init=set(Replica))

    @action
    def learn(self, n: Term[Node]) -> None:
        """Coordinator `n` applies the committed stage. It may do so late."""
        require(self.learned[n] != self.stage, "the stage is news")
        self.learned[n] = self.stage

    @action
    def write(self, n: Term[Node]) -> None:
        """Coordinator `n` acknowledges a write; a replica it does not write to falls behind."""
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

    @always_reachable
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

    version: NumberVar = number(0, 3)
    written: FlagVar = flag()


class Workers(Machine):
    """Workers claim tasks; every kind of sort is in use, and several promises do not hold."""

    owner = per(Task, optional(Node))
    done = set_of(Task)
    rows = per(Task, record(Row))
    patience: NumberVar = number(0, 2, init=1)
    leader: OneVar[Node] = one_of(Node, init=ANY)
    limit = constant(number(0, 2, init=ANY))
    crashes = fault_budget(1, doc="crashes of a worker")

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
