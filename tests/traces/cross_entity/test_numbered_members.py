"""Members that a mapping numbers for each entity are not compared between entities; what else is asked is evaluated."""

from pathlib import Path

from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

OK, VIOLATION, UNDECIDED = TraceVerdict.OK, TraceVerdict.VIOLATION, TraceVerdict.UNDECIDED
NUMBERED = r"""machine = "Replica"
entity = "{slot}"
time = {from = "{at}", format = "unix"}

[source]
form = "text"
line = '^(?P<at>\d+) (?P<slot>\w+) (?P<message>.*)$'

[[event]]
match = '^on (?P<host>\w+)$'
action = "begin"
members = {host = "Node"}
parameters = {n = "{host}"}
"""
NAMED = NUMBERED.replace('members = {host = "Node"}\n', "").replace(
    '"{host}"', '{from = "{host}", values = {db1 = "node0", db2 = "node1"}}'
)


def evaluated(
    mapping: str, log: str, replica: type[Machine], table: type[Machine], folder: Path
) -> TraceReport:
    (folder / "m.toml").write_text(mapping)
    (folder / "a.log").write_text(log)
    options = Options(mapping=folder / "m.toml", together=(table,))
    return validate([folder / "a.log"], define(replica), options, engine=Embedded(1))


def verdicts(report: TraceReport) -> dict[str, TraceVerdict]:
    assert report.together is not None
    return {p.name: p.verdict for p in report.together.properties}


def test_what_compares_numbered_members_of_entities_is_undecided(
    tmp_path: Path, replica: type[Machine], table: type[Machine]
) -> None:
    report = evaluated(NUMBERED, "1 r0 on db1\n2 r1 on db2\n", replica, table, tmp_path)
    found = verdicts(report)
    assert (found["hosts_differ"], found["a_node_has_one"]) == (UNDECIDED, UNDECIDED)
    assert found["built_from_another"] is OK
    assert found["one_is_pending"] is VIOLATION
    assert report.together is not None
    (why,) = next(p.why for p in report.together.properties if p.name == "hosts_differ")
    assert why.startswith("compares Node of several entities")


def test_members_that_are_named_one_by_one_are_compared(
    tmp_path: Path, replica: type[Machine], table: type[Machine]
) -> None:
    apart = evaluated(NAMED, "1 r0 on db1\n2 r1 on db2\n", replica, table, tmp_path)
    assert verdicts(apart)["hosts_differ"] is OK
    same = evaluated(NAMED, "1 r0 on db1\n2 r1 on db1\n", replica, table, tmp_path)
    assert verdicts(same)["hosts_differ"] is VIOLATION
    assert verdicts(same)["a_node_has_one"] is VIOLATION
