"""What a run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stagewright.impl.catalog.columns import Rows


@dataclass
class Outcome:
    """What became of an operation, and when it ended."""

    operation: str
    result: str
    began: int  # milliseconds
    ended: int


@dataclass
class Report:
    """What a run came to. `breaches` are broken promises; `refused` is what the definition does not allow."""

    outcomes: list[Outcome]
    breaches: list[str]
    refused: list[str]
    counted: dict[str, int]
    edges: set[tuple[str, str, str]]
    simulated_ms: int
    commits: int
    nodes: dict[str, str]
    tables: Mapping[str, Rows]  # the system tables
    met: dict[tuple[str, str], int]  # how often each fault was met in each state of the topology
    moves: list[str] = field(default_factory=list[str])  # of tablets, and why
    story: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """What happened, and when, before the first promise was broken or the first step refused."""

    @property
    def views(self) -> dict[str, str]:
        """How far each view is built, as `view_build_status_v2` and `view_building_tasks` have it."""
        found: dict[str, str] = {}
        for (name,), table in sorted(self.tables["tables"].items()):
            if not table.get("view_of"):
                continue
            said = {
                r["status"] for k, r in self.tables["view_build_status_v2"].items() if k[0] == name
            }
            tasks = [t for t in self.tables["view_building_tasks"].values() if t["view_id"] == name]
            left = f", {len(tasks)} tasks left" if tasks else ""
            found[name] = f"{min(said, default='not started')}{left}"
        return found

    @property
    def kept(self) -> bool:
        """Whether every promise was kept, and every step was one of the definition."""
        return not self.breaches and not self.refused
