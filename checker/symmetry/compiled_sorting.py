"""Sorting the components of a group as LLVM code: networks of compared and exchanged numbers."""

from __future__ import annotations

from collections.abc import Sequence

from stagewright.checker.explicit.native.code.llvm_text import I64, Function, Value
from stagewright.checker.explicit.packing import Layout
from stagewright.checker.symmetry.groups import Symmetry
from stagewright.checker.symmetry.sorting import Part, comparators, parts_of

ALL_BITS = (1 << 64) - 1


def sorted_components(
    f: Function, layout: Layout, symmetry: Symmetry, words: Sequence[Value]
) -> list[Value]:
    """The words with the components of every group that is sorted in order."""
    result = list(words)
    for group in symmetry.groups:
        if not group.by_sorting:
            continue
        parts = [parts_of([layout.places[c] for c in cells]) for cells in group.components]
        if not parts[0]:
            continue  # members have no cells
        numbers = [[_gathered(f, result, part) for part in of_member] for of_member in parts]
        for low, high in comparators(group.size):
            exchange(f, numbers, low, high)
        result = _scattered(f, result, parts, numbers)
    return result


def _runs(part: Part) -> dict[tuple[int, int], int]:
    """The bits that move alike: by word and by how far they move down, a mask of them in the word."""
    masks: dict[tuple[int, int], int] = {}
    for place, offset in part:
        key = (place.word, place.shift - offset)
        masks[key] = masks.get(key, 0) | place.mask << place.shift
    return masks


def _gathered(f: Function, words: Sequence[Value], part: Part) -> Value:
    number = Value("0", I64)
    for (word, down), mask in _runs(part).items():
        number = f.or_(number, _moved(f, f.and_(words[word], mask), down))
    return number


def _moved(f: Function, value: Value, down: int) -> Value:
    if down == 0:
        return value
    return f.lshr(value, down) if down > 0 else f.shl(value, -down)


def _scattered(
    f: Function,
    words: Sequence[Value],
    parts: Sequence[Sequence[Part]],
    numbers: Sequence[Sequence[Value]],
) -> list[Value]:
    kept = [ALL_BITS] * len(words)
    added: list[list[Value]] = [[] for _ in words]
    for of_member, values in zip(parts, numbers, strict=True):
        for part, number in zip(of_member, values, strict=True):
            for (word, down), mask in _runs(part).items():
                kept[word] &= ~mask
                added[word].append(f.and_(_moved(f, number, -down), mask))
    result: list[Value] = []
    for before, keep, more in zip(words, kept, added, strict=True):
        total = f.and_(before, keep) if more else before
        for value in more:
            total = f.or_(total, value)
        result.append(total)
    return result


def exchange(f: Function, numbers: list[list[Value]], low: int, high: int) -> None:
    """Let the lesser of two members come first; the first number counts most."""
    one, other = numbers[low], numbers[high]
    is_greater = greater(f, one, other)
    pairs = list(zip(one, other, strict=True))
    numbers[low] = [f.select(is_greater, b, a) for a, b in pairs]
    numbers[high] = [f.select(is_greater, a, b) for a, b in pairs]


def greater(f: Function, one: Sequence[Value], other: Sequence[Value]) -> Value:
    """Whether one row of numbers comes after the other; the first number counts most."""
    found = f.compare("ugt", one[-1], other[-1])
    for a, b in reversed(list(zip(one[:-1], other[:-1], strict=True))):
        equal = f.compare("eq", a, b)
        found = f.or_(f.compare("ugt", a, b), f.and_(equal, found))
    return found
