"""A campaign: scripts, faults, workloads and sizes by turns; every promise is kept, and every edge is gone."""

from __future__ import annotations

from tests.thorough import THOROUGH

from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

SCRIPTS = (
    "write 60; join a; decommission n1; replace n2 by b; remove n3",
    "write 60; join c; isolate n3; remove n3; decommission n1; rebuild n2; generation; cleanup",
    "write 80; replace n1 by b; join d; decommission n2; replace n3 by e",
    "write 60; isolate n2; replace n2 by f; join g; decommission n3",
)
FAULTS = (
    "all",
    "loss=0.1,delay=0.2,duplicate=0.1",
    "crash=80,failover=60",
    "storm,election=60,delay=0.1",
    "all",
)
SEEDS = range(2000 if THOROUGH else 20)


def plan(seed: int) -> Plan:
    """A seed says everything about its run."""
    return Plan(
        nodes=3 + seed % 3,
        seed=seed,
        script=parse_script(SCRIPTS[seed % len(SCRIPTS)]),
        faults=parse_faults(FAULTS[seed % len(FAULTS)]),
        workload=Workload(keys=(5, 12, 40)[seed % 3], gap=((0, 2), (1, 6))[seed % 2]),
        timing=Timing(compact_after=15, chunk=(3, 64)[seed % 2]),
    )


def test_no_fault_breaks_a_promise_on_any_way_of_a_node_and_of_the_ring() -> None:
    gone: set[tuple[str, str, str]] = set()
    for seed in SEEDS:
        report = run(plan(seed))
        assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
        gone |= report.edges
    for old, new in (
        ("none", "left"), ("bootstrapping", "normal"), ("bootstrapping", "left"),
        ("replacing", "normal"), ("decommissioning", "left"), ("decommissioning", "normal"),
        ("removing", "left"), ("normal", "rebuilding"), ("rebuilding", "normal"), ("normal", "left"),
    ):  # fmt: skip
        assert ("node", old, new) in gone
    for old, new in (
        ("join_group0", "null"), ("commit_cdc_generation", "left_token_ring"),
        ("write_both_read_old", "left_token_ring"), ("write_both_read_old", "rollback_to_normal"),
        ("write_both_read_old", "write_both_read_new"), ("write_both_read_new", "left_token_ring"),
        ("rollback_to_normal", "tablet_migration"), ("left_token_ring", "null"),
    ):  # fmt: skip
        assert ("topology", old, new) in gone
