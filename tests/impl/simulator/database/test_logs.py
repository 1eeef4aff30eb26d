"""Runs write the logs of their nodes in ScyllaDB's form; the readers accept those of a sound build and no others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.impl.simulator.database import (
    test_defects,
    test_drawn_runs,
    test_dropped_tables,
    test_staging,
    test_view_places,
    test_views,
)
from tests.impl.simulator.database.changes import test_cdc_wrong_builds
from tests.impl.simulator.database.checks import test_refusals, test_scans
from tests.impl.simulator.database.test_defects import CHANGES, CLEANED, GROWN, TABLETS
from tests.impl.simulator.tablets import (
    test_late_statements,
    test_repair,
    test_replication,
    test_resizing,
    test_tablet_faults,
    test_truncated_tables,
)
from tests.impl.topology import test_admission
from tests.thorough import by_turns
from tests.traces.databases.scylladb.scylla_evaluated import interpret, violations

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.server_log.files import LOGS
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

Logs = dict[str, list[str]]
D = Defect


def logs_of(plan: Plan, directory: Path) -> Logs:
    """The lines of each node's log."""
    run(plan, directory)
    files = sorted((directory / LOGS).glob("*.log"))
    return {path.stem: path.read_text("utf-8").splitlines() for path in files}


def refused(logs: Logs) -> set[str]:
    """The machines of which an entity did what it may not."""
    return {machine for machine, _, _ in violations(interpret(*logs.values()))}


# -- sound builds ------------------------------------------------------------------------------------------

SKEWED = parse_faults("all,skew=50")
BROKEN_OFF = parse_faults("crash,failover,loss,delay")
# Barriers follow each other so soon that a request goes on through two of them.
SEEDS = 8  # in which a wrong build is looked for
DEPOSED = replace(CHANGES, faults=parse_faults("failover=60,delay=0.6"))
APART = Plan(
    nodes=5,
    seed=42,
    script=parse_script(
        "write 48; isolate n2; replace n2 by n6; write 23; join n7; replace n7 by n8; join n9; write 23; rebuild n3"
    ),
    faults=parse_faults("loss=0.12,crash=20,failover=10,election=40,skew=1200"),
    workload=Workload(keys=40, gap=(0, 2)),
)
ASKED_TWICE = Plan(
    nodes=5,
    seed=83,
    script=parse_script("write 126; rebuild n2; join n6; cleanup; generation; generation"),
    faults=parse_faults(
        "loss=0.03,delay=0.05,duplicate=0.03,crash=20,failover=20,election=10,storm,action=0.03,skew=300"
    ),
    workload=Workload(keys=40, gap=(1, 6), deletes=0.05),
)
ELECTED_AGAIN = Plan(
    nodes=4,
    seed=63,
    script=parse_script(
        "table t tablets 2 rf 2; write 130; alter t rf 2; create view v on t by value; replace n3 by n5; split t; "
        "merge t; remove n1"
    ),
    faults=parse_faults("failover=120,election=60,storm,skew=2000"),
    workload=Workload(keys=12, gap=(0, 3), deletes=0.3),
)
DROPPED = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; write 80; join n5; ask decommission n1; wait 328; drop table t; "
        "table t tablets 2 rf 3; write 20; join n6"
    ),
    workload=Workload(keys=30, gap=(0, 3), scans=0.2),
)
SOUND = {
    "every fault, clocks off by 50 ms": replace(CHANGES, seed=3, faults=SKEWED),
    "a cleanup": replace(CLEANED, seed=1),
    "a failed barrier that is put up with": draw(140001172).plan(),
    "one whose missing node is back by then": draw(190000139).plan(),
    "a node that was replaced is connected again": draw(190000031).plan(),
    "a rebuild while the barrier of a generation goes on": draw(190000046).plan(),
    "a replica is spared while a repair goes on without it": draw(192000155).plan(),
    "a cleanup ends that nobody waits for": draw(193000133).plan(),
    "a barrier of the same millisecond, of a clock that was set back": draw(190000172).plan(),
    "barriers of many coordinators": replace(DEPOSED, seed=2),
    "tablets, crashes and deposed coordinators": replace(TABLETS, seed=2, faults=BROKEN_OFF),
    # The last barrier of tablets once counted as the one before a cleanup, if it missed a node that was down.
    "a cleanup after a barrier of tablets": replace(TABLETS, seed=45, faults=BROKEN_OFF),
    # Two coordinators remove the same tasks: the one that is deposed does not succeed.
    "clocks of coordinators more than a second apart": APART,
    "a barrier of a cleanup serves a generation": ASKED_TWICE,
    "a coordinator is deposed and elected again while it commits": ELECTED_AGAIN,
    "views and many coordinators": replace(test_views.CHANGED, seed=3),
    "tasks are called until the coordinator learns that they are no more": replace(
        test_views.CHANGED, seed=7
    ),
    "a table is dropped in the last stage of its tablets": DROPPED,
    "a commit writes the stage that a tablet has": replace(test_views.CHANGED, seed=5),
}


TASKS_FOLLOW = (  # what is told of tasks of tablets that move, split and merge
    "view_building_coordinator - Selected new base table to process: ",
    "view_building_coordinator - Finished processing base table ",
    " is built.",
    "load_balancer - Finalizing resize decision for table ",
    "updating topology state: Finished tablet resize finalization",
    " was migrated from ",
    " was split into task ",
    " was merged into task ",
    "for abandoning replica ",
)


def test_what_becomes_of_tasks_with_their_tablets_is_told(tmp_path: Path) -> None:
    logs = logs_of(replace(test_view_places.BUILT, seed=5), tmp_path)
    assert refused(logs) == set()
    lines = [line for log in logs.values() for line in log]
    assert not [text for text in TASKS_FOLLOW if not any(text in line for line in lines)]
    aborted = {line.rsplit(" ", 1)[1] for line in lines if re.search(r"Aborting task \S+$", line)}
    assert aborted
    assert all(sum(task in line for line in lines) > 1 for task in aborted)  # they go on elsewhere


@pytest.mark.parametrize("plan", SOUND.values(), ids=SOUND)
def test_logs_of_a_sound_build_are_accepted(plan: Plan, tmp_path: Path) -> None:
    logs = logs_of(plan, tmp_path)
    assert refused(logs) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_logs_of_a_sound_build_are_accepted_whatever_happens(seed: int, tmp_path: Path) -> None:
    for number, plan in enumerate([*SOUND.values(), test_view_places.BUILT]):
        assert refused(logs_of(replace(plan, seed=seed), tmp_path / str(number))) == set()


def test_validate_reads_the_logs_beside_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--script", "write 40; join n4; decommission n1", "--out", str(tmp_path)]
    assert run_command_line(words) == 0
    files = [str(path) for path in sorted((tmp_path / LOGS).glob("*.log"))]
    assert [Path(f).name for f in files] == ["n1.log", "n2.log", "n3.log", "n4.log"]
    capsys.readouterr()
    assert run_command_line(["validate", *files, "--engine", "embedded"]) == 0
    printed = capsys.readouterr().out
    for machine in ("LoggedBarrier", "LoggedFence", "LoggedTenure", "TopologyTransition"):
        assert f"{machine}" in printed
    assert "VIOLATION" not in printed


# -- wrong builds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caught:
    """A wrong build that its logs give away: which machine refuses them, from which seed on it is looked for."""

    defect: Defect
    machine: str
    seed: int = 0
    plan: Plan = CHANGES


JOINED = Plan(script=parse_script("write 20; join n4"))
REPLACED = Plan(nodes=4, script=parse_script("write 20; replace n2 by n5"))
MOVED = Plan(script=parse_script("table t tablets 2 rf 2; write 20; decommission n1"))
REPAIRED = Plan(script=parse_script("table t tablets 1 rf 3; write 20; repair t"))
FEWER = Plan(script=parse_script("table t tablets 2 rf 3; write 20; alter t rf 2"))

CAUGHT = (
    Caught(D.barrier_asks_nobody, "LoggedTenure"),
    Caught(D.barrier_of_before_counts, "LoggedTenure", plan=CLEANED),
    Caught(D.barrier_does_not_learn, "LoggedBarrier"),
    Caught(D.barrier_does_not_drain, "LoggedBarrier", plan=DEPOSED),
    Caught(D.reads_are_not_drained, "LoggedBarrier", 2, plan=DEPOSED),
    Caught(D.joining_node_is_not_asked, "LoggedBarrier", plan=GROWN),
    Caught(D.compare_and_set_is_ignored, "LoggedFence", 1),
    Caught(
        D.generations_precede_each_other, "LoggedGenerations", plan=test_cdc_wrong_builds.PRECEDED
    ),
    Caught(D.aborted_tasks_are_removed, "ViewTask", 1, plan=test_views.MOVED),
    Caught(D.an_answer_counts_for_all, "LoggedTask", 4, plan=test_views.TWO),
    Caught(D.view_building_does_not_flush, "LoggedScan", plan=test_views.BUILT),
    Caught(D.streaming_is_skipped, "LoggedJoin", plan=JOINED),
    Caught(D.streaming_from_one_source, "LoggedJoin", plan=REPLACED),
    Caught(D.tablet_streaming_is_skipped, "LoggedWork", plan=MOVED),
    Caught(D.tablet_cleanup_leaves_rows, "LoggedWork", plan=MOVED),
    Caught(D.repairs_are_skipped, "LoggedWork", plan=REPAIRED),
    Caught(D.repairs_fetch_from_one_replica, "LoggedWork", plan=REPAIRED),
    Caught(D.streaming_does_not_wait, "LoggedStage", plan=MOVED),
    Caught(D.old_reads_are_not_awaited, "LoggedStage", plan=MOVED),
    Caught(D.cleanup_does_not_wait, "LoggedStage", plan=MOVED),
    Caught(D.end_is_not_awaited, "LoggedStage", plan=MOVED),
    Caught(D.removed_replicas_keep_rows, "LoggedStage", plan=FEWER),
)
NO_LINE_OF_REQUESTS = "ScyllaDB logs no line for a request of a client that succeeds, nor for its replicas, but at TRACE"
NO_LINE_OF_ROWS = (
    "lines of streaming count bytes and ranges, and say nothing of which rows they were"
)
ONE_REPAIRS = "ScyllaDB asks one replica to repair, which sends the others what they lack"
NO_REASON_TO_REPAIR = "no line says why a tablet is not repaired before it has fewer replicas"
NO_LINE_OF_DISKS = "when a row is on the disk no line says"
NO_LINE_OF_TABLES = "the log says what is committed, not which rows the tables hold: their dumps do"
NO_LINE_OF_STATEMENTS = "a line says which table was dropped, and none which statement asked for it"
NO_LINE_OF_SPLITS = "whether a replica is ready for a split, load statistics say, and no line"
NO_LINE_OF_VIEWS = (
    "lines of view building say which tasks there are and run, and nothing of rows, terms or places"
)
NO_LINE_OF_TIMES = "the readers do not follow which generation operates: a publication may be late"
NO_LINE_OF_ANSWERS = "no line says which call of a coordinator an answer is of"
LEGAL = "ScyllaDB itself waits for the fence only after a barrier that failed"
NO_LINE_OF_PLANS = (
    "how many a shard may stream is a setting, and the readers take no plan for an event"
)
NOT_LOGGED = {
    D.limits_are_ignored: NO_LINE_OF_PLANS,
    D.stale_plans_are_committed: NO_LINE_OF_PLANS,
    D.fence_is_ignored: NO_LINE_OF_REQUESTS,
    D.scans_are_not_fenced: NO_LINE_OF_REQUESTS,
    D.scans_ask_one_replica: NO_LINE_OF_REQUESTS,
    D.session_is_not_checked: NO_LINE_OF_ROWS,
    D.writes_skip_pending: NO_LINE_OF_REQUESTS,
    D.pending_is_not_awaited: NO_LINE_OF_REQUESTS,
    D.reads_use_the_new_ring_early: NO_LINE_OF_REQUESTS,
    D.writes_use_the_new_ring_early: NO_LINE_OF_REQUESTS,
    D.one_answer_less: NO_LINE_OF_REQUESTS,
    D.timeouts_acknowledge: NO_LINE_OF_REQUESTS,
    D.leaving_replicas_suffice: NO_LINE_OF_REQUESTS,
    D.unready_replica_answers: NO_LINE_OF_REQUESTS,
    D.streaming_misses_rows: NO_LINE_OF_ROWS,
    D.tombstones_are_not_streamed: NO_LINE_OF_ROWS,
    D.quorums_are_of_the_table: NO_LINE_OF_REQUESTS,
    D.removed_replicas_are_not_repaired: NO_REASON_TO_REPAIR,
    D.halves_of_tablets_are_mixed_up: NO_LINE_OF_TABLES,
    D.apart_tablets_are_merged: NO_LINE_OF_TABLES,
    D.splits_are_not_prepared: NO_LINE_OF_SPLITS,
    D.repairs_ask_one_replica: ONE_REPAIRS,
    D.fence_skips_nodes_that_seem_down: LEGAL,
    D.who_is_spared_again_is_not_asked: LEGAL,
    D.lost_rows_are_kept: NO_LINE_OF_ROWS,
    D.repeated_cleanups_settle_again: NO_LINE_OF_ROWS,
    D.rows_between_chunks_are_lost: NO_LINE_OF_ROWS,
    D.cleanup_drops_owned_rows: NO_LINE_OF_ROWS,
    D.sync_is_forgotten: NO_LINE_OF_DISKS,
    D.streamed_rows_are_not_synced: NO_LINE_OF_DISKS,
    D.sources_lag_behind: NO_LINE_OF_ROWS,
    D.given_up_sources_are_asked: NO_LINE_OF_ROWS,
    D.late_answers_count: NO_LINE_OF_ANSWERS,
    D.agreeing_reads_leave_pending_out: NO_LINE_OF_REQUESTS,
    D.resizes_do_not_await_the_fence: LEGAL,
    D.resizes_do_not_await_requests: NO_LINE_OF_TABLES,
    D.rows_of_left_nodes_are_dropped: NO_LINE_OF_TABLES,
    D.features_are_not_checked: NO_LINE_OF_TABLES,
    D.leaves_are_not_checked: NO_LINE_OF_TABLES,
    D.fence_is_not_spread: LEGAL,
    D.log_takes_the_newest_generation: NO_LINE_OF_REQUESTS,
    D.log_goes_with_the_row: NO_LINE_OF_REQUESTS,
    D.log_skips_pending: NO_LINE_OF_REQUESTS,
    D.cut_off_nodes_write_to_logs: NO_LINE_OF_REQUESTS,
    D.log_window_is_open: NO_LINE_OF_REQUESTS,
    D.log_rows_are_sent_apart: NO_LINE_OF_REQUESTS,
    D.log_rows_are_stored_apart: NO_LINE_OF_REQUESTS,
    D.log_takes_the_stream_of_the_key: NO_LINE_OF_REQUESTS,
    D.logs_stay_behind: NO_LINE_OF_ROWS,
    D.log_rows_expire_early: NO_LINE_OF_ROWS,
    D.generations_are_cleared_early: NO_LINE_OF_TIMES,
    D.only_the_last_generation_is_loaded: NO_LINE_OF_REQUESTS,
    D.generations_are_not_queued: NO_LINE_OF_TIMES,
    D.readers_are_sent_back: NO_LINE_OF_REQUESTS,
    D.streams_are_limited: NO_LINE_OF_TABLES,
    D.images_are_of_one_replica: NO_LINE_OF_REQUESTS,
    D.images_may_be_newer: NO_LINE_OF_REQUESTS,
    D.streams_outlive_their_tablets: NO_LINE_OF_TABLES,
    D.last_tablets_move_silently: NO_LINE_OF_TABLES,
    D.tablets_that_come_are_counted: NO_LINE_OF_TABLES,
    D.waived_barriers_move_no_fence: NO_LINE_OF_TABLES,
    D.merged_tablets_have_their_places: NO_LINE_OF_VIEWS,
    D.a_call_joins_with_all_its_tasks: NO_LINE_OF_VIEWS,
    D.recreated_views_are_the_same: NO_LINE_OF_VIEWS,
    D.statements_act_on_names: NO_LINE_OF_STATEMENTS,
    D.rows_come_to_truncated_tables: NO_LINE_OF_ROWS,
    D.truncations_are_not_awaited: NO_LINE_OF_ROWS,
    **dict.fromkeys((s.defect for s in test_dropped_tables.SHOWN), NO_LINE_OF_ROWS),
    **dict.fromkeys(
        {s.defect for s in test_views.SHOWN} - {c.defect for c in CAUGHT}, NO_LINE_OF_VIEWS
    ),
    **dict.fromkeys((s.defect for s in test_refusals.SHOWN), NO_LINE_OF_REQUESTS),
    **dict.fromkeys((s.defect for s in test_view_places.SHOWN), NO_LINE_OF_VIEWS),
    **dict.fromkeys((s.defect for s in test_staging.SHOWN), NO_LINE_OF_ROWS),
}
"""Why the logs alone cannot show a defect; the traces of nodes, or what clients read, show each of them."""


def test_of_every_defect_it_is_known_whether_logs_show_it() -> None:
    assert {c.defect for c in CAUGHT} | {*NOT_LOGGED} == {*Defect}
    assert not {c.defect for c in CAUGHT} & {*NOT_LOGGED}
    shown = (
        *test_defects.SHOWN,
        *test_cdc_wrong_builds.SHOWN,
        *test_drawn_runs.SHOWN,
        *test_dropped_tables.SHOWN,
        *test_late_statements.SHOWN,
        *test_truncated_tables.SHOWN,
        *test_admission.SHOWN,
        *test_refusals.SHOWN,
        *test_repair.SHOWN,
        *test_replication.SHOWN,
        *test_resizing.SHOWN,
        *test_scans.SHOWN,
        *test_staging.SHOWN,
        *test_tablet_faults.SHOWN,
        *test_view_places.SHOWN,
        *test_views.SHOWN,
    )
    assert {s.defect for s in shown} == {*Defect}


@pytest.mark.parametrize("caught", by_turns(CAUGHT), ids=lambda c: c.defect.name)
def test_the_logs_of_a_wrong_build_are_refused(caught: Caught, tmp_path: Path) -> None:
    plan = replace(caught.plan, defects=frozenset({caught.defect}))
    seeds = range(caught.seed, caught.seed + SEEDS)
    found = (refused(logs_of(replace(plan, seed=s), tmp_path / str(s))) for s in seeds)
    assert any(caught.machine in machines for machines in found)


# -- logs that were changed ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return logs_of(replace(GROWN, seed=0), tmp_path_factory.mktemp("sound"))


def changed(logs: Logs, node: str, change: Callable[[str], str | None]) -> Logs:
    """The logs with each line of a node's replaced, or left out; at least one must change."""
    lines = [new for old in logs[node] if (new := change(old)) is not None]
    assert lines != logs[node]
    return {**logs, node: lines}


def coordinator_of(logs: Logs) -> str:
    """The one node that coordinates."""
    (found,) = [n for n, lines in logs.items() if any("start topology" in one for one in lines)]
    return found


def fence_learned(logs: Logs, node: str) -> int:
    """A version whose fence the node has learned after others."""
    found = [line for line in logs[node] if "new fence_version" in line]
    return max(int(line.partition("new fence_version ")[2].split()[0]) for line in found)


def test_a_fence_that_falls_is_a_violation(sound: Logs) -> None:
    last = fence_learned(sound, "n1")
    before, after = f"new fence_version {last} is set", "new fence_version 0 is set"
    wrong = changed(sound, "n1", lambda line: line.replace(before, after))
    assert refused(wrong) == {"LoggedFence"}


def test_a_fence_before_a_node_has_answered_is_a_violation(sound: Logs) -> None:
    last = fence_learned(sound, "n1")
    wrong = changed(sound, "n1", lambda line: None if f"version {last}: done" in line else line)
    assert refused(wrong) == {"LoggedBarrier"}


def test_an_older_request_after_the_answer_is_a_violation(sound: Logs) -> None:
    last = fence_learned(sound, "n1")
    got, empty = f"version {last}, current version", "use_count): {}"
    wrong = changed(
        sound,
        "n1",
        lambda line: line.replace(empty, f"use_count): {{{last - 2}: 1}}") if got in line else line,
    )
    assert refused(wrong) == {"LoggedBarrier"}


def test_a_fence_without_a_barrier_is_a_violation(sound: Logs) -> None:
    left_out = Counter[str]()

    def without_the_last(line: str) -> str | None:
        if "global topology command barrier_and_drain" in line:
            left_out["barriers"] += 1
            return None if left_out["barriers"] == 3 else line
        return line

    wrong = changed(sound, coordinator_of(sound), without_the_last)
    assert refused(wrong) == {"LoggedTenure"}


@pytest.mark.parametrize(("later", "machines"), [(5, {"LoggedTenure"}), (0, set[str]())])
def test_a_coordinator_that_acts_after_it_was_deposed_is_a_violation(
    sound: Logs, later: int, machines: set[str]
) -> None:
    """Not so if it only ends what it has begun."""
    head, tail = "INFO  2023-11-14 22:14:{:02},000 [shard 0: gms] ", "losing leadership"
    executes = "executing global topology command barrier_and_drain, excluded nodes: {}"
    more = [
        f"{head.format(10)}raft_group0 - {tail}",
        f"{head.format(10 + later)}raft_topology - {executes}",
    ]
    node = coordinator_of(sound)
    assert refused({**sound, node: [*sound[node], *more]}) == machines


@pytest.fixture(scope="module")
def with_tablets(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    script = parse_script("table t tablets 2 rf 2; write 20; join n4; decommission n1")
    return logs_of(Plan(script=script), tmp_path_factory.mktemp("tablets"))


@pytest.mark.parametrize("what", ["Initiating tablet streaming", "stage to use_new"])
def test_a_tablet_that_moves_in_another_track_is_a_violation(with_tablets: Logs, what: str) -> None:
    assert refused(with_tablets) == set()
    (node,) = (n for n, lines in with_tablets.items() if any(what in line for line in lines))
    moves = next(line for line in with_tablets[node] if what in line)
    entered = f"{moves.partition('raft_topology')[0]}raft_topology - entered `write both read old` "
    lines: list[str] = []
    for line in with_tablets[node]:
        lines += [f"{entered}transition state"] * (line is moves) + [line]
    assert "LoggedTenure" in refused({**with_tablets, node: lines})


def test_a_barrier_that_leaves_a_node_out_asks_no_answer_of_it(sound: Logs) -> None:
    last = fence_learned(sound, "n1")
    unanswered = changed(
        sound, "n1", lambda line: None if f"version {last}: done" in line else line
    )
    some = "{2564c0a3-dd23-551f-a25c-1af767f45a81}"
    excluding = changed(
        unanswered,
        coordinator_of(sound),
        lambda line: line.replace("excluded nodes: {}", f"excluded nodes: {some}"),
    )
    assert refused(excluding) == set()
