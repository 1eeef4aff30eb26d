"""What a suite hands back: tables for people, a record for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.benchmarks.contest import Contest, run_record
from tests.benchmarks.tables import Table


@dataclass(frozen=True)
class Report:
    """Tables, and what they were made of."""

    tables: list[Table]
    contest: Contest

    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join([table.text() for table in self._filled()] + self._remarks())

    def markdown(self) -> str:
        """To paste into a page."""
        return "\n\n".join([table.markdown() for table in self._filled()] + self._remarks())

    def record(self, facts: Mapping[str, object], suite: str) -> dict[str, object]:
        """For the JSON."""
        return {
            "suite": suite,
            "machine": dict(facts),
            "standings": [standing.record() for standing in self.contest.standings],
            "alone": {found.job.name: run_record(found) for found in self.contest.alone},
            "skipped": dict(self.contest.skipped),
            "errors": list(self.contest.errors),
        }

    def _filled(self) -> list[Table]:
        return [table for table in self.tables if table.rows]

    def _remarks(self) -> list[str]:
        skipped = [f"skipped: {name}: {why}" for name, why in self.contest.skipped.items()]
        errors = [f"ERROR: {error}" for error in self.contest.errors]
        return ["\n".join(lines) for lines in (skipped, errors) if lines]
