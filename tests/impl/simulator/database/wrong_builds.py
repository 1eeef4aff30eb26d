"""Runs a wrong build until the definitions refuse its records and, where clients notice, the oracle does, too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run


@dataclass(frozen=True)
class Shown:
    """Where a defect shows, what the definitions say of its records, and whether clients notice there.

    The definitions may say nothing, "": then clients notice.
    """

    defect: Defect
    plan: Plan
    says: str
    seed: int = 0  # from which on to look
    oracle: bool = False

    def check(self, seeds: int) -> None:
        """Run so many seeds at most; raises AssertionError if none shows the defect."""
        assert self.says or self.oracle
        said: list[str] = []
        noticed = not self.oracle
        for seed in range(self.seed, self.seed + seeds):
            report = run(replace(self.plan, seed=seed, defects=frozenset({self.defect})))
            said += report.refused
            noticed = noticed or bool(report.breaches)
            if noticed and (not self.says or any(self.says in text for text in said)):
                return
        raise AssertionError(f"noticed by clients: {noticed}; {said[:5]}")
