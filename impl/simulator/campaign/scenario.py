"""A scenario: all that a run is a function of, as words that `stagewright run` takes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.weather import NONE, Faults, faults_text
from stagewright.impl.simulator.database.workload import workload_text


@dataclass(frozen=True)
class Scenario:
    """A run that can be repeated, and made smaller. `strategy` says how it was drawn."""

    seed: int
    nodes: int = 3
    replicas: int = 3  # of the table of the token ring, unless there are fewer nodes
    script: tuple[Operation, ...] = ()
    faults: Faults = NONE
    workload: Workload = field(default_factory=Workload)
    chunk: int = 64
    strategy: str = ""
    cdc: bool = False
    images: bool = False
    ttl: int = 0  # milliseconds for which logs keep changes; 0: for ever

    def plan(self, defects: frozenset[Defect] = frozenset()) -> Plan:
        """What the simulator is asked for, maybe of a wrong build."""
        return Plan(
            nodes=self.nodes,
            replicas=min(self.replicas, self.nodes),
            seed=self.seed,
            script=self.script,
            faults=self.faults,
            workload=self.workload,
            timing=Timing(compact_after=COMPACT_AFTER, chunk=self.chunk),
            defects=defects,
            cdc=self.cdc,
            images=self.images,
            ttl=self.ttl,
        )

    @property
    def script_text(self) -> str:
        """The script, as `--script` takes it."""
        return "; ".join(map(str, self.script))

    @property
    def command(self) -> str:
        """The command that runs it once more, and writes down what happened."""
        words = ["stagewright", "run", "--nodes", str(self.nodes), "--seed", str(self.seed)]
        words += ["--replicas", str(self.replicas)] if self.replicas != 3 else []
        words += ["--faults", faults_text(self.faults)]
        words += ["--workload", workload_text(self.workload, self.chunk)]
        words += ["--cdc"] if self.cdc else []
        words += ["--images"] if self.images else []
        words += ["--ttl", str(self.ttl)] if self.ttl else []
        return shlex.join([*words, "--script", self.script_text])
