"""On random machines TLC, given their export as TLA+, finds what the reference interpreter finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.checker.tla.joined import explore
from tests.checker.tla.tlc import Tlc, tlc_in
from tests.random_machines.explored import Explored
from tests.thorough import THOROUGH

from stagewright.checker.tla.changing import always_changes
from stagewright.spec.declarations.fairness import assumptions
from stagewright.spec.definition import Fairness, Property, PropertyKind
from stagewright.spec.nodes import Apply, Node, Op, children
from stagewright.spec.verdict import Outcome

MACHINES = 300 if THOROUGH else 20
ON_FAIR_RUNS = 150 if THOROUGH else 2  # of each verdict
WEAK, STRONG = Fairness.WEAK, Fairness.STRONG

# One process: what it meets is explored once.
pytestmark = pytest.mark.xdist_group("random machines")


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
    for one, theirs in zip(machines, found, strict=True):
        deadlock = {"NoDeadlock"} if one.no_deadlock is Outcome.VIOLATED else set[str]()
        assert theirs.distinct == len(one.states), one.machine
        states = broken(one, PropertyKind.INVARIANT) | broken(one, PropertyKind.ACCEPTS)
        assert theirs.broken == states | deadlock, one.machine
    verdicts = Counter(bool(theirs.broken) for theirs in found)
    assert min(verdicts[True], verdicts[False]) > MACHINES / 10


def test_an_action_that_plainly_always_changes_something_does(explored: list[Explored]) -> None:
    plain = 0
    for one in explored:
        names = {a.name for a in one.interpreter.definition.actions if always_changes(a)}
        changing = [(s, t) for s, step, t in one.edges if step.action in names]
        assert all(s != t for s, t in changing), one.machine
        plain += bool(changing)
    assert plain > len(explored) / 10


def fairness_of(one: Explored) -> list[tuple[Fairness, bool]]:
    """What is assumed of the actions: how much, and whether several share it."""
    found = assumptions(one.machine.definition.actions)
    return [(a.strength, a.shared) for a in found]


def chosen(explored: list[Explored], kinds: Collection[PropertyKind], each: int) -> list[Explored]:
    """Machines whose promises of some kinds hold and as many where one does not, most fairness first."""
    asked = [e for e in explored if any(of_kind(e, kind) for kind in kinds)]
    asked.sort(key=lambda e: -len({*fairness_of(e)}))
    wrong = [e for e in asked if any(broken(e, kind) for kind in kinds)][:each]
    right = [e for e in asked if not any(broken(e, kind) for kind in kinds)][:each]
    assert len(wrong) == len(right) == each
    return [*wrong, *right]


def checked(tlc: Tlc, one: Explored, promises: Collection[Property]) -> set[str]:
    """What TLC finds broken of some promises alone."""
    definition = replace(one.machine.definition, properties=tuple(promises))
    return {*tlc.check(definition, one.machine.scope, "-continue").broken} - {"NoDeadlock"}


@pytest.mark.slow
def test_the_same_broken_step_properties(explored: list[Explored], tlc: Tlc) -> None:
    for one in chosen(explored, [PropertyKind.STEP], each=2):
        found = checked(tlc, one, of_kind(one, PropertyKind.STEP))
        names = {name.removesuffix("_standing") for name in found}
        assert names == broken(one, PropertyKind.STEP), one.machine


def multiplied(one: Explored, kinds: Collection[PropertyKind]) -> bool:
    """Whether a promise has a product: TLC 2.15 evaluates `v * 2` without the state in temporal formulas, and stops."""
    promises = [p for kind in kinds for p in of_kind(one, kind)]
    conditions = [c for p in promises for c in (p.condition, p.premise) if c is not None]
    return any(
        isinstance(node, Apply) and node.op is Op.MUL for c in conditions for node in parts(c)
    )


def parts(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from parts(child)


@pytest.mark.long
@pytest.mark.slow
def test_the_same_verdicts_on_fair_runs(explored: list[Explored], tlc: Tlc) -> None:
    kinds = [kind for kind in PropertyKind if kind.of_fair_runs]
    explored = [one for one in explored if not multiplied(one, kinds)]
    machines = chosen(explored, kinds, each=ON_FAIR_RUNS)
    assumed = {kind for one in machines for kind in fairness_of(one)}
    if THOROUGH:
        assert {(f, shared) for f in (WEAK, STRONG) for shared in (False, True)} <= assumed
    seen: Counter[tuple[PropertyKind, bool]] = Counter()
    for one in machines:
        promises = [p for kind in kinds for p in of_kind(one, kind)]
        wrong = [p for p in promises if one.verdict(p) is Outcome.VIOLATED]
        right = [p for p in promises if p not in wrong]
        if right:
            assert not checked(tlc, one, right), one.machine
        if wrong:  # TLC does not say which of several is violated
            assert checked(tlc, one, wrong[-1:]), one.machine
        seen.update((p.kind, p in wrong) for p in (*right, *wrong[-1:]))
    if THOROUGH:  # among few machines some kind of verdict may be missing
        assert all(seen[kind, is_wrong] for kind in kinds for is_wrong in (False, True))
