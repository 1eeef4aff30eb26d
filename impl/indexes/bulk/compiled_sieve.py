"""A sieve whose loops are compiled: it holds what the other one holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, read_only
from stagewright.impl.indexes.bulk.numbers import Numbers
from stagewright.impl.indexes.bulk.sieve import FACTORS, SHIFT, Sieve

_FACTORS = np.array(FACTORS, np.uint64)


class CompiledSieve(Sieve):
    """For whoever sifts values by the million."""

    def add(self, values: Numbers) -> None:
        _add(self._bytes, read_only(values.view(np.uint64)), _FACTORS, SHIFT, np.uint64(3))

    def holds(self, values: Numbers) -> NDArray[np.bool_]:
        held = np.empty(len(values), np.bool_)
        _hold(self._bytes, read_only(values.view(np.uint64)), _FACTORS, SHIFT, np.uint64(3), held)
        return held


@compiled
def _add(held: Any, values: Any, factors: Any, shift: Any, of_byte: Any) -> None:
    for n in range(len(values)):
        for one in range(len(factors)):
            place = (values[n] * factors[one]) >> shift
            held[np.int64(place >> of_byte)] |= np.uint8(1 << (np.int64(place) & 7))


@compiled
def _hold(held: Any, values: Any, factors: Any, shift: Any, of_byte: Any, found: Any) -> None:
    for n in range(len(values)):
        found[n] = True
        for one in range(len(factors)):
            place = (values[n] * factors[one]) >> shift
            bit = np.uint8(1 << (np.int64(place) & 7))
            if held[np.int64(place >> of_byte)] & bit == 0:
                found[n] = False
