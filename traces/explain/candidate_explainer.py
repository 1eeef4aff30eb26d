"""Explains what no candidate explains: for each, the first event that it refuses, and why."""

from __future__ import annotations

from dataclasses import replace

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.automaton.possible_states import OfCandidate
from stagewright.traces.automaton.subset_automaton import DEAD, START, UNKNOWN
from stagewright.traces.events.symbols import parse_symbol
from stagewright.traces.explain.explainer import Explainer
from stagewright.traces.explain.explanation import Explanation, Refused
from stagewright.traces.explain.panel import Panel
from stagewright.traces.replay.exact_verdicts import Cause, Finding


class PanelExplainer:
    """Explains the violations of one machine by its definition, or by each candidate."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._members = [Explainer(evaluator) for evaluator in panel.members]

    def explain(
        self, finding: Finding, *, whole: bool = True
    ) -> tuple[Explanation | None, tuple[Refused, ...]]:
        """Why no run explains a finding, by the candidate that got furthest; and what each candidate refuses.

        Raises:
            AccountingError: as `Explainer.explain` does.
        """
        if finding.verdict is not TraceVerdict.VIOLATION:
            return None, ()
        if not self._panel.candidates:
            return self._members[0].explain(finding, whole=whole), ()
        if not finding.symbols or finding.before is None:
            return None, ()
        parts = finding.before.candidates
        if not parts:  # all are in one set with a meaning of its own
            parts = (OfCandidate(finding.before.number),) * len(self._members)
        best: Explanation | None = None
        refused: list[Refused] = []
        for member, part in enumerate(parts):
            if part.number == DEAD:
                refused.append(self._earlier(member, finding))
                continue
            own = replace(finding, before=part.possible(finding.before.machine))
            explained = self._members[member].explain(own, whole=whole)
            if finding.cause is not Cause.CONFLICT:  # else nobody is asked about the event
                refused.append(Refused(self._panel.name(member), finding.sequence, explained))
            if best is None or (explained is not None and explained.steps and not best.steps):
                best = explained
        return best, tuple(refused)

    def _earlier(self, member: int, finding: Finding) -> Refused:
        """What a candidate refuses of the events before; it is not known of an entity that is reported in brief."""
        name, explainer = self._panel.name(member), self._members[member]
        if len(finding.symbols) <= finding.sequence:
            return Refused(name, None)
        number = START
        for sequence, symbol in enumerate(finding.symbols[:-1]):
            number = explainer.running.advance(number, symbol)
            if number in (DEAD, UNKNOWN):
                symbols = finding.symbols[: sequence + 1]
                cause = Cause.AFTER_END if _ended(symbols[:-1]) else Cause.STEP
                own = replace(finding, cause=cause, sequence=sequence, symbols=symbols, before=None)
                return Refused(name, sequence, explainer.explain(own, whole=False))
        return Refused(name, None)


def _ended(symbols: tuple[str, ...]) -> bool:
    return bool(symbols) and parse_symbol(symbols[-1]).end
