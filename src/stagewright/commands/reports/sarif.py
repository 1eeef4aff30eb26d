"""Suites as SARIF 2.1.0: what code scanning and editors read.

The document is made as plain data: its shape is fixed, and the libraries that model it are either
unmaintained or bring a validation framework along. Tests hold it against the standard's own schema.

Paths are relative to the repository, and the root is not named: it differs between machines. Holding
promises are no results (some readers would show them as alerts); `properties` lists every verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

import stagewright
from stagewright.commands.reports.check_text import first_sentence
from stagewright.commands.reports.places import Place
from stagewright.commands.reports.suite import REMARK_RULES, Case, FlowStep, Level, Suite
from stagewright.commands.reports.text import readable
from stagewright.spec.text.counting import counted
from stagewright.spec.verdict import Outcome

Json = object

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"
MOST_LOCATIONS = 10_000  # of one counterexample: GitHub refuses a file with more
MOST_RESULTS = 5_000  # GitHub shows no more
_FIRST_LOCATIONS = 100  # of a longer one; the rest of the room is for its end
_ESSENTIAL = 20  # steps at the end that viewers with less room should keep


@dataclass(frozen=True)
class _Finding:
    """What every result has."""

    rule: str
    subject: str
    level: Level
    text: str
    where: Place | None


def document(suites: Sequence[Suite], exit_code: int) -> Json:
    """One SARIF log with a run for each suite; `exit_code` is the whole command's."""
    return _fit(
        {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(s, exit_code) for s in suites]}
    )


def _run(suite: Suite, exit_code: int) -> Json:
    rules = {case.rule: _case_rule(case) for case in suite.cases}  # many traces may share one
    rules |= {name: _remark_rule(name) for name in REMARK_RULES}
    numbers = {name: index for index, name in enumerate(rules)}
    results = list(_results(suite, numbers))
    left_out = len(results) - MOST_RESULTS
    driver = {
        "name": "stagewright",
        "semanticVersion": stagewright.__version__,
        "rules": [*rules.values()],
    }
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": _category(suite)},
        "invocations": [_invocation(suite, exit_code, max(0, left_out))],
        "originalUriBaseIds": {ROOT: {"description": _text("The root of the repository.")}},
        "columnKind": "unicodeCodePoints",
        "results": results[:MOST_RESULTS],
        "properties": {
            "machine": suite.machine,
            "profile": suite.profile,
            "scope": suite.scope,
            "outcome": suite.outcome.name.lower(),
            **suite.facts,
            "verdicts": {
                case.name: "left out" if case.outcome is None else case.outcome.name.lower()
                for case in suite.cases
            },
            "reproduce": suite.reproduce,
        },
    }


def _category(suite: Suite) -> str:
    """What distinguishes this analysis from others of one commit; a slash ends what GitHub compares."""
    parts = ["stagewright", suite.command, suite.machine, suite.profile, suite.scope]
    return "/".join(part.replace("/", "-").replace(" ", "") for part in parts if part) + "/"


def _invocation(suite: Suite, exit_code: int, left_out: int) -> Json:
    begun = suite.finished - timedelta(seconds=suite.seconds)
    warnings = [suite.note, f"{left_out:,} more results are left out" if left_out else ""]
    # What may only be a matter of time is no finding: it would come and go with the machine's speed.
    notes = [suite.summary, *(remark.text for remark in suite.remarks if remark.provisional)]
    return {
        "commandLine": suite.reproduce,
        "exitCode": exit_code,
        # Neither a violation nor a proof is a failure of the tool; a search cut short is.
        "executionSuccessful": suite.outcome is not Outcome.UNDECIDED,
        "startTimeUtc": begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "endTimeUtc": suite.finished.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "toolExecutionNotifications": [
            *({"level": "note", "message": _text(text)} for text in notes),
            *({"level": "warning", "message": _text(text)} for text in warnings if text),
        ],
    }


def _case_rule(case: Case) -> Json:
    said = case.promise or case.meaning
    return {
        "id": case.rule,
        "name": case.rule.rpartition(".")[2],
        "shortDescription": _text(first_sentence(said)),
        "fullDescription": _text(said),
        "help": {
            "text": "\n\n".join(filter(None, (case.promise, case.meaning))),
            "markdown": "\n\n".join(filter(None, (case.promise, f"*{case.meaning}*"))),
        },
        "defaultConfiguration": {"level": Level.ERROR.value},
        "properties": {"tags": ["stagewright", case.kind], "precision": "very-high"},
    }


def _remark_rule(name: str) -> Json:
    rule = REMARK_RULES[name]
    return {
        "id": name,
        "shortDescription": _text(rule.said),
        "fullDescription": _text(f"{rule.said} {rule.mend}"),
        "help": {"text": rule.mend, "markdown": rule.mend},
        "defaultConfiguration": {"level": Level.WARNING.value},
        "properties": {"tags": ["stagewright", "coverage"], "precision": "high"},
    }


def _results(suite: Suite, numbers: Mapping[str, int]) -> Iterator[Json]:
    for case in suite.cases:
        if case.outcome is Outcome.VIOLATED or case.outcome is Outcome.UNDECIDED:
            yield _result(suite, case, numbers)
        elif case.vacuous:
            text = f"{suite.title}: {case.name} {case.note}."
            finding = _Finding("vacuous-property", case.name, Level.WARNING, text, case.where)
            yield _plain_result(suite, finding, numbers)
    for remark in suite.remarks:
        if remark.provisional:
            continue
        finding = _Finding(
            remark.rule, remark.subject, remark.level, remark.text, remark.where or suite.where
        )
        yield _plain_result(suite, finding, numbers)


def _result(suite: Suite, case: Case, numbers: Mapping[str, int]) -> Json:
    assert case.level is not None
    opening = ": ".join(filter(None, (case.headline, first_sentence(case.promise))))
    text = "\n".join(filter(None, (opening, case.why or case.note)))
    finding = _Finding(case.rule, case.name, case.level, text, case.where or suite.where)
    flows = [_code_flow(case)] if case.flow else []
    return {**_plain_result(suite, finding, numbers), **({"codeFlows": flows} if flows else {})}


def _plain_result(suite: Suite, finding: _Finding, numbers: Mapping[str, int]) -> dict[str, Json]:
    names = [{"fullyQualifiedName": f"{suite.machine}.{finding.subject}", "kind": "member"}]
    location = {**_shown(finding.where), "logicalLocations": names}
    return {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.level.value,
        "message": _text(f"{finding.text}\nreproduce: {suite.reproduce}"),
        "locations": [location],
        # Not `primaryLocationLineHash`: GitHub's uploader computes that one from the source line.
        "partialFingerprints": {"stagewrightFinding/v1": _fingerprint(suite, finding)},
    }


def _fingerprint(suite: Suite, finding: _Finding) -> str:
    """The same for the same finding in another run, at another scope, or on another line."""
    parts = (suite.machine, suite.profile, finding.rule, finding.subject)
    return hashlib.sha256("\0".join(map(readable, parts)).encode()).hexdigest()[:32]


def _code_flow(case: Case) -> Json:
    steps = case.flow
    gap = len(steps) - MOST_LOCATIONS
    text = counted(len([s for s in steps if "step" in s.kinds]), "step")
    if gap > 0:
        resumes = _FIRST_LOCATIONS + gap
        text += f", of which the steps {_FIRST_LOCATIONS} to {resumes - 1} are left out here"
        steps = (*steps[:_FIRST_LOCATIONS], *steps[resumes:])
    essential = {0, *range(max(0, len(steps) - _ESSENTIAL), len(steps))}
    locations = [_flow_location(step, i, essential=i in essential) for i, step in enumerate(steps)]
    return {"message": _text(text), "threadFlows": [{"locations": locations}]}


def _flow_location(step: FlowStep, order: int, *, essential: bool) -> Json:
    numbered = step.text if step.is_breach else f"{step.number}  {step.text}"
    text = "\n".join([numbered, *step.changes])
    return {
        "location": {**_physical(step.where), "message": _text(text)},
        "executionOrder": order + 1,
        "importance": "essential" if essential else "important",
        "kinds": list(step.kinds),
        "state": {place: _text(value) for place, value in step.state},
    }


def _shown(where: Place | None) -> dict[str, Json]:
    """The place with its line and its extent, for readers that show them."""
    if where is None:
        return {}
    extent = {"contextRegion": {"startLine": where.line, "endLine": where.end_line}}
    snippet = {"snippet": _text(where.text)} if where.text else {}
    physical = {
        "artifactLocation": _artifact(where),
        "region": {**_region(where), **snippet},
        **(extent if where.end_line > where.line else {}),
    }
    return {"physicalLocation": physical}


def _physical(where: Place | None) -> dict[str, Json]:
    """The place alone: a counterexample has thousands."""
    if where is None:
        return {}
    return {"physicalLocation": {"artifactLocation": _artifact(where), "region": _region(where)}}


def _artifact(where: Place) -> Json:
    path = quote(where.path, errors="surrogateescape")
    return {"uri": path, "uriBaseId": ROOT} if where.inside else {"uri": f"file://{path}"}


def _region(where: Place) -> dict[str, Json]:
    """The name that is defined there."""
    columns = {"startColumn": where.column, "endColumn": where.end_column}
    return {"startLine": where.line, **(columns if where.column else {})}


def _text(text: str) -> dict[str, Json]:
    return {"text": text or " "}


def _fit(value: Json) -> Json:
    """The document with every text made fit for any reader of JSON."""
    match value:
        case str():
            return readable(value)
        case Mapping():
            return {readable(str(k)): _fit(v) for k, v in value.items()}
        case list():
            return [_fit(v) for v in value]
        case _:
            return value
