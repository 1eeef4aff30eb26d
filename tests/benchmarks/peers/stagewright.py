"""Stagewright as its users run it: the command line, on a definition in a file."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Answer, Job
from tests.benchmarks.peers.peer import ROOT, Sizes

_COMMAND = (sys.executable, "-P", "-m", "stagewright", "check")
_PROMISES = {
    "two_phase_commit": "consistent",
    "ewd840": "detection_is_right",
    "tablet_barrier": "at_most_one_behind",
}
_LARGE = {
    "two_phase_commit": Sizes((9,), (8,)),
    "ewd840": Sizes((9,), (8,)),
    "tablet_barrier": Sizes((4, 3), (3, 4)),
}
_SMALL = {
    "two_phase_commit": Sizes((8,), (7,)),
    "ewd840": Sizes((8,), (6,)),
    "tablet_barrier": Sizes((3, 4), (3, 3)),
}


@dataclass(frozen=True)
class Stagewright:
    """A way to run `stagewright check`. All check the one invariant that the peers check, too."""

    name: str
    flags: tuple[str, ...] = ()
    sizes: Mapping[str, Sizes] = field(default_factory=lambda: _LARGE)
    orbits: bool = False  # searches one state of each orbit
    ours: bool = True

    def missing(self) -> str:
        """Why it cannot run here."""
        absent = [flag for flag in self.flags if flag.startswith("--") and flag not in _offered()]
        return f"`stagewright check` offers no {' and no '.join(absent)}" if absent else ""

    def job(self, case: Case, size: Size, scratch: Path) -> Job:
        """The command line, whole."""
        machine = _machine(case, size)
        words = [*_COMMAND, *machine, "--property", _PROMISES[case.name], "--json", *self.flags]
        words += [] if self.orbits else ["--no-symmetry"]
        expected = case.orbits[size] if self.orbits else case.states(size)
        return Job(self.name, tuple(words), ROOT, expected, _read)


# What a user gets on one core: with coverage, and with what it takes to tell a counterexample.
ONE_WORKER = Stagewright("stagewright", ("--workers", "1"))
VARIANTS = (
    # What the peers do, too: one core, one invariant, no log of the states.
    Stagewright("stagewright --lean", ("--workers", "1", "--no-coverage", "--lean")),
    ONE_WORKER,
    # Where there is no llvmlite.
    Stagewright("stagewright --engine numpy", ("--engine", "numpy"), _SMALL),
)
BY_ORBITS = Stagewright("stagewright, by orbits", ("--workers", "1"), orbits=True)
TWO_WORKERS = Stagewright("stagewright --workers 2", ("--workers", "2"))
FIRST_STATES = 1_000


def first_states(machine: str, *, compiled_before: bool) -> Job:
    """How soon a user of a shipped machine hears something: the verdict on its first states."""
    words = [*_COMMAND, machine, "--max-states", str(FIRST_STATES), "--json"]
    name = f"{machine}, {'compiled before' if compiled_before else 'compiled anew'}"
    no_cache = {} if compiled_before else {"STAGEWRIGHT_CACHE": ""}

    def read(stdout: str) -> Answer:
        (report,) = json.loads(stdout)["reports"]
        return Answer(min(report["states"], FIRST_STATES), seconds=report["seconds"])

    undecided = 3
    return Job(name, tuple(words), ROOT, FIRST_STATES, read, no_cache, code=undecided)


@functools.cache
def _offered() -> str:
    told = subprocess.run(
        [*_COMMAND, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout


def _machine(case: Case, size: Size) -> list[str]:
    """The words that name the definition and its size."""
    match case.name, size:
        case "two_phase_commit", (managers,):
            file = "tests/models/two_phase_commit.py:TwoPhaseCommit"
            return [file, "--size", f"manager={managers}"]
        case "ewd840", (nodes,):
            return [f"tests/benchmarks/models/ewd840_rings.py:Ring{nodes}"]
        case "tablet_barrier", (tablets, nodes):
            file = "tests/models/tablet_barrier.py:TabletBarrier"
            return [file, "--size", f"tablet={tablets}", "--size", f"node={nodes}"]
        case _:
            raise AssertionError(case.name)


def _read(stdout: str) -> Answer:
    said = json.loads(stdout)
    (report,) = said["reports"]
    details = {name: report[name] for name in ("method", "transitions", "depth")}
    right = report["exhausted"] and said["outcome"] == "holds"
    return Answer(report["states"], right, report["seconds"], details)
