"""Intranode migration: two shards of one node, both written to while the tablet moves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken

from stagewright.checker.check import check
from stagewright.machines.scylladb.tablets.intranode_migration import IntranodeMigration
from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Report


def checked(
    budgets: dict[str, int] | None = None, *, machine: type[Machine] = IntranodeMigration
) -> Report:
    definition = define(machine)
    report = check(definition, scope_of(definition, {}, budgets))
    assert report.exhausted
    return report


def test_every_promise_is_kept_and_every_action_happens() -> None:
    report = checked()
    assert broken(report) == set()
    assert (report.states, report.transitions) == (3_739, 12_447)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


def test_it_keeps_them_with_more_reads_and_failures() -> None:
    assert broken(checked({"reads": 2, "failures": 2})) == set()


class NodeDoesNotWait(IntranodeMigration):
    """The barrier does not wait for writes that are under way on the node."""

    def _has_drained(self) -> Any:
        return self.known == self.stage


class NodeNeedNotKnow(IntranodeMigration):
    """The barrier does not wait for the node to learn the stage."""

    def _has_drained(self) -> Any:
        return (self.write == 0) | (self.write_stage == self.stage)


@pytest.mark.parametrize("mutant", [NodeDoesNotWait, NodeNeedNotKnow])
def test_a_weaker_barrier_leaves_a_write_on_one_shard(mutant: type[Machine]) -> None:
    assert "writes_reach_both_shards" in broken(checked(machine=mutant))
