"""Every construct that the table of capabilities lists works in every backend that it lists, or is refused there."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import pytest
from tests.checker.tla.joined import explore
from tests.checker.tla.tlc import tlc_in
from tests.cross.constructs import EXAMPLES
from tests.cross.ways import WAYS
from tests.random_machines.definitions import RandomMachine
from tests.random_machines.explored import Explored
from tests.thorough import by_turns, some_of

from stagewright.commands.pages.capabilities import CONSTRUCTS, Backend, Construct, capability_page
from stagewright.spec import StagewrightError, define, scope_of
from stagewright.spec.definition import PropertyKind
from stagewright.spec.verdict import Outcome

MOST_STATES = 2_000
ROOT = Path(__file__).parents[2]


@cache
def found(construct: str) -> Explored:
    """All of a construct's example, by the reference interpreter."""
    definition = define(EXAMPLES[construct])
    return Explored(RandomMachine(definition, scope_of(definition)), MOST_STATES)


def broken(one: Explored) -> set[str]:
    promises = one.machine.definition.properties
    return {p.name for p in promises if one.verdict(p) is Outcome.VIOLATED}


def test_every_construct_has_an_example_and_every_backend_a_way_to_ask_it() -> None:
    assert [c.name for c in CONSTRUCTS] == list(EXAMPLES)
    assert {*WAYS, Backend.TLA} == set(Backend)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_promise_that_holds_and_one_that_does_not(name: str) -> None:
    one = found(name)
    kept = {p.name for p in one.machine.definition.properties} - broken(one)
    assert broken(one)
    assert kept
    assert len(one.states) > 10
    assert not one.overflows


@pytest.mark.parametrize(
    ("construct", "backend"), by_turns(some_of(product(CONSTRUCTS, WAYS))), ids=lambda one: one.name
)
def test_a_backend_agrees_with_the_reference_interpreter_or_refuses(
    construct: Construct, backend: Backend
) -> None:
    if backend in construct.lacks:
        with pytest.raises(StagewrightError, match=construct.lacks[backend]):
            WAYS[backend](found(construct.name))
    else:
        WAYS[backend](found(construct.name))


def test_tlc_agrees_on_every_example(tmp_path: Path) -> None:
    able = [c.name for c in CONSTRUCTS if Backend.TLA not in c.lacks]
    machines = [(found(n).machine.definition, found(n).machine.scope) for n in able]
    for name, shown in zip(able, explore(tlc_in(tmp_path), machines), strict=True):
        one = found(name)
        assert shown.distinct == len(one.states), name
        invariants = {
            p.name for p in one.machine.definition.properties if p.kind is PropertyKind.INVARIANT
        }
        assert shown.broken & invariants == broken(one) & invariants, name


def test_the_page_is_the_table() -> None:
    page = (ROOT / "docs" / "language" / "capabilities.md").read_text(encoding="utf-8")
    assert page == capability_page()
