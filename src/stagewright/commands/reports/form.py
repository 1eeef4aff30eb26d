"""The forms of reports for CI systems: those of the tool, and what packages bring.

A package of one's own names a `ReportForm` as an entry point of the group `stagewright.reports`; then every
deciding command takes `--report NAME FILE`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewright.commands.reports.suite import Suite

GROUP = "stagewright.reports"


@dataclass(frozen=True)
class ReportForm:
    """A form of report: `document` gives its text, of what was found and the command's exit code."""

    name: str
    document: Callable[[Sequence[Suite], int], str]


def _junit(suites: Sequence[Suite], _exit_code: int) -> str:
    from stagewright.commands.reports import junit

    return junit.document(suites)


def _sarif(suites: Sequence[Suite], exit_code: int) -> str:
    from stagewright.commands.reports import sarif

    return json.dumps(sarif.document(suites, exit_code), indent=1, ensure_ascii=False) + "\n"


JUNIT = ReportForm("junit", _junit)
SARIF = ReportForm("sarif", _sarif)
OWN = (JUNIT, SARIF)  # those that come with the tool


def forms() -> Mapping[str, ReportForm]:
    """All forms by their names; raises InputError for one of a package that is wrong."""
    from stagewright.plugins import plugins

    own = {form.name: form for form in OWN}
    return {**own, **{form.name: form for form in plugins(GROUP, ReportForm, tuple(own))}}
