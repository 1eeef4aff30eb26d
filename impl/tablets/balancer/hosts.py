"""What is balanced over: hosts with shards, in racks; and how much a shard may stream at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from stagewright.machines.scylladb.tablets.load_balancer import MOST_READS, MOST_WRITES
from stagewright.spec.errors import InputError


class TabletName(NamedTuple):
    """A tablet of a table, by its number in the table's map."""

    table: str
    number: int

    def __str__(self) -> str:
        return f"{self.table}:{self.number}"


class HostState(Enum):
    """What the balancer makes of a host."""

    normal = auto()
    leaving = auto()  # its tablets move to other hosts
    excluded = auto()  # dead: its tablets are rebuilt on other hosts, from other replicas


@dataclass(frozen=True)
class Host:
    """A host with its shards."""

    name: str
    shards: int = 1
    rack: str = ""
    state: HostState = HostState.normal

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise InputError(f"{self.name} has {self.shards} shards", help="a host has at least 1")


@dataclass(frozen=True)
class Limits:
    """How many migrations may stream from a shard, and to one, at once. The definition's, if not given."""

    reads: int = MOST_READS
    writes: int = MOST_WRITES

    def __post_init__(self) -> None:
        if min(self.reads, self.writes) < 1:
            raise InputError(
                f"with limits of {self.reads} reads and {self.writes} writes nothing can move",
                help="allow at least 1 of each",
            )
