"""Who and what ScyllaDB's machines are about: nodes, tablets, and those who act."""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import Actor, Entity

CLIENT = Actor("client")
NETWORK = Actor("network")


class Node(Entity, scope=2):
    """A ScyllaDB node: a replica of tablets, and a coordinator of requests."""


class Tablet(Entity, scope=1):
    """A tablet of a table."""


class Track(Enum):
    """What the topology state machine does with tablets (`transition_state`)."""

    idle = auto()
    tablet_migration = auto()
    topology_change = auto()
