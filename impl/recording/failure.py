"""What a run of a campaign shows to be wrong, and what of that is the same failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_OF_A_RUN = re.compile(r"b'[^']*'|\([^()]*\)|\[[^\]]*\]|(?<![a-z])[0-9a-f-]{36}|\bn\d+\b|\d+")
RAISED = "raised"
CheckLogs = Callable[[Sequence[Path]], tuple[int, str]]
"""How many events logs have, and where no run explains them, or nothing: whoever starts a campaign can read logs."""


@dataclass(frozen=True)
class Failure:
    """What a run shows to be wrong: who says it (`by`), and what."""

    by: str
    text: str

    @property
    def sort(self) -> tuple[str, str]:
        """The same for failures that differ only by nodes, keys and numbers."""
        return self.by, re.sub(r"(# ?)+", "# ", _OF_A_RUN.sub("# ", self.text)).strip()


def raised(error: Exception) -> Failure:
    """An error of the implementation is a failure of the run: which, and in which function."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    name = "" if where is None else where.tb_frame.f_code.co_qualname
    return Failure(RAISED, f"{type(error).__name__} in {name}: {error}")


@dataclass
class Found:
    """One sort of failure: the first seed that showed it, what it said, and how many did."""

    failure: Failure
    seed: int
    seeds: int = 0


def add_found(found: dict[tuple[str, str], Found], seed: int, failures: Sequence[Failure]) -> None:
    """Add the failures of one more run to those of their sorts."""
    for sort, failure in {f.sort: f for f in reversed(failures)}.items():
        one = found.setdefault(sort, Found(failure, seed))
        one.seeds += 1
        if seed < one.seed:
            one.seed, one.failure = seed, failure
