"""What a contestant has to say about itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Job
from tests.benchmarks.measuring.measure import BenchmarkError, measured

ROOT = Path(__file__).resolve().parents[3]
MODELS = Path(__file__).resolve().parents[1] / "models"


@dataclass(frozen=True)
class Sizes:
    """How large a model a contestant gets: so that one run takes 1 to 20 s, or about 1 s when quick."""

    full: Size
    quick: Size


class Peer(Protocol):
    """A contestant in exhaustive checking."""

    @property
    def name(self) -> str:
        """How it is called in tables."""
        ...

    @property
    def ours(self) -> bool:
        """Whether it is Stagewright."""
        ...

    @property
    def sizes(self) -> Mapping[str, Sizes]:
        """Its sizes by the name of the case; it does not take part in others."""
        ...

    def missing(self) -> str:
        """Why it cannot run here and what would mend that; empty if it can."""
        ...

    def job(self, case: Case, size: Size, scratch: Path) -> Job:
        """A ready command that checks the case at that size; what has to be built lies in `scratch`.

        Raises:
            BenchmarkError: it could not be built.
        """
        ...


def built(command: Sequence[str], cwd: Path) -> float:
    """Run a command that builds something; how long it took.

    Raises:
        BenchmarkError: it failed.
    """
    begun = time.perf_counter()
    finished = measured(command, cwd=cwd)
    if finished.code != 0:
        raise BenchmarkError(f"`{' '.join(command)}` failed:\n{finished.stderr.strip()}")
    return time.perf_counter() - begun
