"""Reports as JSON, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagewright.commands.reports.result import Result, overall
from stagewright.spec.definition import Definition, Role
from stagewright.spec.values import Value, plain
from stagewright.spec.verdict import (
    REFINEMENT,
    Coverage,
    PropertyVerdict,
    Reduction,
    Refined,
    Run,
    Step,
)

Json = object


def document(results: Sequence[Result]) -> Json:
    """One object for all reports of a command."""
    return {
        "outcome": overall(results).name.lower(),
        "reports": [_report(result) for result in results],
    }


def _report(result: Result) -> Json:
    report, scope = result.report, result.scope
    return {
        "machine": report.definition.name,
        "profile": report.definition.profile,
        "fingerprint": report.definition.fingerprint(),
        "sizes": {kind.__name__: size for kind, size in scope.sizes.items()},
        "budgets": dict(scope.budgets),
        "method": report.method,
        "outcome": report.outcome.name.lower(),
        "exhausted": report.exhausted,
        "states": report.states,
        "transitions": report.transitions,
        "depth": report.depth,
        "seconds": round(report.seconds, 3),
        "note": report.note,
        "verdicts": [_verdict(report.definition, v) for v in report.verdicts],
        "symmetry": None if report.reduction is None else _reduction(report.reduction),
        "coverage": None if report.coverage is None else _coverage(report.coverage),
        "uncovered": list(report.uncovered),
        "not_asked": [
            {"name": left.name, "kind": left.kind, "why": left.why}
            for left in report.definition.not_asked
        ],
        "files": [str(path) for path in result.written],
        "reproduce": result.reproduce,
    }


def _verdict(definition: Definition, verdict: PropertyVerdict) -> Json:
    declared = [p for p in definition.properties if p.name == verdict.name]
    refined = verdict.refined
    where = declared[0].where if declared else refined.where if refined else None
    kind = REFINEMENT if refined else "of every machine"
    return {
        "name": verdict.name,
        "kind": declared[0].kind.value if declared else kind,
        "doc": declared[0].doc if declared else refined.doc if refined else "",
        "role": declared[0].role.value if declared else Role.PROMISE.value,
        "citation": declared[0].citation if declared else "",
        "where": None if where is None else str(where),
        "outcome": verdict.outcome.name.lower(),
        "method": verdict.method,
        "note": verdict.note,
        "known": definition.known_violation(verdict.name),
        "restricted": declared[0].because if declared else "",
        "vacuous": verdict.vacuous,
        "seconds": round(verdict.seconds, 3),
        "arguments": _plain(verdict.arguments),
        "run": None if verdict.run is None else _run(verdict.run),
        "refinement": None if refined is None else _refined(refined),
        "witness": None if verdict.witness is None else _run(verdict.witness),
    }


def _refined(refined: Refined) -> Json:
    return {
        "concrete": _machine(refined.concrete),
        "scope": str(refined.scope),
        "seen": _machine(refined.seen),
        "hidden": list(refined.hidden),
        "looks": [dict(look) for look in refined.looks],
        "instead": list(refined.instead),
        "edges": refined.edges,
        "taken": refined.taken,
        "untaken": list(refined.untaken),
    }


def _machine(definition: Definition) -> Json:
    return {"machine": definition.name, "profile": definition.profile}


def _run(run: Run) -> Json:
    return {
        "states": [_plain(state) for state in run.states],
        "steps": [_step(step) for step in run.steps],
        "loop": run.loop,
        "loop_step": None if run.loop_step is None else _step(run.loop_step),
    }


def _step(step: Step) -> Json:
    return {"action": step.action, "arguments": _plain(step.arguments)}


def _plain(values: Mapping[str, Value]) -> Json:
    return {name: plain(value) for name, value in values.items()}


def _reduction(reduction: Reduction) -> Json:
    return {
        "sorts": dict(reduction.sorts),
        "used": reduction.used,
        "reason": reduction.reason,
        "states": reduction.states,
    }


def _coverage(coverage: Coverage) -> Json:
    return {
        "fired": dict(coverage.fired),
        "requirement_false": [
            {"action": action, "requirement": requirement, "count": count}
            for (action, requirement), count in coverage.requirement_false.items()
        ],
        "never_fired": list(coverage.never_fired),
        "never_false": [list(key) for key in coverage.never_false],
    }
