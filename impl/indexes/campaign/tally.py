"""What a campaign over indexed tables has come to: what happened how often, and which failures there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stagewright.impl.indexes.campaign.trial import Trial
from stagewright.impl.recording.failure import Found, add_found

WANTED = (
    "committed",
    "reads through indexes",
    "rows scanned",
    "indexes: SUCCESS",
    "indexes: FAILED",
    "indexes dropped",
    "servers killed",
    "masters failed over",
    "messages lost",
    "messages late",
    "messages repeated",
)
"""What a campaign that shows something has to have met."""


@dataclass
class Tally:
    """Adds up runs."""

    runs: int = 0
    failed: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    strategies: Counter[str] = field(default_factory=Counter[str])
    cpu: float = 0.0
    found: dict[tuple[str, str], Found] = field(default_factory=dict[tuple[str, str], Found])

    def add(self, trial: Trial) -> None:
        """Take one more run."""
        self.runs += 1
        self.failed += bool(trial.failures)
        self.counts.update(trial.counts)
        self.strategies[trial.strategy] += 1
        self.cpu += trial.cpu
        add_found(self.found, trial.seed, trial.failures)

    @property
    def never(self) -> list[str]:
        """What happened in no run: of that the campaign shows nothing."""
        return [name for name in WANTED if not self.counts[name]]
