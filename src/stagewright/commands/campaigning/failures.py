"""What a campaign found to fail, as text and as JSON: each sort once, with a command, and a smaller scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

from stagewright.impl.recording.failure import Failure, Found


class _Scenario(Protocol):
    @property
    def command(self) -> str: ...


class Small(Protocol):
    """A scenario that was made small, what fails in it, and how many runs that took."""

    @property
    def scenario(self) -> _Scenario: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def runs(self) -> int: ...


def lines_of_failures(
    failures: Sequence[Found],
    shrunk: Sequence[Small],
    again: Callable[[int], str],
    by: Mapping[str, str],
) -> Iterator[str]:
    """Each sort of failure; `again` is the command of a seed, `by` says who noticed."""
    small = {s.failure.sort: s for s in shrunk}
    for one in failures:
        seeds = f"{one.seeds} seed{'s' if one.seeds > 1 else ''}"
        yield f"BROKEN {by[one.failure.by]}: {one.failure.text} ({seeds}, first {one.seed})"
        yield f"  reproduce: {again(one.seed)}"
        found = small.get(one.failure.sort)
        if found is not None:
            yield f"  smaller, in {found.runs} runs: {found.scenario.command}"


def json_of_failures(
    failures: Sequence[Found], shrunk: Sequence[Small], again: Callable[[int], str]
) -> list[dict[str, object]]:
    """The same as data."""
    small = {s.failure.sort: s.scenario.command for s in shrunk}
    return [
        {
            **asdict(one.failure),
            "seed": one.seed,
            "seeds": one.seeds,
            "reproduce": again(one.seed),
            "shrunk": small.get(one.failure.sort),
        }
        for one in failures
    ]
