"""Which of several candidate profiles explain the entities of each trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stagewright.spec.text.counting import counted
from stagewright.traces.automaton.product_automaton import Standing
from stagewright.traces.coverage.exercised import Whose
from stagewright.traces.explain.explanation import CandidateReport
from stagewright.traces.explain.panel import Panel
from stagewright.traces.replay.exact_verdicts import Evaluated, MachineKey, Stands, added

_TRACES_SHOWN = 20

_Counts = Mapping[Stands, tuple[int, str]]


def compared(
    evaluated: Iterable[Evaluated], panels: Mapping[MachineKey, Panel]
) -> tuple[CandidateReport, ...]:
    """What each candidate is to the entities of each trace, by its name; nothing where none are compared."""
    counts = _together(evaluated)
    names = dict.fromkeys(name for panel in panels.values() for name in panel.candidates)
    found: list[CandidateReport] = []
    for trace in sorted({stands.trace for stands in counts}):
        for name in names:
            of_trace = {
                stands: count
                for stands, count in counts.items()
                if stands.trace == trace and name in panels[stands.machine].candidates
            }
            if of_trace:
                found.append(_report(trace, name, of_trace, panels))
    return tuple(found)


def _report(
    trace: str, name: str, counts: _Counts, panels: Mapping[MachineKey, Panel]
) -> CandidateReport:
    entities = explains = 0
    refused: tuple[int, str] | None = None
    for stands, (count, first) in counts.items():
        standing = stands.standings[panels[stands.machine].candidates[name]]
        entities += count
        explains += count if stands.ok and standing is Standing.EXPLAINS else 0
        if standing is Standing.REFUSES:
            refused = added(refused, (count, first))
    return CandidateReport(trace, name, entities, explains, *(refused or (0, "")))


def to_cover(evaluated: Iterable[Evaluated], panels: Mapping[MachineKey, Panel]) -> set[Whose]:
    """The candidates of each machine whose coverage is worth reporting: those that refuse the fewest entities."""
    counts = _together(evaluated)
    found: set[Whose] = set()
    for key, panel in panels.items():
        refused = [
            sum(
                count
                for stands, (count, _) in counts.items()
                if stands.machine == key and stands.standings[member] is Standing.REFUSES
            )
            for member in range(len(panel.members))
        ]
        found |= {(key, member) for member, n in enumerate(refused) if n == min(refused)}
    return found


def _together(evaluated: Iterable[Evaluated]) -> _Counts:
    found: dict[Stands, tuple[int, str]] = {}
    for one in evaluated:
        for stands, count in one.standings.items():
            found[stands] = added(found.get(stands), count)
    return found


def candidate_lines(candidates: Sequence[CandidateReport]) -> list[str]:
    """For each trace a line, and one for each candidate."""
    lines: list[str] = []
    traces = list(dict.fromkeys(one.trace for one in candidates))
    for trace in traces[:_TRACES_SHOWN]:
        of_trace = [one for one in candidates if one.trace == trace]
        lines.append(f"candidates{f' of {trace}' if trace else ''}")
        width = max(len(one.candidate) for one in of_trace)
        lines += [f"  {one.candidate:<{width}}  {in_words(one)}" for one in of_trace]
    if (more := len(traces) - _TRACES_SHOWN) > 0:
        lines.append(f"  … and of {more:,} more traces; --json has all")
    return lines


def in_words(one: CandidateReport) -> str:
    """How much of a trace a candidate explains, and the first entity that it refuses."""
    if one.explains == one.entities:
        return f"explains all {one.entities:,} entities" if one.entities > 1 else "explains it"
    text = f"explains {one.explains:,} of {counted(one.entities, 'entity', 'entities')}"
    return f"{text}, refuses {one.refuses:,}" + (f": first {one.first}" if one.refuses else "")
