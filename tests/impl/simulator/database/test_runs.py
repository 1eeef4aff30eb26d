"""Nodes join, leave, are replaced and removed while clients write, and every promise is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.spec.errors import InputError

EVERYTHING = (
    "write 100; join n4; decommission n1; replace n2 by n5; join n6; remove n3; rebuild n4; "
    "generation; cleanup; wait 200"
)


def done(script: str, seed: int = 0, faults: str = "none", nodes: int = 3) -> Report:
    return run(
        Plan(nodes=nodes, seed=seed, script=parse_script(script), faults=parse_faults(faults))
    )


def test_a_cluster_changes_all_its_nodes_under_writes() -> None:
    report = done(EVERYTHING)
    assert (report.breaches, report.refused) == ([], [])
    assert {o.result for o in report.outcomes} == {"done", "begun"}
    assert report.nodes == {
        "n1": "left", "n2": "left", "n3": "left", "n4": "normal", "n5": "normal", "n6": "normal"
    }  # fmt: skip
    assert report.counted["writes acknowledged"] > 90
    assert report.counted["reads checked"] > 100

    assert {(old, new) for kind, old, new in report.edges if kind == "node"} == {
        ("absent", "none"), ("none", "bootstrapping"), ("bootstrapping", "normal"),
        ("none", "replacing"), ("replacing", "normal"), ("normal", "left"),
        ("normal", "decommissioning"), ("decommissioning", "left"),
        ("normal", "removing"), ("removing", "left"),
        ("normal", "rebuilding"), ("rebuilding", "normal"),
    }  # fmt: skip


def test_a_node_that_dies_as_it_joins_is_left_and_the_cluster_goes_on() -> None:
    found: set[tuple[str, str]] = set()
    for seed in range(40, 50):
        report = done("join n4; join n5", seed, "crash=300")
        assert report.kept
        found |= {(old, new) for kind, old, new in report.edges if kind == "node"}
    assert ("bootstrapping", "left") in found


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("write 40; join a; isolate n3; remove n3", 9),
        ("table t tablets 4 rf 3; write 40; join a", 10),
    ],
)
def test_the_same_seed_gives_the_same_bytes_in_another_process(
    script: str, files: int, tmp_path: Path
) -> None:
    arguments = ("--nodes", "4", "--seed", "3", "--script", script, "--faults", "all", "--json")
    printed: list[bytes] = []
    recorded: list[list[bytes]] = []
    for hash_seed in ("1", "2"):
        directory = tmp_path / hash_seed
        directory.mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "stagewright", "run", *arguments, "--out", "."],
            cwd=directory,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        printed.append(done.stdout)
        recorded.append([p.read_bytes() for p in sorted(directory.rglob("*.json*"))])
    assert printed[0] == printed[1]
    assert len(recorded[0]) == files
    assert recorded[0] == recorded[1]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("jion n4", "did you mean `join`"),
        ("join", "write `join NODE [lacking FEATURE] [tokens TOKEN,TOKEN… or of NODE]`"),
        ("replace n1", "write `replace NODE by NODE [lacking FEATURE]`"),
        ("write many", "write `write NUMBER`"),
        ("join n4; join n4", "use a new name"),
        ("remove n9", "there is no n9"),
        ("join n4 tokens of n9", "there was no n9"),
        ("join n4 tokens 5,5", "--script: the token 5 is listed twice"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused(script: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        done(script)
    assert message in f"{refused.value.problem} {refused.value.help}"
