"""Whatever goes wrong, wherever: no acknowledged write is lost, nothing is left behind, migrations end."""

from collections.abc import Callable
from itertools import product

import pytest
from tests.thorough import examples, some_of

from stagewright.impl.simulator.counters import Report
from stagewright.impl.simulator.faults import FaultKind
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage

MIGRATION, REPAIR, REBUILD_V2 = (Kind.migration,), (Kind.repair,), (Kind.rebuild_v2,)
FORWARD = (
    Stage.allow_write_both_read_old,
    Stage.write_both_read_old,
    Stage.streaming,
    Stage.write_both_read_new,
    Stage.use_new,
    Stage.cleanup,
    Stage.end_migration,
)
# Which transitions lead to a stage, and what must go wrong for that.
PATHS: dict[Stage, tuple[tuple[Kind, ...], str]] = {
    **dict.fromkeys(FORWARD, (MIGRATION, "")),
    Stage.rebuild_repair: (REBUILD_V2, ""),
    Stage.repair: (REPAIR, ""),
    Stage.end_repair: (REPAIR, ""),
    Stage.cleanup_target: (MIGRATION, "unwanted@streaming"),
    Stage.revert_migration: (MIGRATION, "unwanted@streaming"),
    Stage.write_both_read_old_fallback_cleanup: (MIGRATION, "dead@write_both_read_new"),
}
SEEDS = 30
# The one node that may die is dead already when a tablet falls back.
IMPOSSIBLE = {(Stage.write_both_read_old_fallback_cleanup, FaultKind.dead)}


def explained(report: Report) -> str:
    return "\n".join(f"{b.text}\n  " + "\n  ".join(b.story) for b in report.breaches[:2])


def test_paths_lead_to_every_stage() -> None:
    assert set(PATHS) == set(Stage) - {Stage.none}


@pytest.mark.parametrize(
    ("stage", "fault"), some_of(product(PATHS, FaultKind)), ids=lambda one: one.name
)
def test_promises_survive_a_fault_at_a_stage(
    stage: Stage, fault: FaultKind, small_run: Callable[..., Report]
) -> None:
    if (stage, fault) in IMPOSSIBLE:
        pytest.skip("only one node may die in a run")
    kinds, needed = PATHS[stage]
    faults = ",".join(f for f in (needed, f"{fault.name}@{stage.name}") if f)
    for seed in range(SEEDS):
        report = small_run(
            faults, seed=seed, kinds=kinds, nodes=4 if fault is FaultKind.dead else 3
        )
        assert report.kept, f"seed {seed}:\n{explained(report)}"
        if report.counters.faults[stage.name, fault.name]:
            return
    pytest.fail(f"no fault {fault.name} at {stage.name} in {SEEDS} seeds")


@pytest.mark.parametrize("seed", range(examples(36)))
def test_promises_survive_all_faults(seed: int, small_run: Callable[..., Report]) -> None:
    report = small_run("all", seed=seed, nodes=3 + seed % 3, tablets=4, migrations=6, writes=120)
    assert report.kept, explained(report)
    c = report.counters
    assert sum(c.started.values()) == c.done + c.reverted
    assert c.requests["writes acknowledged"] > 60
    assert report.reads_checked > 60


def test_run_without_faults_does_everything_it_is_asked_for(
    small_run: Callable[..., Report],
) -> None:
    report = small_run(nodes=4, tablets=3, migrations=8, writes=100)
    assert report.kept
    c = report.counters
    assert (sum(c.started.values()), c.done, c.reverted) == (8, 8, 0)
    assert c.requests["writes sent"] == c.requests["writes acknowledged"] == 100
    assert c.requests["reads sent"] == c.requests["reads returned"] == report.reads_checked
    assert (c.crashes, c.failovers, c.fenced, sum(c.refused.values())) == (0, 0, 0, 0)
    assert set(c.started) == {"migration", "rebuild", "rebuild_v2", "repair"} & set(c.started)
    assert c.rows_written > 300


def test_what_is_counted_happened(small_run: Callable[..., Report]) -> None:
    report = small_run("all", seed=3, nodes=4, tablets=4, migrations=12, writes=200)
    c = report.counters
    assert c.crashes > 0
    assert c.failovers > 0
    assert c.deposed > 0
    assert c.barriers["failed"] > 0
    assert c.reverted > 0
    assert c.refused["make_unwanted", "stage is streaming"] > 0
    assert min(c.messages[what] for what in ("lost", "delayed", "duplicated")) > 0
    assert c.steps["fail_over"] > 0


def test_without_migrations_or_writes_there_is_nothing_to_break(
    small_run: Callable[..., Report],
) -> None:
    report = small_run("all", migrations=0, writes=0)
    assert report.kept
    assert report.counters.steps.total() == report.counters.requests["writes sent"] == 0
