"""Of one tablet's transition, a change in any one place breaks a promise, or the definition says why not."""

from __future__ import annotations

from random import Random

import pytest

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import all_mutants
from stagewright.checker.mutation.evaluation import Fate
from stagewright.checker.mutation.original import original_at
from stagewright.checker.mutation.report import Finding, MutationReport
from stagewright.checker.mutation.run import Budget, evaluate_all
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define

SAMPLE = 60  # of 473 mutants; `stagewright mutate tablet-migration` checks all of them


@pytest.fixture(scope="module")
def report() -> MutationReport:
    definition = define(TabletMigration)
    mutants = Random(0).sample(all_mutants(definition, TabletMigration), SAMPLE)
    originals = [original_at(definition, s, Limits()) for s in exercising_scopes(definition)]
    evaluations, _ = evaluate_all(mutants, originals, Budget())
    findings = [Finding(m, j) for m, j in zip(mutants, evaluations, strict=True)]
    return MutationReport(definition, originals, findings, False, False, 0.0)


def test_no_mutant_survives_without_a_reason(report: MutationReport) -> None:
    assert [f.mutant.id for f in report.unexplained] == []
    assert report.undecided == ()


def test_most_are_caught_and_every_added_step_is(report: MutationReport) -> None:
    numbers = report.summary()
    assert numbers.caught > 0.75 * numbers.mutants
    edges = [f for f in report.findings if f.mutant.kind is Kind.EDGE]
    assert edges
    assert all(f.evaluation.fate is Fate.CAUGHT for f in edges)


def test_every_action_happens_at_one_of_the_scopes(report: MutationReport) -> None:
    fired = {name for original in report.originals for name in original.fired}
    assert fired == {action.name for action in report.definition.actions}
