"""TLC can enumerate the exported `Init`, and finds the initial states that `check` finds."""

from enum import Enum

import pytest
from tests.checker.tla.tlc import Tlc

from stagewright.checker.check import check
from stagewright.checker.tla import tla_module
from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    Term,
    action,
    constant,
    define,
    every,
    final,
    flag,
    initially,
    number,
    one_of,
    per,
    require,
    scope_of,
    set_of,
)


class Place(Enum):
    """The nodes of a graph."""

    n1 = 1
    n2 = 2
    n3 = 3
    n4 = 4


class SpanningTree(Machine):
    """2 * 10**10 candidates, of which 64 are initial: all undirected graphs."""

    mom = per(Place, one_of(Place))
    dist = per(Place, number(0, 5, init=ANY))
    edges = per(Place, constant(set_of(Place, init=ANY)))

    @initially
    def alone(self) -> Bool:
        start = self.dist[Place.n1] == 0
        for n in Place:
            start = start & (self.mom[n] == n)
            start = start & (self.dist[n] == (0 if n is Place.n1 else 5))
        return start

    @initially
    def undirected(self) -> Bool:
        start = ~self.edges[Place.n1].has(Place.n1)
        for n in Place:
            start = start & ~self.edges[n].has(n)
            for m in Place:
                start = start & (self.edges[m].has(n) == self.edges[n].has(m))
        return start

    @action
    def nearer(self, n: Term[Place], m: Term[Place]) -> None:
        require(self.edges[n].has(m), "neighbours")
        require(self.dist[m] + 1 < self.dist[n], "nearer")
        self.mom[n] = m
        self.dist[n] = self.dist[m] + 1

    @final
    def root_stays(self) -> Bool:
        return self.dist[Place.n1] == 0


class Node(Entity, scope=2):
    """A node."""


class Counters(Machine):
    """What is asked for is out of bounds in some of the candidates; one variable follows from another."""

    double: NumberVar = number(0, 4, init=ANY)
    each = per(Node, number(0, 3, init=ANY))
    start: NumberVar = number(0, 3, init=ANY)
    ready: FlagVar = flag(init=ANY)
    done: FlagVar = flag(init=ANY)

    @initially
    def follow(self) -> Bool:
        doubled = self.double == self.start + self.start
        return every(self.each[n] == self.start for n in Node) & doubled & ~self.done & self.ready

    @action
    def count(self, n: Term[Node]) -> None:
        require(self.each[n] < 3, "room")
        self.each[n] = self.each[n] + 1
        self.double = 0
        self.start = 0
        self.ready, self.done = self.done, self.ready

    @final
    def full(self) -> Bool:
        return every(self.each[n] == 3 for n in Node)


@pytest.mark.parametrize("machine", [SpanningTree, Counters])
def test_tlc_enumerates_what_check_finds(tlc: Tlc, machine: type[Machine]) -> None:
    definition = define(machine)
    scope = scope_of(definition)
    report = check(definition, scope)
    assert report.exhausted
    found = tlc.check(definition, scope)
    assert found.broken == ()
    assert found.distinct == report.states


def test_what_a_variable_is_stands_where_it_gets_its_value() -> None:
    definition = define(Counters)
    text = tla_module(definition, scope_of(definition)).module
    init = text.partition("Init ==\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in init.splitlines()] == [
        r"/\ ready = TRUE",
        r"/\ done = FALSE",
        r"/\ start \in 0..3",
        r"/\ double = start + start",
        r"/\ double \in 0..4",
        r"/\ each = [n \in Node |-> start]",
    ]
