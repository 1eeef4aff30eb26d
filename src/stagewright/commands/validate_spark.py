"""Runs ``stagewright validate`` on a Spark of this machine, with as many cores and as much memory as is asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def on_local_spark(work: Callable[[SparkSession], T], args: argparse.Namespace) -> T:
    """What the work comes to."""
    from stagewright.commands.on_spark import on_spark
    from stagewright.traces.spark_session import DRIVER_MEMORY_MB, local_session

    memory = args.driver_memory or DRIVER_MEMORY_MB
    name = "stagewright validate"
    return on_spark(
        work, name, None, start=lambda: local_session(name, args.cores, memory_mb=memory)
    )


def megabytes(text: str) -> int:
    """An argument that must be a size as Spark writes it."""
    found = re.fullmatch(r"(\d+)([mMgG])[bB]?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 900m or 2g")
    return int(found[1]) * (1024 if found[2] in "gG" else 1)
