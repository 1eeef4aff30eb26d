"""Views while their tables, or they themselves, are split and merged, and have more replicas or fewer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.impl.simulator.database.test_view_moves import BACK
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

D = Defect
SMALL = Timing(compact_after=COMPACT_AFTER, chunk=3)
BUILT = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 2; write 250; wait 700; create view v on t by value mod 7; split t; "
        "alter t rf 3; merge t; write 40; await v"
    ),
    faults=parse_faults("delay,loss=0.2,crash=60"),
    workload=Workload(keys=120, gap=(0, 2)),
    timing=SMALL,
)
MERGED = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 200; wait 300; create view v on t by value mod 7; merge t; await v"
    ),
    faults=parse_faults("delay=0.3"),
    workload=Workload(keys=100, gap=(0, 1)),
    timing=Timing(compact_after=COMPACT_AFTER, chunk=2),
)
FOLLOWED = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; create view v on t by value mod 7; await v; write 400; alter t rf 2; "
        "merge v; write 200; alter t rf 3; split v; merge t; write 40"
    ),
    faults=parse_faults("delay=0.3,loss=0.2,crash=40"),
    workload=Workload(keys=40, gap=(1, 4), reads=0.1),
)
FEWER = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; create view v on t by value mod 7; await v; write 300; alter t rf 2; write 20"
    ),
    faults=parse_faults("delay=0.3,loss=0.2,crash=40"),
    workload=Workload(keys=40, gap=(1, 4), reads=0.1),
    timing=SMALL,
)
"""Of seed 2, a write that fails is only on the replica that its tablet leaves."""
GIVEN_UP = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; create view v on t by value mod 7; write 150; wait 150; kill n1; "
        "ask remove n1; wait 3500; abort n1; restart n1; wait 2000; move t 0; move t 1"
    ),
    faults=parse_faults("loss=0.25"),
    workload=Workload(keys=12, gap=(0, 2), reads=0.1),
)
"""A node comes back with hints of tablets that others have rebuilt meanwhile, and gets some of these again."""
STALE = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; write 60; wait 200; kill n1; write 60; wait 200; restart n1; wait 300; "
        "create view v on t by value mod 7; await v; remove n1; write 5"
    ),
    workload=Workload(keys=30, gap=(0, 2), reads=0),
)
"""A view is built also by a node that has missed writes, and gets them no more."""
WAY_BACK = (
    "table t tablets 4 rf 2; create view v on t by value mod 7; await v; write 80; partition n3; "
    "ask remove n3; wait {}; abort n3; reconnect n3; wait 500; write 5"
)
SPARED = Plan(
    nodes=4,
    script=parse_script(WAY_BACK.format(300)),
    faults=parse_faults("loss=0.2"),
    workload=Workload(keys=40, gap=(0, 2), reads=0.1),
)
"""A node has rows alone, and comes back while its tablets are rebuilt without it."""
SPARED_LATE = replace(SPARED, seed=39, script=parse_script(WAY_BACK.format(1227)))
"""It comes back between the last cleanup and the end: nobody asks it to clean up."""
SPARED_VIEW = Plan(
    nodes=5,
    seed=403,
    script=parse_script(
        "table t tablets 4 rf 2; write 80; create view v on t by value mod 7; partition n3; ask remove n3; "
        "wait 2164; abort n3; reconnect n3; wait 300; write 20; await v; write 5"
    ),
    faults=parse_faults("loss=0.2,delay=0.1,action=0.1,storm"),
    workload=Workload(keys=12, gap=(0, 2), reads=0.1, deletes=0.1),
    timing=SMALL,
)
"""The same while its tablet of a view that is being built is: it alone has the row of a write that was not acknowledged."""
LATE = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; create view v on t by value mod 7; await v; write 80; merge t; merge t"
    ),
    faults=parse_faults("loss=0.15"),
    workload=Workload(keys=40, gap=(0, 2), reads=0.1),
)
"""Replicas that have missed writes get these when they have other partners."""


TWICE = Plan(
    seed=1100068,
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; write 72; decommission n3; create view v on t by value; merge t; write 21; "
        "rebuild n1; join n5; write 52; wait 27; await v; write 70; remove n1"
    ),
    faults=parse_faults("duplicate=0.12,crash=40,failover=20,election=20"),
    workload=Workload(clients=4, keys=5, gap=(0, 2), reads=0.5, deletes=0.05),
    timing=SMALL,
)
"""A row comes late to a replica whose update of it, for the pair alone, is not sent yet."""


def test_an_update_that_waits_for_its_pair_goes_to_all_when_the_row_comes_late_too() -> None:
    report = run(TWICE)
    assert (report.breaches, report.refused) == ([], [])


@pytest.mark.parametrize(
    "plan",
    [BUILT, MERGED, FOLLOWED, FEWER, LATE],
    ids=[
        "while it is built",
        "with its tasks",
        "afterwards",
        "with fewer replicas",
        "with other partners",
    ],
)
# Of 2 a barrier passed while it was to be retried.
@pytest.mark.parametrize("seed", some_of([2, 0]))
def test_each_replica_of_a_view_has_what_its_base_table_says(plan: Plan, seed: int) -> None:
    report = run(replace(plan, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert not {o.result for o in report.outcomes} - {"done", "begun", "built"}
    assert report.counted["view rows compared"] > 20


# Of 1 the abort comes while a tablet is streamed, of 2 between a version and its fence, of 14 when a tablet's cleanup
# is about to end, of 35 afterwards; of 11 the coordinator gives a call up whose batch is done.
@pytest.mark.parametrize("seed", some_of([1, 0, 14, 2, 35, 3, 11], each=2))
def test_who_was_given_up_and_comes_back_sends_nothing_of_tablets_that_it_lost(seed: int) -> None:
    report = run(replace(GIVEN_UP, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert [o.result for o in report.outcomes if o.operation == "abort n1"] == ["done"]


def test_a_hint_moves_before_its_row_so_that_its_successor_has_both() -> None:
    # Of 5 a write reaches who leaves, and not its successor, while its rows are streamed.
    report = run(replace(FOLLOWED, seed=5))
    assert (report.breaches, report.refused) == ([], [])


@pytest.mark.parametrize("seed", some_of([0, 1, 2]))
def test_what_a_replica_that_is_lost_had_put_into_a_view_is_taken_out_of_it(seed: int) -> None:
    report = run(replace(STALE, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert "view rows of lost versions" not in report.counted


@pytest.mark.parametrize("seed", some_of([0, 1, 3]))
def test_who_is_spared_while_others_take_its_place_hands_over_what_it_had_alone(seed: int) -> None:
    report = run(replace(SPARED, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert [o.result for o in report.outcomes if o.operation == "abort n3"] == ["done"]
    assert "view rows of lost versions" not in report.counted


def test_a_view_has_what_a_replica_had_alone_that_is_spared_while_another_takes_its_place() -> None:
    report = run(SPARED_VIEW)
    assert (report.breaches, report.refused) == ([], [])
    assert [o.result for o in report.outcomes if o.operation == "abort n3"] == ["done"]
    assert report.counted["views built"] == 1
    report = run(replace(SPARED_VIEW, defects=frozenset({D.spared_view_replicas_keep_silent})))
    assert any(text.startswith("ks.v is built, and") for text in report.breaches)


def test_who_is_spared_after_the_last_cleanup_has_lost_what_it_had_alone() -> None:
    report = run(SPARED_LATE)
    assert (report.breaches, report.refused) == ([], [])
    assert report.counted["view rows of lost versions"] > 0


def test_a_view_has_as_many_replicas_as_its_table() -> None:
    script = "table t tablets 1 rf 2; create view v on t by value; alter v rf 3; alter t rf 3"
    report = run(Plan(script=parse_script(script)))
    assert (report.breaches, report.refused) == ([], [])
    assert report.outcomes[-2].result.startswith("refused: ks.v is a view")
    assert report.outcomes[-1].result == "done"
    assert [row["replicas"] for _, row in sorted(report.tables["tables"].items())] == [3, 3, 3]
    assert {len(row["replicas"]) for row in report.tables["tablets"].values()} == {3}


# -- wrong builds ------------------------------------------------------------------------------------------

UNDONE = "tablet.write_both_read_old"
SHOWN = (
    Shown(
        D.tasks_outlive_their_tablet, MERGED, "each task is of a replica of its tablet", oracle=True
    ),
    Shown(
        D.hints_of_lost_tablets_are_loaded,
        GIVEN_UP,
        "it goes to the paired view replica, or to one that comes",
    ),
    Shown(D.view_updates_change_sides, FEWER, "", 1, oracle=True),
    Shown(D.late_rows_are_not_handed_over, FEWER, "", 2, oracle=True),
    Shown(D.spared_nodes_keep_silent, SPARED, "", oracle=True),
    Shown(D.spared_view_replicas_keep_silent, SPARED_VIEW, "", oracle=True),
    Shown(
        D.tasks_of_undone_moves_stay_aborted,
        replace(BACK, faults=parse_faults(f"dead@{UNDONE},action@{UNDONE}")),
        "tasks are aborted while their tablet moves, and no longer",
        2,
        oracle=True,
    ),
    Shown(D.nothing_is_taken_back, STALE, "", oracle=True),
    Shown(
        D.superseded_rows_are_not_awaited,
        STALE,
        "all replicas have a newer version of the row",
        oracle=True,
    ),
    Shown(D.newest_versions_are_removed, STALE, "a newer version of the row stays", oracle=True),
    Shown(D.tombstones_are_removed, STALE, "a newer version of the row stays", oracle=True),
    Shown(
        D.rows_settle_before_views, FOLLOWED, "views have what follows from a version that settles"
    ),
    Shown(D.rows_settle_unsynced, FOLLOWED, "the version that settles is on the disk", 97),
    Shown(
        D.late_rows_update_their_partners,
        LATE,
        "all that the update is for have it",
        oracle=True,
    ),
    Shown(
        D.view_rows_are_deleted_in_pairs,
        FOLLOWED,
        "all that the update is for have it",
        oracle=True,
    ),
)
SEEDS = 4


@pytest.mark.parametrize("shown", by_turns(some_of(SHOWN, each=2)), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_refused_by_its_records_or_noticed_in_the_rows(shown: Shown) -> None:
    shown.check(SEEDS)
