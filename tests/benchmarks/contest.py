"""One case among several contestants: each at its size, and at the smallest size for its start-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.benchmarks.cases import Case, Size
from tests.benchmarks.measuring.interleave import Job, Outcome, interleaved
from tests.benchmarks.measuring.measure import BenchmarkError
from tests.benchmarks.peers.peer import Peer

Show = Callable[[str], None]
_LEAST_SECONDS = 0.01  # what is left after start-up, at least: below it nothing is said of speed


@dataclass(frozen=True)
class Standing:
    """What a contestant came to on a case."""

    peer: Peer
    case: Case
    size: Size
    work: Outcome
    start: Outcome  # the smallest model

    @property
    def states(self) -> int:
        """Distinct states of the model."""
        return self.case.states(self.size)

    @property
    def net_cpu(self) -> float:
        """CPU seconds less the start-up."""
        return self.work.cpu - self.start.cpu

    @property
    def speed(self) -> float | None:
        """Distinct states a CPU second, start-up left out; none if start-up is all there is."""
        return self.states / self.net_cpu if self.net_cpu >= _LEAST_SECONDS else None

    @property
    def whole_speed(self) -> float:
        """Distinct states a CPU second of the whole process."""
        return self.states / self.work.cpu

    @property
    def state_bytes(self) -> float:
        """Bytes of memory a distinct state, what the smallest model needs left out."""
        return max(0.0, self.work.peak - self.start.peak) / self.states

    def record(self) -> dict[str, object]:
        """For the JSON: every run and the medians."""
        return {
            "peer": self.peer.name,
            "ours": self.peer.ours,
            "case": self.case.name,
            "size": list(self.size),
            "states": self.states,
            "cpu_seconds": self.work.cpu,
            "start_cpu_seconds": self.start.cpu,
            "wall_seconds": self.work.wall,
            "own_seconds": self.work.seconds,
            "build_seconds": self.work.job.build_seconds,
            "states_per_cpu_second": self.speed,
            "states_per_whole_cpu_second": self.whole_speed,
            "peak_bytes": self.work.peak,
            "start_peak_bytes": self.start.peak,
            "bytes_per_state": self.state_bytes,
            "details": dict(self.work.runs[-1].answer.details),
            "runs": [run_record(self.work), run_record(self.start)],
        }


def run_record(outcome: Outcome) -> dict[str, object]:
    """Every single figure behind an outcome's medians."""
    runs = outcome.runs
    return {
        "command": list(outcome.job.command),
        "cpu": [run.usage.cpu for run in runs],
        "wall": [run.usage.wall for run in runs],
        "peak": [run.usage.peak for run in runs],
    }


@dataclass
class Contest:
    """The standings of all contestants on all cases, and who was left out for what reason."""

    standings: list[Standing] = field(default_factory=list)
    alone: list[Outcome] = field(default_factory=list)  # beside no peer
    skipped: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def of(self, case: Case) -> list[Standing]:
        """The standings on one case."""
        return [s for s in self.standings if s.case is case]


def present(peers: Sequence[Peer], contest: Contest, show: Show) -> list[Peer]:
    """Those that can run here; the others are put down with their reasons."""
    found: list[Peer] = []
    for peer in peers:
        reason = peer.missing()
        if reason:
            contest.skipped[peer.name] = reason
            show(f"skipped: {peer.name}: {reason}")
        else:
            found.append(peer)
    return found


def compete(
    case: Case,
    entries: Sequence[tuple[Peer, Size]],
    repeats: int,
    scratch: Path,
    contest: Contest,
    show: Show,
) -> None:
    """Run all entries on the case, interleaved, and add their standings to the contest."""
    jobs: dict[str, Job] = {}

    def entered(peer: Peer, at: Size) -> str:
        name = f"{peer.name}, {case.title}, {case.shown(at)}"
        if name not in jobs:
            jobs[name] = replace(peer.job(case, at, scratch), name=name)
        return name

    entered_as: list[tuple[Peer, Size, str, str]] = []
    for peer, size in entries:
        try:
            names = entered(peer, size), entered(peer, case.smallest)
        except BenchmarkError as error:
            contest.errors.append(f"{peer.name}, {case.title}: {error}")
            show(f"ERROR: {contest.errors[-1]}")
            continue
        entered_as.append((peer, size, *names))
    outcomes, errors = interleaved(list(jobs.values()), repeats, show)
    contest.errors += [f"{name}: {error}" for name, error in errors.items()]
    contest.standings += [
        Standing(peer, case, size, outcomes[work], outcomes[start])
        for peer, size, work, start in entered_as
        if work in outcomes and start in outcomes
    ]
