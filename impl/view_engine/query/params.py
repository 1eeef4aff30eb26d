"""What a query asks for, and the range of sort keys that this means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.tree.read import Range, above

Stale = Literal["ok", "update_after", "false"]


class _Unset:
    def __repr__(self) -> str:
        return "not given"


UNSET: Any = _Unset()  # None is a key like any other


@dataclass(frozen=True)
class Query:
    """The parameters of a query, with the names and meanings that Couchbase's have.

    Keys are Python values that JSON can say. `reduce`: by default if the view has a reduce function.
    `group_level`: 0 is one row for all; n groups by the first n elements of array keys; `group` by whole
    keys. `partitions`: only rows of these (which must be indexed), default all active ones. `stale`:
    "false" waits until the index has all that was written before; "ok" takes it as it is;
    "update_after" as well, then updates.
    """

    stale: Stale = "false"
    key: Any = UNSET
    keys: Sequence[Any] | None = None
    startkey: Any = UNSET
    startkey_docid: str | None = None
    endkey: Any = UNSET
    endkey_docid: str | None = None
    inclusive_end: bool = True
    descending: bool = False
    skip: int = 0
    limit: int | None = None
    reduce: bool | None = None
    group: bool = False
    group_level: int = 0
    partitions: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.skip < 0 or (self.limit is not None and self.limit < 0):
            raise ValueError("skip and limit are numbers from 0")
        if self.group_level < 0:
            raise ValueError("group_level is a number from 0")
        if self.keys is not None and self.key is not UNSET:
            raise ValueError("a query has either key or keys")
        if self.stale not in ("ok", "update_after", "false"):
            raise ValueError(f"stale is ok, update_after or false, not {self.stale}")

    @property
    def grouped(self) -> bool:
        """Whether rows are groups rather than one reduction of all."""
        return self.group or self.group_level > 0

    def ranges(self) -> list[Range]:
        """The ranges of sort keys in the order asked for; several only for `keys`."""
        if self.keys is not None:
            return [_of_key(key) for key in self.keys]
        if self.key is not UNSET:
            return [_of_key(self.key)]
        start = _bound(self.startkey, self.startkey_docid)
        end = _bound(self.endkey, self.endkey_docid)
        if not self.descending:
            low = start
            high = _past(self.endkey, self.endkey_docid) if self.inclusive_end else end
        else:
            high = _past(self.startkey, self.startkey_docid)
            low = end if self.inclusive_end else _past(self.endkey, self.endkey_docid)
        return [Range(low, high)]


def _of_key(key: object) -> Range:
    low = sort_bytes(json_text(key))
    return Range(low, above(low))


def _bound(key: object, doc_id: str | None) -> bytes | None:
    """Below the rows of this key (and document)."""
    if key is UNSET:
        return None
    return sort_bytes(json_text(key)) + (doc_id or "").encode()


def _past(key: object, doc_id: str | None) -> bytes | None:
    """Above the rows of this key (and document)."""
    low = _bound(key, doc_id)
    if low is None:
        return None
    return above(low) if doc_id is None else low + b"\0"
