"""Runs that a check refused though nothing was wrong, as the campaigns that met them print them: by what is not wrong."""

from __future__ import annotations

import shlex

import pytest

from stagewright.commands import run_command_line

RIGHT = {
    "who starts fetches what it is asked to repair before it has heard that it has learned all": (
        "run --nodes 4 --seed 120003714 --faults crash=40,election=5,storm "
        "--workload clients=4,keys=3,gap=0-3,reads=0.5,deletes=0.05,chunk=64 "
        "--script 'table t tablets 2 rf 3; table u tablets 1 rf 3; write 101; repair u'"
    ),
    "an update goes to whom it was for when its node could not send it": (
        "run --nodes 5 --seed 120003408 --faults none "
        "--workload clients=4,keys=40,gap=0-2,reads=0.5,deletes=0.05,chunk=3 "
        "--script 'table t tablets 4 rf 2; write 104; create view v on t by value mod 7; repair t; "
        "create view w on t by value mod 2 where value < 86; partition n5; ask remove n5; wait 812; abort n5'"
    ),
    "a view shows what its base replica alone had not replaced, which is replaced itself": (
        "run --nodes 4 --seed 120003696 --faults loss=0.06,duplicate=0.06,storm,action=0.1 "
        "--workload clients=4,keys=12,gap=0-2,reads=0.5,scans=0.3,deletes=0.1,chunk=64 "
        "--script 'table t tablets 2 rf 2; write 96; decommission n1; create view v on t by value mod 7; "
        "join n5 lacking TABLET_MERGE; await v; move t 0; join n6; isolate n2; replace n2 by n7; write 73; "
        "drop view v; create view v on t by value; join n8'"
    ),
    "an entry of staging is processed as the last view of its table is dropped": (
        "run --nodes 5 --seed 120009091 --faults loss=0.25,delay=0.2,crash=40 "
        "--workload clients=4,keys=30,gap=0-2,reads=0.1,deletes=0.05,chunk=64 "
        "--script 'table t tablets 2 rf 2; table u tablets 2 rf 2; write 126; kill n1; write 40; balancing off; "
        "alter t rf 1; create view w on t by value mod 7; create view v on u by value mod 3 where value >= 69; "
        "await w; move t 1; move t 1; drop view w; write 86; alter u rf 1; wait 308; restart n1; balancing on; "
        "join n6; write 112; alter t rf 3; write 98; alter u rf 3; write 57; "
        "create view w on t by value mod 3 where value >= 33; drop view v'"
    ),
    "an entry of staging that was processed comes back with a crash, and stays behind as its tablet goes": (
        "run --nodes 4 --seed 46000387 --faults loss=0.25,delay=0.2,crash=40 "
        "--workload clients=4,keys=30,gap=0-2,reads=0.1,deletes=0.05,chunk=64 --cdc "
        "--script 'table t tablets 4 rf 2; write 81; join n5; "
        "create view v on t by value mod 2 where value >= 65; write 93; alter t rf 1; decommission n3'"
    ),
    "a repair brings a version before its own write, which is acknowledged as the view is built": (
        "run --nodes 4 --seed 50000207 --faults delay=0.4,duplicate=0.2,failover=120,action=0.4 "
        "--workload clients=4,keys=60,gap=0-2,reads=0.5,deletes=0.05,chunk=3 "
        "--script 'table t tablets 2 rf 2; write 139; ask decommission n2; wait 8; abort n2; decommission n1; "
        "balancing off; generation; wait 301; create view w on t by value; write 72; move t 1; "
        "create view v on t by value mod 2 where value >= 99; repair t'"
    ),
    "a tablet of which a node has rows of the log alone is cleaned up after these have expired": (
        "run --nodes 5 --seed 62000050 --faults delay=0.2,storm "
        "--workload clients=4,keys=12,gap=0-2,reads=0.5,scans=0.3,deletes=0.05,chunk=3 --cdc --ttl 20000 "
        "--script 'table t tablets 8 rf 2; write 124; split t; create view v on t by value mod 7; remove n4; "
        "drop view v; create view v on t by value mod 7; join n6; merge t; write 65; await v'"
    ),
    "who was given up when its tablet was repaired, and is no more, lacks changes of before": (
        "run --nodes 4 --seed 50001039 --faults delay=0.3,crash=60 "
        "--workload clients=4,keys=60,gap=0-2,reads=0.5,deletes=0.3,chunk=3 --cdc --images "
        "--script 'table t tablets 4 rf 3; write 123; generation; isolate n4; write 111; wait 1029; write 65; "
        "alter t rf 2; create view v on t by value mod 2; write 39; replace n4 by n5; decommission n3; split t; "
        "write 35; wait 509'"
    ),
    "a view's row of an unacknowledged write is lost with its only replica, as a batch goes on": (
        "run --nodes 3 --seed 50000994 --faults delay=0.05,failover=80,election=10,storm,skew=300 "
        "--workload clients=4,keys=5,gap=0-2,reads=0.5,deletes=0.1,chunk=3 "
        "--script 'table t tablets 4 rf 2; write 76; create view v on t by value mod 2; kill n2; wait 43; await v; "
        "restart n2; remove n3'"
    ),
    "who goes on after its removal was aborted forgets a hint of a row that a view's replica had, and left with its tablet": (
        "run --nodes 4 --seed 1 --faults delay=0.05,failover=30 "
        "--workload clients=4,keys=12,gap=0-2,reads=0.1,deletes=0.3 "
        "--script 'table t tablets 1 rf 3; create view v on t by value mod 3; write 157; join n5; suspend n1; "
        "ask remove n1; wait 22; create view w on t by value mod 2; alter t rf 2; abort n1; resume n1; wait 20; "
        "write 89'"
    ),
    "a tablet is rebuilt from a replica that is given up before the stream ends": (
        "run --nodes 4 --seed 14 --faults crash=20,delay=0.1 "
        "--workload clients=4,keys=12,gap=0-2,reads=0.5,deletes=0.05 "
        "--script 'table t tablets 4 rf 3; create view v on t by value mod 7; write 91; move t 0; suspend n4; "
        "ask remove n4; wait 141; write 60; abort n4; wait 600000; resume n4; write 40; partition n3; "
        "replace n3 by n5; reconnect n3; write 28; partition n4; ask remove n4; wait 300; "
        "create view w on t by value mod 2; abort n4; reconnect n4; wait 134; write 66; kill n1; ask remove n1; "
        "wait 546; write 77; alter t rf 3; abort n1; restart n1; write 31'"
    ),
    "nobody is asked to clean up a tablet which an earlier migration left before who was spared had cleaned it up": (
        "run --nodes 5 --seed 211 --faults action=0.1,delay=0.1 "
        "--workload clients=4,keys=12,gap=1-6,reads=0.5,deletes=0.1 "
        "--script 'table t tablets 4 rf 3; create view v on t by value mod 3; write 140; suspend n5; replace n5 by n6; "
        "resume n5; write 36; kill n4; ask remove n4; wait 202; write 85; abort n4; restart n4; decommission n4; "
        "create view w on t by value mod 2; suspend n1; replace n1 by n7; resume n1; write 28; suspend n7; "
        "ask remove n7; wait 450; abort n7; resume n7; wait 300; write 72; suspend n2; replace n2 by n8; resume n2'"
    ),
    "a quorum of a view has a row whose base replicas have other view replicas since tablets were merged": (
        "run --nodes 4 --seed 1 --workload clients=4,keys=3,gap=1-6,reads=0.3,deletes=0.3 "
        "--script 'table t tablets 8 rf 3; create view w on t by value mod 2; write 80; partition n3; wait 200000; "
        "reconnect n3; merge t'"
    ),
    "a batch ends where others have learned sooner that its view was dropped, and have its rows no more": (
        "run --nodes 5 --seed 59001080 --faults crash=10 "
        "--workload clients=4,keys=5,gap=1-6,reads=0.5,deletes=0.3,chunk=3 "
        "--script 'table t tablets 8 rf 2; table u tablets 2 rf 3; write 115; isolate n5; create view v on u by value; "
        "write 43; wait 310; replace n5 by n6; drop view v'"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("command", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_not_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_command_line(shlex.split(command))
    assert code == 0, capsys.readouterr().out
