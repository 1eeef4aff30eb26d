"""What a campaign over the view engine has come to: what happened how often, and which failures there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from stagewright.impl.recording.failure import Failure
from stagewright.impl.view_engine.campaign.counts import Counts
from stagewright.impl.view_engine.campaign.trial import Trial


@dataclass
class Found:
    """One sort of failure: the first seed that showed it, what it said, and how many did."""

    failure: Failure
    seed: int
    seeds: int = 0


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
        for sort, failure in {f.sort: f for f in reversed(trial.failures)}.items():
            one = self.found.setdefault(sort, Found(failure, trial.seed))
            one.seeds += 1
            if trial.seed < one.seed:
                one.seed, one.failure = trial.seed, failure

    @property
    def never(self) -> list[str]:
        """What happened in no run: of that the campaign shows nothing."""
        return [name.replace("_", " ") for name, n in asdict(self.counts).items() if not n]
