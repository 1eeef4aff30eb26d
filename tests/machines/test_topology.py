"""The topology state machine keeps its promises, alone and under clients, or breaks just the documented ones."""

from __future__ import annotations

import pytest

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines import SHIPPED
from stagewright.machines.topology_cluster import TopologyCluster
from stagewright.machines.topology_control import TopologyControl
from stagewright.spec.define import define
from stagewright.spec.loading import load
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report


def checked(machine: type[Machine], profile: str = "", **scope: int) -> Report:
    """`scope`: sizes by entities, which begin with a capital, and budgets."""
    definition = define(machine, profile)
    sizes = {name: n for name, n in scope.items() if name[0].isupper()}
    budgets = {name: n for name, n in scope.items() if not name[0].isupper()}
    report = check(definition, scope_of(definition, sizes, budgets), workers=1)
    assert report.exhausted
    return report


def broken(report: Report) -> set[str]:
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("topology", TOPOLOGY),
        ("topology-control", CONTROL),
        ("topology-coordinator", COORDINATOR),
        ("topology-sessions", SESSIONS),
    ],
)
def test_the_newest_release_keeps_every_promise(name: str, states: int) -> None:
    definition = load(name, "", SHIPPED)
    report = check(definition, scope_of(definition), workers=1)
    assert (broken(report), report.exhausted, report.states) == (set(), True, states)
    assert report.coverage is not None
    never = set(report.coverage.never_fired)
    assert never == (WITHOUT_A_CRASH if name == "topology" else set())


# What takes a crash, or a third node, in the cluster.
WITHOUT_A_CRASH = {
    "topology.cancel",
    "topology.fail_barrier",
    "topology.retry_barrier",
    "topology.settle_tablets",
    "topology.leave_tablet_track",
    "topology.accept_replace",
    "topology.fail_to_accept",
    "topology.remove_replaced",
    "topology.give_up",
    "topology.complete_rollback",
    "restart",
    "ask_to_replace",
    "ask_to_remove",
    "take_tokens",
    "start_remove",
    "wait_ring_delay",
    "stream_with_dead_node",
    "finish_replace",
    "roll_back_leave",
}


def test_the_seed_leaves_open_what_its_docstring_says() -> None:
    report = checked(TopologyControl, "seed", requests=1)
    assert broken(report) == {
        "every_request_ends",
        "left_nodes_hold_no_tablets",
        "left_nodes_do_not_run",
        "a_dead_node_is_replaced",
    }
    for name in broken(report):
        assert name in (TopologyControl.__doc__ or "")


@pytest.mark.parametrize("profile", ["scylla-6.0", "scylla-2025.4"])
def test_the_releases_between_keep_every_promise_of_the_control_machine(profile: str) -> None:
    assert broken(checked(TopologyControl, profile, requests=1)) == set()


def test_a_node_that_is_replaced_under_a_write_needs_three_nodes() -> None:
    report = checked(
        TopologyControl, Node=3, requests=1, faults=1
    )
    assert broken(report) == set()


def test_a_crash_while_nodes_leave_or_join_breaks_no_promise_about_data() -> None:
    assert broken(checked(TopologyCluster, reads=0, crashes=1, faults=0)) == set()


def test_a_write_to_a_range_that_was_lost_is_stored_after_its_cleanup() -> None:
    """scylladb #26150: the releases before 2026.2 clean up without a barrier."""
    report = checked(TopologyCluster, "scylla-2025.4", reads=0, faults=0)
    assert broken(report) == {"rows_of_lost_ranges_are_known"}
    assert "rows_of_lost_ranges_are_known" in (TopologyCluster.__doc__ or "")


def test_promises_of_the_control_machine_are_proved_by_induction() -> None:
    definition = define(TopologyControl)
    report = prove(definition, scope_of(definition), max_k=1, depth=0)
    proved = {v.name for v in report.verdicts if v.outcome is Outcome.HOLDS}
    assert proved >= PROVED
