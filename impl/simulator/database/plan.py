"""What a run is asked to be."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.cdc.consumer import Consumer
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import HostInfo
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.checks.changes.follower import MakesConsumer
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.weather import NONE, Faults

COMPACT_AFTER = 15  # entries of group0


@dataclass(frozen=True)
class Plan:
    """What a run is asked to be."""

    nodes: int = 3
    replicas: int = 3
    seed: int = 0
    script: tuple[Operation, ...] = ()
    faults: Faults = NONE
    workload: Workload = field(default_factory=Workload)
    timing: Timing = field(default_factory=lambda: Timing(compact_after=COMPACT_AFTER))
    defects: frozenset[Defect] = frozenset()
    cdc: bool = False  # each table has a log, which a consumer follows
    images: bool = False  # which has each row before its change, too
    ttl: int = 0  # milliseconds for which logs keep changes; 0: for ever
    profile: str = ""  # the release of which tablets are; the newest
    consumer: MakesConsumer = Consumer  # what follows logs

    @property
    def hosts(self) -> tuple[HostInfo, ...]:
        """The nodes that begin the cluster: n1, n2 and so on, each in a rack of its own."""
        return tuple(host_of(f"n{i + 1}") for i in range(self.nodes))


def host_of(name: str) -> HostInfo:
    """A node of this name, in a rack of its own."""
    return HostInfo(name, rack=f"rack-{name}")
