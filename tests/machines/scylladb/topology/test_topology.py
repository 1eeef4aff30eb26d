"""The topology state machine keeps its promises, alone and under clients, or breaks just the documented ones."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines import SHIPPED
from stagewright.machines.scylladb.topology.topology import TopologyCluster
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.spec.define import define
from stagewright.spec.loading import load
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report


def checked(
    machine: type[Machine], profile: str = "", properties: tuple[str, ...] = (), **budgets: int
) -> Report:
    definition = define(machine, profile)
    scope = scope_of(definition, {}, budgets)
    report = check(definition, scope, properties=properties, workers=1)
    assert report.exhausted
    return report


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("topology", 65_481),
        ("topology-control", 51_677),
        ("topology-rebuild", 11_248),
        ("topology-coordinator", 29_880),
        ("topology-sessions", 1_310),
        ("shared-fence", 555_648),
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
    "leave_tablet_track",
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


PROVED = {
    "a_generation_waits_for_its_commit",
    "node_state_fits_transition_state",
    "nodes_begin_what_they_asked_for",
    "nodes_that_left_are_kept",
    "one_node_in_transition",
    "requests_are_served_in_order",
    "sessions_are_closed_when_their_work_is_over",
    "tablets_move_in_their_tracks",
    "the_load_balancer_waits",
    "the_topology_follows_its_table",
    "transition_state_has_its_owner",
    "versions_only_grow",
    "what_streams_has_an_open_session",
    "what_was_learned_counts_in_its_state_alone",
}


def test_the_seed_leaves_open_what_its_machine_says() -> None:
    report = checked(TopologyControl, "seed", requests=1)
    assert broken(report) == {
        "every_request_ends",
        "left_nodes_hold_no_tablets",
        "left_nodes_do_not_run",
        "a_dead_node_is_replaced",
        "older_versions_are_fenced",
        "nodes_are_out_of_group0_when_nobody_needs_them",
    }


@pytest.mark.parametrize("profile", some_of(["scylla-6.0", "scylla-2025.4"]))
def test_the_releases_before_leave_nothing_of_that_open(profile: str) -> None:
    """Two requests, for a tablet that an operator moves is one: it must not strand a node that is drained."""
    assert broken(checked(TopologyControl, profile)) == set()


def test_requests_are_served_in_order_where_three_nodes_ask() -> None:
    definition = define(TopologyControl)
    scope = scope_of(definition, {"Node": 3}, {"requests": 2, "faults": 0})
    named = ["requests_are_served_in_order", "one_node_in_transition", "left_nodes_need_no_cleanup"]
    report = check(definition, scope, properties=named, workers=1)
    assert report.exhausted
    assert broken(report) == set()


@pytest.mark.parametrize(
    ("promise", "faults"),
    [
        # A node drains whose only heir is about to be replaced: its tablets stay where they are.
        ("no deadlock", 1),
        # Who waits while another node leaves the token ring may be refused before that is fenced.
        ("older_versions_are_fenced", 2),
    ],
)
def test_what_it_takes_three_nodes_and_a_dead_one_to_break(promise: str, faults: int) -> None:
    definition = define(TopologyControl)
    scope = scope_of(definition, {"Node": 3}, {"requests": 2, "faults": faults})
    report = check(definition, scope, properties=[promise], workers=1)
    assert (broken(report), report.exhausted) == (set(), True)


DATA = (
    "reads_see_acknowledged_writes",
    "streaming_begins_when_writes_go_to_both",
    "new_owners_are_complete",
    "owners_store_what_was_acknowledged",
    "no_read_outlives_the_old_ring",
    "rows_of_lost_ranges_are_known",
    "nobody_writes_to_nodes_that_left",
)


def test_two_operations_one_after_the_other_break_no_promise_about_data() -> None:
    assert broken(checked(TopologyCluster, "", DATA, reads=0, faults=0, operations=2)) == set()


def test_a_crash_while_nodes_leave_or_join_breaks_no_promise_about_data() -> None:
    assert broken(checked(TopologyCluster, "", DATA, reads=0, crashes=1, faults=0)) == set()


def test_what_a_failed_operation_has_streamed_counts_for_nothing_after_a_crash() -> None:
    assert broken(checked(TopologyCluster, reads=0, writes=0, crashes=1)) == set()


def test_a_write_to_a_range_that_was_lost_is_stored_after_its_cleanup() -> None:
    """ScyllaDB #26150: the releases before 2026.2 clean up without a barrier."""
    report = checked(TopologyCluster, "scylla-2025.4", DATA, reads=0, faults=0)
    assert broken(report) == {"rows_of_lost_ranges_are_known"}


def test_promises_of_the_control_machine_are_proved_by_induction() -> None:
    definition = define(TopologyControl)
    report = prove(definition, scope_of(definition), max_k=1, depth=0)
    proved = {v.name for v in report.verdicts if v.outcome is Outcome.HOLDS}
    assert proved >= PROVED
