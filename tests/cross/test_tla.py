"""On random machines TLC, given their export as TLA+, finds what the reference interpreter finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.checker.tla.joined import explore
from tests.checker.tla.tlc import Tlc, tlc_in
from tests.random_machines.explored import Explored

from stagewright.checker.tla.changing import always_changes
from stagewright.spec.definition import Fairness, Property, PropertyKind
from stagewright.spec.verdict import Outcome

MACHINES = 150


@pytest.fixture
def tlc(tmp_path: Path) -> Tlc:
    return tlc_in(tmp_path)


@pytest.fixture
def explored(all_met: Any) -> list[Explored]:
    """Those of more than two states that stay in bounds: TLC goes on where a number leaves them."""
    met: list[Explored] = list(all_met.machines.values())
    return [one for one in met if len(one.states) > 2 and not one.overflows]


def of_kind(one: Explored, kind: PropertyKind) -> list[Property]:
    return [p for p in one.machine.definition.properties if p.kind is kind]


def broken(one: Explored, kind: PropertyKind) -> set[str]:
    return {p.name for p in of_kind(one, kind) if one.verdict(p) is Outcome.VIOLATED}


@pytest.mark.slow
def test_as_many_states_and_the_same_broken_invariants(explored: list[Explored], tlc: Tlc) -> None:
    machines = explored[-MACHINES:]  # the later ones are the larger ones
    found = explore(tlc, [(e.machine.definition, e.machine.scope) for e in machines])
    assert len(found) == MACHINES
    for one, told in zip(machines, found, strict=True):
        deadlock = {"NoDeadlock"} if one.no_deadlock is Outcome.VIOLATED else set[str]()
        assert told.distinct == len(one.states), one.machine
        assert told.broken == broken(one, PropertyKind.INVARIANT) | deadlock, one.machine
    verdicts = Counter(bool(told.broken) for told in found)
    assert min(verdicts[True], verdicts[False]) > MACHINES / 10


def test_an_action_that_plainly_always_changes_something_does(explored: list[Explored]) -> None:
    plain = 0
    for one in explored:
        names = {a.name for a in one.judge.definition.actions if always_changes(a)}
        changing = [(s, t) for s, step, t in one.edges if step.action in names]
        assert all(s != t for s, t in changing), one.machine
        plain += bool(changing)
    assert plain > len(explored) / 10


def chosen(explored: list[Explored], kind: PropertyKind, each: int) -> list[Explored]:
    """Some machines whose promise of a kind holds and some where it does not, most kinds of fairness first."""
    asked = [e for e in explored if of_kind(e, kind)]
    asked.sort(key=lambda e: -len({a.fairness for a in e.machine.definition.actions}))
    wrong = [e for e in asked if broken(e, kind)][:each]
    right = [e for e in asked if not broken(e, kind)][:each]
    assert len(wrong) == len(right) == each
    return [*wrong, *right]


def judged(tlc: Tlc, one: Explored, kind: PropertyKind) -> set[str]:
    """What TLC finds broken of the promises of one kind alone."""
    definition = replace(one.machine.definition, properties=tuple(of_kind(one, kind)))
    return {*tlc.check(definition, one.machine.scope, "-continue").broken} - {"NoDeadlock"}


@pytest.mark.slow
def test_the_same_broken_step_properties(explored: list[Explored], tlc: Tlc) -> None:
    for one in chosen(explored, PropertyKind.STEP, each=2):
        names = {name.removesuffix("_standing") for name in judged(tlc, one, PropertyKind.STEP)}
        assert names == broken(one, PropertyKind.STEP), one.machine


@pytest.mark.slow
def test_the_same_verdicts_on_fair_runs(explored: list[Explored], tlc: Tlc) -> None:
    machines = chosen(explored, PropertyKind.LEADS_TO, each=3)
    fairness = {a.fairness for one in machines for a in one.machine.definition.actions}
    assert {Fairness.WEAK, Fairness.STRONG} <= fairness
    for one in machines:
        found = bool(judged(tlc, one, PropertyKind.LEADS_TO))
        assert found == bool(broken(one, PropertyKind.LEADS_TO)), one.machine
