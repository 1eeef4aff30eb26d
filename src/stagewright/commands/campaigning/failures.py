"""What failed in a campaign, each sort with the commands that show it: as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stagewright.impl.recording.failure import Failure, Found


class Scenario(Protocol):
    """What can be run again by a command."""

    @property
    def command(self) -> str:
        """That command."""
        ...


class Small(Protocol):
    """The smallest scenario that shows a failure, after so many runs."""

    @property
    def scenario(self) -> Scenario: ...

    @property
    def failure(self) -> Failure: ...

    @property
    def runs(self) -> int: ...


@dataclass(frozen=True)
class Failures:
    """`words` says of each who notices it, `again` is the command of a seed; those that were made small are in `shrunk`."""

    found: Sequence[Found]
    words: Mapping[str, str]
    again: Callable[[int], str]
    shrunk: Sequence[Small] = ()

    def lines(self) -> Iterator[str]:
        """As text."""
        small = {s.failure.sort: s for s in self.shrunk}
        for one in self.found:
            seeds = f"{one.seeds} seed{'s' if one.seeds > 1 else ''}"
            what = f"{self.words[one.failure.by]}: {one.failure.text}"
            yield f"BROKEN {what} ({seeds}, first {one.seed})"
            yield f"  reproduce: {self.again(one.seed)}"
            if (less := small.get(one.failure.sort)) is not None:
                yield f"  smaller, in {less.runs} runs: {less.scenario.command}"

    def as_json(self) -> list[dict[str, object]]:
        """As part of the report."""
        small = {s.failure.sort: s.scenario.command for s in self.shrunk}
        return [
            {
                "by": one.failure.by,
                "text": one.failure.text,
                "seed": one.seed,
                "seeds": one.seeds,
                "reproduce": self.again(one.seed),
                "shrunk": small.get(one.failure.sort),
            }
            for one in self.found
        ]
