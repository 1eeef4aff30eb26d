"""Every shipped machine is the same definition in every process: sets have no order there that a hash decides.

What is kept of a definition (checkpoints, compiled code, what its mutants showed) is found by its fingerprint. Two
processes with different hashes define all machines; a body that runs through a set gives them away.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
from stagewright.machines import SHIPPED
from stagewright.spec.define import define
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names

for name in SHIPPED:
    machine = find(name, SHIPPED)
    for profile in profile_names(machine) or ("",):
        print(name, profile, define(machine, profile).fingerprint())
"""


def fingerprints(seed: int) -> list[str]:
    printed = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return printed.stdout.splitlines()


@pytest.mark.long
def test_no_definition_depends_on_the_order_of_a_set() -> None:
    first, second = (fingerprints(seed) for seed in (1, 2))
    assert len(first) > 100
    assert first == second
