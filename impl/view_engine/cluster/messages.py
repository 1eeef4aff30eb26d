"""What a coordinator and the nodes say to each other about one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from stagewright.impl.view_engine.query.local import Row
from stagewright.impl.view_engine.query.params import Query


class NodeUnavailableError(Exception):
    """A node did not answer; what was asked of it may have happened or not."""


class OutdatedError(Exception):
    """A node does not serve a partition that is wanted from it: the asker's map is not the newest."""

    def __init__(self, missing: Sequence[int]) -> None:
        super().__init__(f"partitions {[*missing]} are not served here")
        self.missing = tuple(missing)


@dataclass(frozen=True)
class ViewRequest:
    """A query, with the partitions that this node is to answer for."""

    design: str
    view: str
    query: Query


class Indexed(NamedTuple):
    """Up to where a partition is in an answer."""

    seq: int
    history: bytes | None  # the newest uuid of the failover log that the index knew, if any
    indexable: bool  # if not, its indexing is paused: the answer has what was indexed before


@dataclass(frozen=True)
class Opened:
    """A node has taken its snapshot: what its rows will be about."""

    indexed: Mapping[int, Indexed]
    total_rows: int | None


class Placed(NamedTuple):
    """A row, and the number of the range that it is of (of the key, in a query of several)."""

    range: int
    row: Row


class Batch(NamedTuple):
    """Some rows; the last batch of a stream says so."""

    rows: Sequence[Placed]
    last: bool


class Node(Protocol):
    """A node as a coordinator sees it. Every call may raise NodeUnavailableError, and may be repeated."""

    def open(self, stream: str, request: ViewRequest) -> Opened:
        """Take a snapshot for a stream of rows. Raises OutdatedError, IndexNotReadyError, QueryError."""
        ...

    def batch(self, stream: str, number: int) -> Batch:
        """Batch `number` (from 0): the one after the last, or the last one again. Raises KeyError."""
        ...

    def close(self, stream: str) -> None:
        """The stream is not wanted any more."""
        ...
