"""`check --spark`: the flags, and the search over hash shards with Spark to run its tasks."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.machine_flags import positive
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagewright.checker.limits import Limits, OnProgress
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope
    from stagewright.spec.verdict import Report

_ALL_CORES = "local[*,4]"  # a task may fail three times: a killed worker ends nothing
_LOCAL = re.compile(r"local(\[(?P<cores>\d+|\*)(,\s*\d+)?\])?")
_MASTER = re.compile(r"local(-cluster)?\[.+\]|local|yarn|(spark|k8s)://.+")


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Declare --spark and what belongs to it."""
    group = parser.add_argument_group(
        "beyond one machine (invariants and step properties; goals and liveness stay undecided)"
    )
    group.add_argument(
        "--spark",
        nargs="?",
        const=_ALL_CORES,
        type=_master,
        metavar="MASTER",
        help="divide the states by their hash into shards, and let Spark schedule the search: on all "
        "cores of this machine, or at MASTER (local[2,4], spark://host:7077, yarn ...)",
    )
    group.add_argument(
        "--shards", type=positive, metavar="N", help="how many shards (default: one per core)"
    )
    group.add_argument(
        "--work-dir",
        type=Path,
        metavar="DIR",
        help="keep the search's files there, and continue from those already there; must be on storage "
        "that all machines share (default: a temporary directory on this machine)",
    )


def refuse_contradictions(args: argparse.Namespace) -> None:
    """Check that the flags of both kinds of search are not mixed.

    Raises:
        InputError: they are.
    """
    if args.spark is None:
        for flag, value in (("--shards", args.shards), ("--work-dir", args.work_dir)):
            if value is not None:
                raise InputError(f"{flag} belongs to --spark", help="add --spark, or leave it out")
        return
    for flag, given, help_ in (
        ("--workers", args.workers is not None, "write --spark 'local[N,4]' for N tasks at once"),
        ("--engine numpy", args.engine == "numpy", "leave it out: shards are searched natively"),
        ("--lean", args.lean, "leave it out: the states of shards lie in files anyway"),
        ("--checkpoint", args.checkpoint is not None, "write --work-dir DIR instead"),
        ("--resume", args.resume is not None, "--work-dir goes on with what is there already"),
    ):
        if given:
            raise InputError(f"{flag} and --spark exclude each other", help=help_)
    if not _LOCAL.fullmatch(args.spark) and args.work_dir is None:
        raise InputError(
            f"a search at {args.spark} needs a work directory",
            help="add --work-dir DIR, on storage that all machines of the cluster share",
        )


def words_of(args: argparse.Namespace) -> list[str]:
    """The words that choose this kind of search again."""
    if args.spark is None:
        return []
    shards = [] if args.shards is None else ["--shards", str(args.shards)]
    return ["--spark", *([] if args.spark == _ALL_CORES else [args.spark]), *shards]


def check_on_spark(
    definition: Definition,
    scope: Scope,
    args: argparse.Namespace,
    limits: Limits,
    progress: OnProgress,
) -> Report:
    """Search over shards, with the tasks run by Spark.

    A Ctrl-C ends the search, and the report says what was found until then.

    Raises:
        StagewrightError: Spark cannot be started or used, or the directory cannot be.
    """
    from stagewright.checker.limits import Stop, interruptible
    from stagewright.checker.sharded.check import check_sharded, refuse_what_cannot_be
    from stagewright.checker.sharded.search import Place
    from stagewright.checker.sharded.work import shards_in
    from stagewright.commands.checking.spark_scheduler import SparkScheduler
    from stagewright.commands.validation.on_spark import on_spark

    refuse_what_cannot_be(definition, args.property)  # before Spark is started
    stop = Stop(limits)

    def work(spark: SparkSession) -> Report:
        stop.started = time.monotonic()  # the budget is the search's own
        at_once = spark.sparkContext.defaultParallelism
        with _work_directory(args, definition) as folder:
            known = shards_in(folder)
            if known is not None:
                print(f"going on with the search in {folder}", file=sys.stderr, flush=True)
            shards = args.shards or known or at_once
            scheduler = SparkScheduler(spark.sparkContext)
            lasting = args.work_dir is not None
            place = Place(scheduler, folder, shards, at_once, lasting=lasting)
            return check_sharded(
                definition,
                scope,
                place,
                stop,
                progress=progress,
                properties=args.property,
                coverage=not args.no_coverage,
                symmetry=not args.no_symmetry,
                deadlock=not args.no_deadlock,
            )

    print(f"starting Spark at {args.spark}", file=sys.stderr, flush=True)
    with interruptible(stop):
        report = on_spark(work, "stagewright check", None, start=lambda: _session(args.spark))
    if args.work_dir is not None and not report.exhausted:
        print("to go on: the same command, with the same --work-dir", file=sys.stderr)
    return report


@contextmanager
def _work_directory(args: argparse.Namespace, definition: Definition) -> Iterator[Path]:
    """Where files are kept: what the user named, or a directory that goes away."""
    if args.work_dir is not None:
        folder: Path = args.work_dir
        yield folder / (definition.profile or "none") if args.all_profiles else folder
        return
    temporary = Path(tempfile.mkdtemp(prefix="stagewright-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _session(master: str) -> SparkSession:
    from stagewright.traces.engines.spark_session import cluster_session, local_session

    local = _LOCAL.fullmatch(master)
    if local is None:
        return cluster_session("stagewright check", master)
    cores = local["cores"] or "1"
    settings = {"spark.master": master.replace(" ", "")}
    return local_session(
        "stagewright check", None if cores == "*" else int(cores), settings=settings
    )


def _master(text: str) -> str:
    """An argument that must name a Spark master."""
    if not _MASTER.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no Spark master; the machine is named before --spark"
        )
    return text
