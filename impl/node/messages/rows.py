"""What clients ask of rows, and what nodes ask of the rows of each other: requests, scans, streams."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stagewright.spec.text.counting import counted

Cell = tuple[bytes, int, bytes | None]
"""A row at rest: its stored key (`impl.node.keys`), its timestamp, its value or None for a tombstone."""


class Level(Enum):
    """How many replicas must answer a request."""

    one = "one"
    quorum = "quorum"
    all = "all"


class Outcome(Enum):
    """What a replica did with a request."""

    done = "done"
    fenced = "fenced"  # it began under a topology version that is older than the fence
    unready = "unready"  # the replica has not learned yet what was committed before it started
    absent = "absent"  # it has no storage for the tablet, as far as it knows


@dataclass(frozen=True, slots=True)
class ClientWrite:
    """Write a row, or delete it with the value None; of two writes the one with the later timestamp counts."""

    number: int
    table: str
    key: bytes
    value: bytes | None
    timestamp: int
    level: Level = Level.quorum


@dataclass(frozen=True, slots=True)
class ClientRead:
    """Read the row of a key."""

    number: int
    table: str
    key: bytes
    level: Level = Level.quorum


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Too few replicas are alive for a level, as the node sees it that was asked: nothing was done.

    `down`: those that are not alive; there are none where the cluster has fewer nodes than the level needs.
    `of_log`: the replicas are those of the log row of a change.
    """

    level: Level
    needed: int
    alive: int
    down: tuple[str, ...] = ()
    of_log: bool = False

    def __str__(self) -> str:
        level, row = self.level.value, " of its log row" if self.of_log else ""
        needs, are = counted(self.needed, "replica"), "is" if self.alive == 1 else "are"
        who = f": {', '.join(self.down)} {'is' if len(self.down) == 1 else 'are'} down"
        return f"level {level} needs {needs}{row}, and {self.alive} {are} alive{who if self.down else ''}"


@dataclass(frozen=True, slots=True)
class ClientReply:
    """A request is done, or has failed: a write may still have happened. `timestamp` 0: there is no row.

    With `unavailable`, no replica was sent the write.
    """

    number: int
    succeeded: bool
    value: bytes | None = None
    timestamp: int = 0
    reason: str = ""
    unavailable: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class ClientScan:
    """Read rows in the order of their tokens, from a stored key on (b"": from the first), at a level.

    `end`: up to, not with, this stored key; None: up to the last row.
    """

    number: int
    table: str
    start: bytes = b""
    limit: int = 100
    level: Level = Level.quorum
    end: bytes | None = None


@dataclass(frozen=True, slots=True)
class ScanReply:
    """Rows without what is deleted; `following` is where to go on, None at the end."""

    number: int
    succeeded: bool
    cells: tuple[Cell, ...] = ()
    following: bytes | None = None
    reason: str = ""
    unavailable: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class ReplicaWrite:
    """A client's write for one replica, with the topology version that its coordinator began it under.

    A replica that stores the change's log row, too, gets it `beside` the row: both are written, or neither. A row is
    `late` if others had it before: a read found it, or a replica that leaves hands it over.
    """

    number: int
    version: int
    table: str
    cell: Cell
    beside: tuple[tuple[str, Cell], ...] = ()
    late: bool = False

    @property
    def first(self) -> bytes:
        """The stored key that it is about."""
        return self.cell[0]


@dataclass(frozen=True, slots=True)
class ReplicaRead:
    """The same for a read."""

    number: int
    version: int
    table: str
    key: bytes  # as it is stored

    @property
    def first(self) -> bytes:
        """The stored key that it is about."""
        return self.key


@dataclass(frozen=True, slots=True)
class ReplicaReply:
    """What a replica did with it; `timestamp` 0: it has no row."""

    number: int
    outcome: Outcome
    timestamp: int = 0
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReplicaScan:
    """The rows of a token range, from a stored key on, for a client's scan."""

    number: int
    version: int
    table: str
    start: bytes
    end: bytes | None
    limit: int

    @property
    def first(self) -> bytes:
        """The stored key that it begins at."""
        return self.start


@dataclass(frozen=True, slots=True)
class ReplicaRows:
    """What a replica has of them, tombstones too; `full`: there may be more after the last."""

    number: int
    outcome: Outcome
    cells: tuple[Cell, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """From which version on the sender has rows; views are to get nothing from it that is older, nor to lose it.

    `position`: what the sender had learned of group0.
    """

    position: int
    table: str
    rows: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True, slots=True)
class PullRows:
    """The next rows of token ranges (low, high], in their order, please, from a stored key on."""

    transfer: int
    session: str
    table: str
    ranges: tuple[tuple[int, int], ...]
    start: bytes
    position: int  # what the source must have learned


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Rows in the order of their stored keys; `following` is where to go on, None if there are no more."""

    transfer: int
    start: bytes
    cells: tuple[Cell, ...]
    following: bytes | None
    refused: str = ""  # why nothing is streamed
