"""Reasons of surviving mutants: what they are given for, and what is found to be of nothing."""

from __future__ import annotations

import pytest
from tests.checker.mutation.machines import Light, mutants_of

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.reasons import unknown_bodies
from stagewright.spec import (
    DefinitionError,
    Entity,
    FlagVar,
    Machine,
    Record,
    Term,
    action,
    equivalent_drop,
    equivalent_loss,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    flag,
    per,
    record,
    require,
)
from stagewright.spec.define import define


class Node(Entity):
    """Something of which there are several."""


class Slip(Record):
    """What a visitor hands in."""

    name: FlagVar = flag()
    stamped: FlagVar = flag()


class Office(Machine):
    """Visitors hand in slips, which are stamped."""

    stamped: FlagVar = flag()
    slips = per(Node, record(Slip))

    @action
    def hand_in(self, n: Term[Node]) -> None:
        """A slip with a name."""
        self._open("the office is open")
        self.slips[n].name = True
        self._stamp(n)

    @action
    def correct(self, n: Term[Node]) -> None:
        """A slip that is handed in again."""
        self._open("it is still open")
        self._stamp(n)

    def _open(self, name: str) -> None:
        require(~self.stamped, name)

    def _stamp(self, n: Term[Node]) -> None:
        self.slips[n].stamped = True
        self.stamped = True


def test_a_reason_is_keyed_by_method_and_requirement_or_variable() -> None:
    class Keyed(Office):
        harmless = equivalents(
            equivalent_drop(Office._open, "it is still open", because="corrections"),
            equivalent_weakening(Office.hand_in, "the office is open", because="only weakened"),
            equivalent_loss(Office._stamp, Slip.stamped, because="stamps"),
            equivalent_loss(Office.correct, Office.stamped, because="the office"),
        )

    found = {
        m.id: [r.text for r in m.reasons]
        for m in mutants_of(Keyed)
        if m.kind in {Kind.DROP, Kind.WEAKEN, Kind.LOSE}
    }
    assert found == {
        "lose / hand_in / all that `_stamp` assigns": ["stamps"],
        "drop / hand_in / the office is open: not stamped": [],
        "lose / hand_in / slips[n].name becomes yes": [],
        "lose / hand_in / slips[n].stamped becomes yes": ["stamps"],
        "lose / hand_in / stamped becomes yes": [],
        "drop / correct / it is still open: not stamped": ["corrections"],
        "lose / correct / slips[n].stamped becomes yes": ["stamps"],
        "lose / correct / stamped becomes yes": ["the office"],
    }
    assert list(unknown_bodies([define(Keyed)])) == []


def test_a_reason_may_be_of_all_that_a_method_assigns() -> None:
    class Keyed(Office):
        harmless = equivalents(
            equivalent_loss(Office.hand_in, Office._stamp, because="nobody stamps"),
            equivalent_loss(Office._stamp, Slip.stamped, because="stamps"),
        )

    lost = {m.id: m for m in mutants_of(Keyed) if m.kind is Kind.LOSE and m.reasons}
    assert {name: ([r.text for r in m.reasons], m.whole) for name, m in lost.items()} == {
        "lose / hand_in / all that `_stamp` assigns": (["nobody stamps"], False),
        "lose / hand_in / slips[n].stamped becomes yes": (["stamps"], False),
        "lose / correct / slips[n].stamped becomes yes": (["stamps"], False),
    }
    assert list(unknown_bodies([define(Keyed)])) == []


def test_a_reason_that_matches_no_requirement_and_no_effect_is_found() -> None:
    class Mistaken(Office):
        harmless = equivalents(
            equivalent_loss(Office.hand_in, Office._open, because="it assigns nothing"),
            equivalent_drop(Office.hand_in, "it is still open", because="said by another action"),
            equivalent_loss(Office.correct, Slip.name, because="assigned by another action"),
        )

    found = unknown_bodies([define(Mistaken)])
    assert [said.reason.subject for said in found] == [
        "losing all that `_open` assigns in `hand_in`",
        "dropping `it is still open` in `hand_in`",
        "losing `name` in `correct`",
    ]


def test_a_reason_must_say_something() -> None:
    with pytest.raises(DefinitionError, match="without a reason"):
        equivalent_drop(Office.hand_in, "the office is open", because=" ")


def test_a_reason_names_a_method_and_what_is_said_there() -> None:
    with pytest.raises(DefinitionError, match="no action and no method"):
        equivalent_drop(print, "the office is open", because="so")
    with pytest.raises(DefinitionError, match="names no requirement"):
        equivalent_weakening(Office.hand_in, because="so")
    with pytest.raises(DefinitionError, match="no variable"):
        equivalent_loss(Office.hand_in, because="so")


def test_a_column_is_named_as_an_attribute() -> None:
    with pytest.raises(DefinitionError, match="names no column"):
        equivalent_value(Light.red, lambda _: 1, because="no column at all")
