"""A mutation report as JSON, for programs.

    {"machine", "profile", "fingerprint", "seconds", "whole", "interrupted",
     "scopes":  [{"scope", "states", "depth", "stopped", "broken", "never_fired"}],
     "sought_elsewhere": {property that decides nothing here: its scope, which was not searched},
     "with_parts": {part: how many mutants are checked with it alone, and not here},
     "summary": {"mutants", "caught", "unobserved", "unexplained", "undecided", "same"},
     "kinds":   {"drop": {the same}, "weaken", "skip", "lose", "replace", "swap", "helper", "edge", "disable", "tighten"},
     "catchers": {kind of property: how many of the caught it catches}, "restated": [properties that repeat a guard],
     "catches": {property: how many mutants it catches},
     "needs": with --alone {property: {"need": "alone", "shared", "nothing", "of a part" or "undecided", "caught": how many
              mutants it catches first, "mutant": one that it alone catches, or null}},
     "mutants": [{"kind", "action", "text", "file", "line", "fate", "by", "depth", "states", "scope",
                  "steps", "loop", "note", "hint", "reasons", "seconds"}],
     "fairness": null if only some mutants were asked for, else {"assumptions": how many, "undecided",
                 "beyond_need": [{"name", "text", "file", "line"}]},
     "stale", "unmatched": [{"reason", "subject": what it is about, if that is known, "file", "line"}],
     "reasons": how many are {"needed", "stale", "open"}; all 0 if not every mutant of a reason was asked for}

With --all: {"machines": [such an object for each]}.

`fate` is "caught", "survived" (it takes other steps, and no property minds), "redundant" (it takes the same
steps in every reachable state), "undecided" or "same" (it means the same; not counted). `by` names the
properties that break first, `steps` the counterexample, `loop` the step to whose end its last one returns.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.claims import Claim
from stagewright.checker.mutation.fairness import Assumed
from stagewright.checker.mutation.report import Finding, MutationReport, hint
from stagewright.commands.reports.places import path_of

if TYPE_CHECKING:
    from stagewright.spec.definition import Reason

Json = object


def document_of(report: MutationReport) -> Json:
    """The report as one object."""
    return {
        "machine": report.definition.name,
        "profile": report.definition.profile,
        "fingerprint": report.definition.fingerprint(),
        "seconds": round(report.seconds, 3),
        "whole": report.whole,
        "interrupted": report.interrupted,
        "scopes": [
            {
                "scope": str(original.scope),
                "states": original.count,
                "depth": original.depth,
                "stopped": original.stopped,
                "broken": list(original.broken),
                "never_fired": list(original.never_fired),
            }
            for original in report.originals
        ],
        "sought_elsewhere": {name: str(scope) for name, scope in report.sought_elsewhere.items()},
        "with_parts": {alone.part.rstrip("."): number for alone, number in report.of_parts.items()},
        "summary": asdict(report.summary()),
        "kinds": {kind.value: asdict(report.summary(kind)) for kind in Kind},
        "catchers": {kind.value: number for kind, number in report.catchers.items()},
        "restated": sorted(report.restated),
        "catches": dict(report.catches),
        "needs": {
            name: {
                "need": need.need.value,
                "caught": need.caught,
                "mutant": None if need.example is None else need.example.mutant.id,
            }
            for name, need in report.needs.items()
        },
        "mutants": [_finding(report, finding) for finding in report.findings],
        "fairness": None if report.assumed is None else _assumed(report.assumed),
        "stale": [_reason(reason) for reason in report.stale],
        "unmatched": [_reason(reason) for reason in report.unmatched],
        "reasons": {kind.value: sum(c is kind for c in report.claims.values()) for kind in Claim},
    }


def _finding(report: MutationReport, finding: Finding) -> Json:
    mutant, evaluation = finding.mutant, finding.evaluation
    where = mutant.where
    return {
        "kind": mutant.kind.value,
        "action": mutant.action,
        "text": mutant.text,
        "file": "" if where is None else path_of(where.file),
        "line": 0 if where is None else where.line,
        "fate": evaluation.fate.value,
        "by": list(evaluation.by),
        "depth": evaluation.depth,
        "states": evaluation.states,
        "scope": evaluation.scope,
        "steps": list(evaluation.steps),
        "loop": evaluation.loop,
        "note": evaluation.note,
        "hint": hint(finding, report.originals) if finding.survives else "",
        "reasons": [reason.text for reason in mutant.reasons],
        "seconds": round(evaluation.seconds, 3),
    }


def _assumed(assumed: Assumed) -> Json:
    return {
        "assumptions": assumed.number,
        "undecided": assumed.undecided,
        "beyond_need": [
            {
                "name": excess.name,
                "text": excess.text,
                "file": "" if excess.where is None else path_of(excess.where.file),
                "line": 0 if excess.where is None else excess.where.line,
            }
            for excess in assumed.excess
        ],
    }


def _reason(reason: Reason) -> Json:
    where = reason.where
    return {
        "reason": reason.text,
        "subject": reason.subject,
        "file": path_of(where.file),
        "line": where.line,
    }
