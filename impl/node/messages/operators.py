"""What operators ask and are told: nodes, tables, generations, tablets, load."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

STARTING = "is starting"  # the end of the reason why a node takes no requests yet
TOO_FEW = "too few replicas of "  # in the reason why a node cannot fetch the rows of a table


class Ask(Enum):
    """What an operator can ask of the cluster; the value is the action of the definition."""

    leave = "ask_to_leave"
    remove = "ask_to_remove"
    rebuild = "ask_to_rebuild"
    abort = "abort"
    cleanup = "cleanup"
    new_cdc_generation = "new_cdc_generation"
    lock = "lock"  # the topology, as who tests or maintains the cluster does
    unlock = "unlock"


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """Ask something of the cluster, about a node where it is about one."""

    number: int
    ask: Ask
    node: str = ""


@dataclass(frozen=True, slots=True)
class NameRequest:
    """Ask which table or view a name means, by all that is committed when it is asked."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class NameReply:
    """The id of the table or view that has a name, if it is `there`; else that of the next one that is created under it.

    Statements name what they are about by its id: one that is carried out late does nothing to another table of the name.
    """

    number: int
    succeeded: bool
    id: str = ""
    there: bool = False
    reason: str = ""
    truncated: int = 0  # up to this time no node has rows of it any more


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Make a table, of so many `tablets` or (0) by the token ring; `cdc`: with a log of changes."""

    number: int
    table: str  # the id that it is to have, or that of the table of its name
    replicas: int = 3
    tablets: int = 0
    cdc: bool = False
    images: bool = False  # the log has each row before its change, too
    ttl: int = 0  # milliseconds for which it keeps changes; 0: for ever


@dataclass(frozen=True, slots=True)
class OperatorReply:
    """The request is committed, or refused, with what to do then; that it is committed does not say that it is done.

    `position` is where in group0 it is committed: a node that has learned less knows nothing of it.
    """

    number: int
    accepted: bool
    reason: str = ""
    position: int = 0
    help: str = ""


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
