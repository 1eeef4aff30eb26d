"""What is kept of one run of a campaign, and what all of them have come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Self, TypeVar

from stagewright.impl.recording.failure import Failure, Found, add_found


@dataclass(frozen=True)
class Trial:
    """What is kept of a run."""

    seed: int
    strategy: str = ""
    failures: tuple[Failure, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])  # of what happened
    cpu: float = 0.0  # seconds

    def to_json(self) -> dict[str, Any]:
        """One line of the file of results."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """The inverse."""
        return cls(**{**found, "failures": tuple(Failure(**f) for f in found["failures"])})


T = TypeVar("T", bound=Trial)


@dataclass
class Tally(Generic[T]):
    """Adds up runs. A campaign that shows something has met what is `wanted`."""

    wanted: Sequence[str] = ()
    runs: int = 0
    failed: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    strategies: Counter[str] = field(default_factory=Counter[str])
    cpu: float = 0.0
    found: dict[tuple[str, str], Found] = field(default_factory=dict[tuple[str, str], Found])

    def add(self, trial: T) -> None:
        """Take one more run."""
        self.runs += 1
        self.failed += bool(trial.failures)
        self.counts.update(trial.counts)
        self.strategies[trial.strategy.partition(":")[0]] += 1
        self.cpu += trial.cpu
        add_found(self.found, trial.seed, trial.failures)

    @property
    def never(self) -> list[str]:
        """What happened in no run: of that the campaign shows nothing."""
        return [name for name in self.wanted if not self.counts[name]]
