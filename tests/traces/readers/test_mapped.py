"""Mapped files: text, CSV, JSON lines and Parquet become the same events, and every line is accounted for."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.models.lease import LeaseTable
from tests.traces.readers.reading import Read, evaluated, read_log

from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.inputs.discover import find_inputs
from stagewright.traces.mapping import mapped, mapped_lines
from stagewright.traces.mapping.load import plan_of
from stagewright.traces.mapping.plan import Plan
from stagewright.traces.mapping.sections import read_toml
from stagewright.traces.options import Options, unbounded_scope
from stagewright.traces.readers import text_lines
from stagewright.traces.readers.protocol import Part, Tally
from stagewright.traces.report.results import Totals
from stagewright.traces.report.text import as_json, entity_lines
from stagewright.traces.validate import validate

TEXT = r"""machine = "LeaseTable"
entity = "{lease}"
node = "{node}"
time = "{when}"

[source]
form = "text"
line = '^(?P<when>\d{4}-\d\d-\d\dT\S+) \[(?P<node>[^\]]*)\] (?P<message>.*)$'
strict = ['\blease\b']

[[event]]
match = '^lease (?P<lease>\S+): granted to (?P<host>\S+)(?:, epoch (?P<epoch>\d+))?$'
action = "acquire"
members = {host = "Node"}
parameters = {n = "{host}"}
observed = {holder = "{host}", epoch = "{epoch}"}

[[event]]
match = '^lease (?P<lease>\S+): (?P<what>lost|silent)'
action = {from = "{what}", values = {lost = "expire", silent = "go_silent"}}

[[event]]
match = '^lease (?P<lease>\S+) is closed$'
end = true
"""
GOOD = """2025-03-01T10:00:00.1Z [n1] starting
2025-03-01T10:00:00.2Z [n1] lease a: granted to db7.example, epoch 1
2025-03-01T10:00:00.3Z [n2] lease b: granted to db9.example

  at some.Java(Frame)
2025-03-01T10:00:00.4Z [n1] lease a: silent for 3 s
2025-03-01T10:00:00.5Z [n1] lease a: lost
2025-03-01T10:00:00.6Z [n1] lease a: granted to db9.example, epoch 2
2025-03-01T10:00:00.7Z [n1] lease a is closed
2025-03-01T10:00:00.8Z [n1] lease b is closed
"""
TABLE = """machine = "LeaseTable"
entity = "{lease}"
time = {from = "{at}", format = "unix-ms"}

[source]
form = "FORM"

[[event]]
where = {kind = ["step", "acquired"]}
action = "{step}"
parameters = {n = "{info.node}"}

[[event]]
where = {kind = "seen"}
observed = {lease = "{info.state}", holder = {from = "{info.node}", absent = "none"}}
"""
ROWS: list[dict[str, object]] = [
    {"kind": "seen", "at": 1, "lease": "a", "step": None, "info.state": "free"},
    {"kind": "other", "at": 2},
    {"kind": "seen", "at": 5, "lease": "a", "info.state": "held", "info.node": "node1"},
    {"kind": "step", "at": 4, "lease": "a", "step": "acquire", "info.node": "node1"},
    {"kind": "step", "at": 6, "lease": "a", "step": "go_silent"},
]


def lease(name: str, profile: str) -> Definition:
    assert name == "LeaseTable"
    return define(LeaseTable, profile)


def plan(text: str) -> Plan:
    return plan_of(read_toml("m.toml", text), "m.toml", lease, unbounded_scope)


def read(mapping: str, *paths: Path) -> Read:
    return evaluated(read_log("mapped", paths, plan(mapping)), define(LeaseTable))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(found: Read) -> list[tuple[object, ...]]:
    return [
        (e.line, e.entity, e.sequence, e.action, {**e.parameters, **e.observed})
        for e in found.events
    ]


def test_a_text_is_read_and_every_line_accounted_for(tmp_path: Path) -> None:
    found = read(TEXT, write(tmp_path / "a.log", GOOD))
    assert rows_of(found) == [
        (2, "a", 0, None, {}),
        (2, "a", 1, "acquire", {"n": "node0", "holder": "node0", "epoch": 1}),
        (6, "a", 2, "go_silent", {}),
        (7, "a", 3, "expire", {}),
        (8, "a", 4, "acquire", {"n": "node1", "holder": "node1", "epoch": 2}),
        (9, "a", 5, None, {}),
        (3, "b", 0, None, {}),
        (3, "b", 1, "acquire", {"n": "node0", "holder": "node0"}),
        (10, "b", 2, None, {}),
    ]
    assert found.counts == (10, 1, 9, 0)
    assert {e.node for e in found.events if e.entity == "b"} == {"n2", "n1"}
    assert found.events[1].time == 1740823200200000000
    assert found.verdicts == {"a": TraceVerdict.OK, "b": TraceVerdict.OK}
    assert found.interpreted.notes == []


def test_an_illegal_step_is_a_violation_at_its_line(tmp_path: Path) -> None:
    found = read(TEXT, write(tmp_path / "a.log", GOOD.replace("silent for 3 s", "lost")))
    assert found.verdicts == {"a": TraceVerdict.VIOLATION, "b": TraceVerdict.OK}
    (finding,) = [f for f in found.findings if f.key.entity == "a"]
    assert finding.place is not None
    assert finding.place.line == 6


def test_a_missing_end_is_a_gap_if_ends_are_marked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", GOOD.replace("lease b is closed", "bye"))
    assert read(TEXT, path).verdicts["b"] is TraceVerdict.GAP
    lenient = TEXT.replace("[[event]]", "[recording]\nend_marked = false\n\n[[event]]", 1)
    assert read(lenient, path).verdicts["b"] is TraceVerdict.OK


def test_lines_that_should_report_something_but_cannot_are_refused(tmp_path: Path) -> None:
    broken = [
        b"2025-03-01T10:00:00.1Z [n1] lease a: gr",
        b"2025-03-01T10:00:00.1Z [n1] nothing of the matter \xff",
        b"2025-03-01T10:00:00.1Z [n1] lease a: granted to \xff",
        b"2025-13-01T10:00:00.1Z [n1] lease a: lost",
        b"\xe2\x82",
        b"x" * (text_lines.LINE_MAX + 10),
        b"\x00\x00",
        b"lease without a prefix",
        b"2025-03-01T10:00:00.1Z [n1] lease a is closed",
    ]
    found = read(TEXT, write(tmp_path / "a.log", b"\n".join(broken)))
    assert [line for line, _ in found.reasons] == [1, 3, 4, 6, 8]
    reasons = dict(found.reasons)
    assert "it is no event of the mapping: 2025" in reasons[1]
    assert reasons[3] == "not UTF-8 text at byte 49"
    assert reasons[4] == "event 2: the time '2025-13-01T10:00:00.1Z' is not `iso`"
    assert "more than" in reasons[6]
    assert found.counts == (9, 0, 4, 5)
    strict = TEXT.replace('form = "text"', 'form = "text"\nunmatched = "unparsed"')
    assert len(read(strict, tmp_path / "a.log").reasons) == 8


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_tables_of_every_form_report_the_same(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{form}"
    names = list(dict.fromkeys(name for row in ROWS for name in row))
    if form == "csv":
        cells = [[str(row.get(n) or "") for n in names] for row in ROWS]
        write(path, "\n".join(",".join(row) for row in [names, *cells]))
    elif form == "jsonl":
        nested = [_nested(row) for row in ROWS]
        write(path, "\n".join(map(json.dumps, nested)))
    else:
        columns = {n: [row.get(n) for row in ROWS] for n in names}
        pq.write_table(pa.table(columns), path, row_group_size=2)
    found = read(TABLE.replace("FORM", form), path)
    shift = int(form == "csv")
    assert rows_of(found) == [
        (1 + shift, "a", 0, None, {"lease": "free", "holder": None}),
        (4 + shift, "a", 1, "acquire", {"n": "node1"}),
        (3 + shift, "a", 2, None, {"lease": "held", "holder": "node1"}),
        (5 + shift, "a", 3, "go_silent", {}),
    ]
    assert found.counts == (5 + shift, 0, 5 + shift, 0)
    assert found.verdicts == {"a": TraceVerdict.VIOLATION}  # between two events nothing is hidden


def _nested(row: dict[str, object]) -> dict[str, object]:
    flat = {name: value for name, value in row.items() if "." not in name}
    return {**flat, "info": {n.partition(".")[2]: v for n, v in row.items() if "." in n}}


NUMBERED = """machine = "LeaseTable"
entity = "{lease}"
sequence = {from = "{n}", first = 1}
[source]
form = "csv"
delimiter = ";"
columns = ["n", "lease", "step"]
[recording]
end_marked = false
[[event]]
action = "{step}"
"""


def test_numbers_order_events_and_a_missing_one_is_a_gap(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "2;a;go_silent\n1;a;acquire\n3;a;expire\n1;b;acquire\n")
    found = read(NUMBERED, path)
    assert found.verdicts == {"a": TraceVerdict.OK, "b": TraceVerdict.OK}
    write(
        path,
        '3;a;expire\n1;a;acquire\n1;b;acquire\n2;b;jump\nx;b;expire\n0;b;expire\n1;b\n1;b;"x\n',
    )
    found = read(NUMBERED, path)
    assert found.verdicts == {"a": TraceVerdict.GAP, "b": TraceVerdict.UNPARSED}
    reasons = dict(found.reasons)
    assert reasons[5] == "event 1: the sequence number is 'x'"
    assert "below the first, 1" in reasons[6]
    assert reasons[7] == "2 values, where 3 columns have names"
    assert "must not go on in another line" in reasons[8]


def test_rows_with_numbers_are_checked_where_they_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", "2;a;go_silent\n1;a;acquire\n3;a;expire\n\n1;b;acquire\nx\n2;b;expire\n"
    )
    write(tmp_path / "m.toml", NUMBERED)
    found = plan(NUMBERED)
    assert find_inputs([path], "auto", found).files[0].form == "mapped-numbered"
    options = Options(mapping=tmp_path / "m.toml")
    report = validate([path], define(LeaseTable), options, engine=Embedded(1))
    assert report.verdicts == dict.fromkeys(report.verdicts, 0) | {
        TraceVerdict.OK: 1,
        TraceVerdict.VIOLATION: 1,
    }
    assert report.totals == Totals(
        lines=7, blank=1, unparsed=1, with_events=5, events=7, evaluated=7
    )
    assert [str(entity.where) for entity in report.entities] == [f"{path}:7"]


@pytest.mark.parametrize("seed", range(4))
def test_evaluating_rows_alone_or_together_comes_to_the_same(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [
        (n, e, s) for e in "abcdef" for n, s in enumerate(["acquire", "go_silent", "expire"] * 2, 1)
    ]
    for _ in range(9):
        index = rng.randrange(len(rows))
        rows[index : index + 1] = rng.choice(
            [[], [rows[index]] * 2, [(*rows[index][:2], "expire")]]
        )
    rng.shuffle(rows)
    path = write(tmp_path / "a.csv", "".join(f"{n};{e};{s}\n" for n, e, s in rows))
    together = read(NUMBERED, path).verdicts
    write(tmp_path / "m.toml", NUMBERED)
    options = Options(mapping=tmp_path / "m.toml")
    report = validate([path], define(LeaseTable), options, engine=Embedded(1))
    bad = {entity.key.entity: entity.verdict for entity in report.entities}
    assert bad == {e: v for e, v in together.items() if v is not TraceVerdict.OK}
    assert bad


def test_the_first_row_may_be_a_step(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"l": "a", "s": "held"}\n{"l": "a", "s": "expiring"}\n')
    mapping = """machine = "LeaseTable"
entity = "{l}"
[source]
form = "jsonl"
[recording]
first_row = "step"
[[event]]
observed = {lease = "{s}"}
"""
    assert read(mapping, path).verdicts == {"a": TraceVerdict.OK}
    beginning = mapping.replace('"step"', '"beginning"')
    assert read(beginning, path).verdicts == {"a": TraceVerdict.VIOLATION}


def test_files_are_merged_by_time_and_what_is_uncertain_is_reported(tmp_path: Path) -> None:
    rows = GOOD.splitlines()
    one = write(tmp_path / "1.log", "\n".join(rows[5:]))
    two = write(tmp_path / "2.log", "\n".join(rows[:5]))
    assert read(TEXT, one, two).verdicts["a"] is TraceVerdict.OK
    write(two, "\n".join([rows[2].replace(":00.3", ":00.9"), rows[1].replace(":00.2", ":00.4")]))
    found = read(TEXT, one, two)
    assert found.interpreted.notes == [
        "time runs back in 1 place: the lines of a file keep their order",
        "1 event at the same time as one of the same entity in another file: their order is not known",
    ]


def test_more_members_than_the_scope_has_are_reported(tmp_path: Path) -> None:
    content = "\n".join(GOOD.splitlines()[i] for i in (1, 5, 6))
    more = "\n".join(content.replace("db7", f"db{i}").replace(", epoch 1", "") for i in range(4))
    found = read(TEXT, write(tmp_path / "a.log", more))
    assert (
        found.interpreted.notes[-1]
        == "an entity names 4 of node, and the scope has 3: --size node=4"
    )
    larger = TEXT.replace("[[event]]", "[recording]\nsizes = {Node = 4}\n\n[[event]]", 1)
    assert read(larger, tmp_path / "a.log").interpreted.notes == found.interpreted.notes[:-1]


def test_an_event_that_no_row_reports_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", "\n".join(GOOD.splitlines()[:2]))
    assert read(TEXT, path).interpreted.notes == [
        "no row is an event 2 of m.toml",
        "no row is an event 3 of m.toml",
    ]
    mapping, other = write(tmp_path / "m.toml", TEXT), write(tmp_path / "b.log", "x\ny\n")
    options = Options(mapping=mapping)
    with pytest.raises(InputError, match=r"no event in .*b\.log: 2 lines are unrelated"):
        validate([other], define(LeaseTable), options, engine=Embedded(1))


def test_a_header_without_a_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "kind,at\n")
    with pytest.raises(InputError, match=r"no column `lease`, which m\.toml reads"):
        read(TABLE.replace("FORM", "csv"), path)
    write(path, "kind,kind\n")
    with pytest.raises(InputError, match="the column `kind` twice"):
        read(TABLE.replace("FORM", "csv"), path)
    pq.write_table(pa.table({"kind": ["seen"]}), path)
    with pytest.raises(InputError, match="no column `lease`"):
        read(TABLE.replace("FORM", "parquet"), path)


def test_what_is_no_object_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", '{"kind":\n[1]\n' + "[" * 100_000 + '\n{"kind": "other"}\n\n'
    )
    found = read_log("mapped", [path], plan(TABLE.replace("FORM", "jsonl")))
    assert [line for line, _ in found.reasons] == [1, 2, 3]
    assert found.counts == (5, 1, 1, 3)


def test_a_large_text_is_cut_into_parts_and_its_header_known_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "PART_SIZE", 50)
    path = write(
        tmp_path / "a.csv", "lease,n,step\n" + "".join(f"l{i},1,acquire\n" for i in range(50))
    )
    found = read(NUMBERED.replace('delimiter = ";"\ncolumns = ["n", "lease", "step"]\n', ""), path)
    assert len(found.tallies) > 5
    assert len(found.verdicts) == 50
    assert set(found.verdicts.values()) == {TraceVerdict.OK}


@pytest.mark.parametrize(
    "pattern",
    [r"^lease (?P<lease>a+)\b", r"lease (?P<lease>(?!b)\S+):", r"(?i)LEASE (?P<lease>\S{1,})"],
)
@pytest.mark.parametrize("line", ["", r"line = '(?P<when>\S+) \[(?P<node>.*?)\] (?P<message>.*)'"])
def test_lines_are_sorted_out_as_if_each_were_looked_at(
    pattern: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping = f"machine = 'LeaseTable'\nentity = '{{lease}}'\n[source]\nform = 'text'\n{line}\n[[event]]\nmatch = '{pattern}'\naction = 'expire'\n"
    texts = [
        *GOOD.splitlines(),
        "lease aa x",
        "x lease a",
        "\v",
        "2025 [] lease a:\v",
        "  ",
        "lease ü",
    ]
    path = write(tmp_path / "a.log", "\r\n".join(texts))
    quick = read_log("mapped", [path], plan(mapping))
    monkeypatch.setattr(mapped_lines, "_is_plain", lambda *_: False)
    slow = read_log("mapped", [path], plan(mapping))
    assert rows_of(quick) == rows_of(slow)
    assert quick.counts == slow.counts
    assert quick.counts[1] == 3


def test_objects_are_sorted_out_as_if_each_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping = TABLE.replace("FORM", "jsonl")
    rows = [json.dumps(_nested(row)) for row in ROWS] * 2
    traps = [
        '{"kind": "s',
        '{"kind": "\\u0073een"}',
        '{"x": 1}',
        "[]",
        "",
        '{"x": {"kind": "seen"}}',
    ]
    path = write(tmp_path / "a.jsonl", "\n".join([*rows, *traps]))
    quick = read_log("mapped", [path], plan(mapping))
    monkeypatch.setattr(mapped_lines, "_is_plain", lambda *_: False)
    slow = read_log("mapped", [path], plan(mapping))
    assert rows_of(quick) == rows_of(slow)
    assert quick.counts == slow.counts
    assert quick.reasons == slow.reasons
    assert [line for line, _ in quick.reasons] == [11, 12, 14]


def test_files_of_a_directory_are_those_that_the_mapping_means(tmp_path: Path) -> None:
    write(tmp_path / "a.log", GOOD)
    write(tmp_path / "b.csv", GOOD)
    found = find_inputs([tmp_path], "auto", plan(TEXT))
    assert [f.path.name for f in found.files] == ["a.log"]
    assert [p.name for p in found.passed_over] == ["b.csv"]
    with pytest.raises(InputError, match="exclude each other"):
        find_inputs([tmp_path], "jsonl", plan(TEXT))
    with pytest.raises(InputError, match="--mapping"):
        mapped.extract(Part(0, "a.log", "mapped", 0, 1), Tally())


def test_mapped_files_are_validated(tmp_path: Path) -> None:
    mapping = write(tmp_path / "m.toml", TEXT)
    logs = [write(tmp_path / "good.log", GOOD)]
    options = Options(mapping=mapping)
    report = validate(logs, define(LeaseTable), options, engine=Embedded(1))
    assert (report.exit_code, report.totals.with_events, report.totals.events) == (0, 7, 9)
    write(logs[0], GOOD.replace("silent for 3 s", "lost"))
    report = validate(logs, define(LeaseTable), options, engine=Embedded(1))
    (entity,) = report.entities
    assert (str(entity.where), entity.key.entity) == (f"{logs[0]}:6", "a")


def test_the_real_names_of_members_are_reported(tmp_path: Path) -> None:
    log = write(tmp_path / "bad.log", GOOD.replace("silent for 3 s", "lost"))
    options = Options(mapping=write(tmp_path / "m.toml", TEXT))
    report = validate([log], define(LeaseTable), options, engine=Embedded(1))
    (entity,) = report.entities
    assert entity.names == (("node0", "db7.example"), ("node1", "db9.example"))
    assert "  names      node0 = db7.example, node1 = db9.example" in entity_lines(entity)
    found = json.loads(json.dumps(as_json(report)))
    assert found["findings"][0]["names"] == {"node0": "db7.example", "node1": "db9.example"}
