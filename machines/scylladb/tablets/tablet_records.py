"""What a node knows of a tablet, and what is on its way between nodes: requests of clients, and streamed rows."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Record, flag, number, one_of, optional, set_of

LAST_VALUE = 3


class View(Record):
    """What a node has learned of a tablet: its local token metadata, which may be behind group0."""

    stage = one_of(Stage, init=Stage.none)
    replicas = set_of(Node)
    next = set_of(Node)
    session = flag()


class Request(Record):
    """The request that a node coordinates, if any; the stage under which it began serves as its version."""

    tablet = optional(Tablet)
    write = flag()
    stage = one_of(Stage, init=Stage.none)
    targets = set_of(Node)
    reached = set_of(Node)
    value = number(0, LAST_VALUE)  # of a read: the newest value acknowledged before it began
    abandoned = flag()  # timed out, or its coordinator crashed; its messages may still arrive


class Chunk(Record):
    """Streamed data on its way to a replica."""

    target = optional(Node)
    value = number(0, LAST_VALUE)
    closed = flag()  # the target has since learned that the session is closed
