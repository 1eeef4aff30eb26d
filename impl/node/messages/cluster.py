"""What nodes and the topology coordinator say to each other: who joins, barriers, orders."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class HostInfo:
    """What a node is, whatever its state; `address` is of interest to hosts alone."""

    name: str
    datacenter: str = "dc1"
    rack: str = "rack1"
    shards: int = 2
    tokens: int = 8  # how many it wants
    address: str = ""
    lacks: str = ""  # a feature of which its release does not know
    initial_tokens: tuple[int, ...] = ()  # that it asks for, instead of so many


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


class Phase(Enum):
    """A barrier drains what is older than a version; then every node learns the fence."""

    drain = "drain"
    fence = "fence"


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
    truncate = "truncate"  # delete the rows that a table had when it was truncated
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


@dataclass(frozen=True, slots=True)
class Banned:
    """Who sent something has left the cluster for good."""
