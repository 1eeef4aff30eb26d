"""What a campaign over the view engine has come to: what happened how often, and which failures there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from stagewright.impl.recording.failure import Found, add_found
from stagewright.impl.view_engine.campaign.counts import Counts
from stagewright.impl.view_engine.campaign.trial import Trial


@dataclass
class Tally:
    """Adds up runs."""

    runs: int = 0
    failed: int = 0
    counts: Counts = field(default_factory=Counts)
    cpu: float = 0.0
    found: dict[tuple[str, str], Found] = field(default_factory=dict[tuple[str, str], Found])

    def add(self, trial: Trial) -> None:
        """Take one more run."""
        self.runs += 1
        self.failed += bool(trial.failures)
        self.counts.add(trial.counts)
        self.cpu += trial.cpu
        add_found(self.found, trial.seed, trial.failures)

    @property
    def never(self) -> list[str]:
        """What happened in no run: of that the campaign shows nothing."""
        return [name.replace("_", " ") for name, n in asdict(self.counts).items() if not n]
