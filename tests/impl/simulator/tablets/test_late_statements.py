"""A statement that a slow node carries out late, after it was repeated through another one, does nothing to what has the name then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.impl.simulator.operators import Operator

from stagewright.impl.catalog.names import last_before, new_id
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Mutation
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import (
    CreateTable,
    Message,
    NameReply,
    NameRequest,
    OperatorReply,
)
from stagewright.impl.node.messages.tables import AlterTable, CreateView, DropTable, DropView
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.campaign.drawing_drops import DROPS_FROM
from stagewright.impl.simulator.database.absences import part, resume, reunite, suspend
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.work.statement_oracle import StatementOracle
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.world import World
from stagewright.machines.scylladb.topology.topology_states import TransitionState

TABLE = "table t tablets 4 rf 3; write 60"
VIEW = "create view v on t by value mod 5"
LATE = {
    "drop table": f"{TABLE}; {{away}} n2; drop table t through n2; table t tablets 2 rf 3; write 40",
    "create table": "{away} n2; table t tablets 4 rf 3 through n2; write 40; drop table t",
    "drop view": f"{TABLE}; {VIEW}; {{away}} n2; drop view v through n2; {VIEW}",
    "create view": f"{TABLE}; {{away}} n2; {VIEW} through n2; drop view v",
}
"""Statements that n2 gets, and carries out only when they have been done through others and their opposites, too."""
LEFT = {
    "drop table": {"ks.rows", "ks.t#2"},
    "create table": {"ks.rows"},
    "drop view": {"ks.rows", "ks.t", "ks.v#2"},
    "create view": {"ks.rows", "ks.t"},
}
AWAY = {"partition": "reconnect", "suspend": "resume"}


def plan_of(script: str, faults: str = "none") -> Plan:
    work = Workload(keys=20, gap=(0, 3))
    return Plan(nodes=4, script=parse_script(script), faults=parse_faults(faults), workload=work)


def late(statement: str, away: str, *, wait: int = 3_000) -> Plan:
    back = f"; {AWAY[away]} n2; wait {wait}"
    return plan_of(LATE[statement].format(away=away) + back)


def tables_of(report: Report) -> set[str]:
    return {name for (name,) in report.tables["tables"]}


@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("statement", LATE)
def test_a_late_statement_does_nothing(statement: str, away: str) -> None:
    report = run(late(statement, away))
    assert (report.breaches, report.refused) == ([], [])
    assert {o.result for o in report.outcomes} <= {"done", "begun", "built"}
    assert tables_of(report) == LEFT[statement]


def shown_by(statement: str) -> Shown:
    plan = late(statement, "partition")
    return Shown(Defect.statements_act_on_names, plan, "", oracle=True)


SHOWN = (
    shown_by("drop table"),
    shown_by("create table"),
    shown_by("drop view"),
    shown_by("create view"),
)


@pytest.mark.parametrize("shown", SHOWN, ids=LATE)
def test_a_wrong_build_that_acts_on_names_is_noticed(shown: Shown) -> None:
    shown.check(seeds=1)
    report = run(replace(shown.plan, defects=frozenset({shown.defect})))
    assert any("and no statement asked for that now" in text for text in report.breaches)


def test_a_campaign_that_drops_tables_notices_it() -> None:
    drawn = draw(DROPS_FROM + 15).plan()
    assert any(one.through for one in drawn.script)
    assert run(drawn).breaches == []
    wrong = run(replace(drawn, defects=frozenset({Defect.statements_act_on_names})))
    assert "ks.u#2 was dropped, and no statement asked for that now" in wrong.breaches


def test_statements_that_are_on_time_are_no_matter_for_the_wrong_build() -> None:
    script = f"{TABLE}; {VIEW}; drop view v; drop table t; {TABLE}; {VIEW}"
    wrong = frozenset({Defect.statements_act_on_names})
    assert run(replace(plan_of(script), defects=wrong)).breaches == []


def test_statements_through_nodes_that_are_there_are_carried_out() -> None:
    script = "table t tablets 2 rf 3 through n3; write 20; drop table t through n1; write 5"
    report = run(plan_of(script))
    assert [o.result for o in report.outcomes] == ["done", "begun", "done", "begun"]


# -- what the node answers ---------------------------------------------------------------------------------


class Slow(Operator):
    """A cluster in which n1 is away, and gets or does something only when it is back."""

    def __init__(self) -> None:
        super().__init__()
        self.change(CreateTable(1, "ks.t", 3, 2))

    def answer_of(self, message: Message, *meanwhile: Message) -> OperatorReply:
        """What n1 says of a message that comes after others were done."""
        part(self.world, "n1")
        self.world.held.append(("operator", "n1", message))
        return self._answer(reunite, *meanwhile)

    def answer_after_sleep(self, message: Message, *meanwhile: Message) -> OperatorReply:
        """What n1 says of a message that it takes up before it learns that others were done."""
        suspend(self.world, "n1")
        self.world.send("operator", "n1", message)
        return self._answer(resume, *meanwhile)

    def _answer(self, back: Callable[[World, str], None], *meanwhile: Message) -> OperatorReply:
        for one in meanwhile:
            self.change(one, "n2")
        self.replies.clear()
        back(self.world, "n1")
        self.until(lambda: bool(self.replies))
        reply = self.replies[0]
        assert isinstance(reply, OperatorReply)
        return reply

    def which(self, name: str) -> tuple[str, bool]:
        reply = self.ask("n3", NameRequest(9, name))
        assert isinstance(reply, NameReply)
        return reply.id, reply.there


AGAIN = CreateTable(4, "ks.t#2", 3, 4)


def test_a_late_drop_is_answered_as_the_first_one() -> None:
    cluster = Slow()
    reply = cluster.answer_of(DropTable(2, "ks.t"), DropTable(3, "ks.t"), AGAIN)
    assert (reply.number, reply.accepted) == (2, True)
    reply = cluster.answer_after_sleep(DropTable(5, "ks.t"))
    assert (reply.number, reply.accepted) == (5, True)
    assert cluster.which("ks.t") == ("ks.t#2", True)


def test_a_late_create_is_refused_and_says_what_to_do() -> None:
    cluster = Slow()
    again = DropTable(3, "ks.t"), AGAIN, DropTable(5, "ks.t#2")
    reply = cluster.answer_of(replace(AGAIN, number=2), *again)
    assert not reply.accepted
    assert reply.reason == "ks.t was created or dropped by others since this was asked"
    assert reply.help == "look at what is there, and ask again"
    assert cluster.which("ks.t") == ("ks.t#3", False)


def test_who_learns_that_it_was_done_meanwhile_says_so() -> None:
    cluster = Slow()
    wanted = CreateTable(2, "ks.u", 3, 2)
    meanwhile = replace(wanted, number=3), DropTable(4, "ks.u")
    assert cluster.answer_after_sleep(wanted, *meanwhile).accepted
    assert cluster.which("ks.u") == ("ks.u#2", False)


def test_late_statements_of_views_are_as_those_of_tables() -> None:
    cluster = Slow()
    view = CreateView(2, "ks.v", "ks.t", 7)
    reply = cluster.answer_of(view, replace(view, number=3), DropView(4, "ks.v"))
    assert reply.reason == "ks.v was created or dropped by others since this was asked"
    view = CreateView(5, "ks.v#2", "ks.t", 7)
    cluster.change(view)
    later = replace(view, number=8, view="ks.v#3")
    assert cluster.answer_of(DropView(6, "ks.v#2"), DropView(7, "ks.v#2"), later).accepted
    assert cluster.which("ks.v") == ("ks.v#3", True)


def test_what_is_asked_of_a_table_is_not_done_to_the_next_one() -> None:
    cluster = Slow()
    reply = cluster.answer_of(AlterTable(2, "ks.t", 2), DropTable(3, "ks.t"), AGAIN)
    assert reply.reason == "there is no table ks.t of tablets"
    reply = cluster.answer_of(CreateView(6, "ks.v", "ks.t"))
    assert reply.reason == "there is no table ks.t"


def test_an_id_that_no_table_of_the_name_can_have_is_refused() -> None:
    cluster = Slow()
    reply = cluster.ask("n1", CreateTable(1, "ks.t#7", 3, 2))
    assert isinstance(reply, OperatorReply)
    assert not reply.accepted


# -- names, and the oracle -----------------------------------------------------------------------------------


def test_ids_of_a_name_follow_each_other() -> None:
    rows: dict[tuple[str, ...], dict[str, object]] = {}
    tables = {"scylla_local": rows}
    ids = [new_id(tables, "ks.t")]
    for count in (1, 2, 3):
        mutation = Mutation("scylla_local", ("dropped:ks.t",), {"value": str(count)})
        rows[mutation.key] = {**(mutation.columns or {})}
        ids.append(new_id(tables, "ks.t"))
    assert ids == ["ks.t", "ks.t#2", "ks.t#3", "ks.t#4"]
    assert [last_before(one) for one in ids] == ["", *ids[:-1]]


def seen(*tables: str) -> View:
    return View(TransitionState.null, 0, 0, "", {}, dict.fromkeys(tables, 3), {})


def test_the_oracle_counts_each_statement_once() -> None:
    said = Oracle()
    oracle = StatementOracle(said)

    def create(*before: str) -> str:
        oracle.committed(seen(*before), seen(*before, "ks.t"))
        return ""

    oracle.carry_out("create", "ks.t", create)
    oracle.carry_out("drop", "ks.t", lambda: "refused: it has views")
    oracle.carry_out("drop", "ks.t", lambda: "not yet")
    oracle.committed(seen("ks.t"), seen())  # which nobody waited for any more
    assert said.breaches == []
    oracle.committed(seen(), seen("ks.t#2"))
    oracle.committed(seen("ks.t#2"), seen())
    assert [text.partition(",")[0] for text in said.breaches] == [
        "ks.t#2 was created",
        "ks.t#2 was dropped",
    ]
