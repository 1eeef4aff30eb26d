"""The native engine's algorithm, by hand, in C: what generated code is to keep up with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Answer, Job
from tests.benchmarks.peers.peer import MODELS, Sizes, built

_FLAGS = ("-O3", "-march=native", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_PARTS = {  # what the numbers of a size are called in the model's header
    "two_phase_commit": ("MANAGERS",),
    "ewd840": ("NODES",),
    "tablet_barrier": ("TABLETS", "NODES"),
}


@dataclass(frozen=True)
class GccReference:
    """`gcc -O3 -march=native` on models/c/search.c with one hand-written header a model."""

    name: str = "C (gcc -O3)"
    ours: bool = False
    sizes: Mapping[str, Sizes] = field(
        default_factory=lambda: {
            "two_phase_commit": Sizes((9,), (8,)),
            "ewd840": Sizes((9,), (8,)),
            "tablet_barrier": Sizes((4, 3), (3, 4)),
        }
    )

    def missing(self) -> str:
        """Why it cannot run here."""
        return "" if shutil.which("gcc") else "there is no gcc on PATH"

    def job(self, case: Case, size: Size, scratch: Path) -> Job:
        """A compiled search."""
        program = scratch / f"c-{case.slug(size)}"
        parts = [f"-D{part}={n}" for part, n in zip(_PARTS[case.name], size, strict=True)]
        model = f'-DMODEL="{case.name}.h"'
        source = str(MODELS / "c" / "search.c")
        seconds = built(["gcc", *_FLAGS, model, *parts, source, "-o", str(program)], scratch)
        return Job(
            self.name, (str(program),), scratch, case.states(size), _read, build_seconds=seconds
        )


def _read(stdout: str) -> Answer:
    said = json.loads(stdout)
    return Answer(said.pop("states"), said.pop("holds"), said.pop("seconds"), said)
