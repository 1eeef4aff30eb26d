"""The tablet migration machine says what the transition table of the real system says."""

from __future__ import annotations

import pytest

from stagewright.checker.check import check
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.define import define
from stagewright.spec.grounding.ground_eval import successors
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome

FORWARD = [
    ("none", "allow_write_both_read_old"),
    ("allow_write_both_read_old", "write_both_read_old"),
    ("write_both_read_old", "streaming"),
    ("streaming", "write_both_read_new"),
    ("write_both_read_new", "use_new"),
    ("use_new", "cleanup"),
]
ROLLBACK = [
    ("allow_write_both_read_old", "cleanup_target"),
    ("write_both_read_old", "cleanup_target"),
    ("rebuild_repair", "cleanup_target"),
    ("streaming", "cleanup_target"),
    ("cleanup_target", "revert_migration"),
    ("revert_migration", "none"),
]
REPAIR = [
    ("write_both_read_old", "rebuild_repair"),
    ("rebuild_repair", "streaming"),
    ("none", "repair"),
    ("repair", "end_repair"),
    ("end_repair", "none"),
]
CLEANUP = [("cleanup", "end_migration"), ("end_migration", "none")]

# The stage edges of each profile, as facts about the real systems list them.
EDGES = {
    "seed": {*FORWARD, ("cleanup", "none")},
    "scylla-6.0": {
        *FORWARD,
        *CLEANUP,
        *ROLLBACK,
        *REPAIR,
        ("allow_write_both_read_old", "revert_migration"),
        ("write_both_read_new", "cleanup_target"),
    },
    "scylla-2025.4": {
        *FORWARD,
        *CLEANUP,
        *ROLLBACK,
        *REPAIR,
        ("write_both_read_new", "cleanup_target"),
    },
    "scylla-2026.2": {
        *FORWARD,
        *CLEANUP,
        *ROLLBACK,
        *REPAIR,
        ("write_both_read_new", "write_both_read_old_fallback_cleanup"),
        ("write_both_read_old_fallback_cleanup", "cleanup_target"),
    },
}


def edges_of(profile: str) -> set[tuple[str, str]]:
    definition = define(TabletMigration, profile)
    model = ground(definition, scope_of(definition))
    (stage,) = (cell.index for cell in model.cells if cell.name == "stage")
    names = [member.name for member in Stage]
    seen = set(model.initial)
    todo, edges = list(seen), set()
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            if state[stage] != after[stage]:
                edges.add((names[state[stage]], names[after[stage]]))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return edges


@pytest.mark.parametrize("profile", EDGES)
def test_the_stage_edges_are_those_of_the_real_system(profile: str) -> None:
    assert edges_of(profile) == EDGES[profile]


@pytest.mark.parametrize("profile", EDGES)
def test_every_promise_of_one_tablet_holds_and_every_action_happens(profile: str) -> None:
    definition = define(TabletMigration, profile)
    report = check(definition, scope_of(definition))
    assert report.outcome is Outcome.HOLDS
    assert report.exhausted
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


@pytest.mark.parametrize(
    ("stage", "writes", "reads"),
    [
        ("none", "previous", "previous"),
        ("allow_write_both_read_old", "previous", "previous"),
        ("write_both_read_old", "both", "previous"),
        ("rebuild_repair", "both", "previous"),
        ("streaming", "both", "previous"),
        ("write_both_read_new", "both", "next"),
        ("use_new", "next", "next"),
        ("cleanup", "next", "next"),
        ("end_migration", "next", "next"),
        ("cleanup_target", "previous", "previous"),
        ("revert_migration", "previous", "previous"),
        ("write_both_read_old_fallback_cleanup", "both", "previous"),
        ("repair", "previous", "previous"),
        ("end_repair", "previous", "previous"),
    ],
)
def test_selectors_are_those_of_the_real_system(stage: str, writes: str, reads: str) -> None:
    assert (Stage[stage].writes.name, Stage[stage].reads.name) == (writes, reads)


def test_a_newer_release_only_adds_a_stage_between_giving_up_and_undoing() -> None:
    added = EDGES["scylla-2026.2"] - EDGES["scylla-2025.4"]
    removed = EDGES["scylla-2025.4"] - EDGES["scylla-2026.2"]
    assert {edge[0] for edge in added} == {
        "write_both_read_new",
        "write_both_read_old_fallback_cleanup",
    }
    assert removed == {("write_both_read_new", "cleanup_target")}
