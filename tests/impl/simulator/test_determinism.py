"""The same seed gives the same run, to the byte; another seed another one."""

import json
import os
import subprocess
import sys
from pathlib import Path

SIZES = ("--nodes", "4", "--tablets", "3", "--migrations", "5", "--writes", "80")
ARGUMENTS = ("run", *SIZES, "--faults", "all", "--json")


def run(directory: Path, seed: int, hash_seed: int) -> tuple[bytes, bytes]:
    """What a run prints and records, in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "stagewright", *ARGUMENTS, "--seed", str(seed), "--out", "out"],
        cwd=directory,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        check=True,
    )
    return result.stdout, (directory / "out" / "trace.jsonl").read_bytes()


def test_same_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    printed, recorded = run(tmp_path, 5, hash_seed=1)
    again_printed, again_recorded = run(tmp_path, 5, hash_seed=2)
    assert printed == again_printed
    assert recorded == again_recorded
    other_printed, other_recorded = run(tmp_path, 6, hash_seed=1)
    assert other_recorded != recorded
    assert json.loads(other_printed)["seed"] == 6
