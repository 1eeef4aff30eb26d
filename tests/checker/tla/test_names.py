"""Whatever things are called in a definition, TLC accepts what they are called in the module."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import cast

import pytest
from hypothesis import given, strategies as st
from tests.checker.tla.tlc import Tlc
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.checker.tla import tla_module
from stagewright.checker.tla.names import RESERVED, Names, identifier, model_value
from stagewright.spec.definition import (
    Action,
    Actor,
    Assignment,
    Definition,
    Property,
    PropertyKind,
    Requirement,
    Variable,
)
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import BOOL, TRUE, Apply, Bound, Field, Literal, Node, Op, Read, Select
from stagewright.spec.scope import scope_of
from stagewright.spec.sorts import EntitySort, EnumSort, MapSort, OptionalSort, RecordSort
from stagewright.spec.values import FrozenMap, Value

OWN = ("vars", "NONE", "Put", "TypeOK", "Init", "Next", "Final", "NoDeadlock", "Fairness", "Spec")
ODD = (
    *("a.b", "a_b", "a_b_2", "größe", "状態", "é", "_x", "__", "1a", "WF_x", "SF_vars", "x'", "k"),
    *("can_a_b", "M", "Hostile", "t_task0", "node0", "Node", "set", "member", "MayChangeNothing"),
)
HOSTILE = (*sorted(RESERVED), *OWN, *ODD)
DOC = "*) (* ==== \n---- MODULE X ----\r\x0c\x00\u2028 --algorithm \\* é {-"


@given(st.lists(st.text(max_size=8) | st.sampled_from(HOSTILE)))
def test_every_name_is_an_identifier_of_its_own(wanted: list[str]) -> None:
    names = Names()
    given_names = [names.give(name) for name in wanted]
    assert len(set(given_names)) == len(given_names)
    for name in given_names:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
        assert name not in RESERVED
        assert not name.startswith(("WF_", "SF_"))


@given(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True))
def test_a_name_that_is_an_identifier_stays_as_it_is(name: str) -> None:
    assert identifier(name) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [("größe", "grosse"), ("tablets.stage", "tablets_stage"), ("CASE", "CASE_"), ("_x", "x_x")],
)
def test_another_name_becomes_one_like_it(name: str, expected: str) -> None:
    assert identifier(name) == expected


def test_a_model_value_is_never_one_of_the_typed_ones() -> None:
    assert model_value("Node", 2) == "node2"
    assert model_value("T_Task", 0) == "the_t_task0"


class Row:
    """Stands for a record class."""


def hostile() -> Definition:
    """A machine in which everything has a hostile name: a variable, an action and a promise each."""
    numbers = count(1)
    words = cast("type[Enum]", Enum("CASE", {name: name for name in HOSTILE}))
    node: type[Entity] = type("A_CONSTANT", (Entity,), {})
    other: type[Entity] = type("node", (Entity,), {})
    fields = RecordSort(Row, tuple((name, EnumSort(words)) for name in HOSTILE[:12]))
    first, *_ = words
    parts: dict[Value | str, Value] = {name: first for name, _ in fields.fields}
    start = FrozenMap(parts)

    def param(name: str) -> Bound:
        return Bound(name, EntitySort(node), next(numbers))

    def acting(name: str, number: int) -> tuple[Action, Property]:
        flag = Read(name, BOOL)
        on: Node = Apply(Op.EQ, (flag, Literal(True, BOOL)), BOOL)
        near = Apply(Op.EQ, (Read(f"{name}?", MapSort(EntitySort(node), BOOL)),) * 2, BOOL)
        n = param(name)
        effects = [Assignment(flag, Apply(Op.NOT, (flag,), BOOL))] if number < 6 else []
        if number < 2:
            x = Bound("x", EntitySort(other), 0)
            where = Select(Read("row", MapSort(EntitySort(other), fields)), x, fields)
            value = Literal(list(words)[number + 1], EnumSort(words))
            field = fields.fields[number][0]
            effects.append(Assignment(Field(where, field, EnumSort(words)), value, (x,)))
        requirement = Requirement(DOC, Apply(Op.OR, (on, TRUE, near), BOOL))
        action = Action(name, (n,), (requirement,), tuple(effects), DOC, actor=Actor(DOC))
        kind = PropertyKind.STEP if number % 2 else PropertyKind.INVARIANT
        return action, Property(f"{name}!", kind, (param(name),), near, doc=DOC)

    # An action mentions every variable: with all the names this would be half a megabyte.
    some = (*OWN, *ODD, *sorted(RESERVED)[::6])
    pairs = [acting(name, number) for number, name in enumerate(some)]
    flags = [Variable(name, BOOL, False, doc=DOC) for name in HOSTILE]
    maps = [Variable(f"{name}?", MapSort(EntitySort(node), BOOL), False) for name in some]
    row = Variable("row", MapSort(EntitySort(other), fields), start)
    owner = Variable("owner", OptionalSort(EntitySort(node)), None)
    return Definition(
        "Hostile",
        DOC,
        DOC,
        (*flags, *maps, row, owner),
        (),
        (),
        tuple(a for a, _ in pairs),
        tuple(p for _, p in pairs),
        TRUE,
        (node, other),
    )


def test_tlc_accepts_a_machine_in_which_every_name_is_hostile(tlc: Tlc) -> None:
    definition = hostile()
    report = check(definition, scope_of(definition))
    run = tlc.check(definition, scope_of(definition))
    assert report.states > 64
    assert (run.distinct, run.broken) == (report.states, ())


@pytest.mark.parametrize("name", some_of(["CASE", "状態", "Naturals", "TLC"]))
def test_a_module_may_be_called_like_anything(name: str, tlc: Tlc) -> None:
    small = replace(hostile(), name=name, actions=(), properties=())
    exported = tla_module(small, scope_of(small))
    assert tlc.run(tlc.write(exported)).distinct == 1
