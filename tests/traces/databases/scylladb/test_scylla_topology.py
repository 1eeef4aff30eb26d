"""What a ScyllaDB log says of nodes, of the topology as a whole, and of CDC generations."""

from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import (
    interpret,
    line,
    read,
    recorded,
    violations,
)

from stagewright.traces.databases.scylladb.lines import cdc, topology
from stagewright.traces.databases.scylladb.lines.topology import NODE, TRANSITION

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
HOSTS = [f"9b1f3f0e-{n}{n}{n}{n}-4c5e-9a5e-0d6a2f6f000{n}" for n in range(1, 4)]
FIRST, SECOND = (
    "3f1b2c00-b9b6-11f0-8de9-0242ac120002",
    "8a2b2c00-b9b6-11f0-8de9-0242ac120002",
)
START = line("start topology coordinator fiber")


def commit(reason: str, second: float = 1, host: str = "h") -> str:
    return line(f"updating topology state: {reason}", second, host)


def entered(state: str, second: float = 1, host: str = "h") -> str:
    return line(f"entered `{state}` transition state", second, host)


def found(node: str, state: str, second: float = 1, host: str = "h") -> str:
    return line(f"coordinator fiber found a node to work on id={node} state={state}", second, host)


def committed(generation: str) -> str:
    return commit(f"committed new CDC generation, ID: (2025/11/05 10:01:05, {generation})")


def published(generation: str) -> str:
    return commit(f"published CDC generation with ID (2025/11/05 10:01:05, {generation}), ")


def test_a_log_of_nodes_that_join_and_leave_is_in_order() -> None:
    found_, tally = read(SAMPLES / "topology.log")
    assert violations(found_) == []
    assert not tally.unparsed
    assert {e.profile for _, e in found_.events if e.machine == TRANSITION} == {"scylla-2025.4"}
    # That commit changed nothing here.
    assert "1 changes were cancelled by a race" not in found_.notes
    nodes = [(entity, seen["node_state"]) for entity, seen in recorded(found_, NODE)]
    assert [state for entity, state in nodes if entity == HOSTS[2]] == [
        "none",
        "bootstrapping",
        "bootstrapping",
        "bootstrapping",
        "normal",
        "normal",
        "decommissioning",
        "decommissioning",
        "normal",
        "normal",
        "decommissioning",
        "decommissioning",
        "left",
    ]
    generations = [seen for entity, seen in recorded(found_, cdc.MACHINE) if entity == FIRST]
    assert generations == [
        {"life": "written"},
        {"life": "committed"},
        {"life": "committed", "used": True},
        {"life": "published"},
        {"life": "published", "superseded": True},
        {"life": "published", "overtaken": True},
        {"life": "cleared"},
    ]


def test_each_line_of_the_sample_can_be_what_is_wrong(tmp_path: Path) -> None:
    """Without any one of the lines that enter a state, the log shows a jump, or of nothing at all."""
    texts = (SAMPLES / "topology.log").read_text().splitlines()
    jumps = 0
    for number, text in enumerate(texts):
        if "entered `write both read old`" not in text and "accept node" not in text:
            continue
        path = tmp_path / f"{number}.log"
        path.write_text("\n".join(texts[:number] + texts[number + 1 :]))
        jumps += bool(violations(read(path)[0]))
    assert jumps >= 3


def test_a_state_that_cannot_follow_is_a_violation_at_its_line() -> None:
    lines = [START, entered("join group0"), entered("write both read new")]
    assert violations(interpret(lines)) == [(TRANSITION, "topology", 3)]


def test_a_rollback_of_a_join_does_not_go_back_to_normal() -> None:
    reason = f"rollback {HOSTS[1]} after bootstrapping failure, moving transition state to"
    lines = [
        START,
        found(HOSTS[1], "none"),
        commit("bootstrap: accept node"),
        entered("join group0"),
        commit(f"{reason} left token ring and setting cleanup flag"),
    ]
    assert violations(interpret(lines)) == []
    lines[-1] = commit(f"{reason} rollback to normal and setting cleanup flag")
    assert violations(interpret(lines)) == [(TRANSITION, "topology", 5)]


def test_a_node_that_left_is_worked_on_no_more() -> None:
    lines = [
        START,
        commit(f"finished removing node {HOSTS[1]}"),
        found(HOSTS[1], "normal"),
    ]
    assert violations(interpret(lines)) == [(NODE, HOSTS[1], 3)]


def test_a_lost_commit_is_known_by_its_reason() -> None:
    """The publisher loses a race while the main fiber's commit succeeds, and the other way round."""
    race = "race while changing state: {}. Retrying"
    of_publisher = f"published CDC generation with ID (2025/11/05 10:01:05, {FIRST}),"
    lines = [
        START,
        found(HOSTS[1], "none"),
        commit("bootstrap: accept node"),
        published(FIRST),
        line(race.format(of_publisher)),
    ]
    assert recorded(interpret(lines), NODE)[-1] == (HOSTS[1], {"node_state": "bootstrapping"})
    assert recorded(interpret(lines), cdc.MACHINE) == []
    lines[-1] = line(race.format("bootstrap: accept node"))
    assert recorded(interpret(lines), NODE)[-1] == (HOSTS[1], {"node_state": "none"})
    assert recorded(interpret(lines), cdc.MACHINE) == [(FIRST, {"life": "published"})]


@pytest.mark.parametrize(
    ("version", "first", "then"),
    [
        ("2025.4.0", "tablet_draining", "tablet draining"),
        ("2026.2.0", "write_both_read_old", "write both read old"),
    ],
)
def test_a_replaced_node_is_drained_first_up_to_2026(version: str, first: str, then: str) -> None:
    failed = (
        f"rollback {HOSTS[1]} after replacing failure, moving transition state to left token ring"
    )
    lines = [
        line(f"Scylla version {version} with build-id x starting ...", logger="init"),
        START,
        found(HOSTS[1], "none"),
        commit("replace: accept node"),
        entered("join group0"),
        commit(f"replace: transition to {first} and take ownership of the replaced node's tokens"),
        entered(then),
        commit(f"{failed} and setting cleanup flag"),
        entered("left token ring"),
        commit(f"finished rollback of {HOSTS[1]} after replacing failure"),
    ]
    assert violations(interpret(lines)) == []
    assert recorded(interpret(lines), NODE)[-1] == (HOSTS[1], {"node_state": "left"})
    other = interpret(lines, profile="scylla-2026.2" if version < "2026" else "scylla-2025.4")
    assert [(machine, number) for machine, _, number in violations(other)] == [(TRANSITION, 6)]


def test_what_the_coordinator_does_not_know_itself_is_followed_anew() -> None:
    unknown = line("topology change coordinator fiber got commit_status_unknown", level="WARN")
    lines = [START, entered("join group0"), commit("start decommission"), unknown]
    lines += [entered("write both read new")]
    read_ = interpret(lines)
    assert recorded(read_, TRANSITION)[-1][0] == "topology#1"
    assert violations(read_) == []
    assert any("did not know" in note for note in read_.notes)


def test_each_coordinator_is_checked_by_itself() -> None:
    first = [line("start topology coordinator fiber", 1, "a"), entered("join group0", 2, "a")]
    second = [
        line("start topology coordinator fiber", 5, "b"),
        entered("write both read new", 6, "b"),
        entered("join group0", 7, "b"),
        entered("write both read new", 8, "b"),
    ]
    read_ = interpret(first, second)
    assert violations(read_) == [(TRANSITION, "topology#1", 4)]
    assert any("changed 1 time" in note for note in read_.notes)


def test_generations_are_published_in_the_order_of_their_commits() -> None:
    in_order = [START, committed(FIRST), committed(SECOND), published(FIRST), published(SECOND)]
    assert violations(interpret(in_order)) == []
    swapped = [START, committed(FIRST), committed(SECOND), published(SECOND), published(FIRST)]
    assert violations(interpret(swapped)) == [(cdc.MACHINE, FIRST, 4)]
    again = [START, committed(FIRST), published(FIRST), committed(FIRST)]
    assert violations(interpret(again)) == [(cdc.MACHINE, FIRST, 4)]


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [
        ("2025/11/05 10:01:05", "2025/11/05 10:01:06", []),
        ("2025/11/05 10:01:05", "2025/11/05 10:01:05", []),  # milliseconds are not printed
        ("2025/11/05 10:01:05", "2025/11/05 09:55:05", [("LoggedGenerations", "generations", 3)]),
        (
            "2025-11-05 10:01:05.250",
            "2025-11-05 10:01:05.250",
            [("LoggedGenerations", "generations", 3)],
        ),
        ("1762336865.394", "1762336865.393", [("LoggedGenerations", "generations", 3)]),
    ],
)
def test_a_generation_begins_after_those_before_it(
    first: str, second: str, wrong: list[tuple[str, str, int]]
) -> None:
    text = "committed new CDC generation, ID: ({}, {})"
    log = [START, commit(text.format(first, FIRST)), commit(text.format(second, SECOND))]
    assert violations(interpret(log)) == wrong


def test_timestamps_that_cannot_be_read_are_counted() -> None:
    text = f"committed new CDC generation, ID: (some day, {FIRST})"
    read_ = interpret([START, commit(text)])
    assert (
        "1 timestamps of CDC generations cannot be read: their order is not checked" in read_.notes
    )
    assert [machine for machine, *_ in recorded(read_, "LoggedGenerations")] == []


def in_term(term: int, second: int, node: str = "h") -> list[str]:
    """A coordinator asks itself, which shows its term."""
    command = "topology cmd rpc barrier_and_drain index=1: starting read_barrier, term="
    return [
        line("start topology coordinator fiber", second, node),
        line(
            "executing global topology command barrier_and_drain, excluded nodes: {}", second, node
        ),
        line(f"{command}{term}", second, node),
    ]


@pytest.mark.parametrize("seconds", [5, 0])
def test_generations_follow_each_other_whoever_commits_them(seconds: int) -> None:
    text = "committed new CDC generation, ID: (2025/11/05 {}, {})"
    one = [
        *in_term(1, 2),
        commit(text.format("10:01:05", FIRST), 3),
        commit("start decommission", 4),
    ]
    commits = commit(text.format("09:59:05", SECOND), seconds, "other")
    for term, wrong in ((2, [("LoggedGenerations", "generations", 4)]), (0, [])):
        # Whatever the clocks say, terms do; and where they are not logged, nothing is concluded.
        begins = (
            in_term(term, seconds, "other")
            if term
            else [line("start topology coordinator fiber", seconds, "other")]
        )
        assert violations(interpret(one, [*begins, commits])) == wrong


def without_terms(log: list[str]) -> list[str]:
    return [text for text in log if "term=" not in text]


def test_clocks_of_two_coordinators_accuse_nobody() -> None:
    """A node is accepted by a coordinator whose clock is ahead, and streams under the next one."""
    ahead = [*in_term(1, 20), found(HOSTS[0], "none", 21), commit("bootstrap: accept node", 22)]
    behind = [*in_term(2, 3, "other"), found(HOSTS[0], "bootstrapping", 4, "other")]
    read_ = interpret(ahead, behind)
    assert violations(read_) == []
    assert {entity for entity, _ in recorded(read_, NODE)} == {HOSTS[0]}
    read_ = interpret(without_terms(ahead), without_terms(behind))
    assert violations(read_) == []
    assert {entity for entity, _ in recorded(read_, NODE)} == {
        f"{HOSTS[0]} at {n}[7]" for n in ("h", "other")
    }


def test_who_left_does_not_come_back_in_a_later_term() -> None:
    left = [*in_term(1, 20), line(f"node {HOSTS[0]} moved to left state", 21)]
    back = [*in_term(2, 3, "other"), found(HOSTS[0], "normal", 4, "other")]
    assert violations(interpret(left, back)) == [(NODE, HOSTS[0], 4)]
    assert violations(interpret(without_terms(left), without_terms(back))) == []
    earlier = [*in_term(1, 3, "other"), found(HOSTS[0], "normal", 4, "other")]
    assert violations(interpret([*in_term(2, 20), *left[3:]], earlier)) == []


def test_terms_that_several_claim_or_that_fall_say_nothing() -> None:
    left = [*in_term(1, 20), line(f"node {HOSTS[0]} moved to left state", 21)]
    claimed = [*in_term(1, 30, "other"), found(HOSTS[0], "normal", 31, "other")]
    assert violations(interpret(left, claimed)) == []
    falls = [
        *in_term(3, 30, "other"),
        found(HOSTS[0], "normal", 31, "other"),
        *in_term(2, 40, "other"),
    ]
    assert violations(interpret(left, falls)) == []


def test_a_node_uses_no_generation_that_is_not_committed() -> None:
    written = commit(f"bootstrap: insert tokens and CDC generation data (UUID: {FIRST})")
    uses = line(f"Started using generation (2025/11/05 10:01:05, {FIRST}).", logger="cdc")
    assert violations(interpret([START, written, uses, committed(FIRST)])) == [
        (cdc.MACHINE, FIRST, 3)
    ]
    elsewhere = line(
        f"Started using generation (2025/11/05 10:01:05, {FIRST}).", 0.5, "other", "cdc"
    )
    assert violations(interpret([START, written, committed(FIRST)], [elsewhere])) == []


def test_a_generation_that_was_learned_too_late_is_named() -> None:
    late = line(
        "just learned about a CDC generation newer than the one used the last time streams were "
        "retrieved. This generation, or some newer one, should have been used instead (new "
        "generation's timestamp: 2025/11/05 10:01:05, last time streams were retrieved: 2025).",
        logger="cdc",
        level="ERR",
    )
    (note,) = interpret([late]).notes
    assert note.endswith("says that it wrote with an older CDC generation than it should")


@pytest.mark.parametrize(
    ("reason", "transition", "node"),
    [
        ("replace: accept node", "join_group0", "replacing"),
        (f"bootstrap: failed to accept {HOSTS[1]}", "null", "left"),
        ("start removenode", None, "removing"),
        ("decommission rejected", None, "normal"),
        (f"removing: streaming completed for node {HOSTS[1]}", "write_both_read_new", "removing"),
        (f"finished rollback of {HOSTS[1]} after replacing failure", None, "left"),
        ("TRUNCATE TABLE requested", "truncate_table", None),
        ("Truncate table has completed", "null", None),
        ("Started tablet resize finalization", "tablet_resize_finalization", None),
        ("Finished tablet split finalization", "null", None),
        (
            "replace: transition to tablet_draining and take ownership of",
            "tablet_draining",
            "replacing",
        ),
        ("committed new CDC generation command failed", "null", None),
    ],
)
def test_a_reason_reports_the_state_that_follows(
    reason: str, transition: str | None, node: str | None
) -> None:
    read_ = topology.change_of(reason)
    assert read_ is not None
    assert read_.transition == transition
    assert [state for _, state in read_.nodes] == ([] if node is None else [node])


@pytest.mark.parametrize("reason", ["Tablet migration", "advance fence version to 7", "Starting x"])
def test_other_reasons_report_nothing(reason: str) -> None:
    assert topology.change_of(reason) is None
