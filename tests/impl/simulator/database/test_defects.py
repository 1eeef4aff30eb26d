"""Every wrong build is refused by the definitions that check its records, and where clients notice, by the oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database import (
    test_drawn_runs,
    test_dropped_tables,
    test_staging,
    test_view_places,
    test_views,
)
from tests.impl.simulator.database.changes import test_cdc_wrong_builds
from tests.impl.simulator.database.checks import test_refusals, test_scans
from tests.impl.simulator.database.wrong_builds import Shown
from tests.impl.simulator.tablets import (
    test_late_statements,
    test_repair,
    test_replication,
    test_resizing,
    test_tablet_faults,
    test_truncated_tables,
)
from tests.impl.topology import test_admission
from tests.thorough import by_turns, some_of

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

CHANGES = Plan(
    script=parse_script("write 300; join n4; decommission n1; replace n2 by n5"),
    faults=parse_faults("all"),
    workload=Workload(keys=12, gap=(0, 3)),
)
SLOW_STREAMS = Plan(
    nodes=5,
    script=parse_script(
        "write 200; wait 500; decommission n1; decommission n2; remove n3; join n7; join n8"
    ),
    faults=parse_faults("delay=0.3,crash=60"),
    workload=Workload(keys=60, gap=(0, 2), deletes=0.05),
    timing=Timing(chunk=3, compact_after=15),
)
CLEANED = Plan(nodes=2, script=parse_script("join n4; cleanup; join n5"))
GROWN = Plan(
    script=parse_script("write 80; wait 150; join n4"),
    workload=Workload(keys=30, gap=(0, 2), deletes=0.2),
    timing=Timing(compact_after=15, chunk=3),
)

TABLETS = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 120; wait 200; join n4; decommission n1; join n5; decommission n2"
    )
)
ANSWERED_LATE = replace(
    TABLETS,
    script=parse_script(
        "table t tablets 8 rf 2; write 150; join n4; decommission n1; join n5; decommission n2"
    ),
    faults=parse_faults("failover=240,delay=0.5,duplicate=0.3"),
    workload=Workload(keys=60, gap=(0, 2)),
    timing=Timing(chunk=3),
)
PLANNED_BEFORE = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 8 rf 2; write 10; join n5; table u tablets 8 rf 2; table v tablets 8 rf 2"
    ),
    faults=parse_faults("delay=0.3"),
)
READ_AS_THEY_MOVE = Plan(
    script=parse_script(
        "table t tablets 4 rf 2; write 60; wait 200; write 150; move t 0; move t 1; move t 2"
    ),
    workload=Workload(keys=60, gap=(0, 3)),
)


D = Defect
SHOWN = (
    Shown(D.barrier_asks_nobody, CHANGES, "the node has acknowledged that it drained"),
    Shown(D.barrier_of_before_counts, CLEANED, "the node has acknowledged that it drained"),
    Shown(D.barrier_does_not_learn, CHANGES, "the node has learned what is committed"),
    Shown(D.barrier_does_not_drain, CHANGES, "the node has drained older requests"),
    Shown(D.fence_is_ignored, CHANGES, "the request is not older than the fence"),
    Shown(D.session_is_not_checked, SLOW_STREAMS, "the session is open", 4),
    Shown(D.writes_skip_pending, CHANGES, "every replica that the stage writes to", oracle=True),
    Shown(D.pending_is_not_awaited, CHANGES, "the pending one among them", oracle=True),
    Shown(D.reads_use_the_new_ring_early, CHANGES, "of the ring that reads use"),
    Shown(D.streaming_misses_rows, CHANGES, "every row of the range is sent"),
    Shown(D.streaming_from_one_source, CHANGES, "came from enough replicas"),
    Shown(D.streaming_is_skipped, CHANGES, "came from enough replicas", oracle=True),
    Shown(D.sync_is_forgotten, CHANGES, "the row is on the disk"),
    Shown(D.cleanup_drops_owned_rows, CHANGES, "has no part in the range", oracle=True),
    Shown(D.limits_are_ignored, TABLETS, "streams as much as it may", oracle=True),
    Shown(D.stale_plans_are_committed, PLANNED_BEFORE, "the migration improves the balance"),
    Shown(D.compare_and_set_is_ignored, CHANGES, "cannot happen now"),
    Shown(D.rows_of_left_nodes_are_dropped, CHANGES, "the rows say that"),
    Shown(D.one_answer_less, GROWN, "enough replicas have stored it"),
    Shown(D.timeouts_acknowledge, CHANGES, "enough replicas have stored it"),
    Shown(D.writes_use_the_new_ring_early, CHANGES, "every replica that the stage writes to"),
    Shown(D.reads_are_not_drained, CHANGES, "the node has drained older requests"),
    Shown(D.fence_is_not_spread, GROWN, "the node has acknowledged the fence"),
    Shown(D.joining_node_is_not_asked, GROWN, "the node has acknowledged that it drained"),
    Shown(D.tombstones_are_not_streamed, GROWN, "every row of the range is sent"),
    Shown(D.rows_between_chunks_are_lost, GROWN, "every row of the range is sent"),
    Shown(D.unready_replica_answers, CHANGES, "there is storage"),
    Shown(D.tablet_streaming_is_skipped, TABLETS, "came from enough replicas", oracle=True),
    Shown(D.streamed_rows_are_not_synced, ANSWERED_LATE, "what was streamed is on the disk"),
    Shown(D.sources_lag_behind, ANSWERED_LATE, "what the node knew that asks"),
    Shown(D.given_up_sources_are_asked, CHANGES, "the source is not given up"),
    Shown(D.late_answers_count, ANSWERED_LATE, "all whom it has asked in this term"),
    Shown(
        D.agreeing_reads_leave_pending_out,
        READ_AS_THEY_MOVE,
        "on enough replicas, whoever comes or goes",
        oracle=True,
    ),
)
SEEDS = 5  # from the first on


def test_every_defect_is_shown() -> None:
    assert {
        s.defect
        for part in (
            test_admission,
            test_cdc_wrong_builds,
            test_drawn_runs,
            test_dropped_tables,
            test_late_statements,
            test_truncated_tables,
            test_refusals,
            test_repair,
            test_replication,
            test_resizing,
            test_scans,
            test_staging,
            test_tablet_faults,
            test_view_places,
            test_views,
        )
        for s in (*SHOWN, *part.SHOWN)
    } == set(Defect)


@pytest.mark.parametrize("shown", by_turns(some_of(SHOWN, each=2)), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_refused_by_the_check_of_its_records(shown: Shown) -> None:
    shown.check(SEEDS)


@pytest.mark.parametrize(("seed", "created_first"), [(0, True), (1, False)])
def test_a_plan_is_made_anew_if_a_table_was_created_meanwhile(
    seed: int, created_first: bool
) -> None:
    """The tablets of the new table lie on the new node, so that no other one has to move there."""
    report = run(replace(PLANNED_BEFORE, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert (not report.moves) == created_first


def test_slow_streams_of_a_sound_build_are_accepted() -> None:
    report = run(replace(SLOW_STREAMS, seed=4))
    assert (report.breaches, report.refused) == ([], [])


def test_validate_refuses_the_records_of_a_wrong_build_and_accepts_those_of_a_sound_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(CHANGES, script=parse_script("write 60; join n4"))
    for name, defects, code in (("sound", set(), 0), ("wrong", {Defect.streaming_is_skipped}, 1)):
        directory = tmp_path / name
        directory.mkdir()
        run(replace(plan, defects=frozenset(defects)), directory)
        records = [str(directory / f"{kind}.jsonl") for kind in ("lives", "sessions")]
        assert run_command_line(["validate", *records, "--engine", "embedded"]) == code
        printed = capsys.readouterr().out
        assert ("each range came from enough replicas" in printed) == bool(defects)


def test_validate_refuses_a_plan_that_a_shard_has_no_room_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a run records of its plans is accepted; with one plan twice it is not."""
    run(TABLETS, tmp_path)
    shards = tmp_path / "shards.jsonl"
    assert run_command_line(["validate", str(shards), "--engine", "embedded"]) == 0
    events = [json.loads(line) for line in shards.read_text().splitlines()]
    planned = next(e for e in events if e["action"] == "plan")
    assert planned["entity"].startswith("reads from ")
    later = (e for e in events if e["entity"] == planned["entity"] and e["seq"] >= planned["seq"])
    events.append({**planned})
    for event in later:
        event["seq"] += 1
    shards.write_text("\n".join(map(json.dumps, events)))
    capsys.readouterr()
    assert run_command_line(["validate", str(shards), "--engine", "embedded"]) == 1
    assert "the shard streams less than it may" in capsys.readouterr().out
