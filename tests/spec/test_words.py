"""Expressions in words: what a person reads for each construct."""

from __future__ import annotations

from enum import Enum, auto

import pytest
from tests.thorough import some_of

from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    States,
    Term,
    action,
    choose,
    count,
    define,
    every,
    flag,
    invariant,
    number,
    one_of,
    optional,
    per,
    require,
    set_of,
    some,
)
from stagewright.spec.definition import Definition
from stagewright.spec.nodes import BOOL, Apply, Bound, Op, Quantified, Quantity, Read
from stagewright.spec.sorts import EntitySort
from stagewright.spec.text.words import effect, requirement, signature, spoken, words
from stagewright.spec.values import FrozenMap


class Side(Enum):
    """One of two."""

    left = auto()
    right = auto()


class Phase(States):
    """A table with a column."""

    first = True, {Side.left}
    second = False, {Side.left, Side.right}
    third = False, {Side.right}

    def __init__(self, early: bool, sides: set[Side]) -> None:
        self.early = early
        self.sides = sides


class Node(Entity):
    """Somebody."""


class Sample(Machine):
    """One promise for each construct; the docstring says how it reads."""

    phase: OneVar[Phase] = one_of(Phase, init=Phase.first)
    seen = per(Node, one_of(Phase, init=Phase.first))
    owner: OptionalVar[Node] = optional(Node)
    ready = set_of(Node)
    sides = set_of(Side)
    votes: NumberVar = number(0, 5)
    open: FlagVar = flag()

    @action
    def change(self, who: Term[Node]) -> None:
        """Everything is assigned."""
        require(self.votes < 5, "votes are left")
        require(self.open, "open")
        for m in Node:
            self.seen[m] = self.phase
        self.phase = Phase.second
        self.owner = who
        self.ready.add(who)
        self.sides.discard(Side.left)
        self.votes = choose(self.open, self.votes + 1, self.votes)
        self.open = False

    @invariant
    def equal(self) -> Bool:
        """Reads: phase is first."""
        return self.phase == Phase.first

    @invariant
    def unequal(self) -> Bool:
        """Reads: phase is not first."""
        return self.phase != Phase.first

    @invariant
    def one_of_several(self) -> Bool:
        """Reads: phase is one of first, third."""
        return self.phase.any_of(Phase.first, Phase.third)

    @invariant
    def every_node(self) -> Bool:
        """Reads: every n in Node: seen[n] = phase."""
        return every(self.seen[n] == self.phase for n in Node)

    @invariant
    def no_node(self) -> Bool:
        """Reads: no n in Node: seen[n] ≠ phase."""
        return ~some(self.seen[n] != self.phase for n in Node)

    @invariant
    def members_only(self) -> Bool:
        """Reads: every n in ready: seen[n] is third."""
        return every(self.seen[n] == Phase.third for n in self.ready)

    @invariant
    def counted(self) -> Bool:
        """Reads: (number of n in Node with seen[n] is third) ≥ 2."""
        return count(self.seen[n] == Phase.third for n in Node) >= 2

    @invariant
    def size(self) -> Bool:
        """Reads: size of ready ≤ votes."""
        return self.ready.size() <= self.votes

    @invariant
    def mirrored(self) -> Bool:
        """Reads: votes > 3."""
        return self.votes > 3

    @invariant
    def none(self) -> Bool:
        """Reads: owner is none or owner is not none."""
        return self.owner.is_none() | self.owner.is_some()

    @invariant
    def implication(self, n: Term[Node]) -> Bool:
        """Reads: n is in ready and open implies open or (open and votes = votes)."""
        both = self.ready.has(n) & self.open
        return both.implies(self.open | (self.open & (self.votes == self.votes)))

    @invariant
    def nested_implication(self, n: Term[Node]) -> Bool:
        """Reads: open implies (n is in ready implies votes < 5)."""
        return self.open.implies(self.ready.has(n).implies(self.votes < 5))

    @invariant
    def equivalence(self) -> Bool:
        """Reads: phase is first exactly when owner is none."""
        return (self.phase == Phase.first) == self.owner.is_none()

    @invariant
    def column_of_the_enum(self) -> Bool:
        """Reads: phase.early and left is in phase.sides."""
        early: Bool = self.phase.column(lambda p: p.early)
        return early & self.phase.column(lambda p: p.sides).has(Side.left)

    @invariant
    def column_without_a_name(self) -> Bool:
        """Reads: phase is one of second, third."""
        late: Bool = self.phase.column(lambda p: Side.right in p.sides)
        return late

    @invariant
    def sets(self) -> Bool:
        """Reads: sides with {left} = sides and sides is empty."""
        return ((self.sides | {Side.left}) == self.sides) & self.sides.is_empty()


SAMPLE = define(Sample)


@pytest.mark.parametrize("name", [p.name for p in SAMPLE.properties])
def test_a_condition_reads_as_its_docstring_says(name: str) -> None:
    prop = SAMPLE.property(name)
    assert f"Reads: {words(prop.condition)}." == prop.doc


def test_effects_read_as_what_becomes_of_each_place() -> None:
    assert [effect(a) for a in SAMPLE.action("change").assignments] == [
        "for every n in Node: seen[n] becomes phase",
        "phase becomes second",
        "owner becomes who",
        "who joins ready",
        "left leaves sides",
        "votes becomes (if open then votes + 1 else votes)",
        "open becomes no",
    ]


def test_a_requirement_that_says_its_name_is_not_repeated() -> None:
    assert [requirement(r) for r in SAMPLE.action("change").requirements] == [
        "votes are left: votes < 5",
        "open",
    ]


def test_values_stand_in_the_place_of_names() -> None:
    prop = SAMPLE.property("implication")
    shown = words(prop.condition, FrozenMap({prop.params[0]: Node(1)}))
    assert shown.startswith("node1 is in ready and open implies")


def test_a_read_of_the_new_state_says_so() -> None:
    assert words(Read("open", BOOL, new=True)) == "new open"


def test_empty_junctions_have_their_truth() -> None:
    assert words(Apply(Op.AND, (), BOOL)) == "true"
    assert words(Apply(Op.OR, (), BOOL)) == "false"
    of_nodes = Bound("n", EntitySort(Node), 1)
    some_node = Quantified(Quantity.SOME, of_nodes, Apply(Op.AND, (), BOOL), BOOL)
    assert words(some_node) == "some n in Node: true"


def test_signatures_and_names() -> None:
    assert signature(SAMPLE.action("change")) == "change(who: Node)"
    assert spoken("write_both") == "write both"


def test_every_definition_can_be_said(shipped: list[Definition]) -> None:
    for definition in shipped:
        for one in definition.actions:
            assert all(map(requirement, one.requirements))
            assert all(map(effect, one.assignments))
        assert all(words(p.condition) for p in definition.properties)


@pytest.fixture(scope="module")
def shipped() -> list[Definition]:
    """Machines of this installation, in a thorough run all of them under every profile."""
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names

    machines = [find(name, SHIPPED) for name in some_of(SHIPPED, each=2)]
    return [define(m, p) for m in machines for p in some_of([*reversed(profile_names(m))] or [""])]
