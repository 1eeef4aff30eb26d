"""What nodes, the topology coordinator, group0 and clients say to each other; what handling it causes.

Handlers do no I/O: they get a message and return effects, which the simulator (or a server) carries out
in their order. Every message may be lost, late, repeated or overtaken.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.impl.store import Entry
from stagewright.machines.scylladb.tablets.tablet_stages import Run

GROUP0 = "group0"
COORDINATOR = "coordinator"
CLIENT = "client"


@dataclass(frozen=True)
class Row:
    """A stored value; of two rows of one key the one with the later timestamp counts."""

    key: str
    value: str
    timestamp: int


class Outcome(Enum):
    """What a replica did with a request."""

    done = auto()
    fenced = auto()  # the request began under a version that is older than the fence
    no_storage = auto()  # the replica has no storage for the tablet


# -- group0 ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetch:
    """A read barrier asks what was committed after a position."""

    sender: str
    after: int
    number: int


@dataclass(frozen=True)
class Entries:
    """Committed entries; `answers` is the number of the fetch, or None when group0 pushes them."""

    entries: tuple[Entry, ...]
    answers: int | None = None


# -- barriers ----------------------------------------------------------------------------------------


class Phase(Enum):
    """A barrier drains what is older than a version; then it waits until the fence is known everywhere."""

    drain = auto()
    fence = auto()


@dataclass(frozen=True)
class BarrierRequest:
    """Learn what is committed, and end what began under an older version."""

    coordinator: str
    round: int
    phase: Phase
    version: int


@dataclass(frozen=True)
class BarrierAck:
    """A node has passed a phase of a barrier."""

    round: int
    phase: Phase
    node: str


# -- actions of a stage --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunOperation:
    """Stream, clean up or repair a tablet."""

    coordinator: str
    operation: int
    tablet: str
    run: Run
    session: int | None


@dataclass(frozen=True)
class OperationReply:
    """An operation ended, well or not."""

    operation: int
    node: str
    succeeded: bool
    reason: str = ""


@dataclass(frozen=True)
class PullRows:
    """The next chunk of a tablet's rows, please: those with keys greater than `after`."""

    requester: str
    tablet: str
    session: int | None
    after: str


@dataclass(frozen=True)
class RowChunk:
    """A chunk of rows, in the order of keys; `last` if there are no more, `refused` if there is no storage."""

    source: str
    tablet: str
    session: int | None
    after: str
    rows: tuple[Row, ...]
    last: bool
    refused: bool = False


@dataclass(frozen=True)
class PushRows:
    """Rows that a repair found missing elsewhere."""

    sender: str
    tablet: str
    session: int | None
    after: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PushAck:
    """The rows are stored."""

    target: str
    tablet: str
    session: int | None
    after: str


# -- requests ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClientRequest:
    """Write a row, or read the row of a key (`row.value` and `row.timestamp` are then of no interest)."""

    number: int
    write: bool
    row: Row


@dataclass(frozen=True)
class ClientReply:
    """A request is done, or has failed: it may still have happened."""

    number: int
    succeeded: bool
    row: Row | None = None
    reason: str = ""


@dataclass(frozen=True)
class ReplicaRequest:
    """The same for one replica, with the topology version that the coordinating node began it under."""

    coordinator: str
    number: int
    write: bool
    tablet: str
    row: Row
    version: int


@dataclass(frozen=True)
class ReplicaReply:
    """What a replica did with it."""

    number: int
    replica: str
    outcome: Outcome
    row: Row | None = None


Message = (
    Fetch
    | Entries
    | BarrierRequest
    | BarrierAck
    | RunOperation
    | OperationReply
    | PullRows
    | RowChunk
    | PushRows
    | PushAck
    | ClientRequest
    | ClientReply
    | ReplicaRequest
    | ReplicaReply
)

# -- effects -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Send:
    """Send a message."""

    to: str
    message: Message


@dataclass(frozen=True)
class PutRows:
    """Store rows, each unless a later one of its key is there; maybe streamed in a session."""

    tablet: str
    rows: tuple[Row, ...]
    session: int | None = None


@dataclass(frozen=True)
class DropRows:
    """Delete all rows of a tablet."""

    tablet: str


@dataclass(frozen=True)
class Learn:
    """Write down committed entries; allocate and drop storage for tablets as they demand, all at once."""

    entries: tuple[Entry, ...]
    allocate: tuple[str, ...]
    deallocate: tuple[str, ...]


@dataclass(frozen=True)
class Wake:
    """Wake the handler after so many milliseconds, unless it has crashed until then."""

    after_ms: int
    reason: tuple[str | int, ...]


Effect = Send | PutRows | DropRows | Learn | Wake
