"""Which sorts stand inside of a sort, and which can stand for each other."""

from __future__ import annotations

from stagewright.spec.nodes import fits
from stagewright.spec.sorts import IntSort, MapSort, RecordSort, SeqSort, SetSort, Sort


def same(one: Sort, other: Sort) -> bool:
    """Whether expressions of both sorts can stand for each other (numbers whatever their range)."""
    return fits(one, other) and fits(other, one)


def inside(sort: Sort, wanted: Sort) -> bool:
    """Whether a proper part of `sort` has the wanted sort."""
    match sort:
        case MapSort(_, value):
            return contains(value, wanted)
        case RecordSort(_, fields):
            return any(contains(field, wanted) for _, field in fields)
        case _:
            return False


def contains(sort: Sort, wanted: Sort) -> bool:
    return same(sort, wanted) or inside(sort, wanted)


def ints_in(sort: Sort) -> list[IntSort]:
    return [part for part in parts_of(sort) if isinstance(part, IntSort)]


def sets_in(sort: Sort) -> list[SetSort]:
    return [part for part in parts_of(sort) if isinstance(part, SetSort)]


def parts_of(sort: Sort) -> list[Sort]:
    """A sort and all sorts inside of it."""
    match sort:
        case MapSort(_, value):
            return [sort, *parts_of(value)]
        case SeqSort():
            return [sort]
        case RecordSort(_, fields):
            return [sort, *(p for _, field in fields for p in parts_of(field))]
        case _:
            return [sort]
