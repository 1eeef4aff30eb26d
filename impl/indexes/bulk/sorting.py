"""Entries of rows by the tablet that they are for, in the order of their values: compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.impl.indexes.bulk.numbers import Numbers, byte_sums
from stagewright.impl.storage.sst.blocks import wide

_DIGITS, _SIZE = 8, 256


def by_tablet(
    values: Numbers,
    rows: Numbers,
    there: NDArray[np.bool_],
    tablets: int,
    rest: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Tablets that get something: the values that are there, in their order, and their rows in theirs.

    `rest` is called after each loop over all of them.
    """
    ends = np.zeros(tablets + 1, np.int64)
    to_values, to_rows = np.empty_like(values), np.empty_like(rows)
    _split(values, rows, there, byte_sums(), ends, to_values, to_rows)
    rest()
    for tablet in range(tablets):
        begin, end = int(ends[tablet]), int(ends[tablet + 1])
        if begin < end:
            yield tablet, *in_order(to_values[begin:end], to_rows[begin:end])
            rest()


def in_order(values: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Sorted by value; rows of one value stay in their order."""
    first, second = (values.copy(), rows.copy()), (np.empty_like(values), np.empty_like(rows))
    swaps = _sort(*first, *second, np.zeros((_DIGITS, _SIZE), np.int64))
    return second if swaps % 2 else first


@compiled
def _split(
    values: Any, rows: Any, there: Any, sums: Any, ends: Any, to_values: Any, to_rows: Any
) -> None:
    """Put what is there where its tablet's entries are, which end at `ends[tablet + 1]`."""
    tablets = len(ends) - 1
    places = np.zeros(len(values), np.int32)
    for n in range(len(values)):
        if there[n]:
            place = _tablet_of(values[n], sums, tablets)
            places[n] = place
            ends[place + 1] += 1
    for place in range(tablets):
        ends[place + 1] += ends[place]
    for n in range(len(values)):
        if there[n]:
            at = ends[places[n]]
            to_values[at], to_rows[at] = values[n], rows[n]
            ends[places[n]] = at + 1
    for place in range(tablets, 0, -1):
        ends[place] = ends[place - 1]
    ends[0] = 0


@compiled
def _tablet_of(value: int, sums: Any, tablets: int) -> Any:
    """By the CRC of the value as a store has it."""
    crc = wide(0xFFFFFFFF)
    for shift in range(56, -1, -8):
        byte = (value >> shift) & 255
        if shift == 56:
            byte ^= 128
        crc = (crc >> 8) ^ wide(sums[0, (crc ^ byte) & 255])
    return (crc ^ 0xFFFFFFFF) % tablets


@compiled
def _sort(values: Any, rows: Any, other_values: Any, other_rows: Any, counts: Any) -> int:
    """By one byte after the other, the least significant one first; how often both changed places."""
    for n in range(len(values)):
        for digit in range(8):
            counts[digit, (values[n] >> (8 * digit)) & 255] += 1
    swaps = 0
    for digit in range(8):
        flip = 128 if digit == 7 else 0  # the sign
        if counts[digit, (values[0] >> (8 * digit)) & 255] == len(values):
            continue
        at = wide(0)
        for one in range(256):
            count = counts[digit, one ^ flip]
            counts[digit, one ^ flip] = at
            at += count
        for n in range(len(values)):
            byte = (values[n] >> (8 * digit)) & 255
            at = counts[digit, byte]
            other_values[at], other_rows[at] = values[n], rows[n]
            counts[digit, byte] = at + 1
        values, other_values = other_values, values
        rows, other_rows = other_rows, rows
        swaps += 1
    return swaps
