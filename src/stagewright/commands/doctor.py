"""Says what this installation has and lacks, and where it found it."""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from typing import Literal

from stagewright import __version__
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.pages.capabilities import capability_page

Status = Literal["ok", "optional", "missing"]

REQUIRED = (
    "hypothesis",
    "llvmlite",
    "numpy",
    "pyarrow",
    "pyspark",
    "pytest",
    "rich",
    "transitions",
    "z3-solver",
)
DEVELOPMENT = ("mypy", "pyright", "ruff")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: "missing" means that some command cannot work without it."""

    subject: str
    status: Status
    detail: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright doctor``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "example:\n  stagewright doctor --spark --json\n\n"
        "exit codes: 0 all that is needed is here, 1 something is missing, 2 bad usage"
    )
    parser.add_argument(
        "--capabilities",
        action="store_true",
        help="print what each backend can do with each construct of the language, and nothing else",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--spark", action="store_true", help="also start Spark and run a small job (ten seconds)"
    )


def execute(args: argparse.Namespace) -> int:
    """Look, print (or print what the backends can do), and return `ExitCode.VIOLATED` if something needed is missing."""
    if args.capabilities:
        print(capability_page(), end="")
        return ExitCode.HOLDS
    findings = [_python(), _machine(), *_packages(), _search(), _solver(), _java()]
    if args.spark:
        findings.append(_spark_job())
    healthy = all(finding.status != "missing" for finding in findings)
    if args.json:
        document = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(document, indent=2))
    else:
        _print_table(findings)
    return ExitCode.HOLDS if healthy else ExitCode.VIOLATED


def _search() -> Finding:
    """Whether `check` can compile its searches: without, NumPy searches, several times slower."""
    from stagewright.checker.explicit.native.code.jit import available, cache_folder

    if not available():
        return Finding("compiled search", "optional", "no: llvmlite serves no such processor")
    return Finding("compiled search", "ok", f"yes; compiled code is kept in {cache_folder()}")


def _python() -> Finding:
    detail = f"{platform.python_version()} at {sys.executable}"
    return Finding("Python", "ok" if sys.version_info >= (3, 11) else "missing", detail)


def _machine() -> Finding:
    from stagewright.traces.engines.engine import usable_cores

    detail = f"{usable_cores()} usable cores of {os.cpu_count()}, {_system()}"
    if sys.platform == "linux":
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        detail += f", {memory_bytes / 2**30:.1f} GiB memory"
    return Finding("machine", "ok", detail)


def _system() -> str:
    """As `platform.platform()` has it, which starts a program for the name of the processor."""
    return f"{platform.system()} {platform.release()}"


def _packages() -> list[Finding]:
    needed = [_package(name, "missing", "") for name in REQUIRED]
    further = [_package(name, "optional", "; the extra `dev` has it") for name in DEVELOPMENT]
    return [Finding("stagewright", "ok", __version__), *needed, *further]


def _package(name: str, if_absent: Status, remark: str) -> Finding:
    version = _version_of(name)
    if version is None:
        return Finding(name, if_absent, f"not installed{remark}")
    return Finding(name, "ok", version)


def _version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _solver() -> Finding:
    """Load the solver's library and solve something: a wheel for another platform fails here."""
    try:
        import z3
    except Exception as error:  # noqa: BLE001 - z3 raises its own kinds if its library is absent
        return Finding("solver", "missing", f"Z3 cannot be loaded: {error}")
    number = z3.Int("number")
    solver = z3.Solver()
    solver.add(number > 1, number < 3)
    if str(solver.check()) != "sat":
        return Finding("solver", "missing", "Z3 gives a wrong answer")
    return Finding("solver", "ok", f"Z3 {z3.get_version_string()}")


def _java() -> Finding:
    from stagewright.traces.engines.java_runtime import JavaNotFoundError, find_java

    try:
        java = find_java()
    except JavaNotFoundError as error:
        return Finding("Java", "missing", str(error))
    passed_over = "".join(f"; not taken, {reason}" for reason in java.passed_over)
    return Finding("Java", "ok", f"{java.version} from {java.origin}, {java.home}{passed_over}")


def _spark_job() -> Finding:
    """Start Spark, aggregate over a shuffle, and compare with the known answer."""
    if importlib.util.find_spec("pyspark") is None:
        return Finding("Spark job", "missing", "pyspark is not installed")
    from stagewright.spec.errors import StagewrightError
    from stagewright.traces.engines.spark_session import local_session

    try:
        spark = local_session("stagewright doctor", cores=1, memory_mb=512)
    except StagewrightError as error:
        return Finding("Spark job", "missing", str(error))
    try:
        groups = spark.range(100).selectExpr("id % 3 AS k").groupBy("k").count().collect()
    finally:
        spark.stop()
    right = sorted((row["k"], row["count"]) for row in groups) == [(0, 34), (1, 33), (2, 33)]
    detail = f"Spark {spark.version} answered " + ("rightly" if right else f"wrongly: {groups}")
    return Finding("Spark job", "ok" if right else "missing", detail)


def _print_table(findings: list[Finding]) -> None:
    marks = {"ok": "ok", "optional": "-", "missing": "MISSING"}
    for finding in findings:
        first, *rest = finding.detail.splitlines()
        print(f"{marks[finding.status]:<8} {finding.subject:<12} {first}")
        for line in rest:
            print(f"{'':<21} {line}")
