"""What a run counts, and the report that it ends with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.oracle import Breach


@dataclass
class Counters:
    """Numbers of what happened; the keys of the counters are names."""

    started: Counter[str] = field(default_factory=Counter)  # by kind
    done: int = 0
    reverted: int = 0
    steps: Counter[str] = field(default_factory=Counter)  # by action
    stages: Counter[str] = field(default_factory=Counter)  # entered
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)  # (stage, fault)
    messages: Counter[str] = field(default_factory=Counter)  # delivered, lost, delayed, duplicated
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # (action, requirement)
    requests: Counter[str] = field(default_factory=Counter)
    barriers: Counter[str] = field(default_factory=Counter)  # passed, failed
    rows_written: int = 0
    fenced: int = 0
    crashes: int = 0
    failovers: int = 0
    deposed: int = 0  # coordinators that tried to go on after another had taken over


@dataclass(frozen=True)
class Report:
    """What happened in a run, and whether the promises were kept."""

    options: Options
    profile: str
    counters: Counters
    breaches: tuple[Breach, ...]
    reads_checked: int
    keys: int
    simulated_ms: int
    commits: int
    traces: tuple[Path, ...]  # the steps of tablets first, then what else was recorded

    @property
    def trace(self) -> Path | None:
        """The steps of tablets as they were recorded."""
        return self.traces[0] if self.traces else None

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return not self.breaches

    def to_json(self) -> dict[str, object]:
        """The report as JSON can hold it."""
        c, o = self.counters, self.options
        return {
            "kept": self.kept,
            "profile": self.profile,
            "nodes": o.nodes,
            "tablets": o.tablets,
            "replicas": o.replicas,
            "consistency": o.settings().consistency.name,
            "seed": o.seed,
            "faults": [str(f) for f in o.faults],
            "transitions": {
                "started": dict(sorted(c.started.items())),
                "done": c.done,
                "reverted": c.reverted,
            },
            "stages": dict(sorted(c.stages.items())),
            "steps": dict(sorted(c.steps.items())),
            "faults_injected": [
                {"stage": stage, "fault": fault, "times": n}
                for (stage, fault), n in sorted(c.faults.items())
            ],
            "messages": dict(sorted(c.messages.items())),
            "requests": dict(sorted(c.requests.items())),
            "reads_checked": self.reads_checked,
            "refused_steps": [
                {"action": action, "requirement": requirement, "times": n}
                for (action, requirement), n in sorted(c.refused.items())
            ],
            "barriers": dict(sorted(c.barriers.items())),
            "rows_written": c.rows_written,
            "fence_rejections": c.fenced,
            "crashes": c.crashes,
            "coordinator_failovers": c.failovers,
            "deposed_coordinators_stopped": c.deposed,
            "commits": self.commits,
            "simulated_ms": self.simulated_ms,
            "trace": None if self.trace is None else str(self.trace),
            "traces": [str(path) for path in self.traces],
            "breaches": [
                {"promise": b.promise.value, "text": b.text, "story": list(b.story)}
                for b in self.breaches
            ],
        }
