"""What nodes, clients and operators say to each other.

Every message may be lost, late, repeated or overtaken. All of them are plain data: texts, numbers, bytes,
booleans, tuples of these, and enums whose values are texts; a key is the serialized partition key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stagewright.impl.node.table_messages import (
    AlterTable,
    CreateView,
    DropView,
    MoveTablet,
    RepairTable,
    ResizeTable,
    SetBalancing,
    ViewsReply,
    ViewsRequest,
    WorkedOnTasks,
    WorkOnTasks,
)

Cell = tuple[bytes, int, bytes | None]
"""A row at rest: its stored key (`impl.node.keys`), its timestamp, its value or None for a tombstone."""


STARTING = "is starting"  # the end of the reason why a node takes no requests yet


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


class Phase(Enum):
    """A barrier drains what is older than a version; then every node learns the fence."""

    drain = "drain"
    fence = "fence"


class Ask(Enum):
    """What an operator can ask of the cluster; the value is the action of the definition."""

    leave = "ask_to_leave"
    remove = "ask_to_remove"
    rebuild = "ask_to_rebuild"
    abort = "abort"
    cleanup = "cleanup"
    new_cdc_generation = "new_cdc_generation"


@dataclass(frozen=True, slots=True)
class HostInfo:
    """What a node is, whatever its state; `address` is of interest to hosts alone."""

    name: str
    datacenter: str = "dc1"
    rack: str = "rack1"
    shards: int = 2
    tokens: int = 8  # how many it wants
    address: str = ""


# -- clients ---------------------------------------------------------------------------------------------


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
class ClientReply:
    """A request is done, or has failed: a write may still have happened. `timestamp` 0: there is no row."""

    number: int
    succeeded: bool
    value: bytes | None = None
    timestamp: int = 0
    reason: str = ""


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


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """Ask something of the cluster, about a node where it is about one."""

    number: int
    ask: Ask
    node: str = ""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Make a table, of so many `tablets` or (0) by the token ring; `cdc`: with a log of changes."""

    number: int
    table: str
    replicas: int = 3
    tablets: int = 0
    cdc: bool = False
    images: bool = False  # the log has each row before its change, too
    ttl: int = 0  # milliseconds for which it keeps changes; 0: for ever


@dataclass(frozen=True, slots=True)
class OperatorReply:
    """The request is committed, or refused; that it is committed does not say that it is done.

    `position` is where in group0 it is committed: a node that has learned less knows nothing of it.
    """

    number: int
    accepted: bool
    reason: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Ask how the cluster looks to a node."""

    number: int


@dataclass(frozen=True, slots=True)
class GenerationsRequest:
    """Ask for the CDC generations that are published, or for the streams of a table of tablets."""

    number: int
    table: str = ""


@dataclass(frozen=True, slots=True)
class GenerationsReply:
    """When each begins to operate (microseconds since 1970), and its streams."""

    number: int
    succeeded: bool
    generations: tuple[tuple[int, tuple[bytes, ...]], ...] = ()
    reason: str = ""
    ttl: int = 0  # milliseconds for which the table's log keeps rows; 0: for ever


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A row of the answer; `request` is what the node was last asked for, and `outcome` what became of it."""

    name: str
    state: str
    up: bool
    tokens: int
    datacenter: str
    rack: str
    address: str
    request: str = ""
    outcome: str = ""  # pending, started, done, or the error
    held_up: str = ""  # by what, while it is pending


@dataclass(frozen=True, slots=True)
class Load:
    """What the node that answers has done in this life of its process; `open`: clients that wait now."""

    reads: int = 0  # of clients, as their coordinator; repeated ones count again
    writes: int = 0
    scans: int = 0
    failed: int = 0  # of these
    replica_reads: int = 0  # for coordinators, pages of scans among them
    replica_writes: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class StatusReply:
    """What the node has learned: the position in group0, who coordinates, the topology, its nodes."""

    number: int
    position: int
    coordinator: str
    transition_state: str
    version: int
    fence_version: int
    nodes: tuple[NodeStatus, ...]
    tables: tuple[tuple[str, int], ...]
    load: Load = Load()


@dataclass(frozen=True, slots=True)
class TabletsRequest:
    """Ask where the tablets lie, by all that is committed when it is asked, and why they moved."""

    number: int


@dataclass(frozen=True, slots=True)
class TabletStatus:
    """A tablet: its replicas as hosts and shards; in transition also those to come, the stage and the kind.

    `asked`: what an operator asked for and is not done.
    """

    table: str
    tablet: int
    replicas: tuple[tuple[str, int], ...]
    following: tuple[tuple[str, int], ...] = ()
    stage: str = ""
    kind: str = ""
    asked: str = ""


@dataclass(frozen=True, slots=True)
class TabletsReply:
    """All tablets that the node has learned of, and the last moves that began, each with its reason."""

    number: int
    tablets: tuple[TabletStatus, ...]
    moves: tuple[str, ...] = ()  # the newest last


# -- replicas --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplicaWrite:
    """A client's write for one replica, with the topology version that its coordinator began it under.

    A replica that stores the change's log row, too, gets it `beside` the row: both are written, or neither.
    """

    number: int
    version: int
    table: str
    cell: Cell
    beside: tuple[tuple[str, Cell], ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaRead:
    """The same for a read."""

    number: int
    version: int
    table: str
    key: bytes  # as it is stored


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


@dataclass(frozen=True, slots=True)
class ReplicaRows:
    """What a replica has of them, tombstones too; `full`: there may be more after the last."""

    number: int
    outcome: Outcome
    cells: tuple[Cell, ...] = ()
    full: bool = False


# -- joining ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """JOIN_NODE_REQUEST: a node wants in, maybe in the place of a dead one; sent until it is answered."""

    host: HostInfo
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class JoinReply:
    """Its row is there (and it may be a member of group0 already), or it never will be."""

    accepted: bool
    member: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JoinResponse:
    """JOIN_NODE_RESPONSE: the topology coordinator lets the node join group0."""

    term: int


@dataclass(frozen=True, slots=True)
class Joined:
    """The node has learned what group0 has committed."""

    term: int


# -- the topology coordinator and nodes ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BarrierRequest:
    """barrier_and_drain: learn what is committed, and end what began under an older version."""

    term: int
    round: int
    phase: Phase
    version: int


@dataclass(frozen=True, slots=True)
class BarrierAck:
    """A node has passed a phase of a barrier."""

    term: int
    round: int
    phase: Phase


class Work(Enum):
    """What a node does when the topology coordinator asks for it."""

    stream = (
        "stream"  # fetch the rows of ranges that it gains, or of all of its ranges when it rebuilds
    )
    clean = "clean"  # delete the rows of ranges that it does not own
    shut_down = "shut_down"
    stream_tablet = "stream_tablet"  # fetch the rows of a tablet that the node gains
    clean_tablet = "clean_tablet"  # delete the rows of one that it gains no more, or has lost
    prepare_split = "prepare_split"  # be ready for the tablets of a table to be split
    repair_tablet = "repair_tablet"  # fetch what its other replicas have and the node has not


@dataclass(frozen=True, slots=True)
class Order:
    """The coordinator wants work done; sent until it is answered, so it may arrive again at any time."""

    term: int
    number: int
    work: Work
    session: str = ""
    table: str = ""
    tablet: int = -1


@dataclass(frozen=True, slots=True)
class OrderDone:
    """It is done, or cannot be."""

    term: int
    number: int
    succeeded: bool
    reason: str = ""


# -- streaming -------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Banned:
    """Who sent something has left the cluster for good."""


Message = (
    ClientWrite
    | ClientRead
    | ClientReply
    | ClientScan
    | ScanReply
    | OperatorRequest
    | CreateTable
    | RepairTable
    | AlterTable
    | ResizeTable
    | MoveTablet
    | SetBalancing
    | CreateView
    | DropView
    | ViewsRequest
    | ViewsReply
    | OperatorReply
    | GenerationsRequest
    | GenerationsReply
    | StatusRequest
    | StatusReply
    | TabletsRequest
    | TabletsReply
    | ReplicaWrite
    | ReplicaRead
    | ReplicaReply
    | ReplicaScan
    | ReplicaRows
    | JoinRequest
    | JoinReply
    | JoinResponse
    | Joined
    | BarrierRequest
    | BarrierAck
    | Order
    | OrderDone
    | PullRows
    | RowChunk
    | WorkOnTasks
    | WorkedOnTasks
    | Banned
)
