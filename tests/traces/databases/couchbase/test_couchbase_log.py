"""What a Couchbase log says of the partitions of an index: records of many lines, states before and after."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.traces.databases.couchbase.couchbase_texts import (
    GROUP,
    applying,
    marked,
    record,
    updated,
)
from tests.traces.readers.evaluated_log import EvaluatedLog, evaluated

from stagewright.spec.errors import InputError
from stagewright.traces.databases.couchbase import couchbase_log
from stagewright.traces.databases.couchbase.couchbase_record import Record, Said, parse_record
from stagewright.traces.readers import formats, text_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORM = "couchbase-log"
SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "couchbase"


def of_text(tmp_path: Path, *texts: str) -> EvaluatedLog:
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"couchdb{number}.log")
        paths[-1].write_text(text)
    return evaluated(FORM, paths)


def of_messages(tmp_path: Path, *messages: str) -> EvaluatedLog:
    return of_text(tmp_path, "".join(record(second, m) for second, m in enumerate(messages)))


def wrong_records(
    found: EvaluatedLog, messages: tuple[str, ...] | list[str]
) -> list[tuple[str, int]]:
    """Which partition is wrong at which message."""
    starts, line = {}, 1
    for number, message in enumerate(messages):
        starts[line] = number
        line += record(0, message).count("\n")
    return [(entity.rpartition("/")[2], starts[at]) for _, entity, _, at in found.wrong]


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda p: p.stem)
def test_records_of_every_era_are_ok(path: Path) -> None:
    found = evaluated(FORM, [path])
    assert not found.wrong
    assert not found.reasons
    actions = [action for _, action, _ in found.recorded("PartitionStates") if action]
    assert {
        *("set_active", "set_passive", "set_cleanup", "clean", "apply_pending_transition"),
        *("mark_unindexable", "mark_indexable"),
    } == set(actions)
    (begin,) = {formats.form_of(path.name, path.read_bytes())}
    assert begin is not None
    assert begin.name == FORM


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("[]", set[int]()),
        ("[7]", {7}),
        ("[0-3,7,9-10]", {0, 1, 2, 3, 7, 9, 10}),
        ("[0,1,1023]", {0, 1, 1023}),
        ("[{3,100},{4,0}]", {3, 4}),
    ],
)
def test_lists_are_read_as_old_and_new_versions_write_them(text: str, ids: set[int]) -> None:
    texts = record(0, marked(text, "[]", how="removed")).split("\n")
    found = parse_record(texts, 1)
    assert isinstance(found, Record)
    assert found.said is Said.UNMARKED
    assert set(found.lists["Previous set"]) == ids


@pytest.mark.parametrize(
    ("prefix", "node", "time"),
    [
        (
            "[couchdb:info,2012-08-20T15:21:13.150,n_1@host:<0.6234.0>:couch_log:info:39] ",
            "n_1@host",
            "2012-08-20 15:21:13.150000",
        ),
        (
            "[couchdb:info,2019-01-02T03:04:05.006+02:00,ns_1@127.0.0.1:couch_main<0.512.0>:couch_log:info:41]",
            "ns_1@127.0.0.1",
            "2019-01-02 01:04:05.006000",
        ),
        (
            "[views:info,2021-11-30T23:30:00.001-07:00,ns_1@cb.local:<0.9.1>:couch_log:info:41]",
            "ns_1@cb.local",
            "2021-12-01 06:30:00.001000",
        ),
    ],
)
def test_every_style_of_prefix_is_read(prefix: str, node: str, time: str) -> None:
    found = parse_record(
        [prefix + marked("[]", "[]").split("\n")[0], *marked("[]", "[]").split("\n")[1:]], 1
    )
    assert isinstance(found, Record)
    assert (found.group.node, found.time) == (node, time)
    assert str(found.group) == f"{node}/default/main (prod)/_design/d"


def test_a_request_and_what_it_does_are_one_step(tmp_path: Path) -> None:
    messages = [
        updated("active [0-3]", "active [0-2], cleanup [3]"),
        updated("active [0-2], cleanup [3]", "active [0-2], cleanup [3], pending passive [3]"),
        updated("active [0-2], cleanup [3], pending passive [3]", "active [0-2], cleanup [3]"),
        updated("active [0-2]", "active [0-2], passive [3]"),
    ]
    assert not of_messages(tmp_path, *messages).wrong


def test_a_partition_in_cleanup_is_not_active_at_once(tmp_path: Path) -> None:
    messages = [
        updated("active [0-3]", "active [0-2], cleanup [3]"),
        updated("active [0-2], cleanup [3]", "active [0-3]"),
    ]
    assert wrong_records(of_messages(tmp_path, *messages), messages) == [("3", 1)]
    both = [updated("active [0-3]", "active [0-3], passive [3]")]
    assert wrong_records(of_messages(tmp_path, *both), both) == [("3", 0)]


def test_what_is_before_is_what_the_last_record_left(tmp_path: Path) -> None:
    messages = [
        updated("active [0-3]", "active [0-3], passive [7]"),
        updated("active [0-3], passive [6-7]", "active [0-4], passive [6-7]"),
    ]
    found = of_messages(tmp_path, *messages)
    assert not found.wrong  # 6 was not mentioned before
    messages[1] = updated("active [0-1,3], passive [7]", "active [0-1,3-4], passive [7]")
    assert wrong_records(of_messages(tmp_path, *messages), messages) == [("2", 1)]
    messages[1] = updated("active [0-3,7]", "active [0-4,7]")
    assert wrong_records(of_messages(tmp_path, *messages), messages) == [("7", 1)]


def test_what_is_pending_is_applied_when_it_is_clean(tmp_path: Path) -> None:
    begin = [
        updated("active [0-1]", "active [0], cleanup [1]"),
        updated("active [0], cleanup [1]", "active [0], cleanup [1], pending active [1]"),
        applying("[1]"),
    ]
    clean = [*begin, updated("active [0]", "active [0-1]")]
    assert not of_messages(tmp_path, *clean).wrong
    early = [*begin, updated("active [0], cleanup [1]", "active [0-1], cleanup [1]")]
    assert wrong_records(of_messages(tmp_path, *early), early) == [("1", 3)]


def test_a_mark_on_what_is_pending_is_kept(tmp_path: Path) -> None:
    begin = [
        updated("active [0-1]", "active [0], cleanup [1]"),
        updated("active [0], cleanup [1]", "active [0], cleanup [1], pending active [1]"),
        marked("[]", "[]", pending=("[]", "[1]")),
    ]
    old = "active [0], cleanup [1], pending active [1], paused [1]"
    kept = [*begin, updated(old, f"{old}, passive [7]")]
    assert not of_messages(tmp_path, *kept).wrong
    # A change of the pending transition forgets which of its partitions are unindexable.
    lost = [*begin, updated(old, "active [0], cleanup [1], pending active [1], passive [7]")]
    assert wrong_records(of_messages(tmp_path, *lost), lost) == [("1", 3)]
    applied = [*begin, applying("[1]", "[]", "[1]"), updated("active [0]", "active [0-1]")]
    after = updated("active [0-1], unindexable [{1,0}]", "active [0-2], unindexable [{1,0}]")
    assert not of_messages(tmp_path, *applied, after).wrong


def test_what_is_unindexable_keeps_its_state(tmp_path: Path) -> None:
    messages = [
        updated("active [0]", "active [0], passive [1]"),
        marked("[]", "[{0,7}]"),
        updated("active [0], passive [1], unindexable [{0,7}]", "passive [1], cleanup [0]"),
    ]
    assert wrong_records(of_messages(tmp_path, *messages), messages) == [("0", 2)]


def test_processes_of_one_index_are_told_apart(tmp_path: Path) -> None:
    texts = [
        record(1, updated("active [0]", "active [0-1]")),
        record(2, updated("", "passive [0-1]"), pid="<0.77.0>"),
        record(3, updated("active [0-1]", "active [0], cleanup [1]")),
        record(4, updated("passive [0-1]", "active [0-1]"), pid="<0.77.0>"),
    ]
    found = of_text(tmp_path, "".join(texts))
    assert not found.wrong
    names = {entity.rpartition("/")[2] for entity, _, _ in found.recorded("PartitionStates")}
    assert names == {"0", "1", "0#2", "1#2"}


def test_after_a_rollback_an_index_is_followed_anew(tmp_path: Path) -> None:
    rollback = (
        f"Rollback of set view {GROUP} to [{{0,5}}]\nindexable partitions before:   [{{0,9}}]\n"
        "indexable partitions after:    [{0,5}]\nunindexable partitions before: []\n"
        "unindexable partitions after:  []\n"
    )
    messages = [
        updated("active [0]", "active [0-1]"),
        rollback,
        updated("active [0-1], cleanup [4]", "active [0-1], passive [2], cleanup [4]"),
    ]
    found = of_messages(tmp_path, *messages)
    assert not found.wrong
    assert found.found.notes == ["1 indexes were rolled back, reset or stopped, and followed anew"]
    names = {entity.rpartition("/")[2] for entity, _, _ in found.recorded("PartitionStates")}
    assert names == {"0", "1", "0#2", "1#2", "2#2", "4#2"}


@pytest.mark.parametrize(
    ("to", "after", "wrong"),
    [
        ("[{0,5}]", "[{0,5},{1,3}]", []),
        ("[{0,5}]", "[{0,6},{1,4}]", ["0"]),  # it keeps what was lost
        ("[{0,5}]", "[{0,2},{1,5}]", ["1"]),  # it gets back what it had to leave
    ],
)
def test_a_rollback_only_goes_back(to: str, after: str, wrong: list[str], tmp_path: Path) -> None:
    rollback = (
        f"Rollback of set view {GROUP} to {to}\nindexable partitions before:   [{{0,9}},{{1,4}}]\n"
        f"indexable partitions after:    {after}\nunindexable partitions before: []\n"
        "unindexable partitions after:  []\n"
    )
    messages = [updated("active [0]", "active [0-1]"), rollback]
    found = wrong_records(of_messages(tmp_path, *messages), messages)
    assert found == [(partition, 1) for partition in wrong]


def test_what_is_unindexable_is_not_indexed(tmp_path: Path) -> None:
    begin = [updated("", "active [0]"), marked("[]", "[{0,5}]")]
    states = updated("active [0]", "active [0], passive [1]")
    stays, goes_on = (
        states.replace("unindexable partitions:      []", f"unindexable partitions: [{{0,{seq}}}]")
        for seq in (5, 6)
    )
    assert not of_messages(tmp_path, *begin, stays).wrong
    messages = [*begin, goes_on]
    assert wrong_records(of_messages(tmp_path, *messages), messages) == [("0", 2)]


def test_replicas_become_active_when_the_main_index_has_caught_up(tmp_path: Path) -> None:
    transferred = (
        f"Set view {GROUP}, completed transferral of replica partitions [4]\n"
        "New group of replica partitions to transfer is []\n"
    )
    messages = [updated("active [0]", "active [0], passive [4]"), transferred]
    assert not of_messages(tmp_path, *messages).wrong
    early = [updated("active [0], passive [4]", "active [0], cleanup [4]"), transferred]
    assert wrong_records(of_messages(tmp_path, *early), early) == [("4", 1)]


def replicas(
    text: str, before: str, after: str, transfer: tuple[str, str], kind: str = "main"
) -> str:
    """A record in which partitions are replicas, or on transfer."""
    old, new = transfer
    return (
        text.replace("replica partitions before:    []", f"replica partitions before:   {before}")
        .replace("replica partitions after:    []", f"replica partitions after:    {after}")
        .replace(
            "pending transition before:",
            f"replicas on transfer before: {old}\npending transition before:",
        )
        .replace(
            "pending transition before:",
            f"replicas on transfer after:  {new}\npending transition before:",
        )
        .replace(", main (prod) group", f", {kind} (prod) group")
    )


ADDED = f"Set view {GROUP}, defined new replica partitions: [4]\nNew full set of replica partitions is: [4]\n"
FAILED_OVER = [
    replicas(updated("", "passive [4]"), "[]", "[]", ("[]", "[]"), "replica"),
    ADDED,
    replicas(updated("active [0]", "active [0], passive [4]"), "[4]", "[4]", ("[]", "[4]")),
    replicas(updated("passive [4]", "active [4]"), "[]", "[]", ("[]", "[]"), "replica"),
]
TRANSFERRED = (
    f"Set view {GROUP}, completed transferral of replica partitions [4]\n"
    "New group of replica partitions to transfer is []\n"
)
CLEANED_UP = replicas(updated("active [4]", "cleanup [4]"), "[]", "[]", ("[]", "[]"), "replica")


def test_a_replica_is_transferred_to_the_main_index(tmp_path: Path) -> None:
    found = of_messages(tmp_path, *FAILED_OVER, TRANSFERRED, CLEANED_UP)
    assert not found.wrong
    actions = [action for _, action, _ in found.recorded("PartitionReplicas")]
    assert actions == [None, "start_transfer", "activate_replica", "finish_transfer"]


def test_what_is_on_transfer_is_not_cleaned_up_in_the_replica_index(tmp_path: Path) -> None:
    early = of_messages(tmp_path, *FAILED_OVER, CLEANED_UP, TRANSFERRED)
    assert [wrong[0] for wrong in early.wrong] == ["PartitionReplicas"]


def test_a_transfer_ends_when_the_partition_is_not_to_be_active_any_more(tmp_path: Path) -> None:
    after = "active [0], passive [4]"
    passive = replicas(updated(after, after), "[4]", "[4]", ("[4]", "[]"))
    cleanup = replicas(updated(after, "active [0], cleanup [4]"), "[4]", "[]", ("[4]", "[]"))
    for end in (passive, cleanup):
        assert not of_messages(tmp_path, *FAILED_OVER, end).wrong
    unlogged = replicas(updated(after, "active [0-1], passive [4]"), "[4]", "[4]", ("[]", "[]"))
    assert of_messages(tmp_path, *FAILED_OVER, unlogged).wrong
    initiated = replicas(updated("active [0]", "active [0]"), "[4]", "[4]", ("[]", "[4]"))
    started = replicas(updated("active [0]", after), "[4]", "[4]", ("[4]", "[4]"))
    in_steps = [*FAILED_OVER[:2], initiated, FAILED_OVER[3], started]
    found = of_messages(tmp_path, *in_steps, cleanup)
    assert not found.wrong
    actions = [action for _, action, _ in found.recorded("PartitionReplicas")]
    assert actions[1:] == ["fail_over", "activate_replica", "start_transfer", "set_cleanup"]
    removed = f"Set view {GROUP}, marked the following replica partitions for removal: [4]"
    assert not of_messages(tmp_path, ADDED, removed, ADDED).wrong


def test_other_lines_are_counted_and_broken_records_refused(tmp_path: Path) -> None:
    good = record(1, updated("active [0]", "active [0-1]"))
    cut = record(2, "\n".join(updated("active [0]", "active [0-1]").split("\n")[:4]))
    bad_list = record(3, updated("active [0-x]", "active [0-1]"))
    debug = record(4, f"Set view {GROUP}, partition states updated\npartition versions before:\n[]")
    not_text = record(5, "Cleanup finished for set view `ü").encode()[:-2] + b"\n"
    other = record(6, "Starting updater for set view `default`, main (prod) group `_design/d`")
    naked = f"Set view {GROUP}, partition states updated\n"
    data = f"{good}{cut}{bad_list}{debug}".encode() + not_text + other.encode()
    path = tmp_path / "couchdb.log"
    path.write_bytes(data + b"\n" + naked.encode() + b"x" * (1 << 21) + b"\n")
    found = evaluated(FORM, [path])
    (tally,) = found.tallies
    assert tally.lines == data.count(b"\n") + 3
    assert tally.blank == 1
    assert [reason[:24] for _, reason in tally.reasons] == [
        "the record does not say ",
        "not a list of partitions",
        "not UTF-8 text at byte 1",
        "a line about partitions ",
        "the line is too long",
    ]
    assert len(found.recorded("PartitionStates")) == 3


def test_a_record_goes_on_in_the_next_piece_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SAMPLES / "couchdb-2017.log"
    whole = evaluated(FORM, [path])
    monkeypatch.setattr(text_lines, "_CHUNK", 700)
    pieces = evaluated(FORM, [path])
    assert pieces.found.events == whole.found.events
    packed = tmp_path / "couchdb.log.1.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert evaluated(FORM, [packed]).found.events == whole.found.events


def test_rotated_files_are_put_in_order(tmp_path: Path) -> None:
    newer = record(9, updated("active [0-1]", "active [0-2]"))
    older = record(1, updated("active [0]", "active [0-1]"))
    assert not of_text(tmp_path, newer, older).wrong


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    for text in ("hello\n" * 10, ""):
        path.write_text(text)
        with pytest.raises(InputError, match="does not look like a Couchbase log"):
            couchbase_log.check(path)


@pytest.mark.spark
def test_the_samples_are_validated(spark: SparkSession) -> None:
    from stagewright.commands.validation.traced_machines import resolver
    from stagewright.spec.trace import TraceVerdict
    from stagewright.traces.validate import validate

    report = validate([SAMPLES], resolver(None), spark=spark)
    assert report.verdicts == {**dict.fromkeys(TraceVerdict, 0), TraceVerdict.OK: 16}
