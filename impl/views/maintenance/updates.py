"""View updates: what becomes of a view's rows when a version of a base row comes to a replica.

An update has the timestamp of the base row's version that it follows from, so it may come late, twice or out of order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import Cell
from stagewright.impl.storage.port import Snapshot, Version
from stagewright.impl.views.maintenance.definition import ViewDefinition


@dataclass(frozen=True, slots=True)
class ViewUpdate:
    """A row of a view is put, or deleted with the value None."""

    view: str
    base_key: bytes  # as it is stored
    key: bytes  # as it is stored
    time: int
    value: bytes | None
    everyone: bool = field(default=False, compare=False)
    """Whether all replicas of the view get it, and not the partner of the base replica alone."""


def for_everyone(updates: Iterable[ViewUpdate]) -> list[ViewUpdate]:
    """The updates of a row that comes late, by a repair or from who leaves.

    Others that have had it may have had other partners then: of these at least one may lack it for ever.
    """
    return [replace(update, everyone=True) for update in updates]


def updates_of(view: ViewDefinition, before: Version | None, cell: Cell) -> Iterator[ViewUpdate]:
    """The updates that a version of a base row causes; `before` is the newest that the replica has.

    The view row of the version that is replaced is deleted: also where the replaced one comes after the newer one,
    as it may be in the view from another replica of the same rows.
    """
    key, time, value = cell
    if before is not None and before.time > time:
        gone, there = view.row_of(key, value), view.row_of(key, before.value)
        if gone is not None and gone != there:
            yield ViewUpdate(view.name, key, gone, before.time, None)
        return
    there = view.row_of(key, value)
    if there is not None:
        yield ViewUpdate(view.name, key, there, time, value)
    gone = None if before is None else view.row_of(key, before.value)
    if gone is not None and gone != there:
        yield ViewUpdate(view.name, key, gone, time, None)


def taken_back(
    rows: Snapshot, views: Iterable[ViewDefinition], base: str, range_: tuple[int, int]
) -> Iterator[ViewUpdate]:
    """The deletions of the view rows of all versions of a range that are replaced here."""
    newest: Version | None = None
    for version in rows.versions(base, *bounds(*range_)):
        if newest is None or newest.key != version.key:
            newest = version
            continue
        for view in views:
            gone = view.row_of(version.key, version.value)
            if gone is not None and gone != view.row_of(version.key, newest.value):
                yield ViewUpdate(view.name, version.key, gone, newest.time, None)
