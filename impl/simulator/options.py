"""What a run is asked to be."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.settings import Consistency, Settings
from stagewright.impl.simulator.faults import Fault
from stagewright.machines.scylladb.tablets.tablet_stages import Kind
from stagewright.spec.errors import InputError

LARGEST = {"nodes": 100, "tablets": 1000, "migrations": 100_000, "writes": 1_000_000}


@dataclass(frozen=True)
class Options:
    """`kinds`: the transitions that are started; `defects`: mistakes to build the cluster with.

    Raises:
        InputError: a number is out of its bounds.
    """

    nodes: int = 3
    tablets: int = 8
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    profile: str = ""
    migrations: int = 16
    writes: int = 400
    consistency: Consistency | None = None  # None: whatever bears the loss of a node
    kinds: tuple[Kind, ...] = (Kind.migration, Kind.rebuild, Kind.rebuild_v2, Kind.repair)
    defects: frozenset[Defect] = frozenset()
    keys_a_tablet: int = 5
    gap_ms: tuple[int, int] = (1, 9)  # between requests
    chunk_rows: int = 2

    def __post_init__(self) -> None:
        least = {"nodes": 3, "tablets": 1, "migrations": 0, "writes": 0}
        for name, low in least.items():
            value, high = getattr(self, name), LARGEST[name]
            if not low <= value <= high:
                why = (
                    "two replicas, and one to migrate to; " if name == "nodes" and value < 3 else ""
                )
                raise InputError(
                    f"--{name} {value}: out of bounds",
                    help=f"{why}write a number from {low} to {high}",
                )

    @property
    def replicas(self) -> int:
        """How many replicas a tablet shall have: one node at least is left to migrate to."""
        return min(3, self.nodes - 1)

    def settings(self) -> Settings:
        """What the nodes of the cluster agree on."""
        consistency = self.consistency
        if consistency is None:
            # A quorum of two is both: it would not bear the loss of one.
            consistency = Consistency.quorum if self.replicas >= 3 else Consistency.all
        return Settings(
            tablets=tuple(f"tablet{i}" for i in range(self.tablets)),
            consistency=consistency,
            defects=self.defects,
            chunk_rows=self.chunk_rows,
        )

    @property
    def node_names(self) -> tuple[str, ...]:
        """The nodes."""
        return tuple(f"node{i}" for i in range(self.nodes))
