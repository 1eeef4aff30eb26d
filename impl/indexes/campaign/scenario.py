"""A scenario: all that a run of an indexed table is a function of, as words that `stagewright run` takes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.run import Plan
from stagewright.impl.indexes.simulated.script import Operation
from stagewright.impl.indexes.simulated.sizes import sizes_text
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.impl.simulator.database.weather import NONE, Faults, faults_text


@dataclass(frozen=True)
class Scenario:
    """A run that can be repeated, and made smaller. `strategy` says how it was drawn."""

    seed: int
    servers: int = 3
    clients: int = 3
    script: tuple[Operation, ...] = ()
    faults: Faults = NONE
    workload: Workload = field(default_factory=Workload)
    settings: Settings = field(default_factory=Settings)
    strategy: str = ""

    def plan(self, defects: frozenset[Defect] = frozenset()) -> Plan:
        """What the simulator is asked for, maybe of a wrong build."""
        return Plan(
            servers=self.servers,
            clients=self.clients,
            seed=self.seed,
            script=self.script,
            faults=self.faults,
            settings=replace(self.settings, defects=defects),
            workload=self.workload,
        )

    @property
    def command(self) -> str:
        """The command that runs it once more, and writes down what happened."""
        words = ["stagewright", "run", "--nodes", str(self.servers), "--seed", str(self.seed)]
        words += ["--faults", faults_text(self.faults)]
        words += ["--workload", sizes_text(self.workload, self.settings, self.clients)]
        return shlex.join([*words, "--script", "; ".join(map(str, self.script))])
