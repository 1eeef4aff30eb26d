"""The times at which jobs scan, as masters choose them and as tablet servers read: of one job there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from stagewright.machines.recorded.logged import LoggedReadTime
from stagewright.traces.databases.names import step
from stagewright.traces.databases.yugabytedb.yugabyte_times import Placed

_UNKNOWN = "chunks that tablet servers read are of no job whose read time a master's log has"


@dataclass
class _Chosen:
    """The read times of one job."""

    ids: frozenset[str]
    choices: list[Placed] = field(default_factory=list[Placed])

    @property
    def times(self) -> set[str]:
        return {one.record.physical for one in self.choices}


class ReadTimes:
    """Clocks of nodes do not order lines: what tablet servers read is compared when all is known."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._jobs: dict[int, _Chosen] = {}
        self._scanned: list[Placed] = []

    def choose(self, job: int, ids: tuple[str, ...], one: Placed) -> None:
        """A master has chosen the time of a job."""
        if one.record.physical:
            self._jobs.setdefault(job, _Chosen(frozenset(ids))).choices.append(one)

    def take(self, one: Placed) -> None:
        """A tablet server reads a chunk."""
        self._scanned.append(one)

    def steps(self) -> Iterator[tuple[int, Placed, str]]:
        """Of each job, in an order that they may have had: what was chosen, then what was read."""
        for number, job in self._jobs.items():
            for one in job.choices:
                yield number, one, step(LoggedReadTime.choose)
        for one in self._scanned:
            indexes = set(one.record.ids)
            of = {n: job for n, job in self._jobs.items() if indexes and indexes <= job.ids}
            at = [n for n, job in of.items() if one.record.physical in job.times]
            if at:
                yield at[0], one, step(LoggedReadTime.scan)
            elif of:
                yield max(of), one, step(LoggedReadTime.scan_at_another_time)
            else:
                self.counts[_UNKNOWN] += 1
