"""Suites as JUnit XML, valid against the schema of Jenkins (`junit-10.xsd`): what most CI systems read.

That schema, which Jenkins' xUnit step enforces, gives a test case neither `file` nor `line`: the place of a
promise is the first line of its text, where the readers look that look for `path:line`.

A violated promise is a `failure`. An undecided one is an `error`, not `skipped`: the command exits with 3,
and a report must not look better than that. `skipped` is what the command leaves to another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import stagewright
from stagewright.commands.reports.check_text import first_sentence
from stagewright.commands.reports.suite import Case, Suite
from stagewright.commands.reports.text import readable
from stagewright.spec.verdict import Outcome


def document(suites: Sequence[Suite]) -> str:
    """One XML document with a test suite for each suite, and a test case for each promise."""
    root = ET.Element("testsuites")
    for number, suite in enumerate(suites):
        _suite(root, suite, number)
    counts = {name: sum(int(one.get(name, "0")) for one in root) for name in ("tests", *_COUNTED)}
    root.set("name", "stagewright")
    root.set("time", _seconds(sum(suite.seconds for suite in suites)))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(counts[name]))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _suite(root: ET.Element, suite: Suite, number: int) -> None:
    element = ET.SubElement(root, "testsuite")
    _set(
        element,
        name=f"{suite.title}, {suite.scope}",
        id=str(number),
        package=f"stagewright.{suite.command}",
        time=_seconds(suite.seconds),
        timestamp=suite.finished.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    if suite.where is not None:
        _set(element, file=suite.where.path)
    _properties(element, suite)
    for case in suite.cases:
        _case(element, suite, case)
    if story := [*([suite.note] if suite.note else []), *(remark.text for remark in suite.remarks)]:
        ET.SubElement(element, "system-out").text = readable("\n".join([suite.summary, *story]))
    element.set("tests", str(len(suite.cases)))
    for attribute, tag in _COUNTED.items():
        element.set(attribute, str(len(element.findall(f"testcase/{tag}"))))


def _properties(element: ET.Element, suite: Suite) -> None:
    properties = ET.SubElement(element, "properties")
    facts = {
        "stagewright": stagewright.__version__,
        "machine": suite.machine,
        "profile": suite.profile,
        **suite.facts,
        "reproduce": suite.reproduce,
    }
    for name, value in facts.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        _set(ET.SubElement(properties, "property"), name=name, value=text)


def _case(parent: ET.Element, suite: Suite, case: Case) -> None:
    element = ET.SubElement(parent, "testcase")
    _set(element, classname=_class_name(suite), name=case.name)
    if case.seconds is not None:
        _set(element, time=_seconds(case.seconds))
    place = str(case.where) if case.where is not None else ""
    match case.outcome:
        case Outcome.HOLDS:
            text = "\n".join(filter(None, (place, case.promise, case.note)))
            ET.SubElement(element, "system-out").text = readable(text)
        case Outcome.VIOLATED:
            message = ": ".join(filter(None, (case.headline, first_sentence(case.promise))))
            _trouble(element, "failure", suite, case, message)
        case Outcome.UNDECIDED:
            message = f"{case.headline}: {case.note}" if case.note else case.headline
            _trouble(element, "error", suite, case, message)
        case None:
            _set(ET.SubElement(element, "skipped"), message=case.note)


def _trouble(element: ET.Element, tag: str, suite: Suite, case: Case, message: str) -> None:
    trouble = ET.SubElement(element, tag)
    kind = case.kind if tag == "failure" else "undecided"
    _set(trouble, type=kind, message=message)
    place = f"{case.where}: {message}" if case.where is not None else message
    parts = [place, case.story or case.note, f"reproduce: {suite.reproduce}"]
    trouble.text = readable("\n\n".join(filter(None, parts)))


def _class_name(suite: Suite) -> str:
    """`check.TabletMigration.scylla-2025_4`: dots make packages, so a profile may have none."""
    profile = [suite.profile.replace(".", "_")] if suite.profile else []
    return ".".join([suite.command, suite.machine, *profile])


def _set(element: ET.Element, **attributes: str) -> None:
    for name, value in attributes.items():
        element.set(name, readable(value))


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
