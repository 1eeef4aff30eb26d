"""Exhaustive checking beside its peers: the same models, the same invariants, the same run.

Each contestant runs at a size at which its start-up, which is taken off, is not what is measured. A slow
peer gets a smaller model than Stagewright does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.cases import CASES, Case, Size
from tests.benchmarks.contest import Contest, Show, compete, present
from tests.benchmarks.explicit_tables import (
    figures_table,
    first_states_table,
    growth_table,
    memory_table,
    orbits_table,
    speed_table,
    workers_table,
)
from tests.benchmarks.measuring.interleave import Job, Outcome, interleaved
from tests.benchmarks.peers.gcc_reference import GccReference
from tests.benchmarks.peers.peer import Peer
from tests.benchmarks.peers.python_checkers import MINICHECK, MUSIL
from tests.benchmarks.peers.spin import Spin
from tests.benchmarks.peers.stagewright import (
    BY_ORBITS,
    ONE_WORKER,
    TWO_WORKERS,
    VARIANTS,
    Stagewright,
    first_states,
)
from tests.benchmarks.peers.tlc import Tlc
from tests.benchmarks.report import Report

REFERENCE = GccReference()
OURS: tuple[Peer, ...] = VARIANTS
OTHERS: tuple[Peer, ...] = (REFERENCE, Spin(), Tlc(), MINICHECK, MUSIL)
_GROWTH: dict[str, tuple[Size, ...]] = {  # from 10^5 to 10^8 states
    "two_phase_commit": ((7,), (8,), (9,), (10,)),
    "ewd840": ((8,), (9,), (10,)),
    "tablet_barrier": ((3, 3), (3, 4), (4, 3), (4, 4)),
}
_REPEATS_OF_GROWTH = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare what only this suite knows."""
    parser.add_argument(
        "--scaling",
        action="store_true",
        help="instead: how cost grows from 10^5 to 10^8 states (takes minutes and 3 GB of memory)",
    )


def names() -> list[str]:
    """What --only can name: contestants and models."""
    contestants = (*OURS, TWO_WORKERS, *OTHERS)
    return [*(peer.name for peer in contestants), *(case.name for case in CASES)]


def run(args: argparse.Namespace, scratch: Path, show: Show) -> Report:
    """Measure what the arguments ask for."""
    cases = [case for case in CASES if case.name in args.only] or list(CASES)
    if args.scaling:
        return _growth(cases, args, scratch, show)
    contest, named = Contest(), [p for p in (*OURS, *OTHERS) if p.name in args.only]
    usual = (*(OURS[:1] if args.quick else OURS), *OTHERS)
    peers = present(named or usual, contest, show)
    for case in cases:
        entries = [(peer, _size(peer, case, args)) for peer in peers]
        compete(case, entries, args.repeats or _repeats(args), scratch, contest, show)
    tables = [speed_table(contest), memory_table(contest), figures_table(contest)]
    report = Report(tables, contest)
    if TWO_WORKERS.name in args.only or not (named or args.quick):
        _workers(cases, args, scratch, report, show)
    if not (args.only or args.quick):
        _orbits(args, scratch, report, show)
        _first_states(args, report, show)
    return report


def _repeats(args: argparse.Namespace) -> int:
    return 3 if args.quick else 5


def _size(peer: Peer, case: Case, args: argparse.Namespace) -> Size:
    sizes = peer.sizes[case.name]
    return sizes.quick if args.quick else sizes.full


def _workers(
    cases: Sequence[Case], args: argparse.Namespace, scratch: Path, report: Report, show: Show
) -> None:
    """Two workers beside one, and what that came to, added to the report."""
    contest = report.contest
    if not present([TWO_WORKERS], contest, show):
        return
    pairs = Contest(errors=contest.errors)
    for case in cases:
        entries = [(peer, _size(peer, case, args)) for peer in (ONE_WORKER, TWO_WORKERS)]
        compete(case, entries, args.repeats or _repeats(args), scratch, pairs, show)
    report.tables.append(workers_table(pairs))
    contest.standings += pairs.standings


def _first_states(args: argparse.Namespace, report: Report, show: Show) -> None:
    """How soon the shipped machines' users hear something, added to the report."""
    jobs = [
        first_states(machine, compiled_before=before)
        for machine in ("tablet-migration", "tablet")
        for before in (True, False)
    ]
    report.tables.append(first_states_table(_alone(jobs, args, report, show)))


def _orbits(args: argparse.Namespace, scratch: Path, report: Report, show: Show) -> None:
    """What symmetry saves where entities are alike, added to the report."""
    (case,) = (case for case in CASES if case.orbits)
    entries: list[tuple[Stagewright, Size]] = [(ONE_WORKER, (8,))]
    entries += [(BY_ORBITS, size) for size in case.orbits]
    jobs = [
        replace(peer.job(case, size, scratch), name=f"{case.shown(size)}: {peer.name}")
        for peer, size in entries
    ]
    report.tables.append(orbits_table(case, _alone(jobs, args, report, show)))


def _alone(
    jobs: Sequence[Job], args: argparse.Namespace, report: Report, show: Show
) -> list[Outcome]:
    outcomes, errors = interleaved(jobs, args.repeats or _repeats(args), show)
    report.contest.alone += outcomes.values()
    report.contest.errors += [f"{name}: {error}" for name, error in errors.items()]
    return list(outcomes.values())


def _growth(cases: Sequence[Case], args: argparse.Namespace, scratch: Path, show: Show) -> Report:
    """The fastest of ours and the reference, size by size."""
    contest = Contest()
    peers = present([OURS[0], REFERENCE], contest, show)
    for case in cases:
        entries = [(peer, size) for size in _GROWTH[case.name] for peer in peers]
        repeats = args.repeats or _REPEATS_OF_GROWTH
        compete(case, entries, repeats, scratch, contest, show)
    return Report([growth_table(contest)], contest)
