"""Checkers in Python, whose models are Python functions: `minicheck` and `musil`."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Answer, Job
from tests.benchmarks.peers.peer import ROOT, Sizes


@dataclass(frozen=True)
class PythonChecker:
    """A package of the package index, called by a module with models for it."""

    name: str
    module: str
    sizes: Mapping[str, Sizes]
    oldest_python: tuple[int, int] = (3, 11)
    start_is_a_state: bool = False  # it has one initial state: one more, where there are several
    ours: bool = False

    def missing(self) -> str:
        """Why it cannot run here."""
        if sys.version_info < self.oldest_python:
            wanted, here = (
                ".".join(map(str, v)) for v in (self.oldest_python, sys.version_info[:2])
            )
            return f"{self.name} needs Python {wanted} or newer, this is {here}"
        if importlib.util.find_spec(self.name) is None:
            return f"the package {self.name} is not installed (pip install {self.name})"
        return ""

    def job(self, case: Case, size: Size, scratch: Path) -> Job:
        """A Python process that checks once."""
        command = (sys.executable, "-m", self.module, case.name, *map(str, size))
        extra = self.start_is_a_state and case.name == "ewd840"
        return Job(self.name, command, ROOT, case.states(size) + extra, _read)


def _read(stdout: str) -> Answer:
    said = json.loads(stdout)
    return Answer(said["states"], said["holds"])


MINICHECK = PythonChecker(
    "minicheck",
    "tests.benchmarks.models.tuples",
    {
        "two_phase_commit": Sizes((7,), (7,)),
        "ewd840": Sizes((8,), (6,)),
        "tablet_barrier": Sizes((3, 3), (2, 4)),
    },
    start_is_a_state=True,
)
MUSIL = PythonChecker(
    "musil",
    "tests.benchmarks.models.records",
    {
        "two_phase_commit": Sizes((7,), (6,)),
        "ewd840": Sizes((7,), (6,)),
        "tablet_barrier": Sizes((3, 3), (2, 4)),
    },
    oldest_python=(3, 12),
)
