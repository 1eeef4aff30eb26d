"""Exhaustive checking beside its peers: the same models, the same invariants, the same run.

Ratios are of distinct states a CPU second, each contestant at a size at which its start-up, which is
taken off, is not what is measured. A peer that is slow gets a smaller model than Stagewright does, which
favours the peer: a larger table misses the caches more often.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.cases import CASES, Case, Size
from tests.benchmarks.contest import Contest, Tell, compete, present
from tests.benchmarks.explicit_tables import (
    figures_table,
    growth_table,
    memory_table,
    speed_table,
    workers_table,
)
from tests.benchmarks.peers.gcc_reference import GccReference
from tests.benchmarks.peers.peer import Peer
from tests.benchmarks.peers.python_checkers import MINICHECK, MUSIL
from tests.benchmarks.peers.spin import Spin
from tests.benchmarks.peers.stagewright import AS_IT_IS, ONE_WORKER, TWO_WORKERS, VARIANTS
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
    contestants = (*OURS, AS_IT_IS, TWO_WORKERS, *OTHERS)
    return [*(peer.name for peer in contestants), *(case.name for case in CASES)]


def run(args: argparse.Namespace, scratch: Path, tell: Tell) -> Report:
    """Measure what the arguments ask for."""
    cases = [case for case in CASES if case.name in args.only] or list(CASES)
    if args.scaling:
        return _growth(cases, args, scratch, tell)
    contest, named = Contest(), [p for p in (*OURS, AS_IT_IS, *OTHERS) if p.name in args.only]
    peers = present(named, contest, tell) if named else _all_present(contest, tell)
    for case in cases:
        entries = [(peer, _size(peer, case, args)) for peer in peers]
        compete(case, entries, args.repeats or _repeats(args), scratch, contest, tell)
    tables = [speed_table(contest), memory_table(contest), figures_table(contest)]
    report = Report(tables, contest)
    if not named or TWO_WORKERS.name in args.only:
        _workers(cases, args, scratch, report, tell)
    return report


def _repeats(args: argparse.Namespace) -> int:
    return 3 if args.quick else 5


def _size(peer: Peer, case: Case, args: argparse.Namespace) -> Size:
    sizes = peer.sizes[case.name]
    return sizes.quick if args.quick else sizes.full


def _all_present(contest: Contest, tell: Tell) -> list[Peer]:
    ours = present(OURS, contest, tell) or [AS_IT_IS]
    return [*ours, *present(OTHERS, contest, tell)]


def _workers(
    cases: Sequence[Case], args: argparse.Namespace, scratch: Path, report: Report, tell: Tell
) -> None:
    """Two workers beside one, and what that came to, added to the report."""
    contest = report.contest
    if not present([TWO_WORKERS], contest, tell):
        return
    pairs = Contest(errors=contest.errors)
    for case in cases:
        entries = [(peer, _size(peer, case, args)) for peer in (ONE_WORKER, TWO_WORKERS)]
        compete(case, entries, args.repeats or _repeats(args), scratch, pairs, tell)
    report.tables.append(workers_table(pairs))
    contest.standings += pairs.standings


def _growth(cases: Sequence[Case], args: argparse.Namespace, scratch: Path, tell: Tell) -> Report:
    """The fastest of ours and the reference, size by size."""
    contest = Contest()
    ours = (present(OURS[:1], contest, tell) or [AS_IT_IS])[:1]
    peers = [*ours, *present([REFERENCE], contest, tell)]
    for case in cases:
        entries = [(peer, size) for size in _GROWTH[case.name] for peer in peers]
        repeats = args.repeats or _REPEATS_OF_GROWTH
        compete(case, entries, repeats, scratch, contest, tell)
    return Report([growth_table(contest)], contest)
