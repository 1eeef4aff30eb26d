"""One line of a ScyllaDB log: whether it is one that is met in the readers' tables, and what it says.

Each subsystem has a file of its own with the forms of its lines; this one finds the form of a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.lines import (
    balancer,
    barriers,
    cdc,
    row_work,
    schema,
    tablets,
    topology,
    views,
)
from stagewright.traces.databases.scylladb.log.patterns import LineForm
from stagewright.traces.databases.scylladb.log.prefix import take_apart

FORMS: tuple[LineForm, ...] = (
    *tablets.FORMS,
    *topology.FORMS,
    *views.FORMS,
    *cdc.FORMS,
    *balancer.FORMS,
    *barriers.FORMS,
    *row_work.FORMS,
    *schema.FORMS,
    *versions.FORMS,
)
MARKS = tuple(dict.fromkeys(form.mark for form in FORMS))
"""By these words a line is known before it is taken apart; whether it then fits is checked."""

RELEVANT = "|".join(re.escape(mark).replace(r"\ ", " ") for mark in MARKS)

_BY_LOGGER: dict[str, list[LineForm]] = {}
for _form in FORMS:
    for _logger in _form.loggers:
        _BY_LOGGER.setdefault(_logger, []).append(_form)


@dataclass(frozen=True)
class LogRecord:
    """One line that matters, with the words that stand in the places of its form."""

    says: str
    time: str
    node: str
    line: int
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    shard: str = "0"
    named: bool = True  # the line says which node it is of; else the file may have lines of several


def parse_log_line(text: str, line: int, file: str) -> LogRecord | str | None:
    """What a line says; None if nothing of a machine, a reason if it should but cannot be understood."""
    parts = take_apart(text, file)
    if parts is None:
        return "it has the words of a ScyllaDB log, but does not begin as its lines do"
    expected = False
    for form in _BY_LOGGER.get(parts.logger, ()):
        if form.mark not in parts.message:
            continue
        if found := form.pattern.match(parts.message):
            if not form.says:
                return None
            words = {**form.words, **{k: v for k, v in found.groupdict().items() if v is not None}}
            return LogRecord(
                form.says, parts.time, parts.node, line, words, parts.shard, parts.named
            )
        expected = True
    return f"not in a known form: {parts.message[:120]}" if expected else None
