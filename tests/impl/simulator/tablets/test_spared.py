"""Nodes that count as gone while tablets move, and are spared before that is over."""

from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.workload import parse_workload

TURNED_BACK = Plan(
    nodes=4,
    seed=73,
    faults=parse_faults("delay=0.05"),
    workload=parse_workload("clients=4,keys=5,gap=0-2,reads=0.3,deletes=0.05")[0],
    script=parse_script(
        "table t tablets 4 rf 2; create view v on t by value; write 119; suspend n4; replace n4 by n5; resume n4; "
        "write 45; join n6; write 23; suspend n6; ask remove n6; wait 463; abort n6; resume n6; write 45"
    ),
)
"""Tablets are on their way to a node that is given up; they turn back, and it is spared before that is over."""


def test_who_is_spared_after_tablets_turned_back_from_it_has_no_rows_of_them() -> None:
    """Nobody asks for a cleanup any more: it removes what it has as it learns that it is to have nothing."""
    report = run(TURNED_BACK)
    assert (report.breaches, report.refused) == ([], [])
    assert [o.result for o in report.outcomes if o.operation == "abort n6"] == ["done"]
    assert report.met["tablet.revert_migration", "entered"] == 2
