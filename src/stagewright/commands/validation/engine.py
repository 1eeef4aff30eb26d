"""Chooses who runs ``stagewright validate``: threads of this process, or Spark; and starts that Spark."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagewright.traces.inputs.discover import Inputs

T = TypeVar("T")

SPARK_PAYS_BYTES = 16 << 30
"""Input from which a local Spark is taken by default. Up to a thousand million events (measured) threads of one
process are faster and need half the memory; a run of hours is better off where a worker that dies costs a task."""


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that say who does the work."""
    parser.add_argument(
        "--engine",
        choices=("auto", "spark", "embedded"),
        default="auto",
        help="spark, or embedded: threads of this process, without Java "
        "(default: embedded below 16 GB of input; spark above, and with --master or --follow)",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="the Spark cluster to use, such as spark://host:7077 (default: this machine)",
    )


INTERPRETED_BYTES = 256 << 10
"""Input below which loops run as plain Python: they end before machine code would be loaded."""


def input_bytes(inputs: Inputs) -> int:
    """What there is to read, as it lies on disk."""
    return sum(file.size for file in inputs.files)


def chosen_engine(args: argparse.Namespace, size: int) -> tuple[str, str]:
    """The engine for so many bytes, and for `auto` a sentence that says why; empty where it was asked for."""
    if args.engine != "auto":
        return args.engine, ""
    if args.master:
        return "spark", f"engine: Spark at {args.master}"
    read = f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
    if size < SPARK_PAYS_BYTES:
        return "embedded", f"engine: embedded ({read} of input; --engine spark uses Spark)"
    if not _has_java():
        return "embedded", f"engine: embedded ({read} of input, but no Java for Spark was found)"
    return "spark", f"engine: Spark on this machine ({read} of input)"


def _has_java() -> bool:
    from stagewright.traces.engines.java_runtime import JavaNotFoundError, find_java

    try:
        find_java()
    except JavaNotFoundError:
        return False
    return True


def on_chosen_spark(work: Callable[[SparkSession], T], args: argparse.Namespace) -> T:
    """Do the work on the cluster of `--master`, or else on a Spark of this machine; return its result."""
    from stagewright.commands.validation.on_spark import on_spark
    from stagewright.traces.engines.spark_session import (
        DRIVER_MEMORY_MB,
        cluster_session,
        local_session,
    )

    name = "stagewright validate"
    if args.master:
        return on_spark(work, name, None, start=lambda: cluster_session(name, args.master))
    memory = args.driver_memory or DRIVER_MEMORY_MB
    return on_spark(
        work, name, None, start=lambda: local_session(name, args.workers, memory_mb=memory)
    )


def megabytes(text: str) -> int:
    """An argument that must be a size as Spark writes it."""
    found = re.fullmatch(r"(\d+)([mMgG])[bB]?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 900m or 2g")
    return int(found[1]) * (1024 if found[2] in "gG" else 1)
