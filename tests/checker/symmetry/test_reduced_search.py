"""The search over orbits finds the true number of them, and what the full search finds, as near."""

import numpy as np
import pytest
from tests.checker.symmetry.by_hand import Compared, model_of, orbits

from stagewright.checker.explicit.engine import requirement_keys
from stagewright.checker.explicit.native.code.jit import available
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.search import explore
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.symmetry.orbits import orbit_sizes, states_in
from stagewright.checker.symmetry.reduced import Reduced

CASES = [
    ("two_phase_commit.py", {"manager": 3}),
    ("tablet_barrier.py", {"tablet": 2, "node": 2}),
    ("turnstile.py", {"gate": 3}),
    ("lease.py", {"node": 4}),
    ("user_machine.py", {"node": 3}),
    ("broken.py:Migration", {"node": 3}),
    ("broken.py:Workers", {"node": 3, "task": 2}),
    ("Gossip", {"peer": 3}),
    ("Market", {"peer": 3, "item": 2}),
    ("Market", {"peer": 2, "item": 3}),
    ("Amount", {"peer": 3}),
    ("Hoping", {}),
]


@pytest.fixture(scope="module", params=CASES, ids=str)
def compared(request: pytest.FixtureRequest) -> Compared:
    name, sizes = request.param
    return Compared(model_of(name, sizes=sizes))


def test_there_is_something_to_reduce(compared: Compared) -> None:
    assert compared.symmetry.groups
    assert compared.reduced.states < compared.full.states


def test_states_have_one_canonical_form_if_and_only_if_they_are_of_one_orbit(
    compared: Compared,
) -> None:
    known = compared.states(compared.full)
    packed = compared.engine.layout.pack(known)
    forms = compared.engine.canonical(packed)
    form_of = dict(zip(known, (tuple(form) for form in forms.T.tolist()), strict=True))
    split = orbits(compared.model, compared.symmetry, set(known))
    for orbit in split:
        (form,) = {form_of[state] for state in orbit}
        assert compared.engine.layout.unpack(np.array([form], dtype=np.uint64).T, 0) in orbit
    assert len(set(form_of.values())) == len(split)
    assert compared.reduced.states == len(split)


def test_every_orbit_stands_for_as_many_states_as_it_has(compared: Compared) -> None:
    split = orbits(compared.model, compared.symmetry, set(compared.states(compared.full)))
    size_of = {state: len(orbit) for orbit in split for state in orbit}
    found = compared.reduced
    sizes = orbit_sizes(compared.engine.canonical, found.words)
    assert sizes == [size_of[state] for state in compared.states(found)]
    assert states_in(compared.engine.canonical, found.words) == compared.full.states


def test_violations_are_found_at_the_same_depth(compared: Compared) -> None:
    assert compared.depths(compared.reduced) == compared.depths(compared.full)
    assert compared.reduced.depth == compared.full.depth
    assert compared.reduced.exhausted


def test_the_same_actions_fire_and_the_same_requirements_fail(compared: Compared) -> None:
    steps = compared.model.steps
    fired = [
        {steps[int(i)].action.name for i in np.flatnonzero(found.fired)}
        for found in (compared.full, compared.reduced)
    ]
    assert fired[0] == fired[1]
    failed = [
        {
            key
            for key, n in zip(requirement_keys(compared.model), found.false_counts, strict=True)
            if n
        }
        for found in (compared.full, compared.reduced)
    ]
    assert failed[0] == failed[1]


def test_some_promises_are_broken_and_some_hold_in_these_machines() -> None:
    gossip = Compared(model_of("Gossip"))
    assert gossip.depths(gossip.reduced) == {
        "deadlock": None,
        "overflow": None,
        "no_two_follow_each_other": 4,
        "bosses_stay": 3,
    }


@pytest.mark.skipif(not available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("name", ["tablet_barrier.py", "broken.py:Workers", "Gossip"])
def test_the_native_engine_can_be_reduced_alike(name: str) -> None:
    compared = Compared(model_of(name, sizes={"tablet": 2} if "tablet" in name else {}))
    native = Reduced(NativeEngine(compared.model), compared.symmetry)
    found = explore(native, compared.watch, Stop(Limits()))
    assert (found.words == compared.reduced.words).all()
    assert compared.depths(found) == compared.depths(compared.reduced)


@pytest.mark.parametrize(
    ("managers", "orbit_count", "states"),
    [(5, 314, 8_832), (7, 920, 296_448), (8, 1_461, 1_745_408), (10, 3_300, 61_515_776)],
)
def test_two_phase_commit_has_as_many_orbits_as_are_known(
    managers: int, orbit_count: int, states: int
) -> None:
    compared = Compared(model_of("two_phase_commit.py", sizes={"manager": managers}))
    found = compared.reduced
    assert found.states == orbit_count
    assert states_in(compared.engine.canonical, found.words) == states
    assert all(group.by_sorting for group in compared.symmetry.groups)


@pytest.mark.parametrize(
    ("tablets", "nodes", "states", "depth"), [(3, 3, 171_458, 35), (3, 4, 1_486_150, 37)]
)
def test_the_orbits_of_the_tablet_barrier_stand_for_all_of_its_states(
    tablets: int, nodes: int, states: int, depth: int
) -> None:
    compared = Compared(model_of("tablet_barrier.py", sizes={"tablet": tablets, "node": nodes}))
    found = compared.reduced
    assert states_in(compared.engine.canonical, found.words) == states
    assert found.depth == depth
    assert found.states < states / 20
