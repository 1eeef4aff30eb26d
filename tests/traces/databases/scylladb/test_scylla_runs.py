"""Random runs of a cluster whose coordinators race, fail and disagree on the time: no log of one is a violation."""

from __future__ import annotations

import random

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import interpret, line, violations

from stagewright.traces.databases.scylladb.lines.tablets import MACHINE

TABLE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
RELEASE = "2026.2"  # whose stages these are
NEXT = {
    "none": ("allow_write_both_read_old",),
    "allow_write_both_read_old": ("write_both_read_old",),
    "write_both_read_old": ("streaming", "cleanup_target"),
    "streaming": ("write_both_read_new", "cleanup_target"),
    "write_both_read_new": ("use_new",),
    "use_new": ("cleanup",),
    "cleanup": ("end_migration",),
    "end_migration": ("none",),
    "cleanup_target": ("revert_migration",),
    "revert_migration": ("none",),
}
UNLOGGED = ("allow_write_both_read_old", "none")
RACE = "race while changing state: Tablet migration. Retrying"


class Cluster:
    """Nodes that take turns as the coordinator of a few tablets, each with a clock of its own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.skew = {f"n{i}": self.random.uniform(0, 8) for i in range(3)}
        self.logs: dict[str, list[str]] = {node: [] for node in self.skew}
        self.stages = ["none"] * 3
        self.now = 1.0
        self.leader = ""
        self.elect("n0")

    def write(self, node: str, message: str) -> None:
        self.now += self.random.uniform(0, 0.05)
        time = self.now + self.skew[node]
        self.logs[node].append(line(message, time, node, level="DEBUG"))

    def elect(self, node: str) -> None:
        old, self.leader = self.leader, node
        self.write(node, "start topology coordinator fiber")
        # It does not know yet: its commit is refused.
        if old not in ("", node) and self.random.random() < 0.5:
            for tablet, stage in enumerate(self.stages):
                if NEXT[stage][0] not in UNLOGGED:
                    self.write(old, f"Will set tablet {TABLE}:{tablet} stage to {NEXT[stage][0]}")
            self.write(old, "updating topology state: Tablet migration")

    def step(self) -> None:
        """One pass of the coordinator."""
        plan: dict[int, str] = {}
        for tablet, stage in enumerate(self.stages):
            if self.random.random() < 0.6:
                plan[tablet] = self.random.choice(NEXT[stage])
                if plan[tablet] not in UNLOGGED:
                    logged = f"Will set tablet {TABLE}:{tablet} stage to {plan[tablet]}"
                    self.write(self.leader, logged)
        outcome = self.random.random()
        if outcome < 0.1:  # something failed before the commit: all is planned anew
            self.write(
                self.leader, "topology change coordinator fiber got error std::runtime_error (x)"
            )
            return
        self.write(self.leader, "updating topology state: Tablet migration")
        if outcome < 0.25:
            self.write(self.leader, RACE)
            return
        if outcome < 0.3:
            self.write(self.leader, "topology change coordinator fiber got commit_status_unknown")
        committed = outcome >= 0.3 or self.random.random() < 0.5
        if committed:
            for tablet, stage in plan.items():
                self.stages[tablet] = stage
        if outcome > 0.85:
            self.elect(self.random.choice(list(self.skew)))
        elif committed and outcome >= 0.3 and self.random.random() < 0.5:
            self.write(self.leader, "updating topology state: published CDC generation with ID x")

    def run(self, steps: int) -> list[list[str]]:
        for _ in range(steps):
            self.step()
        return list(self.logs.values())


@pytest.mark.parametrize("seed", range(40))
def test_no_run_of_a_cluster_is_a_violation(seed: int) -> None:
    cluster = Cluster(seed)
    logs = cluster.run(60)
    random.Random(seed).shuffle(logs)
    assert violations(interpret(*logs, profile=RELEASE)) == []


def test_a_jump_of_a_stage_is_found_in_most_runs() -> None:
    found = 0
    for seed in range(20):
        logs = Cluster(seed).run(60)
        wrong = [[t.replace("stage to use_new", "stage to cleanup") for t in log] for log in logs]
        found += any(
            machine == MACHINE for machine, _, _ in violations(interpret(*wrong, profile=RELEASE))
        )
    assert found >= 15
