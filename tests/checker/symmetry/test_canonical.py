"""The canonical form at sizes where no orbit can be listed: many members, several words, wide components."""

from __future__ import annotations

from itertools import product
from math import factorial
from random import Random

import numpy as np
import pytest
from tests.checker.symmetry import plain_form
from tests.checker.symmetry.by_hand import Ints, model_of
from tests.checker.symmetry.machines import Peer

from stagewright.checker.explicit.packing import layout_of
from stagewright.checker.symmetry.canonical import Canonical
from stagewright.checker.symmetry.groups import Permutation, Symmetry, symmetry_of
from stagewright.checker.symmetry.orbits import orbit_sizes
from stagewright.checker.symmetry.permutations.detection import detect
from stagewright.checker.symmetry.permutations.motion import moved, permutation_between
from stagewright.checker.symmetry.sorting import comparators
from stagewright.spec.grounding.ground import GroundModel

CASES = [
    ("two_phase_commit.py", {"manager": 30}),
    ("tablet_barrier.py", {"tablet": 6, "node": 4}),
    ("broken.py:Workers", {"node": 4, "task": 7}),
    ("Gossip", {"peer": 6}),
    ("Market", {"peer": 4, "item": 9}),
    ("Ledger", {"peer": 4, "item": 40}),
]


def some_state(model: GroundModel, random: Random) -> Ints:
    """A state with few values, so that members are often alike; it need not be reachable."""
    variety = random.choice([1, 2, 2, 9])
    return tuple(c.low + random.randrange(min(c.size, variety)) for c in model.cells)


def some_permutation(symmetry: Symmetry, random: Random) -> Permutation:
    return tuple(tuple(random.sample(range(g.size), g.size)) for g in symmetry.groups)


def changed_a_little(model: GroundModel, state: Ints, random: Random) -> Ints:
    cell = random.choice([c for c in model.cells if c.size > 1])
    values = [v for v in range(cell.low, cell.high + 1) if v != state[cell.index]]
    return (*state[: cell.index], random.choice(values), *state[cell.index + 1 :])


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=str)
def test_renamed_states_have_the_same_canonical_form(name: str, sizes: dict[str, int]) -> None:
    random, model = Random(1), model_of(name, sizes=sizes)
    symmetry = detect(model).symmetry
    layout = layout_of(model.cells)
    canonical = Canonical(layout, symmetry)
    assert symmetry.order > 100
    states = [some_state(model, random) for _ in range(40)]
    renamed = [moved(symmetry, some_permutation(symmetry, random), state) for state in states]
    packed = layout.pack(states)
    before = packed.copy()
    forms = canonical(packed)
    assert (packed == before).all(), "the given states stay as they are"
    assert (canonical(layout.pack(renamed)) == forms).all()
    assert (canonical(forms) == forms).all()


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=str)
def test_states_of_different_orbits_have_different_canonical_forms(
    name: str, sizes: dict[str, int]
) -> None:
    random, model = Random(2), model_of(name, sizes=sizes)
    symmetry = detect(model).symmetry
    layout = layout_of(model.cells)
    canonical = Canonical(layout, symmetry)
    states = [some_state(model, random) for _ in range(4)]
    others = [changed_a_little(model, state, random) for state in states]
    forms, other_forms = canonical(layout.pack(states)), canonical(layout.pack(others))
    for column, (state, other) in enumerate(zip(states, others, strict=True)):
        same = (forms[:, column] == other_forms[:, column]).all()
        assert same == (permutation_between(symmetry, state, other) is not None)
        form = layout.unpack(forms, column)
        found = permutation_between(symmetry, state, form)
        assert found is not None
        assert moved(symmetry, found, state) == form


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("two_phase_commit.py", {"manager": 12}),
        ("tablet_barrier.py", {"tablet": 3, "node": 3}),
        ("broken.py:Workers", {"node": 3, "task": 3}),
        ("Gossip", {"peer": 4}),
        ("Market", {"peer": 3, "item": 3}),
    ],
    ids=str,
)
def test_the_canonical_form_is_what_its_documentation_says(
    name: str, sizes: dict[str, int]
) -> None:
    random, model = Random(5), model_of(name, sizes=sizes)
    symmetry = detect(model).symmetry
    layout = layout_of(model.cells)
    states = [some_state(model, random) for _ in range(40)]
    forms = Canonical(layout, symmetry)(layout.pack(states))
    for state, form in zip(states, forms.T.tolist(), strict=True):
        assert tuple(form) == plain_form.canonical(layout, symmetry, state)


def test_components_of_more_than_a_word_are_sorted() -> None:
    random, model = Random(3), model_of("Ledger", sizes={"peer": 4, "item": 70})
    symmetry = symmetry_of(model.cells, model.scope, [Peer])
    layout = layout_of(model.cells)
    canonical = Canonical(layout, symmetry)
    (group,) = symmetry.groups
    assert group.by_sorting
    assert len(group.components[0]) == 70
    for _ in range(30):
        state = some_state(model, random)
        form = layout.unpack(canonical(layout.pack([state])), 0)
        parts, given = (
            [tuple(s[c] for c in cells) for cells in group.components] for s in (form, state)
        )
        assert sorted(parts) == sorted(given)
        numbers = [sum(bit << i for i, bit in enumerate(p[:64])) for p in parts]
        assert numbers == sorted(numbers)
        image = moved(symmetry, some_permutation(symmetry, random), state)
        assert layout.unpack(canonical(layout.pack([image])), 0) == form


def test_an_orbit_may_have_more_states_than_a_word_can_count() -> None:
    model = model_of("Amount", sizes={"peer": 30})
    layout = layout_of(model.cells)
    canonical = Canonical(layout, detect(model).symmetry)
    state = tuple(i % 3 for i in range(30))
    (size,) = orbit_sizes(canonical, canonical(layout.pack([state])))
    assert size == factorial(30) // factorial(10) ** 3
    assert size < 1 << 63
    wide = tuple([0] * 15 + [1] * 15)
    assert orbit_sizes(canonical, canonical(layout.pack([wide]))) == [
        factorial(30) // factorial(15) ** 2
    ]


def test_no_states_have_no_canonical_forms() -> None:
    for name in ("Gossip", "Amount"):
        model = model_of(name)
        layout = layout_of(model.cells)
        none = np.empty((layout.words, 0), dtype=np.uint64)
        assert Canonical(layout, detect(model).symmetry)(none).shape == none.shape


@pytest.mark.parametrize("size", range(1, 11))
def test_comparators_sort_all_zeros_and_ones(size: int) -> None:
    """And so they sort everything (the zero-one principle)."""
    for numbers in product((0, 1), repeat=size):
        line = list(numbers)
        for low, high in comparators(size):
            assert low < high
            line[low], line[high] = min(line[low], line[high]), max(line[low], line[high])
        assert line == sorted(line)
