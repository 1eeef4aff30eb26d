"""What earlier runs reported of that which every run evaluates as a whole: nothing is reported twice.

Entities of logs are evaluated so, and groups of entities. A bad entity is known by the file and line of the event where
it is so, wherever that event stands among its own by now; a group by the time when it broke a property.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.cross_entity.sweep import Broken, Swept
from stagewright.traces.events.event_block import EntityKey, Place, Stream
from stagewright.traces.readers import formats
from stagewright.traces.replay.exact_verdicts import Evaluated, Finding, NotUnderstood
from stagewright.traces.replay.related.classes import Related

_LINE = "LINE"  # in place of a cause: the line is no event of its machine
_TOGETHER = "TOGETHER"  # … or a group has broken a property over several entities

Line = tuple[int, int]  # the number of a file, and a line in it
LineOf = Callable[[Place], Line]


class Reported(NamedTuple):
    """Something that was reported."""

    trace: str
    machine: str
    profile: str
    definition: str
    entity: str
    cause: str
    file: int
    line: int

    @property
    def key(self) -> EntityKey:
        """Whose it is; of a group its name, and the property."""
        return EntityKey(Stream(*self[:4]), self.entity)


class ReportOnce:
    """Leaves out what was reported before; `reported` is what was reported until now, this run included."""

    def __init__(self, before: frozenset[Reported]) -> None:
        self._before = before
        self.reported: set[Reported] = set()
        self.known = 0  # entities that are bad, and were reported before
        self.known_groups = 0

    @property
    def taken_back(self) -> list[EntityKey]:
        """The entities and groups that were bad, and are not any more."""
        bad = {said.key for said in self.reported if said.cause != _LINE}
        return sorted({said.key for said in self._before if said.cause != _LINE} - bad)

    def leave_out(self, evaluated: Sequence[Evaluated], line_of: LineOf) -> None:
        """Take what was reported before out of the lists of what was found; the counts stay as they are."""
        for one in evaluated:
            of_findings = [(f, _of_finding(f, line_of)) for f in one.findings]
            of_lines = [(n, _of_line(n, line_of)) for n in one.not_understood]
            self.reported |= {said for _, said in (*of_findings, *of_lines) if said is not None}
            self.known += sum(said in self._before for _, said in of_findings)
            one.findings = [f for f, said in of_findings if said not in self._before]
            one.not_understood = [n for n, said in of_lines if said not in self._before]

    def leave_out_groups(self, swept: Sequence[Swept], properties: Sequence[Related]) -> None:
        """Do the same with groups that have broken a property."""
        for one in swept:
            of_groups = [(b, _of_group(b, properties[b.prop])) for b in one.broken]
            self.reported |= {said for _, said in of_groups}
            self.known_groups += sum(said in self._before for _, said in of_groups)
            one.broken = [b for b, said in of_groups if said not in self._before]


def _of_group(broken: Broken, prop: Related) -> Reported:
    name, asked = str(broken.group), f"{prop.system}.{prop.name}"
    return Reported(name, prop.system, "", "", asked, _TOGETHER, -1, broken.time)


def _of_finding(finding: Finding, line_of: LineOf) -> Reported | None:
    """None for what is reported in every run: other entities than of logs, and events that may still come."""
    if not formats.is_log(finding.key.stream.definition) or finding.verdict is TraceVerdict.GAP:
        return None
    assert finding.cause is not None
    at = (-1, finding.sequence) if finding.place is None else line_of(finding.place)
    return Reported(*finding.key.stream, finding.key.entity, finding.cause.name, *at)


def _of_line(line: NotUnderstood, line_of: LineOf) -> Reported | None:
    if not formats.is_log(line.key.stream.definition):
        return None
    return Reported(*line.key.stream, line.key.entity, _LINE, *line_of(line.place))


def save_reported(reported: Iterable[Reported], path: Path) -> None:
    """Write what was reported to a file.

    Raises:
        OSError: there is no room.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [one._asdict() for one in sorted(reported)]
    kinds = [(n, pa.int64() if n in ("file", "line") else pa.string()) for n in Reported._fields]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), path, compression="zstd")


def load_reported(path: Path) -> frozenset[Reported]:
    """What a file says was reported.

    Raises:
        InputError: the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return frozenset(Reported(**row) for row in pq.read_table(path).to_pylist())
    except (pa.ArrowException, OSError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", help="begin anew with an empty --state directory"
        ) from error
