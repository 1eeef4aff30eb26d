"""Runs contestants in turn (a, b, c, a, b, c ...), so that a machine's moods fall on all of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.measuring.measure import BenchmarkError, Finished, Usage, measured

_SHOWN_OF_STDERR = 600  # characters


@dataclass(frozen=True)
class Answer:
    """What a contestant said about its work."""

    count: int  # distinct states, or whatever the suite counts
    holds: bool = True
    seconds: float | None = None  # of the search alone, as the contestant measured it itself
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """A command, ready to be run again and again, and what it has to answer."""

    name: str
    command: tuple[str, ...]
    cwd: Path
    expected: int
    read: Callable[[str], Answer]
    environment: Mapping[str, str] = field(default_factory=dict)
    build_seconds: float = 0.0  # spent beforehand, counted nowhere else
    code: int = 0  # with which it has to end


@dataclass(frozen=True)
class Run:
    """One run of a job."""

    usage: Usage
    answer: Answer


@dataclass(frozen=True)
class Outcome:
    """All runs of a job. A figure of it is the median."""

    job: Job
    runs: tuple[Run, ...]

    @property
    def cpu(self) -> float:
        """CPU seconds of the whole process tree."""
        return statistics.median(run.usage.cpu for run in self.runs)

    @property
    def wall(self) -> float:
        """Seconds on the clock."""
        return statistics.median(run.usage.wall for run in self.runs)

    @property
    def peak(self) -> float:
        """Bytes resident, at most."""
        return statistics.median(run.usage.peak for run in self.runs)

    @property
    def together(self) -> float:
        """Bytes resident of all its processes, at most."""
        return statistics.median(run.usage.together for run in self.runs)

    @property
    def seconds(self) -> float | None:
        """Seconds of the search as the contestant itself measured them."""
        said = [run.answer.seconds for run in self.runs if run.answer.seconds is not None]
        return statistics.median(said) if said else None


def interleaved(
    jobs: Sequence[Job], repeats: int, show: Callable[[str], None]
) -> tuple[dict[str, Outcome], dict[str, str]]:
    """Run each job `repeats` times, in turn: outcomes by name, and what went wrong by name.

    A job that fails, or whose answer is wrong, is not run again and has no outcome.
    """
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names), "outcomes are told apart by name"
    runs: dict[str, list[Run]] = {name: [] for name in names}
    errors: dict[str, str] = {}
    for turn in range(repeats):
        for job in jobs:
            if job.name in errors:
                continue
            try:
                run = _run(job)
            except BenchmarkError as error:
                errors[job.name] = str(error)
                show(f"{job.name}: ERROR: {error}")
                continue
            runs[job.name].append(run)
            show(f"{turn + 1}/{repeats}  {job.name}: {run.usage.cpu:.2f} CPU s")
    done = [job for job in jobs if job.name not in errors]
    return {job.name: Outcome(job, tuple(runs[job.name])) for job in done}, errors


def _run(job: Job) -> Run:
    finished = measured(job.command, cwd=job.cwd, environment=job.environment)
    try:
        answer = job.read(finished.stdout)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise BenchmarkError(
            f"no answer found in the output ({error!r})\n{_tail(finished)}"
        ) from error
    if answer.count != job.expected:
        raise BenchmarkError(f"counted {answer.count:,} where {job.expected:,} is right")
    if not answer.holds or finished.code != job.code:
        raise BenchmarkError(
            f"did not find that all holds; exit code {finished.code}\n{_tail(finished)}"
        )
    return Run(finished.usage, answer)


def _tail(finished: Finished) -> str:
    return (finished.stderr or finished.stdout)[-_SHOWN_OF_STDERR:].strip()
