"""Validating traces beside its peers: the same generated events, all faults found, in one run.

The least that any plan with a shuffle does is Spark's shuffle and sort of the same columns; the least that any
reader does is PyArrow's scan of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.contest import Contest, Show
from tests.benchmarks.measuring.interleave import Answer, Job, Outcome, interleaved
from tests.benchmarks.peers.peer import ROOT
from tests.benchmarks.report import Report
from tests.benchmarks.tables import Table, ratio
from tests.benchmarks.traces.generate import Truth, generate

_EVENTS = 50_000_000
_NAMED, _BROKEN_NAMED = 10_000, 1_000  # entities and groups that a report names
_QUICK = 5_000_000
_SLOW = {"transitions": 500_000, "pm4py": 100_000}  # events that a slow peer gets
_OURS = ("embedded", "one_thread", "spark")
_ALL = (*_OURS, "spark_sort", "arrow_scan", "arrow_dictionaries", "duckdb", *_SLOW)
_PACKAGES = {"duckdb": "duckdb", "pm4py": "pm4py"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare what only this suite knows."""
    parser.add_argument("--events", type=int, metavar="N", help=f"how many (default: {_EVENTS:,})")
    parser.add_argument(
        "--growth",
        action="store_true",
        help="instead: the same from 10^6 events on, by tens, up to --events",
    )
    parser.add_argument(
        "--giant",
        action="store_true",
        help="instead: a third of all events in one entity, and without it",
    )
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="keep the generated traces there"
    )


def names() -> list[str]:
    """What --only can name."""
    return list(_ALL)


def run(args: argparse.Namespace, scratch: Path, show: Show) -> Report:
    """Measure what the arguments ask for."""
    folder, contest = args.folder or scratch, Contest()
    events = args.events or (_QUICK if args.quick else _EVENTS)
    repeats = args.repeats or (2 if args.quick else 3)
    chosen = [name for name in _ALL if not args.only or name in args.only]
    if args.growth:
        return _growth(folder, events, repeats, chosen, contest, show)
    if args.giant:
        return _giant(folder, events, repeats, contest, show)
    jobs = []
    for name in chosen:
        package = _PACKAGES.get(name)
        if package and importlib.util.find_spec(package) is None:
            contest.skipped[name] = f"the package {package} is not installed"
            continue
        size = min(events, _SLOW.get(name, events))
        jobs.append(_job(name, name, *_traces(folder, size, show)))
    smallest = _traces(folder, 10_000, show)
    jobs += [_job(f"{job.name}, start", job.name, *smallest) for job in jobs]
    _compile(smallest, show)
    outcomes, errors = interleaved(jobs, repeats, show)
    contest.alone += outcomes.values()
    contest.errors += [f"{name}: {error}" for name, error in errors.items()]
    return Report([_table(outcomes, events), _ratios(outcomes)], contest)


def _compile(smallest: tuple[Path, Truth], show: Show) -> None:
    """What is compiled once, when it is first used, is not what is measured."""
    interleaved([_job(f"{name}, compiled", name, *smallest) for name in _OURS], 1, show)


def _traces(folder: Path, events: int, show: Show, giant: float = 0.0) -> tuple[Path, Truth]:
    place = folder / f"{events}{'-giant' if giant else ''}"
    known = place / "truth.json"
    if known.exists():
        return place, Truth(**json.loads(known.read_text()))
    show(f"generating {events:,} events")
    truth = generate(place, events, giant=giant)
    truth.write(known)
    return place, truth


def _job(name: str, contestant: str, folder: Path, truth: Truth) -> Job:
    command = (sys.executable, "-m", "tests.benchmarks.traces.contestants", contestant, str(folder))

    def read(stdout: str) -> Answer:
        said = json.loads(stdout.strip().splitlines()[-1])
        good = True
        if contestant in _OURS:
            bad = {name: verdict for name, verdict in truth.verdicts.items() if verdict != "ok"}
            # Of very many not all are told one by one, but all are counted.
            good = said["verdicts"] == dict(Counter(bad.values()))
            good &= said["found"].items() <= bad.items()
            good &= len(said["found"]) >= min(len(bad), _NAMED)
            good &= said["duplicates"] == truth.duplicates
        if contestant in _OURS and said["broken"] is not None:
            broken = set(truth.broken_tables)
            good &= said["broken"] == len(broken)
            good &= len(said["broken_tables"]) >= min(len(broken), _BROKEN_NAMED)
            good &= broken.issuperset(said["broken_tables"])
        return Answer(said["events"] if contestant != "pm4py" else truth.events, good)

    return Job(name, command, ROOT, truth.events, read, {"PYTHONPATH": "src"})


def _net(outcomes: Mapping[str, Outcome], name: str) -> float | None:
    """CPU nanoseconds an event, start-up left out."""
    work, start = outcomes.get(name), outcomes.get(f"{name}, start")
    if work is None or start is None:
        return None
    return max(work.cpu - start.cpu, 0.0) / work.job.expected * 1e9


def _table(outcomes: Mapping[str, Outcome], events: int) -> Table:
    rows = []
    for name in _ALL:
        net = _net(outcomes, name)
        if net is not None:
            one = outcomes[name]
            rows.append(
                (
                    name,
                    f"{one.job.expected:,}",
                    f"{one.cpu:.1f}",
                    f"{one.wall:.1f}",
                    f"{net:,.0f}",
                    f"{1e9 / net:,.0f}" if net else "",
                    f"{one.together / 1e6:,.0f}",
                )
            )
    heads = ("", "events", "CPU s", "wall s", "CPU ns an event", "events a CPU s", "peak MB")
    note = (
        "CPU ns an event: without what 10,000 events cost; every fault was found, and nothing else"
    )
    return Table(f"Validating {events:,} events of the tablet migration", heads, tuple(rows), note)


def _ratios(outcomes: Mapping[str, Outcome]) -> Table:
    pairs = (
        ("spark", "spark_sort", "at most 0.2"),
        ("embedded", "arrow_scan", "at most 2.5"),
        ("embedded", "arrow_dictionaries", ""),
        ("spark", "embedded", "at most 1.5"),
        ("duckdb", "embedded", ""),
        ("transitions", "one_thread", "at least 150"),
        ("pm4py", "one_thread", "at least 400"),
    )
    rows = []
    for one, other, target in pairs:
        a, b = _net(outcomes, one), _net(outcomes, other)
        if a is not None and b:
            rows.append((f"{one} / {other}", ratio(a / b), target))
    return Table("CPU an event", ("", "ratio", "wanted"), tuple(rows))


def _growth(
    folder: Path, events: int, repeats: int, chosen: list[str], contest: Contest, show: Show
) -> Report:
    rows = []
    size = min(1_000_000, events)
    while size <= events:
        traces = _traces(folder, size, show)
        jobs = [_job(name, name, *traces) for name in _OURS if name in chosen]
        outcomes, errors = interleaved(jobs, repeats, show)
        contest.alone += outcomes.values()
        contest.errors += [f"{size:,} {name}: {error}" for name, error in errors.items()]
        rows += [
            (
                f"{name}, {size:,}",
                f"{one.cpu:.1f}",
                f"{one.wall:.1f}",
                f"{one.cpu / size * 1e9:,.0f}",
                f"{one.together / 1e6:,.0f}",
            )
            for name, one in outcomes.items()
        ]
        size *= 10
    heads = ("", "CPU s", "wall s", "CPU ns an event", "peak MB")
    return Report([Table("Growth", heads, tuple(rows), "start-up included")], contest)


def _giant(folder: Path, events: int, repeats: int, contest: Contest, show: Show) -> Report:
    jobs = []
    for giant in (0.0, 0.3):
        traces = _traces(folder, events, show, giant)
        title = "one entity has 30 %" if giant else "even"
        jobs += [_job(f"{name}, {title}", name, *traces) for name in _OURS]
    outcomes, errors = interleaved(jobs, repeats, show)
    contest.alone += outcomes.values()
    contest.errors += [f"{name}: {error}" for name, error in errors.items()]
    rows = []
    for name in _OURS:
        even, skewed = outcomes.get(f"{name}, even"), outcomes.get(f"{name}, one entity has 30 %")
        if even and skewed:
            rows.append(
                (
                    name,
                    f"{even.wall:.1f}",
                    f"{skewed.wall:.1f}",
                    ratio(skewed.cpu / even.cpu),
                    ratio(skewed.wall / even.wall),
                )
            )
    heads = ("", "even, wall s", "skewed, wall s", "CPU ratio", "wall ratio")
    return Report([Table("One giant entity", heads, tuple(rows), "wanted: at most 1.2")], contest)
