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
    began: int
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

    @property
    def kept(self) -> bool:
        """Whether every promise was kept, and every step was one of the definition."""
        return not self.breaches and not self.refused
