"""The machines of nodes: what survives a life of a node, and that life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import Message
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Identity
from stagewright.impl.server_log import ServerLog
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk

EPOCH = 1_700_000_000_000  # milliseconds since 1970, as a run begins


@dataclass
class Host:
    """The machine of a node: its disk, and the life that runs on it, if one does."""

    identity: Identity
    disk: ModelledDisk
    rows: MemoryRows
    node: DatabaseNode | None = None
    life: int = 0
    named: tuple[int, str] = (-1, "")  # this life
    started_at: int = 0
    cause: Message | None = None  # what the node handles
    syncing: list[int] = field(default_factory=list[int])
    unsubscribe: Callable[[], None] = lambda: None
    learns: bool = False  # what is committed
    stopped: str = ""  # why the node is not to start again
    log: ServerLog | None = None  # if one is kept
    fuse: int | None = None  # so many effects until it crashes


def life_of(host: Host) -> str:
    """The name of the life that runs on a host, or that ended last."""
    if host.named[0] != host.life:
        host.named = host.life, f"{host.identity.name}#{host.life}"
    return host.named[1]


def rows_held(host: Host) -> MemoryRows:
    """The rows that a host has: while it is down, those on its disk."""
    return host.rows if host.node is not None else MemoryRows(host.disk)


def rows_of(host: Host, row: TabletRow, families: tuple[str, ...]) -> int:
    """How many rows of a tablet lie on a disk, in a table and its log."""
    snapshot, ends = host.rows.snapshot(), bounds(*row.range)
    found = {(f, v.key) for f in families for v in snapshot.versions(f, *ends)}
    snapshot.close()
    return len(found)
