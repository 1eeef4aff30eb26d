"""Materialized views: built on tablets while these are written to and move; wrong builds are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.commands import run_command_line
from stagewright.impl.catalog.columns import Rows
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import stored_key
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.checks.view_oracle import Expected, stored_row
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.storage.port import Version
from stagewright.impl.views.building.tasks import LOCAL, PROCESSING
from stagewright.impl.views.maintenance.definition import COMPARISONS, ViewDefinition, parts_of
from stagewright.impl.views.maintenance.updates import updates_of

KEYS = Workload(keys=60, gap=(0, 2))
SMALL_CHUNKS = Timing(chunk=3)
BUILT = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; write 60; create view v on t by value mod 7; write 60; await v"
    ),
    faults=parse_faults("delay,duplicate,loss=0.1,crash=60,failover"),
    workload=KEYS,
    timing=SMALL_CHUNKS,
)
LARGE = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 300; wait 500; create view v on t by value mod 7; write 60; await v"
    ),
    faults=parse_faults("loss,crash,failover"),
    workload=Workload(keys=100, gap=(0, 2)),
    timing=SMALL_CHUNKS,
)
TWO = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 80; create view v on t by value mod 7; wait 30; "
        "create view w on t by value mod 3; await v; await w"
    ),
    faults=parse_faults("loss=0.25,crash"),
    workload=Workload(keys=40, gap=(0, 2)),
)
MOVED = Plan(
    script=parse_script(
        "table t tablets 8 rf 3; write 80; join n4; create view v on t by value mod 7; await v; "
        "create view w on t by value mod 3; decommission n1; await w"
    ),
    faults=parse_faults("delay"),
    workload=Workload(keys=40, gap=(0, 2)),
)
WRITTEN_WHILE_MOVED = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 60; create view v on t by value mod 7; await v; write 400; "
        "join n4; decommission n1"
    ),
    workload=Workload(keys=40, gap=(1, 4), reads=0.1),
)
CHANGED = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 150; create view v on t by value mod 7; "
        "create view w on t by value mod 3; write 60; join n4; drop view v; "
        "create view x on t by value where value > 60; replace n2 by n5; decommission n1; await x; await w"
    ),
    faults=parse_faults("all"),
    workload=KEYS,
)
DROPPED = "table t tablets 4 rf 3; write 80; create view v on t by value; wait {}; drop view v; create view w on t by value mod 3; await w"


# -- sound builds ------------------------------------------------------------------------------------------


def test_a_view_is_built_while_its_table_is_written_to() -> None:
    report = run(replace(BUILT, faults=parse_faults("none")))
    assert (report.breaches, report.refused) == ([], [])
    assert report.outcomes[-1].result == "built"
    assert report.counted["view rows compared"] > 20
    statuses = {key[1]: row["status"] for key, row in report.tables["view_build_status_v2"].items()}
    assert statuses == dict.fromkeys(("n1", "n2", "n3", "n4"), "SUCCESS")
    assert not report.tables["view_building_tasks"]
    assert report.views == {"ks.v": "SUCCESS"}


def test_a_view_that_is_being_built_has_tasks_left() -> None:
    tables: dict[str, Rows] = {
        "tables": {("ks.t",): {}, ("ks.v",): {"view_of": "ks.t"}, ("ks.w",): {"view_of": "ks.t"}},
        "view_build_status_v2": {("ks.v", "n1"): {"status": "STARTED"}},
        "view_building_tasks": {("1",): {"view_id": "ks.v"}, ("2",): {"view_id": "ks.v"}},
    }
    report = Report([], [], [], {}, set(), 0, 0, {}, tables, {})
    assert report.views == {"ks.v": "STARTED, 2 tasks left", "ks.w": "not started"}


def test_a_view_that_was_refused_or_dropped_is_not_built() -> None:
    script = (
        "table t tablets 4 rf 3; create view v on t by value; create view w on v by value; await w; "
        "drop view v; await v"
    )
    said = [o.result for o in run(Plan(script=parse_script(script))).outcomes]
    assert said[2:4] == ["refused: ks.v is no table of tablets", "there is no such view"]
    assert said[4:] == ["done", "there is no such view"]


def test_how_far_a_build_is_can_be_asked_for_at_any_time() -> None:
    script = (
        "table t tablets 4 rf 3; write 200; wait 500; build status; "
        "create view v on t by value mod 7; build status; {}await v; build status"
    )
    waits = "wait 12; build status; " * 12
    report = run(Plan(script=parse_script(script.format(waits)), timing=SMALL_CHUNKS))
    assert (report.breaches, report.refused) == ([], [])
    said = [o.result for o in report.outcomes if o.operation == "build status"]
    assert said[0] == "there is no view"
    assert said[1] == "ks.v CREATED, 0 of 12 tasks done"
    assert said[-1] == "ks.v SUCCESS"
    under_way = [
        s for s in said if re.fullmatch(r"ks\.v STARTED, \d+ of 12 .*about \d+ ms to go", s)
    ]
    assert under_way, said


@pytest.mark.parametrize("plan", [BUILT, LARGE, TWO], ids=["small", "large", "two views"])
@pytest.mark.parametrize("seed", some_of(range(3)))
def test_under_faults_a_view_is_what_its_table_says(plan: Plan, seed: int) -> None:
    report = run(replace(plan, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert report.counted["view rows compared"] > 10


@pytest.mark.parametrize("seed", some_of([7, 14, 18]))
def test_views_are_built_and_dropped_while_nodes_come_and_go(seed: int) -> None:
    report = run(replace(CHANGED, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert report.moves
    assert report.counted["views built"] >= 2


@pytest.mark.parametrize("wait", [0, 15, 40, 90])
def test_a_view_may_be_dropped_at_any_time(wait: int) -> None:
    plan = Plan(script=parse_script(DROPPED.format(wait)), faults=parse_faults("delay,loss"))
    report = run(replace(plan, workload=KEYS, timing=SMALL_CHUNKS))
    assert (report.breaches, report.refused) == ([], [])
    assert report.outcomes[-1].result == "built"
    assert all(row["view_id"] == "ks.w" for row in report.tables["view_building_tasks"].values())
    assert ("ks.v",) not in report.tables["tables"]


@pytest.mark.parametrize(
    "while_",
    [
        "",
        "ask decommission n1; ask decommission n2; ",
        "kill n3; ask remove n3; ",
        "move v 0; ",
    ],
    ids=["at rest", "drained", "removed", "moved"],
)
def test_a_view_takes_the_last_tablets_of_a_node_with_it(while_: str) -> None:
    script = (
        "table t tablets 1 rf 2; write 20; create view v on t by value; await v; "
        f"{while_}drop view v; write 20"
    )
    report = run(Plan(nodes=5, script=parse_script(script), workload=KEYS))
    assert (report.breaches, report.refused) == ([], [])
    assert {o.result for o in report.outcomes if o.operation == "drop view v"} == {"done"}
    assert {table for table, _ in report.tables["tablets"]} == {"ks.t"}


@pytest.mark.parametrize("wait", [0, 60, 400])
def test_a_table_is_left_although_its_last_view_is_dropped(wait: int) -> None:
    script = (
        f"table t tablets 4 rf 3; table u tablets 4 rf 3; write 60; create view v on u by value; wait {wait}; "
        "drop view v; create view w on t by value mod 3; await w; drop view w; wait 2000"
    )
    report = run(Plan(script=parse_script(script), faults=parse_faults("delay"), workload=KEYS))
    assert (report.breaches, report.refused) == ([], [])
    assert report.tables[LOCAL][PROCESSING]["value"] is None


def test_updates_follow_tablets_that_are_written_to_while_they_move() -> None:
    report = run(WRITTEN_WHILE_MOVED)
    assert (report.breaches, report.refused) == ([], [])
    assert report.moves


# -- wrong builds ------------------------------------------------------------------------------------------


D = Defect
KEPT = "the view rows before and after are updated"
READ = "every row that was there is in the view"
LATER = Plan(  # the second view comes while the memtable is written out for the first
    nodes=3,
    script=parse_script(
        "table t tablets 1 rf 3; write 60; wait 30; create view v on t by value; wait 18; "
        "create view w on t by value mod 7; await v; await w"
    ),
    workload=Workload(keys=60, gap=(0, 1), clients=6),
)
SHOWN = (
    Shown(D.view_updates_are_sent_unsynced, BUILT, "the base row is on the disk"),
    Shown(D.view_updates_go_to_the_first_replica, BUILT, "the paired view replica", oracle=True),
    Shown(D.view_updates_skip_pending, WRITTEN_WHILE_MOVED, "all that the update is for have it"),
    Shown(D.old_view_rows_are_kept, BUILT, KEPT, oracle=True),
    Shown(D.view_updates_are_not_kept, BUILT, KEPT, oracle=True),
    Shown(D.view_building_does_not_wait, BUILT, READ, oracle=True),
    Shown(D.view_building_makes_timestamps, BUILT, "the timestamp of a base row", oracle=True),
    Shown(D.view_building_skips_rows, LARGE, READ, oracle=True),
    Shown(D.view_building_does_not_flush, BUILT, "the base table was flushed", oracle=True),
    Shown(D.views_of_the_end_are_flushed, LATER, "flushed since their views are there", 18),
    Shown(D.an_answer_counts_for_all, TWO, "the worker has completed it", 4),
    Shown(D.aborted_tasks_are_removed, MOVED, "life is normal", 1),
    Shown(D.terms_are_not_compared, CHANGED, "a request of the current term arrives"),
    Shown(D.tasks_stay_behind, MOVED, "each task is of a replica of its tablet", oracle=True),
    Shown(
        D.tasks_outlive_their_view,
        Plan(script=parse_script(DROPPED.format(20)), faults=parse_faults("delay"), workload=KEYS),
        "each task is of a view that is there",
    ),
)
SEEDS = 4  # from the first on


@pytest.mark.parametrize("shown", by_turns(some_of(SHOWN, each=2)), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_refused_by_its_records_and_noticed_in_the_rows(shown: Shown) -> None:
    shown.check(SEEDS)


@pytest.mark.parametrize(
    ("defect", "says"),
    [
        (None, ""),
        (D.view_building_does_not_wait, READ),
    ],
    ids=str,
)
def test_validate_checks_what_is_recorded_of_views(
    defect: Defect | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(replace(BUILT, defects=frozenset({defect} if defect else ())), tmp_path)
    kinds = ("view-tasks", "view-updates", "view-batches", "view-places")
    records = [str(tmp_path / f"{kind}.jsonl") for kind in kinds]
    assert run_command_line(["validate", *records, "--engine", "embedded"]) == bool(defect)
    assert says in " ".join(capsys.readouterr().out.split())


# -- laws --------------------------------------------------------------------------------------------------

numbers = st.integers(0, 40).map(lambda n: b"%d" % n)
values = st.one_of(st.none(), numbers)
views = st.builds(
    lambda modulus, comparison, bound: ViewDefinition("v", "t", modulus, comparison, bound),
    st.integers(0, 5),
    st.sampled_from(["", *COMPARISONS]),
    st.integers(0, 40),
)


@given(views, values)
def test_a_definition_means_what_the_oracle_reads_in_the_script(
    view: ViewDefinition, value: bytes | None
) -> None:
    expected, base = Expected("t", view.modulus, view.comparison, view.bound), stored_key(b"key")
    key, stored = expected.key(value), view.row_of(base, value)
    assert stored == (None if key is None else stored_row(key, base))
    if stored is not None:
        assert parts_of(stored) == (key, b"key")


@given(
    views,
    st.lists(values, min_size=1, max_size=6).flatmap(lambda v: st.permutations([*enumerate(v)])),
)
def test_updates_in_any_order_leave_the_row_of_the_newest_version(
    view: ViewDefinition, arrivals: list[tuple[int, bytes | None]]
) -> None:
    base, rows = stored_key(b"key"), dict[bytes, tuple[int, bool, bytes | None]]()
    newest: Version | None = None
    for time, value in arrivals:
        for update in updates_of(view, newest, (base, time, value)):
            # Of two updates at one time a deletion wins.
            found = (update.time, update.value is None, update.value)
            rows[update.key] = max(rows.get(update.key, found), found, key=lambda r: r[:2])
        if newest is None or newest.time < time:
            newest = Version(base, time, value)
    assert newest is not None
    there = {key: (row[0], row[2]) for key, row in rows.items() if not row[1]}
    key = view.row_of(base, newest.value)
    assert there == ({} if key is None else {key: (newest.time, newest.value)})


@pytest.mark.parametrize(
    "text",
    [
        "create view v on t by value",
        "create view v on t by value mod 7",
        "create view v on t by value mod 7 where value >= 12",
        "create view v on t by value where value < 3",
        "drop view v",
        "await v",
    ],
)
def test_a_script_says_again_what_it_was_read_from(text: str) -> None:
    assert [str(o) for o in parse_script(text)] == [text]
