"""What campaigns with tables of tablets and views have found, made small: mended, and shown of the build of before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.thorough import by_turns

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

SMALL = Timing(compact_after=COMPACT_AFTER, chunk=3)
JOINED = Plan(
    seed=34,
    replicas=3,
    script=parse_script(
        "table t tablets 2 rf 2; write 4; create view v on t by value; "
        "create view w on t by value mod 1; replace n2 by n5"
    ),
    workload=Workload(keys=1, gap=(0, 2), deletes=0.05),
    timing=SMALL,
    cdc=True,
)
AGAIN = Plan(
    nodes=4,
    seed=1,
    script=parse_script(
        "table t tablets 4 rf 3; write 100; create view v on t by value mod 7; await v; write 200; "
        "drop view v; create view v on t by value mod 3; await v"
    ),
    faults=parse_faults("delay=0.5"),
    workload=Workload(keys=20, gap=(0, 2)),
)
EMPTIED = Plan(
    nodes=4,
    seed=0,
    script=parse_script(
        "table t tablets 4 rf 2; write 6; create view v on t by value mod 2; await v; join n5; drop view v; "
        "join n6; decommission n4"
    ),
    faults=parse_faults("delay=0.05,loss@join_group0"),
    workload=Workload(keys=40, gap=(0, 3), deletes=0.3),
)
CUT_OFF = Plan(
    seed=36,
    script=parse_script(
        "table t tablets 2 rf 3; table u tablets 4 rf 2; write 118; join n4; replace n4 by n5; create view v on t "
        "by value mod 7 where value < 66; drop view v; isolate n2; create view v on t by value; "
        "replace n2 by n6; write 77"
    ),
    faults=parse_faults("delay=0.05,duplicate=0.015,failover=80,election=5,skew=150"),
    workload=Workload(keys=3, gap=(0, 3), deletes=0.05),
    timing=Timing(compact_after=COMPACT_AFTER, chunk=64),
)
FENCED = Plan(  # n1 has drained what is older, and has not learned the fence
    nodes=4,
    seed=0,
    script=parse_script("ask decommission n4; wait 85; isolate n1; wait 200"),
)
_SPARED = "table t tablets 4 rf 2; write 40; wait 300; suspend n3; ask remove n3; wait {}; abort n3; wait 300; resume n3; wait 300"
SPARED = Plan(nodes=4, seed=1, script=parse_script(_SPARED.format(150)))  # a barrier goes on
# its tablets are, elsewhere
REBUILT = Plan(nodes=4, seed=1, script=parse_script(_SPARED.format(300)))
PASSED_EARLY = Plan(  # a barrier has passed without n3, and its stage waits for a cleanup
    nodes=4,
    seed=67,
    script=parse_script(
        "table t tablets 4 rf 2; write 80; create view v on t by value mod 7; wait 200; partition n3; "
        "ask remove n3; wait 1138; abort n3; reconnect n3; wait 300"
    ),
    faults=parse_faults("loss=0.1,delay=0.2,crash=60"),
    workload=Workload(keys=40, gap=(0, 2), reads=0.1, deletes=0.1),
    timing=SMALL,
    cdc=True,
)
TOGETHER = Plan(  # two orders to clean up wait for the same read barrier
    seed=54000230,
    script=parse_script(
        "table t tablets 4 rf 3; write 126; create view v on t by value mod 2; alter t rf 2"
    ),
    faults=parse_faults("loss=0.12,delay=0.05,crash=40,failover=20,storm"),
    workload=Workload(clients=4, keys=40, gap=(0, 2), reads=0.5, deletes=0.3),
    timing=SMALL,
)
DROPPED_EARLY = Plan(
    seed=2,
    script=parse_script(
        "table t tablets 4 rf 2; write 10; join n4; create view v on t by value; drop view v; wait 800"
    ),
)


@dataclass(frozen=True)
class Shown:
    """Where a defect shows, and what is said of it.

    `beside`: a defect that the run with it and the run without it have, which keeps their course as it was found.
    """

    defect: Defect
    plan: Plan
    says: str
    beside: frozenset[Defect] = frozenset()


D = Defect
AS_FOUND = frozenset({D.readers_are_sent_back})  # readers were answered at once then
SHOWN = (
    Shown(D.a_call_joins_with_all_its_tasks, JOINED, "unmet: it is executed, or completed"),
    Shown(D.recreated_views_are_the_same, AGAIN, "the base table has it not"),
    Shown(D.fence_skips_nodes_that_seem_down, CUT_OFF, "the node has acknowledged the fence"),
    Shown(D.fence_skips_nodes_that_seem_down, FENCED, "the node has acknowledged the fence"),
    Shown(D.who_is_spared_again_is_not_asked, SPARED, "the node has acknowledged the fence"),
    Shown(
        D.who_is_spared_again_is_not_asked,
        PASSED_EARLY,
        "the node has acknowledged the fence",
        AS_FOUND,
    ),
    Shown(D.lost_rows_are_kept, REBUILT, "lie on n3, which is no replica"),
    Shown(
        D.repeated_cleanups_settle_again,
        replace(TOGETHER, seed=3),
        "the update has the timestamp of a base row",
    ),
    Shown(D.tablets_that_come_are_counted, DROPPED_EARLY, "the node holds no tablets"),
    Shown(D.waived_barriers_move_no_fence, draw(140001172).plan(), "was known before"),
    Shown(
        D.merged_tablets_have_their_places,
        draw(170003484).plan(),
        "of ks.v as None, clients read",
        AS_FOUND,
    ),
    Shown(D.readers_are_sent_back, draw(210001917).plan(), "it begins where the reader stands"),
    Shown(D.last_tablets_move_silently, EMPTIED, "the node holds no tablets"),
)


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_a_mended_fault_shows_if_it_is_put_back_and_not_otherwise(shown: Shown) -> None:
    report = run(replace(shown.plan, defects=shown.beside))
    assert (report.breaches, report.refused) == ([], [])
    report = run(replace(shown.plan, defects=shown.beside | {shown.defect}))
    assert any(shown.says in text for text in (*report.breaches, *report.refused))


def test_a_view_that_is_created_again_has_no_rows_and_tasks_of_the_one_before() -> None:
    report = run(AGAIN)
    assert report.views == {"ks.v#2": "SUCCESS"}
    assert report.counted["view rows compared"] > 10


@pytest.mark.parametrize(
    "plan",
    [
        Plan(
            nodes=5,
            seed=37,
            script=parse_script(
                "table t tablets 2 rf 3; create view v on t by value mod 1; cleanup; drop view v"
            ),
            workload=Workload(clients=1, keys=1, gap=(0, 3), deletes=0.0),
        ),
        Plan(
            seed=277,
            script=parse_script("table t tablets 1 rf 3; remove n1; join n5; restart n5"),
            workload=Workload(clients=1, keys=1, gap=(0, 2), deletes=0.0),
            cdc=True,
        ),
        Plan(
            nodes=4,
            seed=79,
            script=parse_script(
                "table t tablets 4 rf 3; write 60; create view v on t by value; create view w on t by value mod 3; "
                "write 56; create view x on t by value mod 2"
            ),
            faults=parse_faults("failover=200,election=100,storm"),
            workload=Workload(keys=12, gap=(0, 3)),
        ),
        Plan(
            nodes=4,
            seed=41,
            script=parse_script(
                "table t tablets 1 rf 3; table u tablets 4 rf 2; write 143; create view w on u by value mod 3; "
                "repair t; move u 1; join n5; move t 0; create view v on u by value mod 7; remove n1; alter u rf 4; "
                "await v; move t 0; decommission n3; split t; merge u"
            ),
            faults=parse_faults("delay=0.05,crash@tablet.cleanup"),
            workload=Workload(keys=3, gap=(1, 6), deletes=0.05),
        ),
    ],
    ids=[
        "a worker has not learned of a drop",
        "who has left learns no more",
        "a worker has not learned that a coordinator is gone",
        "a hint that was dropped is back after a crash",
    ],
)
def test_what_a_node_may_not_have_learned_is_not_held_against_it(plan: Plan) -> None:
    report = run(plan)
    assert (report.breaches, report.refused) == ([], [])


def test_a_node_that_has_not_learned_that_a_tablet_comes_refuses_its_rows(tmp_path: Path) -> None:
    """n4 is cut off, and barriers do not wait for it, as it is to be replaced; clients write to it meanwhile."""
    plan = Plan(
        script=parse_script(
            "table t tablets 4 rf 2; balancing off; write 60; join n4; wait 300; balancing on; wait 1; "
            "isolate n4; wait 300; replace n4 by n5; write 100"
        ),
        faults=parse_faults("delay=0.2"),
        workload=Workload(keys=12, gap=(0, 3)),
    )
    report = run(plan, tmp_path)
    assert (report.breaches, report.refused) == ([], [])
    served = (tmp_path / "replicas.jsonl").read_text().splitlines()
    refused = '"action":"refuse","params":{"older":false}'
    assert any("@n4#1" in line and refused in line for line in served)


@pytest.mark.long
def test_what_an_answer_did_not_speak_of_is_asked_for_again_and_the_rest_is_removed() -> None:
    script = (
        "table t tablets 2 rf 3; write 131; isolate n4; replace n4 by n5; merge t; move t 0; "
        "kill n1; wait 246; restart n1; write 64; join n6; "
        "create view v on t by value mod 7 where value < 22; wait 18; "
        "create view w on t by value mod 3; write 29; partition n5; drop view v; remove n5; "
        "reconnect n5; create view v on t by value mod 2; replace n3 by n7; write 38; await v"
    )
    report = run(replace(draw(44000787), script=parse_script(script)).plan())
    assert (report.breaches, report.refused) == ([], [])


def test_nobody_asks_to_remove_the_last_node_that_has_a_tablet() -> None:
    report = run(
        Plan(
            nodes=5,
            seed=44000562,
            faults=parse_faults("delay=0.05,crash=80"),
            workload=Workload(clients=4, keys=12, gap=(0, 2), deletes=0.0),
            timing=Timing(compact_after=COMPACT_AFTER, chunk=3),
            script=parse_script(
                "table t tablets 1 rf 3; write 23; write 92; move t 0; alter t rf 2; remove n4; remove n2; remove n1"
            ),
        )
    )
    assert (report.breaches, report.refused) == ([], [])
    assert report.outcomes[-1].result == "not asked: a quorum of ks.t#0 would be lost"


def test_nobody_asks_to_replace_the_last_node_that_has_a_tablet() -> None:
    script = (
        "table t tablets 1 rf 1; write 20; isolate n1; replace n1 by n4; isolate n2; replace n2 by n5; "
        "isolate n3; replace n3 by n6; decommission n4; decommission n5; decommission n6"
    )
    report = run(Plan(seed=2, script=parse_script(script)))
    results = [outcome.result for outcome in report.outcomes if "replace" in outcome.operation]
    assert (report.breaches, report.refused) == ([], [])
    assert results.count("not asked: a quorum of ks.t#0 would be lost") == 1
    assert sum("did not come" in outcome.result for outcome in report.outcomes) == 1


def test_a_node_that_goes_on_from_a_snapshot_removes_what_it_has_lost() -> None:
    script = _SPARED.replace("suspend", "partition").replace("resume", "reconnect").format(300)
    report = run(replace(REBUILT, script=parse_script(script)))
    assert (report.breaches, report.refused) == ([], [])


@pytest.mark.long
def test_a_barrier_that_passed_before_somebody_was_spared_does_not_count_after_that() -> None:
    script = (
        "table t tablets 2 rf 2; table u tablets 2 rf 2; write 140; "
        "create view v on u by value mod 2 where value >= 91; move u 1; repair u; balancing off; "
        "join n5; write 58; suspend n2; ask remove n2; wait 312; abort n2; wait 91; resume n2; "
        "alter u rf 3; move u 0; move t 1; write 26; move t 2; repair t; write 66; alter t rf 3; "
        "join n6; decommission n5; await v; balancing on"
    )
    report = run(replace(draw(64000659), script=parse_script(script)).plan())
    assert (report.breaches, report.refused) == ([], [])


def test_what_a_suspended_node_has_still_to_learn_comes_before_what_is_committed_then() -> None:
    """An entry that came in the millisecond in which it went on was learned before those that had waited."""
    report = run(draw(52000332).plan())
    assert not report.breaches
    assert not report.refused


@pytest.mark.long
def test_a_node_that_comes_back_removes_what_has_expired_of_each_table_that_it_learns_of() -> None:
    report = run(draw(52000441).plan())
    assert (report.breaches, report.refused) == ([], [])


@pytest.mark.long
def test_who_stays_may_be_read_alone_when_others_only_leave() -> None:
    report = run(draw(30000179).plan())
    assert (report.breaches, report.refused) == ([], [])


def test_rows_that_a_repair_brings_while_a_view_is_built_may_wait_in_staging() -> None:
    report = run(
        Plan(
            nodes=4,
            seed=44000367,
            faults=parse_faults("delay=0.4,duplicate=0.2"),
            workload=Workload(clients=4, keys=60, gap=(0, 2), deletes=0.0),
            timing=Timing(compact_after=COMPACT_AFTER, chunk=3),
            cdc=True,
            script=parse_script(
                "table t tablets 2 rf 3; write 5; create view v on t by value; wait 1; "
                "create view w on t by value mod 1; repair t"
            ),
        )
    )
    assert (report.breaches, report.refused) == ([], [])


def test_a_copy_of_a_call_may_find_its_worker_restarted() -> None:
    report = run(
        Plan(
            seed=20000152,
            script=parse_script(
                "table t tablets 8 rf 2; table u tablets 2 rf 3; write 85; ask rebuild n3; ask repair t; split t; "
                "move t 0; decommission n3; write 34; move t 0; ask repair u; split u; merge u; move t 2; "
                "create view w on u by value mod 7 where value >= 47; await w"
            ),
            faults=parse_faults("loss=0.015,duplicate=0.06,crash=40,failover=80"),
            workload=Workload(clients=4, keys=40, gap=(0, 3), reads=0.5, scans=0.3, deletes=0.05),
            timing=Timing(compact_after=COMPACT_AFTER, chunk=64),
        )
    )
    assert (report.breaches, report.refused) == ([], [])


def test_a_run_ends_when_all_tablets_have_the_replicas_that_their_table_is_to_have() -> None:
    report = run(
        Plan(
            nodes=5,
            seed=61699,
            script=parse_script(
                "table t tablets 8 rf 2; write 150; move t 1; create view v on t by value mod 2; decommission n1; "
                "drop view v; replace n5 by n6; alter t rf 4; move t 1; create view w on t by value; "
                "create view v on t by value mod 7"
            ),
            faults=parse_faults(
                "loss=0.03,delay=0.05,duplicate=0.03,crash=20,failover=20,election=10,storm,action=0.03,skew=300"
            ),
            workload=Workload(clients=4, keys=40, gap=(1, 6), reads=0.5, deletes=0.1),
        )
    )
    assert (report.breaches, report.refused) == ([], [])


def test_who_cannot_be_spared_is_refused_while_another_one_is_drained() -> None:
    """The tablets of the dead node have no other place: its removal would never end."""
    script = (
        "table t tablets 8 rf 3; write 20; kill n4; ask remove n4; ask decommission n1; wait 3000"
    )
    report = run(Plan(nodes=4, seed=1, script=parse_script(script)))
    assert (report.breaches, report.refused) == ([], [])
    assert report.nodes == {"n1": "normal", "n2": "normal", "n3": "normal", "n4": "left"}


@pytest.mark.long
def test_who_is_to_be_replaced_takes_no_tablets_of_one_that_is_drained() -> None:
    report = run(replace(replace(draw(120005342), seed=8).plan(), defects=AS_FOUND))
    assert (report.breaches, report.refused) == ([], [])
    assert any("would be left: let a node join first" in o.result for o in report.outcomes)


def test_who_is_spared_hands_rows_to_those_that_stay_if_who_was_to_come_is_given_up() -> None:
    script = (
        "table t tablets 4 rf 2; write 28; create view v on t by value mod 2; "
        "create view w on t by value mod 1 where value < 86; partition n5; ask remove n5; wait 808; abort n5; "
        "reconnect n5; replace n2 by n6"
    )
    plan = replace(draw(120003408), faults=parse_faults(""), script=parse_script(script)).plan()
    report = run(plan)
    assert (report.breaches, report.refused) == ([], [])


def test_a_replica_that_was_to_come_and_is_spared_removes_its_rows_before_the_way_back_ends() -> (
    None
):
    report = run(draw(120008003).plan())
    assert (report.breaches, report.refused) == ([], [])


@pytest.mark.parametrize(
    "seed",
    [
        220001438,  # a hint that arrives while rows are sent is sent with them
        210000951,  # no node is asked to leave whom a quorum of a table on the ring needs
        200003991,  # a task that was aborted, as the worker has learned, is not started by a copy of its call
        310019639,  # rows of a table whose last view was dropped wait for no view
        310019303,  # what a view had before its tablet was streamed comes with the stream
        310015323,  # who is spared after its tablet was rebuilt may have written a row that goes with it
        310012374,  # hints are gone with the range that is cleaned up, and may come again for an older row
        310005052,  # the balancer is not done before it has noticed who is back
        180000015,  # what is processed before a replica is streamed to comes to it with the stream, also where a repair is first
        170001395,  # an update of a batch is sent while the same one is stored, to be taken out of a view
        120010211,  # a worker that learns late which table is processed keeps what it has completed of it
        120010275,  # an expired row of a log does not come again from a replica that has it still
        120009453,  # staging is processed first where a view is started after the call was sent
        120005342,  # who is to be replaced takes no tablets of one that is drained
        160006076,  # after a merge, what was not acknowledged is in a view where its base replica of before had put it
        160001195,  # who has a row with a quorum is not given up while another one of that is
        150001819,  # a view that is built reads an older version than one that waits in staging, and came later
        150004307,  # who is spared hands over older versions of a view's row, too
        150002130,  # a coordinator that was deposed, and has not learned it, has no fence learned
        140001607,  # the last tablets of one that is drained, and of one that was, come to rest at once
        140001744,  # a set of streams is not committed so late that it operates before anybody has learned of it
        140004471,  # who has streamed for a session has not learned yet that it is over
        140002967,  # who is spared hands over also what it has replaced, which a view may show
    ],
)
@pytest.mark.long
def test_a_drawn_run_that_was_refused_is_right(seed: int) -> None:
    report = run(draw(seed).plan())
    assert (report.breaches, report.refused) == ([], [])
