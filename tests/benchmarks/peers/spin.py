"""SPIN: depth-first, exact storage, its model compiled by gcc."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Answer, Job
from tests.benchmarks.models.promela import promela
from tests.benchmarks.peers.peer import Sizes, built

# One process: partial orders have nothing to reduce. Memory is bounded by the machine alone.
_FLAGS = ("-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=16000", "-w")
_DEEPEST = 20_000_000  # steps in SPIN's stack: an unfinished search would count wrongly


@dataclass(frozen=True)
class Spin:
    """`spin -a`, `gcc -O2 -DSAFETY`, and the search that came out."""

    name: str = "SPIN"
    ours: bool = False
    sizes: Mapping[str, Sizes] = field(
        default_factory=lambda: {
            "two_phase_commit": Sizes((8,), (7,)),
            "ewd840": Sizes((8,), (6,)),
            "tablet_barrier": Sizes((3, 4), (3, 3)),
        }
    )

    def missing(self) -> str:
        """Why it cannot run here."""
        absent = [name for name in ("spin", "gcc") if shutil.which(name) is None]
        return f"no {' and no '.join(absent)} on PATH (on Debian: apt-get install spin)" * bool(
            absent
        )

    def job(self, case: Case, size: Size, scratch: Path) -> Job:
        """The verifier that SPIN writes, compiled."""
        folder = scratch / f"spin-{case.slug(size)}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.pml").write_text(promela(case.name, size))
        seconds = built(["spin", "-a", "model.pml"], folder)
        seconds += built(["gcc", *_FLAGS, "-o", "pan", "pan.c"], folder)
        states = case.states(size)
        slots = max(16, math.ceil(math.log2(states)) + 1)
        deepest = min(_DEEPEST, states + 1_000)
        return Job(
            self.name,
            # No deadlocks are looked for; the largest hash table that pays; no idle depth limit.
            (str(folder / "pan"), "-E", "-n", f"-w{slots}", f"-m{deepest}"),
            folder,
            # The state before the initial ones are chosen counts, too.
            states + (case.name == "ewd840"),
            _read,
            build_seconds=seconds,
        )


def _read(stdout: str) -> Answer:
    stored = re.search(r"^\s*([\d.e+]+) states, stored", stdout, re.MULTILINE)
    errors = re.search(r"errors: (\d+)", stdout)
    took = re.search(r"elapsed time ([\d.e+-]+) seconds", stdout)
    if stored is None or errors is None:
        raise ValueError("no count of stored states")
    complete = "Search not completed" not in stdout and "max search depth too small" not in stdout
    return Answer(int(stored[1]), complete and errors[1] == "0", float(took[1]) if took else None)
