"""The machines of view building keep their promises at every scope that exercises them, and are proved."""

from __future__ import annotations

import pytest

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines import SHIPPED
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report

# What a check of each machine finds at its default scope, under its newest profile.
STATES = {
    "view-coordinator": 200_960,
    "view-building": 47_656,
    "view-destinations": 3_717,
    "view-range": 2_849,
    "view-resize": 35_881,
    "view-staging": 1_756,
    "view-task": 1_320,
    "view-updates": 8_247,
    "view-wakeups": 41_820,
    "view-worker": 27_064,
}
OF_THE_SEED = {
    "view-building": 46_368,
    "view-coordinator": 229_472,
    "view-resize": 37_606,
    "view-staging": 1_861,
}
# All that these promise at each moment and at each step is proved, without a bound on the runs.
PROVED = [
    "view-destinations",
    "view-range",
    "view-staging",
    "view-task",
    "view-wakeups",
    "view-worker",
]


def definition_of(name: str, profile: str = "") -> Definition:
    return define(find(name, SHIPPED), profile)


def broken(report: Report) -> set[str]:
    return {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}


@pytest.mark.parametrize("name", STATES)
def test_the_newest_profile_keeps_every_promise(name: str) -> None:
    definition = definition_of(name)
    report = check(definition, scope_of(definition))
    assert (broken(report), report.exhausted, report.states) == (set(), True, STATES[name])


@pytest.mark.parametrize("name", OF_THE_SEED)
def test_the_text_of_the_document_keeps_them_too(name: str) -> None:
    definition = definition_of(name, "seed")
    report = check(definition, scope_of(definition))
    assert (broken(report), report.exhausted, report.states) == (set(), True, OF_THE_SEED[name])


def test_the_text_of_the_document_loses_rows_that_wait_in_staging_while_their_tablet_moves() -> (
    None
):
    """The decision asks for the reason of streaming, and a migration is no repair."""
    definition = definition_of("view-destinations", "seed")
    report = check(definition, scope_of(definition))
    assert broken(report) == {
        "built_views_are_complete",
        "replicas_and_views_agree",
        "rows_reach_built_views",
    }


def test_every_profile_is_checked() -> None:
    with_seed = {name for name in STATES if "seed" in profile_names(find(name, SHIPPED))}
    assert with_seed == {*OF_THE_SEED, "view-destinations"}


@pytest.mark.parametrize("name", STATES)
def test_every_action_happens_and_every_premise_is_met_at_some_scope(name: str) -> None:
    definition = definition_of(name)
    silent = {action.name for action in definition.actions}
    unmet = {prop.name for prop in definition.properties}
    for scope in exercising_scopes(definition):
        report = check(definition, scope)
        assert (broken(report), report.exhausted) == (set(), True)
        assert report.coverage is not None
        silent &= set(report.coverage.never_fired)
        unmet &= {v.name for v in report.verdicts if v.vacuous}
        if not silent | unmet:
            return
    assert (silent, unmet) == (set(), set())


@pytest.mark.parametrize("name", PROVED)
def test_what_holds_at_each_moment_and_at_each_step_is_proved(name: str) -> None:
    definition = definition_of(name)
    sought = (PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP)
    witnesses = {p.name for p in definition.properties if p.kind in sought}
    report = prove(definition, scope_of(definition), max_k=1, depth=1)
    assert broken(report) <= witnesses
    assert all("1-induction" in v.note for v in report.verdicts if v.name not in witnesses)
