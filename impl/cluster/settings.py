"""What all nodes of a cluster agree on beforehand: consistency, sizes and time limits."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.impl.cluster.defects import Defect


class Consistency(Enum):
    """How many replicas a request waits for, so that each read meets each write acknowledged before it."""

    all = auto()  # writes wait for all replicas that are not ignored, reads for one
    quorum = auto()  # both wait for a majority; writes for the pending replica, too


@dataclass(frozen=True)
class Settings:
    """Time limits are in milliseconds."""

    tablets: tuple[str, ...]
    consistency: Consistency = Consistency.quorum
    defects: frozenset[Defect] = frozenset()
    chunk_rows: int = 2  # rows that are streamed at a time
    request_ms: int = 120  # after which a request fails
    resend_ms: int = 30  # after which a message without an answer is sent again
    attempts: int = 8  # how often
    barrier_ms: int = 250  # after which a barrier fails
    operation_ms: int = 600  # after which an action of a stage fails
    retry_ms: int = 60  # after which what failed is tried again

    def tablet_of(self, key: str) -> str:
        """The tablet that a key belongs to."""
        return self.tablets[zlib.crc32(key.encode()) % len(self.tablets)]

    def has(self, defect: Defect) -> bool:
        """Whether the cluster is built with a defect."""
        return defect in self.defects
