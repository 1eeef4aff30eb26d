"""Entities that stand in an order or a ring, and members with names: what may be said, and what not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagewright.spec import (
    Bool,
    DefinitionError,
    Entity,
    Machine,
    OneVar,
    OptionalVar,
    ScopeError,
    Term,
    action,
    define,
    flag,
    invariant,
    named,
    one_of,
    optional,
    per,
    require,
    scope_of,
)
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.sorts import EntitySort
from stagewright.spec.text.itf_values import from_json, to_json
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step


class Seat(Entity, scope=3, ring=True):
    """Round a table."""


class Rung(Entity, scope=3, ordered=True):
    """Of a ladder."""


class Peer(Entity, scope=3):
    """Two of them have names."""

    root = named()
    deputy = named()


class Plain(Entity):
    """Interchangeable."""


class Places(Machine):
    """Something moves along each."""

    seat: OneVar[Seat] = one_of(Seat, init=Seat.first)
    rung: OptionalVar[Rung] = optional(Rung, init=Rung.first)
    boss: OneVar[Peer] = one_of(Peer, init=Peer.deputy)
    seen = per(Peer, flag())
    plain = per(Plain, flag())

    @action
    def forth(self) -> None:
        self.seat = self.seat.next

    @action
    def back(self) -> None:
        self.seat = self.seat.previous

    @action
    def climb(self, r: Term[Rung]) -> None:
        require(self.rung == r, "it stands there")
        self.rung = r.next_or_none

    @action
    def descend(self, r: Term[Rung]) -> None:
        require(self.rung == r, "it stands there")
        self.rung = r.previous_or_none

    @action
    def elect(self, p: Term[Peer]) -> None:
        require(p != Peer.root, "not the root")
        self.boss = p
        self.seen[p] = True

    @action
    def touch(self, p: Term[Plain]) -> None:
        self.plain[p] = True

    @invariant
    def order(self, a: Term[Seat], b: Term[Seat]) -> Bool:
        total = (a < b) | (b < a) | (a == b)
        ends = (a <= Seat.last) & (a >= Seat.first) & (a.is_first == (a == Seat.first))
        return total & ends & (a.is_last == (a == Seat.last)) & ((a > b) == (b < a))


DEFINITION = define(Places)


def at_sizes(**sizes: int) -> Interpreter:
    return Interpreter(DEFINITION, scope_of(DEFINITION, sizes))


def seats(name: str, size: int) -> list[Seat]:
    """Where the thing in the ring is, step by step, until it is back."""
    interpreter = at_sizes(seat=size)
    state = next(interpreter.initial_states())
    found = []
    for _ in range(size):
        state = interpreter.take(Step(name, FrozenMap({})), state)
        found.append(state["seat"])
    return found  # type: ignore[return-value]


def test_a_ring_closes_at_every_size() -> None:
    assert seats("forth", 3) == [Seat(1), Seat(2), Seat(0)]
    assert seats("back", 4) == [Seat(3), Seat(2), Seat(1), Seat(0)]
    assert seats("forth", 1) == [Seat(0)]


def test_a_row_ends() -> None:
    interpreter = at_sizes()
    state = next(interpreter.initial_states())
    up = [interpreter.take(Step("climb", FrozenMap({"r": Rung(0)})), state)["rung"]]
    down = [interpreter.take(Step("descend", FrozenMap({"r": Rung(0)})), state)["rung"]]
    last = FrozenMap({**state, "rung": Rung(2)})
    up.append(interpreter.take(Step("climb", FrozenMap({"r": Rung(2)})), last)["rung"])
    assert (up, down) == ([Rung(1), None], [None])


def test_the_order_is_total() -> None:
    interpreter = at_sizes(seat=4)
    state = next(interpreter.initial_states())
    assert interpreter.holds(DEFINITION.property("order"), state)[0]


def test_named_members_come_first_and_are_shown_by_their_names() -> None:
    assert [str(Peer(i)) for i in range(3)] == ["root", "deputy", "peer2"]
    assert next(at_sizes().initial_states())["boss"] == Peer(1)
    sort = EntitySort(Peer)
    for member in map(Peer, range(4)):
        assert from_json(to_json(member, sort), sort, "here") == member


def test_a_scope_has_all_named_members() -> None:
    with pytest.raises(ScopeError, match="peer=1: 2 members have names: root, deputy"):
        scope_of(DEFINITION, {"peer": 1})
    with pytest.raises(DefinitionError, match="the default scope of Empty is 0"):
        type("Empty", (Entity,), {"one": named()}, scope=0)


def test_an_order_is_part_of_what_a_definition_means() -> None:
    class Other(Entity, scope=3, ordered=True):
        """The same name, but no ring."""

    Other.__name__ = "Seat"

    def only(kind: type[Entity]) -> str:
        variable = replace(DEFINITION.variable("seat"), sort=EntitySort(kind))
        return replace(DEFINITION, variables=(variable,), actions=(), properties=()).fingerprint()

    assert only(Seat) != only(Other)


class Colour(Machine):
    """Holds what the refusals below need."""

    plain: OneVar[Plain] = one_of(Plain)
    rung: OneVar[Rung] = one_of(Rung)
    seat: OneVar[Seat] = one_of(Seat)


@pytest.mark.parametrize(
    ("body", "problem", "help"),
    [
        (lambda m: m.plain < m.plain, "the members of Plain stand in no order", "ordered=True"),
        (lambda m: m.plain == Plain.first, "Plain.first", "ordered=True"),
        (lambda m: m.plain.is_last, "stand in no order", "ordered=True"),
        (lambda m: m.rung.next == m.rung, "ordered but no ring, so the last", "next_or_none"),
        (lambda m: m.rung.previous == m.rung, "so the first has none", "previous_or_none"),
        (lambda m: m.seat.next_or_none == m.seat, "Seat is a ring", "`n.next`"),
        (lambda m: m.seat < m.rung, "the other side of `<` is of sort Rung", ""),
    ],
)
def test_what_has_no_order_is_refused_with_the_way_to_get_one(
    body: object, problem: str, help: str
) -> None:
    class Wrong(Colour):
        @action
        def wrong(self) -> None:
            require(body(self), "it is so")  # type: ignore[operator]

    with pytest.raises(DefinitionError) as refused:
        define(Wrong)
    assert problem in refused.value.problem
    assert help in refused.value.help


def test_words_that_every_entity_has_cannot_name_a_member() -> None:
    with pytest.raises(DefinitionError, match="cannot be named `first`"):
        type("Bad", (Entity,), {"first": named()})
