"""In which orders the events of an entity may have happened, where files have events of one and the same time.

The lines of a file keep their order; how the files interleave is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import factorial, prod

ORDERS_MAX = 24  # orders of one entity that are tried


@dataclass(frozen=True)
class Orders:
    """`first`: the first event whose place is not known. `others`: all orders but the given one, by index.

    There are too many of them to be tried where `others` is empty.
    """

    first: int
    others: tuple[tuple[int, ...], ...]


def orders_of(times: Sequence[object], files: Sequence[int]) -> Orders | None:
    """The orders of events that are sorted by time, each of a file; None if there is only the given one."""
    if len(set(files)) < 2:
        return None
    groups = [[index for index, _ in group] for _, group in groupby(enumerate(times), _time)]
    runs = [_by_file(group, files) for group in groups]
    tied = [of_time for of_time in runs if len(of_time) > 1]
    if not tied:
        return None
    ways = prod(
        factorial(sum(map(len, one))) // prod(factorial(len(run)) for run in one) for one in tied
    )
    if ways > ORDERS_MAX:
        return Orders(tied[0][0][0], ())
    found = product(*(list(_interleaved(one)) for one in runs))
    every = [tuple(index for group in order for index in group) for order in found]
    return Orders(tied[0][0][0], tuple(o for o in every if o != tuple(range(len(times)))))


def _time(pair: tuple[int, object]) -> object:
    return pair[1]


def _by_file(group: Sequence[int], files: Sequence[int]) -> list[list[int]]:
    runs: dict[int, list[int]] = {}
    for index in group:
        runs.setdefault(files[index], []).append(index)
    return list(runs.values())


def _interleaved(runs: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The members of all runs, those of each in their order."""
    left = [run for run in runs if run]
    if len(left) < 2:
        yield [index for run in left for index in run]
        return
    for number, run in enumerate(left):
        for rest in _interleaved([*left[:number], run[1:], *left[number + 1 :]]):
            yield [run[0], *rest]
