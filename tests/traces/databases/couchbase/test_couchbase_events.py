"""What Couchbase's master events say of moves: their steps, whatever versions log of them, and late nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.traces.readers.evaluated_log import EvaluatedLog, evaluated

from stagewright.spec.errors import InputError
from stagewright.traces.databases.couchbase import couchbase_events
from stagewright.traces.readers import formats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORM = "couchbase-master-events"
SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "couchbase_events" / "master_events.log"
OLD, NEW = "10.0.0.1:11210", "10.0.0.2:11210"
Events = list[tuple[str, dict[str, object]]]


def of_events(
    tmp_path: Path, *events: tuple[str, dict[str, object]], vbucket: int = 5
) -> EvaluatedLog:
    path = tmp_path / "master_events.log"
    lines = [
        json.dumps(
            {"bucket": "b", "ts": 1354035127.5 + n, "type": kind, "vbucket": vbucket, **more}
        )
        for n, (kind, more) in enumerate(events)
    ]
    path.write_text("\n".join(lines) + "\n")
    return evaluated(FORM, [path])


START: Events = [("vbucketMoveStart", {"chainBefore": [OLD], "chainAfter": [NEW, OLD]})]
INDEXING: Events = [("indexingInitiated", {"node": NEW}), ("backfillPhaseStarted", {})]
WAIT: Events = [("backfillPhaseEnded", {}), ("waitIndexUpdatedStarted", {"node": NEW})]
TAKEOVER: Events = [
    ("takeoverStarted", {"oldMaster": OLD, "node": NEW}),
    ("takeoverEnded", {"oldMaster": OLD, "node": NEW}),
]
ACTIVE: Events = [("vbucketStateChange", {"host": NEW, "state": "active"})]
MAP: Events = [("updateMap", {"chainBefore": [OLD], "chainAfter": [NEW, OLD]})]
DONE: Events = [("vbucketMoveDone", {})]
TERMINATED: Events = [("vbucketMoverTerminate", {"pid": "<0.1.0>", "reason": "normal"})]


def test_a_move_is_ok_and_one_of_replicas_is_none() -> None:
    found = evaluated(FORM, [SAMPLE])
    assert not found.wrong
    assert not found.reasons
    assert not found.found.notes
    steps = [(entity, action) for entity, action, _ in found.recorded("PartitionRebalance")]
    of_move = [None, "start", None, "take_over", "activate", "update_map", "finish"]
    assert steps == [("default/1022/move1", action) for action in of_move]
    form = formats.form_of(SAMPLE.name, SAMPLE.read_bytes())
    assert form is not None
    assert form.name == FORM


@pytest.mark.parametrize(
    ("events", "wrong"),
    [
        ([*START, *INDEXING, *WAIT, *TAKEOVER, *ACTIVE, *MAP, *DONE, *TERMINATED], None),
        ([*START, *INDEXING, *WAIT, *TAKEOVER, *ACTIVE, *DONE, *MAP], None),  # as in 2012
        ([*START, *INDEXING, *WAIT, *ACTIVE, *MAP, *DONE], None),  # takeovers are not logged
        ([*START, *INDEXING, *WAIT, *ACTIVE, *TAKEOVER, *MAP, *DONE], 6),  # active on both nodes
        ([*START, *INDEXING, *WAIT, *TAKEOVER, *MAP, *ACTIVE, *DONE], None),  # logged late
        ([*START, *INDEXING, *WAIT, *MAP, *ACTIVE, *TAKEOVER, *DONE], 6),  # the map comes too early
        ([*START, *WAIT, *TAKEOVER, *ACTIVE, *MAP, *DONE, *START, *INDEXING], 3),  # no index
        ([*START, *INDEXING, *WAIT, *TAKEOVER, *ACTIVE, *DONE, *START, *MAP], 9),  # no map
    ],
)
def test_a_move_goes_step_by_step(events: Events, wrong: int | None, tmp_path: Path) -> None:
    found = of_events(tmp_path, *events)
    assert [line for _, _, _, line in found.wrong][:1] == ([] if wrong is None else [wrong])


def test_a_move_that_is_stopped_is_left_where_it_was(tmp_path: Path) -> None:
    shutdown: Events = [("vbucketMoverTerminate", {"pid": "<0.1.0>", "reason": "shutdown"})]
    early = of_events(tmp_path, *START, *INDEXING, *WAIT, *shutdown, *START, *INDEXING)
    assert not early.wrong
    assert early.found.notes == ["1 moves are not at their end", "1 moves were stopped"]
    assert [action for _, action, _ in early.recorded("PartitionRebalance")][-3:] == [
        "stop",
        None,
        "start",
    ]
    late = of_events(tmp_path, *START, *INDEXING, *WAIT, *TAKEOVER, *shutdown)
    assert "stop" not in {action for _, action, _ in late.recorded("PartitionRebalance")}


def test_a_node_has_a_name_and_an_address(tmp_path: Path) -> None:
    named: Events = [
        ("becameMaster", {"node": "n_2@10.0.0.2", "host": NEW}),
        *START,
        *INDEXING,
        *WAIT,
        *TAKEOVER,
        ("vbucketStateChange", {"host": "n_2@10.0.0.2", "state": "active"}),
    ]
    found = of_events(tmp_path, *named)
    assert [action for _, action, _ in found.recorded("PartitionRebalance")][-1] == "activate"


def test_partitions_and_buckets_are_told_apart(tmp_path: Path) -> None:
    other: Events = [(kind, {**more, "vbucket": 6}) for kind, more in [*START, *INDEXING, *WAIT]]
    found = of_events(tmp_path, *START, *other, *INDEXING, *WAIT, *TAKEOVER)
    assert not found.wrong
    assert {entity for entity, _, _ in found.recorded("PartitionRebalance")} == {
        "b/5/move1",
        "b/6/move1",
    }


def test_lines_that_are_no_events_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    texts = [
        b"",
        b"hello",
        b'{"type":"somethingElse"}',
        b'{"bucket":"b","type":"vbucketMoveDone","vbucket":1}',
        b'{"bucket":"b","ts":1.5,"type":"vbucketMoveDone"}',
        b'{"bucket":7,"ts":1.5,"type":"vbucketMoveDone","vbucket":1}',
        b'{"bucket":"b","ts":1.5,"type":"vbucketMoveStart","vbucket":1}',
        b'{"bucket":"b","ts":1.5,"type":"updateMap","vbucket":1,"chainBefore":[1],"chainAfter":[2]}',
        b'{"bucket":"\xc3","ts":1.5,"type":"vbucketMoveDone","vbucket":1}',
        b'{"ts":1.5,"type":"vbucketMoveDone"',
        b"x" * (1 << 21),
    ]
    path.write_bytes(b"\n".join(texts))
    (tally,) = evaluated(FORM, [path]).tallies
    assert (tally.lines, tally.blank, tally.other, tally.unparsed) == (11, 1, 1, 9)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    for text in ("hello\n", ""):
        path.write_text(text)
        with pytest.raises(InputError, match="does not look like Couchbase's master events"):
            couchbase_events.check(path)


@pytest.mark.spark
def test_the_sample_is_validated(spark: SparkSession) -> None:
    from stagewright.commands.validation.traced_machines import resolver
    from stagewright.spec.trace import TraceVerdict
    from stagewright.traces.validate import validate

    report = validate([SAMPLE.parent], resolver(None), spark=spark)
    assert report.verdicts == {**dict.fromkeys(TraceVerdict, 0), TraceVerdict.OK: 1}
