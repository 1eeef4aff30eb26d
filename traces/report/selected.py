"""Reports of some entities only: those that a user asks for by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from stagewright.traces.report.results import EntityReport, TraceReport


def report_of(report: TraceReport, names: Sequence[str]) -> TraceReport:
    """The report with the findings of these entities alone; counts stay those of all.

    A name is an entity's (`tablet7`), with its trace (`run-1/tablet7`), or a pattern of them with `*` and `?`.
    """
    chosen = tuple(one for one in report.entities if _is_meant(one, names))
    left_out = report.entities_left_out + len(report.entities) - len(chosen)
    notes = report.notes
    if not chosen:
        named = ", ".join(names)
        notes = (
            *notes,
            f"nothing is wrong with an entity that --entity {named} names, or none is named so",
        )
    return replace(report, entities=chosen, entities_left_out=left_out, notes=notes)


def _is_meant(one: EntityReport, names: Sequence[str]) -> bool:
    called = (one.key.entity, str(one.key))
    return any(name in called or fnmatchcase(text, name) for name in names for text in called)
