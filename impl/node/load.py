"""Counts what a node does for clients and coordinators, for those who watch it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from stagewright.impl.node.messages import (
    ClientRead,
    ClientReply,
    ClientScan,
    ClientWrite,
    Load,
    Message,
    ReplicaRead,
    ReplicaScan,
    ReplicaWrite,
    ScanReply,
)
from stagewright.impl.node.port import Effect, Send


@dataclass
class Counts:
    """Since the node began this life; the names are those of `Load`."""

    reads: int = 0
    writes: int = 0
    scans: int = 0
    failed: int = 0
    replica_reads: int = 0
    replica_writes: int = 0

    def arrived(self, message: Message) -> None:
        """Count a message that is a request."""
        match message:
            case ReplicaWrite():
                self.replica_writes += 1
            case ReplicaRead() | ReplicaScan():
                self.replica_reads += 1
            case ClientWrite():
                self.writes += 1
            case ClientRead():
                self.reads += 1
            case ClientScan():
                self.scans += 1
            case _:
                pass

    def sent(self, effects: Iterable[Effect]) -> None:
        """Count the answers that tell a client of a failure."""
        for effect in effects:
            match effect:
                case Send(_, ClientReply(succeeded=False) | ScanReply(succeeded=False)):
                    self.failed += 1
                case _:
                    pass

    def load(self, waiting: int) -> Load:
        """The counts now, with so many clients that wait."""
        return Load(**{f.name: getattr(self, f.name) for f in fields(self)}, open=waiting)
