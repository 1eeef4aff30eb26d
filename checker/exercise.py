"""Whether a check at the default scope exercises all that a definition says, but for what it gives reasons for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stagewright.checker.verdicts import METHOD
from stagewright.spec.definition import Unexercised
from stagewright.spec.text.counting import counted
from stagewright.spec.verdict import Coverage, Outcome, PropertyVerdict, Report

EXERCISED = "everything is exercised"


def exercised(report: Report, coverage: Coverage) -> PropertyVerdict:
    """The verdict on a check of all promises at the default scope.

    Violated if an action never happens or a promise is vacuous without a reason, and if a reason is given for
    one of which that is not so. What the scope switches off, by a budget of 0, needs no reason.
    """
    if not report.exhausted:
        note = "not decided: not exhausted"
        return PropertyVerdict(EXERCISED, Outcome.UNDECIDED, METHOD, note)
    reasons = report.definition.unexercised or ()
    idle = set(coverage.never_fired)
    vacuous = {v.name for v in report.verdicts if v.vacuous}
    wrong = list(_wrong(report, coverage, reasons, idle, vacuous))
    if wrong:
        return PropertyVerdict(EXERCISED, Outcome.VIOLATED, METHOD, "\n".join(wrong))
    note = "every action happens, and no property is vacuous"
    if reasons:
        note = f"but for {counted(len(idle), 'action')} and {counted(len(vacuous), 'property', 'properties')}, for the reasons given"
    return PropertyVerdict(EXERCISED, Outcome.HOLDS, METHOD, note)


def _wrong(
    report: Report,
    coverage: Coverage,
    reasons: Iterable[Unexercised],
    idle: set[str],
    vacuous: set[str],
) -> Iterator[str]:
    explained = {r.name for r in reasons}
    if silent := [name for name in coverage.fired if name in idle - explained]:
        yield f"never happen, and no reason is given: {', '.join(silent)}"
    if empty := [v.name for v in report.verdicts if v.name in vacuous - explained]:
        yield f"vacuous, and no reason is given: {', '.join(empty)}"
    actions = {a.name for a in report.definition.actions}
    switched_off = actions.difference(coverage.fired)
    known = actions.union(p.name for p in report.definition.properties)
    for reason in reasons:
        if reason.name in idle | vacuous | switched_off:
            continue
        what = "it is not vacuous" if reason.vacuous else "it happens"
        if reason.name not in known:
            what = "there is no such property" if reason.vacuous else "it is no step of its own"
        yield f"a reason is given for {reason.name}, and {what} ({reason.reason.where})"
