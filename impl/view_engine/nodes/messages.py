"""What nodes, coordinators and the manager say to each other. Every question has a number, as has its answer.

Keys and values of rows are JSON text: a query's parameters and rows can be any JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from stagewright.impl.processes.codec import Codec

History = tuple[tuple[bytes, int], ...]  # a failover log


@dataclass(frozen=True, slots=True)
class Arrange:
    """All that the manager wants of a node; `command` counts up, and an older one comes too late.

    `passive` partitions are indexed, not queried; `paused` ones are queried, not indexed. Each copy that takes
    no writes follows the node in `sources`; of `anew` a new history begins here.
    """

    number: int
    command: int
    active: tuple[int, ...]
    passive: tuple[int, ...]
    replicas: tuple[int, ...]
    paused: tuple[int, ...]
    anew: tuple[int, ...]
    sources: dict[int, str]


@dataclass(frozen=True, slots=True)
class AskState:
    """Asks how far a node is."""

    number: int


@dataclass(frozen=True, slots=True)
class State:
    """Up to where the documents of each partition are, their histories, and up to where they are indexed."""

    number: int
    documents: dict[int, tuple[int, History]]
    indexed: dict[int, int]
    on_transfer: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """A document changes, or is deleted without a body."""

    number: int
    partition: int
    doc_id: bytes
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Written:
    """It is durable here, at this place of this history."""

    number: int
    seq: int
    history: bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """Asks for what a copy lacks that is at `since` in a history."""

    number: int
    partition: int
    since: int
    log: History


@dataclass(frozen=True, slots=True)
class Copied:
    """Go back to `back_to`, then append these."""

    number: int
    back_to: int
    changes: list[tuple[int, bytes, bytes | None]]
    log: History


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Take a snapshot for a query; `query` has the parameters that are given, as JSON."""

    number: int
    stream: str
    design: str
    view: str
    query: bytes


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """Up to where each partition is in it: sequence number, history, and whether it is indexable."""

    number: int
    indexed: dict[int, tuple[int, bytes | None, bool]]
    total_rows: int | None


@dataclass(frozen=True, slots=True)
class NextBatch:
    """A batch of a stream, by its number."""

    number: int
    stream: str
    batch: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Each row is a list of its range, key, value, document and partition, as JSON."""

    number: int
    rows: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class CloseStream:
    """The stream is not wanted any more."""

    number: int
    stream: str


@dataclass(frozen=True, slots=True)
class Done:
    """It happened."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not: the name of the error, what it says, and the partitions that it names."""

    number: int
    error: str
    reason: str
    partitions: tuple[int, ...] = field(default=())


Question = Arrange | AskState | Write | Copy | OpenStream | NextBatch | CloseStream
Reply = State | Written | Copied | StreamOpened | Rows | Done | Failed


@lru_cache(maxsize=1)
def view_codec() -> Codec:
    """Of all these messages."""
    return Codec(
        (
            *(Arrange, AskState, Write, Copy, OpenStream, NextBatch, CloseStream),
            *(State, Written, Copied, StreamOpened, Rows, Done, Failed),
        )
    )
