"""The canonical form as its documentation has it, in plain Python: what every engine must compute."""

from __future__ import annotations

from collections.abc import Sequence

from tests.checker.symmetry.by_hand import Ints

from stagewright.checker.explicit.packing import Layout
from stagewright.checker.symmetry.groups import Symmetry
from stagewright.checker.symmetry.permutations.motion import moved
from stagewright.checker.symmetry.signatures import FIRST, terms_of

_MASK = (1 << 64) - 1


def mix(number: int) -> int:
    number &= _MASK
    mixed = (number ^ number >> 32) * FIRST & _MASK
    return mixed ^ mixed >> 29


def signatures(symmetry: Symmetry, codes: Sequence[int]) -> list[list[int]]:
    """By group and member."""
    terms = terms_of(symmetry)
    own = [[0] * group.size for group in symmetry.groups]
    for term in terms.own:
        own[term.group][term.member] += mix(codes[term.cell] + term.salt)
    found = [list(of_group) for of_group in own]
    for relation in terms.relations:
        code = codes[relation.cell]
        total = relation.base
        total += sum(mix(own[key.group][key.member] + key.party) for key in relation.keys)
        holds = None
        if relation.value is None:
            total += mix(code + relation.held)
        elif code >= relation.first:
            holds = code - relation.first
            total += mix(own[relation.value][holds] + relation.held) + relation.equal[holds]
        for key in relation.keys:
            found[key.group][key.member] += mix(total + key.role)
        if relation.value is not None and holds is not None:
            found[relation.value][holds] += mix(total + relation.value_role)
    return [[number & _MASK for number in of_group] for of_group in found]


def canonical(layout: Layout, symmetry: Symmetry, state: Ints) -> tuple[int, ...]:
    """The words of the canonical form of a state."""
    forms: list[tuple[int, ...]] = []
    for permutation in symmetry.permutations():
        image = moved(symmetry, permutation, state)
        codes = [value - cell.low for value, cell in zip(image, layout.cells, strict=True)]
        signed = signatures(symmetry, codes)
        if all(signed[group] == sorted(signed[group]) for group in symmetry.tried):
            words = layout.pack([sorted_components(layout, symmetry, image)])
            forms.append(tuple(words[:, 0].tolist()))
    return min(forms)


def sorted_components(layout: Layout, symmetry: Symmetry, state: Ints) -> Ints:
    """The state with the components of each group that is sorted in order."""
    result = list(state)
    for group in symmetry.groups:
        if group.by_sorting:
            parts = sorted(
                ([state[c] for c in cells] for cells in group.components),
                key=lambda part: _number(layout, group.components[0], part),
            )
            for cells, part in zip(group.components, parts, strict=True):
                for cell, value in zip(cells, part, strict=True):
                    result[cell] = value
    return tuple(result)


def _number(layout: Layout, cells: Sequence[int], part: Sequence[int]) -> int:
    """The number that a component makes: its first cell lowest. It must fit a word."""
    number = bits = 0
    for cell, value in zip(cells, part, strict=True):
        number |= (value - layout.cells[cell].low) << bits
        bits += layout.places[cell].bits
    assert bits <= 64
    return number
