"""TLC and `check` say the same of every promise of the shipped machines about fair runs, where TLC comes to an end.

Only the thorough profile tries them all: TLC takes from seconds to minutes for each.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from tests.checker.tla.test_agrees_with_check import small_scope
from tests.checker.tla.tlc import Tlc
from tests.thorough import THOROUGH

from stagewright.checker.check import check
from stagewright.machines import SHIPPED
from stagewright.spec.definition import Definition
from stagewright.spec.loading import load
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome

SECONDS = 60  # for TLC, each time
MOST_STATES = 3_000  # a temporal property takes TLC far longer than an invariant
IN_EVERY_RUN = ("intranode-migration",)


def names() -> list[str]:
    """Every machine and profile, as `machine@profile`."""
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names

    profiles = {name: profile_names(find(name, SHIPPED)) or [""] for name in SHIPPED}
    return [f"{name}@{p}" if p else name for name, found in profiles.items() for p in found]


def scope_for(definition: Definition) -> Scope:
    """The default scope, or where that is too large for TLC, one with budgets at nought."""
    try:
        return small_scope(definition, MOST_STATES)
    except AssertionError:
        pytest.skip("it has too many states for TLC, even with no budget")


@pytest.mark.slow
@pytest.mark.parametrize("name", names() if THOROUGH else IN_EVERY_RUN)
def test_the_same_verdicts_on_fair_runs(name: str, tlc: Tlc) -> None:
    machine, _, profile = name.partition("@")
    definition = load(machine, profile, SHIPPED)
    promises = [p for p in definition.properties if p.kind.of_fair_runs]
    if not promises:
        pytest.skip("it promises nothing of fair runs")
    scope = scope_for(definition)
    report = check(replace(definition, properties=tuple(promises)), scope)
    broken = {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}
    kept = [p for p in promises if p.name not in broken]
    for asked in ([kept] if kept else []) + [[p] for p in promises if p.name in broken]:
        try:
            run = tlc.check(
                replace(definition, properties=tuple(asked)), scope, "-continue", seconds=SECONDS
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"TLC takes longer than {SECONDS} s")
        assert ("temporal" in run.broken) == (asked != kept), run.text
        assert ("NoDeadlock" in run.broken) == ("no deadlock" in broken)
