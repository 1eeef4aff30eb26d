"""Who is rejected: nodes of an older release, nodes that cannot be spared, and who asks for tokens that others own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.impl.simulator.operators import Operator
from tests.traces.databases.scylladb.scylla_evaluated import interpret, violations

from stagewright.impl.catalog.columns import TOPOLOGY
from stagewright.impl.catalog.view import Member
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import HostInfo
from stagewright.impl.node.port import Identity
from stagewright.impl.server_log.files import LOGS
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec.errors import InputError

JOIN = "write 30; join n4 lacking TABLETS; join n5"
REPLACE = "write 30; replace n2 by n4 lacking TABLET_MERGE; replace n2 by n5"
WHY = (
    "Feature check failed. The node does not support some features that are enabled by the cluster"
)


@pytest.mark.parametrize(("script", "lacks"), [(JOIN, "TABLETS"), (REPLACE, "TABLET_MERGE")])
def test_a_node_that_lacks_a_feature_is_not_let_in_and_the_next_one_is(
    script: str, lacks: str
) -> None:
    for faults in ("none", "all"):
        report = run(Plan(script=parse_script(script), faults=parse_faults(faults), seed=2))
        assert (report.breaches, report.refused) == ([], [])
        _, rejected, accepted = report.outcomes
        assert rejected.result == f"failed: {WHY}: {{{lacks}}}"
        assert accepted.result == "done"
        assert (report.nodes["n4"], report.nodes["n5"]) == ("left", "normal")
        assert ("node", "none", "left") in report.edges


def test_the_rejected_node_hears_why_and_stops() -> None:
    operator = Operator()
    newcomer = HostInfo("n4", lacks="TABLETS")
    operator.world.add(Identity(newcomer, contacts=("n1", "n2")))
    operator.until(lambda: bool(operator.world.hosts["n4"].stopped))
    assert operator.world.hosts["n4"].stopped == f"it may not join: {WHY}: {{TABLETS}}"


def test_trace_and_logs_of_a_rejected_node_say_so_and_are_accepted(tmp_path: Path) -> None:
    run(Plan(script=parse_script(JOIN)), tmp_path)
    logs = [p.read_text("utf-8").splitlines() for p in sorted((tmp_path / LOGS).glob("*.log"))]
    assert violations(interpret(*logs)) == []
    said = [line for log in logs for line in log]
    assert sum("updating topology state: bootstrap: node rejected" in one for one in said) == 1
    assert sum("rejected node moved to left state" in one for one in said) == 1
    lines = (tmp_path / "topology.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(one)["action"] for one in lines].count("reject") == 1


COPIED = "write 30; join n4 tokens of n2; join n5; write 30; decommission n2; join n6 tokens of n4"


@pytest.mark.parametrize("faults", ["none", "delay=0.1,loss=0.02"])
def test_tokens_that_another_node_owns_are_not_given_and_those_of_one_that_left_are(
    faults: str, tmp_path: Path
) -> None:
    report = run(Plan(script=parse_script(COPIED), faults=parse_faults(faults)), tmp_path)
    assert (report.breaches, report.refused) == ([], [])
    results = [o.result for o in report.outcomes if o.operation.startswith("join")]
    assert results[0].startswith("failed: the token ")
    assert results[0].endswith("is owned by n2: ask for others, or let n2 leave first")
    assert results[1:] == ["done", "done"]
    assert (report.nodes["n4"], report.nodes["n6"]) == ("left", "normal")
    assert ("topology", "join_group0", "left_token_ring") in report.edges
    lines = (tmp_path / "topology.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(one)["action"] for one in lines].count("give_up_join") == 1
    logs = [p.read_text("utf-8").splitlines() for p in sorted((tmp_path / LOGS).glob("*.log"))]
    assert violations(interpret(*logs)) == []
    rolled_back = "moving transition state to left token ring"
    assert sum(rolled_back in line for log in logs for line in log) == 1


def test_a_script_says_both_what_a_node_lacks_and_which_tokens_it_asks_for() -> None:
    words = "join n4 lacking TABLETS tokens -7,5; join n5 lacking TABLETS tokens of n1"
    both = parse_script(words)
    assert [(o.lacks, o.tokens, o.tokens_of) for o in both] == [
        ("TABLETS", (-7, 5), ""),
        ("TABLETS", (), "n1"),
    ]
    assert "; ".join(map(str, both)) == words


def test_a_node_gets_the_tokens_that_it_asks_for_and_no_others() -> None:
    operator = Operator()
    asked = HostInfo("n4", initial_tokens=(-17, 5, 1 << 62))
    operator.world.add(Identity(asked, contacts=("n1", "n2")))

    def known() -> Mapping[str, Member]:
        return operator.node("n1").context.view.nodes

    operator.until(lambda: "n4" in known() and known()["n4"].state is NodeState.normal)
    assert known()["n4"].tokens == {-17, 5, 1 << 62}
    assert operator.node("n1").context.catalog.tables[TOPOLOGY]["n4",]["tokens_string"] == (
        "-17,5,4611686018427387904"
    )


DECOMMISSION = "table t tablets 2 rf 3; write 30; decommission n1; join n4; decommission n1"
STUCK = "table t tablets 2 rf 3; write 30; decommission n1"
REMOVE = "table t tablets 2 rf 3; write 30; remove n1; restart n1; join n4; remove n1"
FEW = (
    "failed: the tablets of ks.t have 3 replicas, and without {} only 2 nodes would be left: "
    "let a node join first, or ask for fewer replicas"
)


@pytest.mark.parametrize(
    ("script", "said"), [(DECOMMISSION, "decommission"), (REMOVE, "removenode")]
)
def test_a_node_that_cannot_be_spared_is_not_let_go_until_another_one_has_joined(
    script: str, said: str, tmp_path: Path
) -> None:
    report = run(Plan(script=parse_script(script)), tmp_path)
    assert report.kept
    results = [o.result for o in report.outcomes if o.operation.endswith(" n1")]
    assert (results[0], results[-1]) == (FEW.format("n1"), "done")
    assert report.nodes["n1"] == "left"
    logs = [p.read_text("utf-8").splitlines() for p in sorted((tmp_path / LOGS).glob("*.log"))]
    assert violations(interpret(*logs)) == []
    lines = [line for log in logs for line in log]
    assert sum(f"updating topology state: {said} rejected" in one for one in lines) == 1
    assert not any("rejected node moved to left state" in one for one in lines)
    steps = (tmp_path / "topology.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(one)["action"] for one in steps].count("reject") == 1


def test_of_two_nodes_of_which_one_can_go_the_one_that_asked_first_goes() -> None:
    script = "table t tablets 2 rf 3; write 30; join n4; ask decommission n2; decommission n1"
    report = run(Plan(script=parse_script(script)))
    assert report.kept
    assert report.outcomes[-1].result == FEW.format("n1")
    assert report.nodes == {"n1": "normal", "n2": "left", "n3": "normal", "n4": "normal"}


SHOWN = (
    Shown(Defect.features_are_not_checked, Plan(script=parse_script(JOIN)), "", oracle=True),
    Shown(Defect.leaves_are_not_checked, Plan(script=parse_script(STUCK)), "", oracle=True),
)


@pytest.mark.parametrize("shown", SHOWN, ids=lambda one: one.defect.name)
def test_a_build_that_does_not_reject_is_noticed(shown: Shown) -> None:
    shown.check(1)


def test_campaigns_have_such_nodes_and_replace_again() -> None:
    verbs = set[str]()
    for seed in range(200):
        script = draw(seed).script
        verbs |= {one.verb for one in script if one.lacks}
        replaced = [(one.node, bool(one.lacks)) for one in script if one.verb == "replace"]
        assert {node for node, lacks in replaced if lacks} <= {
            n for n, lacks in replaced if not lacks
        }
    assert verbs == {"join", "replace"}


@pytest.mark.parametrize(
    ("script", "help_"),
    [("join n4 lacking", "join NODE"), ("join n4 lacking WINGS", "features: COLOCATED_TABLETS")],
)
def test_a_feature_that_is_not_known_is_refused(script: str, help_: str) -> None:
    with pytest.raises(InputError) as found:
        parse_script(script)
    assert help_ in found.value.help
