"""The system tables of a run: what they keep, that nodes rebuild them, and that their dumps are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

SCRIPT = "write 60; join n4; generation; decommission n1; replace n2 by n5"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    directory = tmp_path_factory.mktemp("run")
    plan = Plan(seed=1, script=parse_script(SCRIPT), faults=parse_faults("crash,failover,delay"))
    return run(plan, directory), directory


def test_rows_of_nodes_that_left_stay_for_ever(recorded: tuple[Report, Path]) -> None:
    report, _ = recorded
    assert report.kept
    rows = report.tables["topology"]
    left = [key[0] for key, row in rows.items() if key and row["node_state"] == "left"]
    assert left == ["n1", "n2"]
    assert all(rows[name,]["tokens"] is None for name in left)
    assert {key[0] for key in report.tables["raft_snapshot_config"]} == {"n3", "n4", "n5"}


def test_nodes_learn_from_snapshots_what_the_log_has_no_more(
    recorded: tuple[Report, Path],
) -> None:
    report, _ = recorded
    assert report.counted["snapshots"] >= 2
    assert report.counted["crashes"] >= 1  # and all nodes had the tables of the log in the end


def test_generations_have_streams_for_the_whole_ring_and_are_published_in_order(
    recorded: tuple[Report, Path],
) -> None:
    report, _ = recorded
    committed = report.tables["topology"][()]["committed_cdc_generations"]
    assert len(committed) == 3  # of the founders, of the join, and as it was asked for
    times = [float(timestamp) for timestamp, _ in committed]
    assert times == sorted(set(times))
    published = report.tables["cdc_generation_timestamps"]
    assert {(t, row["generation"]) for (t,), row in published.items()} == {*map(tuple, committed)}
    for _, generation in committed:
        described = [
            (int(key[1]), row["streams"])
            for key, row in report.tables["cdc_generations_v3"].items()
            if key[0] == generation
        ]
        assert len(described) == (3 if generation == committed[0][1] else 4) * 8  # vnodes
        for end, streams in described:
            assert len(streams) == 2  # one a shard
            assert all(len(bytes.fromhex(s[2:])) == 16 for s in streams), end


def test_validate_reads_the_dumps_of_the_tables(
    recorded: tuple[Report, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, directory = recorded
    validate = ["validate", "--profile", "scylla-2026.2", "--engine", "embedded"]
    assert run_command_line([*validate, str(directory / "dumps")]) == 0
    printed = capsys.readouterr().out
    assert "TopologyNode (scylla-6.0): 5 ok" in printed
    assert "CdcGeneration: 3 ok" in printed
    spoiled = tmp_path / "topology.json"
    text = (directory / "dumps" / "topology.json").read_text()
    before, host, after = text.rpartition(host_id_of("n1"))  # which left long before the end
    after = after.replace('"node_state": "left"', '"node_state": "normal"', 1)
    spoiled.write_text(f"{before}{host}{after}")
    assert run_command_line([*validate, str(spoiled)]) == 1
