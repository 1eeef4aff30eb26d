"""Dumps of ScyllaDB's system tables, polled now and then: accepted if some run explains them."""

import json
from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import recorded, violations

from stagewright.spec.errors import InputError
from stagewright.traces.databases.scylladb.tables import rows, tables
from stagewright.traces.databases.scylladb.tables.snapshots import REQUEST
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Interpreted, Part, Tally

HOSTS = [f"9b1f3f0e-{n}{n}{n}{n}-4c5e-9a5e-0d6a2f6f000{n}" for n in range(1, 4)]
TABLE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
FIRST, SECOND = (f"{n}f1b2c00-b9b6-11f0-8de9-0242ac120002" for n in (3, 8))


def read(*paths: Path, profile: str = "") -> tuple[Interpreted, list[Tally]]:
    files, tallies = [], []
    for number, path in enumerate(paths):
        (bounds,) = tables.parts(path)
        tallies.append(Tally())
        part = Part(number, str(path), "scylla-tables", *bounds)
        files.append([(number, line) for line in tables.extract(part, tallies[-1])])
    return tables.interpret(files, profile), tallies


def as_cqlsh(rows: list[dict[str, object]], time: str = "") -> str:
    """What `SELECT JSON` prints."""
    lines = [time] if time else []
    lines += ["", " [json]", "-" * 40]
    lines += [f" {json.dumps(row)}" for row in rows]
    lines += ["", f"({len(rows)} rows)"]
    return "\n".join(lines) + "\n"


def node(host: str, state: str, transition: str | None = None, **more: object) -> dict[str, object]:
    return {
        "key": "topology",
        "host_id": host,
        "node_state": state,
        "transition_state": transition,
        **more,
    }


def task(number: int, aborted: bool = False) -> dict[str, object]:
    return {
        "key": "view_building",
        "id": f"{number}c7e8d10-9d0e-11ef-a7c3-44b5e0f19a21",
        "type": "BUILD_RANGE",
        "aborted": aborted,
        "base_id": TABLE,
        "last_token": 5,
    }


def test_polled_topologies_are_explained_by_what_happened_between_them(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    path.write_text(
        as_cqlsh([node(HOSTS[0], "normal")], "2025-03-01T10:00:00+00:00")
        + as_cqlsh(
            [
                node(HOSTS[0], "normal", "write_both_read_new"),
                node(HOSTS[1], "bootstrapping", "write_both_read_new"),
            ],
            "2025-03-01T10:05:00+00:00",
        )
        + as_cqlsh(
            [node(HOSTS[0], "decommissioning", "tablet draining"), node(HOSTS[1], "normal")],
            "2025-03-01T10:10:00+00:00",
        )
    )
    found, (tally,) = read(path, profile="scylla-2025.4")
    assert violations(found) == []
    assert (tally.lines, tally.unparsed) == (tally.blank + tally.other, 0)
    assert recorded(found, "TopologyTransition") == [
        ("topology", {"transition_state": "null", "in_transition": None}),
        (
            "topology",
            {"transition_state": "write_both_read_new", "in_transition": "bootstrapping"},
        ),
        ("topology", {"transition_state": "tablet_draining", "in_transition": "decommissioning"}),
    ]
    times = [e.time for _, e in found.events if e.entity == HOSTS[1]]
    assert [t for t in times if t is not None] == [1740823500000000, 1740823800000000]


def test_a_node_that_left_does_not_come_back(tmp_path: Path) -> None:
    late = tmp_path / "topology-2025-03-01T11:00:00.json"
    early = tmp_path / "topology-2025-03-01T10:00:00.json"
    early.write_text(as_cqlsh([node(HOSTS[1], "left")]))
    late.write_text(as_cqlsh([node(HOSTS[1], "normal")]))
    found, _ = read(late, early)
    assert violations(found) == [("TopologyNode", HOSTS[1], 4)]
    assert [part for part, e in found.events if e.machine == "TopologyNode"] == [1, 0]


def test_dumps_of_several_nodes_are_checked_apart(tmp_path: Path) -> None:
    """The second node lags: it has not learned yet what the first one knows."""
    for name, time, state in (("a", "10:00:00", "left"), ("b", "10:00:05", "decommissioning")):
        (tmp_path / name).mkdir()
        path = tmp_path / name / f"topology-2025-03-01T{time}.json"
        transition = "left token ring" if state == "decommissioning" else None
        path.write_text(as_cqlsh([node(HOSTS[1], state, transition)]))
    found, _ = read(*sorted(tmp_path.rglob("*.json")))
    assert violations(found) == []
    assert any("each is checked apart" in note for note in found.notes)
    entities = [entity for entity, _ in recorded(found, "TopologyNode")]
    assert entities == [f"{HOSTS[1]} in {name}/topology-.json" for name in "ab"]


def test_a_folder_may_have_the_time_of_its_dumps(tmp_path: Path) -> None:
    for name, state in (("20250301T100500", "left"), ("20250301T100000", "normal")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "topology.json").write_text(as_cqlsh([node(HOSTS[1], state)]))
    found, _ = read(*sorted(tmp_path.rglob("*.json"), reverse=True))
    assert violations(found) == []
    assert not found.notes


def test_a_generation_that_is_gone_was_cleared(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    both = [["2025-03-01 09:00:00.000Z", FIRST], ["2025-03-01 10:00:00.000Z", SECOND]]
    rows = [
        node(
            HOSTS[0], "normal", committed_cdc_generations=both, unpublished_cdc_generations=both[1:]
        ),
        node(HOSTS[0], "normal", committed_cdc_generations=both[1:]),
    ]
    path.write_text("".join(as_cqlsh([row]) for row in rows))
    found, _ = read(path)
    assert violations(found) == []
    assert recorded(found, "CdcGeneration") == [
        (FIRST, {"life": "published"}),
        (SECOND, {"life": "committed"}),
        (SECOND, {"life": "published"}),
        (FIRST, {"life": "cleared"}),
    ]
    assert "2 dumps have no time: their order is that of files and lines" in found.notes


@pytest.mark.parametrize(
    ("time", "wrong"),
    [
        ("2025-03-01 10:00:00.001Z", []),
        ("2025-03-01 09:59:59.999Z", [("LoggedGenerations", "generations", 10)]),
        ("2025-03-01 10:00:00.000Z", [("LoggedGenerations", "generations", 10)]),
    ],
)
def test_a_generation_that_is_new_in_a_dump_begins_after_those_before_it(
    time: str, wrong: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    path = tmp_path / "topology.json"
    there = [["2025-03-01 10:00:00.000Z", FIRST]]
    rows = [
        node(HOSTS[0], "normal", committed_cdc_generations=there),
        node(HOSTS[0], "normal", committed_cdc_generations=[[time, SECOND], *there]),
    ]
    path.write_text("".join(as_cqlsh([row]) for row in rows))
    found, _ = read(path)
    assert violations(found) == wrong


def test_the_history_of_group0_has_generations_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "group0_history.json"
    text = "committed new CDC generation, ID: (2025/11/05 {}, {})"
    rows: list[dict[str, object]] = [
        {"key": "history", "state_id": state, "description": text.format(time, generation)}
        for state, time, generation in ((SECOND, "09:55:05", SECOND), (FIRST, "10:01:05", FIRST))
    ]
    path.write_text(as_cqlsh(rows))
    found, _ = read(path)
    assert [(m, e) for m, e, _ in violations(found)] == [
        ("LoggedGenerations", "generations in group0_history")
    ]


def test_a_task_that_is_gone_does_not_come_back_and_no_abort_is_revoked(tmp_path: Path) -> None:
    path = tmp_path / "view_building_tasks.json"
    ids = [str(task(n)["id"]) for n in (1, 2)]
    path.write_text(as_cqlsh([task(1), task(2, aborted=True)]) + as_cqlsh([]) + as_cqlsh([task(1)]))
    found, _ = read(path)
    assert [(entity, line) for _, entity, line in violations(found)] == [(ids[0], 16)]
    path.write_text(as_cqlsh([task(2, aborted=True)]) + as_cqlsh([task(2)]))
    assert [entity for _, entity, _ in violations(read(path)[0])] == [ids[1]]


def test_nothing_is_gone_from_a_dump_that_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    second = as_cqlsh([task(2), task(1)]).replace(json.dumps(task(1)), json.dumps(task(1))[:-9])
    path.write_text(as_cqlsh([task(1), task(2)]) + second + as_cqlsh([task(1), task(2)]))
    found, (tally,) = read(path)
    assert violations(found) == []
    assert tally.unparsed == 1
    assert found.notes[0].startswith("1 dumps of view_building_tasks are not complete")


def test_csv_of_tablets_has_an_epoch_for_every_resize(tmp_path: Path) -> None:
    header = "table_id,last_token,keyspace_name,replicas,stage,tablet_count,transition"
    for minute, count, stage in ((0, 2, "streaming"), (1, 2, "use_new"), (2, 4, "")):
        row = f'{TABLE},-1,ks,"[({HOSTS[0]}, 0)]",{stage},{count},{"migration" if stage else ""}'
        path = tmp_path / f"tablets.2025-03-01_10.0{minute}.00.csv"
        path.write_text(f"{header}\n{row}\n")
    paths = sorted(tmp_path.glob("*.csv"))
    assert formats.form_of(paths[0].name, paths[0].read_bytes()) == formats.form_named(
        "scylla-tables"
    )
    found, tallies = read(*paths)
    assert not any(t.unparsed for t in tallies)
    assert violations(found) == []
    assert recorded(found, "TabletMigration") == [
        (f"{TABLE}:-1", {"stage": "streaming", "kind": "migration"}),
        (f"{TABLE}:-1", {"stage": "use_new", "kind": "migration"}),
        (f"{TABLE}:-1@1", {"stage": "none", "kind": None}),
    ]


def test_a_repair_does_not_turn_into_a_migration_in_its_stage(tmp_path: Path) -> None:
    path = tmp_path / "tablets.json"
    row = {"table_id": TABLE, "last_token": 5, "tablet_count": 1}
    path.write_text(as_cqlsh([{**row, "stage": "streaming", "transition": "repair"}]))
    assert violations(read(path)[0]) == [("TabletMigration", f"{TABLE}:5", 4)]


def test_a_request_that_is_done_stays_as_it_was_reported(tmp_path: Path) -> None:
    header = "id,done,end_time,error,request_type,start_time"
    rows = [
        f"{FIRST},False,,,leave,2025-03-01 10:00:00.000+0000",
        f'{FIRST},False,,"Rolled back: Failed stream\nranges",leave,2025-03-01 10:00:00.000+0000',
        f"{FIRST},True,2025-03-01 10:09:00.000+0000,Rolled back: x,leave,2025-03-01 10:00:00.000+0000",
        f"{FIRST},True,2025-03-01 10:09:00.000+0000,,leave,2025-03-01 10:00:00.000+0000",
    ]
    paths = []
    for number, row in enumerate(rows):
        paths.append(tmp_path / f"requests-174082320{number}.csv")
        paths[-1].write_text(f"{header}\n{row}\n")
    found, tallies = read(*paths)
    assert violations(found) == [(REQUEST, FIRST, 2)]
    assert [e.sequence for p, e in found.events if p == 3] == [3]
    assert violations(read(*paths[:3])[0]) == []
    assert [(t.lines, t.other, t.unparsed) for t in tallies] == [
        (2, 2, 0),
        (3, 3, 0),
        (2, 2, 0),
        (2, 2, 0),
    ]


def test_the_history_is_in_the_order_of_its_ids_however_often_it_is_dumped(tmp_path: Path) -> None:
    def commit(number: int, reason: str) -> dict[str, object]:
        state = f"{number:08x}-b9b6-11f0-8de9-0242ac120002"
        return {"key": "history", "state_id": state, "description": reason}

    commits = [
        commit(1, "bootstrap: accept node"),
        commit(2, f"bootstrap: insert tokens and CDC generation data (UUID: {FIRST})"),
        commit(3, f"committed new CDC generation, ID: (2025/11/05 10:01:05, {FIRST})"),
        commit(4, "advance fence version to 5"),
        commit(5, f"bootstrapping: streaming completed for node {HOSTS[1]}"),
        commit(6, f"published CDC generation with ID (2025/11/05 10:01:05, {FIRST}), "),
    ]
    path = tmp_path / "history.json"
    path.write_text(as_cqlsh(commits[3::-1]) + as_cqlsh(commits[:1:-1]))
    found, _ = read(path)
    assert violations(found) == []
    assert [seen for _, seen in recorded(found, "CdcGeneration")] == [
        {"life": "written"},
        {"life": "committed"},
        {"life": "published"},
    ]
    assert recorded(found, "TopologyNode") == [
        (f"{HOSTS[1]} in group0_history", {"node_state": "bootstrapping"})
    ]
    committed_again = commit(7, str(commits[2]["description"]))
    path.write_text(as_cqlsh([*commits, committed_again]))
    assert [entity for _, entity, _ in violations(read(path)[0])] == [f"{FIRST} in group0_history"]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("topology-2025-03-01T10:00:00.json", 1740823200000000),
        ("topology_20250301T100000.csv", 1740823200000000),
        ("dump.1740823200.csv", 1740823200000000),
        ("2025-03-01 12:00:00.500+02:00", 1740823200500000),
        ("topology.json", None),
    ],
)
def test_times_in_names_and_lines(text: str, time: int | None) -> None:
    assert rows.time_in(text) == time


def test_rows_of_no_known_table_are_refused_and_other_lines_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(
        as_cqlsh([{"cluster_name": "x", "key": "local"}, node(HOSTS[0], "normal")]).encode()
        + b'{"key": "topology", "host_id"\n\xff\xfe{\n---MORE---\n'
    )
    _, (tally,) = read(path)
    assert tally.unparsed == 3
    assert tally.lines == tally.blank + tally.other + tally.unparsed
    assert "of no table that is known" in tally.reasons[0][1]


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,colour\nx,red\n")
    with pytest.raises(InputError, match="does not look like a dump of a system table"):
        tables.check(path)


def test_an_empty_dump_is_of_the_table_of_its_series(tmp_path: Path) -> None:
    times = [f"2025-03-01T10:0{minute}:00+00:00" for minute in range(3)]
    path = tmp_path / "dump.json"
    there, gone, again = (
        as_cqlsh(rows, t) for rows, t in zip(([task(1)], [], [task(1)]), times, strict=True)
    )
    path.write_text(there + gone)
    found, _ = read(path)
    assert [e.observed for _, e in found.events] == [{"life": "normal"}, {"life": "dropped"}]
    assert violations(found) == []
    path.write_text(there + gone + again)
    assert len(violations(read(path)[0])) == 1


def test_an_empty_dump_of_an_unknown_table_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    dumps = [as_cqlsh([task(1)]), as_cqlsh([node(HOSTS[0], "normal")]), as_cqlsh([])]
    path.write_text("".join(dumps))
    (note,) = [n for n in read(path)[0].notes if "no rows" in n]
    assert note.startswith("1 dumps have no rows, and nothing says of which table they are")
