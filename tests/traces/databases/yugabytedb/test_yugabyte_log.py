"""What a YugabyteDB log says of indexes and their backfill: years, threads, leaders, jobs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.traces.databases.yugabytedb.yugabyte_texts import (
    INDEX,
    LOST,
    OTHER,
    SENT,
    TABLE,
    TABLETS,
    all_done,
    begin_scan,
    chunk,
    done,
    failed,
    launched,
    line,
    safe_time,
    tablet_done,
    tablet_failed,
    updating,
)
from tests.traces.readers.evaluated_log import EvaluatedLog, evaluated

from stagewright.spec.errors import InputError
from stagewright.traces.databases.yugabytedb import yugabyte_log
from stagewright.traces.databases.yugabytedb.yugabyte_line import LogRecord, Said, parse_log_line
from stagewright.traces.readers import formats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORM = "yugabyte-log"
SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "yugabyte"
OF_POSTGRES = "000033cf00003000800000000000400d"


def of_lines(tmp_path: Path, *files: list[str], profile: str = "") -> EvaluatedLog:
    paths = []
    for number, texts in enumerate(files):
        paths.append(tmp_path / f"master{number}.log")
        paths[-1].write_text("\n".join(texts) + "\n")
    return evaluated(FORM, paths, profile)


def of_messages(tmp_path: Path, *messages: str) -> EvaluatedLog:
    return of_lines(tmp_path, [line(second, message) for second, message in enumerate(messages)])


def permissions(found: EvaluatedLog) -> list[object]:
    return [
        seen["permission"]
        for _, _, seen in found.recorded("IndexPermissions")
        if "permission" in seen
    ]


def test_a_job_that_two_leaders_do_is_ok_over_the_end_of_the_year() -> None:
    found = evaluated(FORM, sorted(SAMPLES.iterdir(), reverse=True))
    assert not found.wrong
    assert not found.reasons
    events = found.found.events
    assert {event.machine for _, event in events} == {
        "IndexPermissions",
        "BackfillJob",
        "BackfillTablet",
        "LoggedReadTime",
    }
    assert {event.node for _, event in events} == {"m1", "m2"}
    assert permissions(found)[-1] == "read_write_and_delete"
    assert found.found.notes == [
        "1 times a chunk was tried again",
        "1 writes of permissions were overtaken by another version of the table",
    ]


@pytest.mark.parametrize(
    "prefix",
    [
        "I0910 18:03:46.441303 17639 backfill_index.cc:1318] ",
        "I0910 18:03:46.441303 17639 backfill_index.cc:1318] vlog0: ",
        " W0910 18:03:46.441303     9 backfill_index.cc:1] ",
        "logs/yb-master.INFO:I0910 18:03:46.441303 17639 backfill_index.cc:1318] ",
        "yb-master-0 yb-master I0910 18:03:46.441303    17 ../../src/yb/master/backfill_index.cc:9] ",
    ],
)
def test_every_style_of_prefix_is_read(prefix: str) -> None:
    record = parse_log_line(prefix + chunk("47"), 3, "f")
    assert isinstance(record, LogRecord)
    assert (record.said, record.key, record.tablet, record.names) == (
        Said.CHUNK,
        "47",
        TABLETS[0],
        ("by_day",),
    )
    assert record.prefix.time == "09-10 18:03:46.441303"


def test_lines_of_other_matters_are_counted_and_broken_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "master.log"
    texts = [
        line(1, updating(INDEX, 2)).encode(),
        b"",
        line(2, "NumCPUs determined to be: 4").encode(),
        b"    @     0x7f59bcac911f  (unknown)",
        updating(INDEX, 4).encode(),
        line(3, updating(INDEX, 5)).encode(),
        line(4, "Started BackfillChunk : nothing").encode(),
        line(5, chunk("")).encode()[:-3] + b"\xe2\x82",
        b"x" * (1 << 21),
        line(6, SENT).encode(),
    ]
    path.write_bytes(b"\n".join(texts))
    found = evaluated(FORM, [path])
    (tally,) = found.tallies
    assert (tally.lines, tally.blank, tally.unparsed) == (10, 1, 5)
    assert [number for number, _ in tally.reasons] == [5, 6, 7, 8, 9]
    assert permissions(found) == ["write_and_delete"]


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    path.write_text("hello\n" * 10)
    with pytest.raises(InputError, match="does not look like a YugabyteDB log"):
        yugabyte_log.check(path)
    path.write_text("")
    with pytest.raises(InputError, match="does not look like a YugabyteDB log"):
        yugabyte_log.check(path)


def test_its_files_are_known_by_what_is_in_them_and_rotated_ones_are_found() -> None:
    begin = line(1, "NumCPUs determined to be: 4").encode()
    form = formats.form_of("yb-master.INFO", begin)
    assert form is not None
    assert form.name == FORM
    assert formats.is_of_traces("yb-master.h1.yugabyte.log.INFO.20210910-180346.1234")
    assert not formats.is_of_traces("notes.txt")


def test_only_what_the_same_thread_says_was_sent_is_written(tmp_path: Path) -> None:
    texts = [
        line(1, updating(INDEX, 2), thread=1),
        line(2, updating(OTHER, 2), thread=2),
        line(3, LOST, thread=1, level="W"),
        line(4, SENT, thread=2),
    ]
    found = of_lines(tmp_path, texts)
    assert [entity for entity, _, _ in found.recorded("IndexPermissions")] == [OTHER]
    assert found.found.notes == [
        "1 writes of permissions were overtaken by another version of the table"
    ]


def test_permissions_go_forward_one_by_one(tmp_path: Path) -> None:
    ok = [updating(INDEX, 2), SENT, updating(INDEX, 4), SENT]
    assert not of_messages(tmp_path, *ok).wrong
    back = of_messages(tmp_path, *ok, updating(INDEX, 2), SENT)
    assert back.wrong == [("IndexPermissions", INDEX, 0, 5)]
    removal = [updating(INDEX, 10), SENT, updating(INDEX, 12), SENT]
    assert not of_messages(tmp_path, *ok, *removal).wrong
    skipped = of_messages(tmp_path, *ok, *removal[2:], *removal[:2])
    assert [wrong[3] for wrong in skipped.wrong] == [5]


def test_an_index_of_postgres_has_the_era_that_its_job_shows(tmp_path: Path) -> None:
    now = of_messages(tmp_path, updating(OF_POSTGRES, 4), SENT, launched(OF_POSTGRES))
    early = of_messages(tmp_path, launched(OF_POSTGRES, permission="WRITE_AND_DELETE"))
    profiles = [
        {e.profile for _, e in f.found.events if e.machine == "IndexPermissions"}
        for f in (now, early)
    ]
    assert profiles == [{"ysql"}, {"ysql-no-do-backfill"}]
    assert not now.wrong
    assert not early.wrong
    with_ycql = of_messages(tmp_path, updating(INDEX, 2), SENT)
    assert with_ycql.found.events[0][1].profile == ""


@pytest.mark.parametrize(
    ("asked", "profiles"),
    [
        ("", {"IndexPermissions": "ysql", "BackfillJob": "", "BackfillTablet": ""}),
        ("ysql-early", {"IndexPermissions": "ysql-early", "BackfillJob": "", "BackfillTablet": ""}),
        (
            "yugabyte-2.x",
            {"IndexPermissions": "ysql", "BackfillJob": "yugabyte-2.x", "BackfillTablet": ""},
        ),
    ],
)
def test_a_profile_goes_to_the_machine_that_has_it(
    asked: str, profiles: dict[str, str], tmp_path: Path
) -> None:
    texts = [line(1, launched(OF_POSTGRES)), line(2, safe_time()), line(3, chunk(""))]
    found = of_lines(tmp_path, texts, profile=asked)
    assert not found.wrong
    found_profiles = {event.machine: event.profile for _, event in found.found.events}
    assert found_profiles == {**profiles, "LoggedReadTime": ""}


def test_an_index_whose_job_failed_is_not_published(tmp_path: Path) -> None:
    begin = [launched(INDEX, OTHER), safe_time("by_day, by_id"), chunk("", names="by_id, by_day")]
    fails = failed(OTHER, "by_id, by_day")
    end = [chunk("", names="by_day"), tablet_done(), all_done("by_day, by_id")]
    good = of_messages(tmp_path, *begin, tablet_failed(), fails, *end, done((INDEX, 6), (OTHER, 8)))
    assert not good.wrong
    bad = of_messages(tmp_path, *begin, tablet_failed(), fails, *end, done((INDEX, 6), (OTHER, 6)))
    assert [wrong[:2] for wrong in bad.wrong] == [
        ("BackfillJob", OTHER),
        ("IndexPermissions", OTHER),
    ]


def test_each_tablet_tells_that_an_index_has_failed_and_its_removal_may_go_on_at_once(
    tmp_path: Path,
) -> None:
    begin = [launched(INDEX), safe_time(), chunk(""), chunk("", 1), tablet_failed(), failed(INDEX)]
    again = [tablet_failed(1), failed(INDEX).replace(f"[{INDEX}]", "[]")]
    goes_on = [updating(INDEX, 10), SENT, done((INDEX, 8))]
    found = of_messages(tmp_path, *begin, *again, *goes_on)
    assert not found.wrong
    assert permissions(found)[-1] == "delete_only_while_removing"


def test_a_job_without_a_read_time_fails(tmp_path: Path) -> None:
    no_time = safe_time().replace(
        "Completed fetching SafeTime for the table",
        "Failed backfill. Could not compute safe time for",
    )
    found = of_messages(tmp_path, launched(INDEX), no_time, done((INDEX, 8)))
    assert not found.wrong
    assert ("IndexPermissions", INDEX, 0, 3) in of_messages(
        tmp_path, launched(INDEX), no_time, done((INDEX, 6))
    ).wrong


def test_a_job_does_not_end_before_its_tablets(tmp_path: Path) -> None:
    begin = [launched(INDEX), safe_time(), chunk("")]
    assert not of_messages(tmp_path, *begin, tablet_done(), all_done(), done((INDEX, 6))).wrong
    early = of_messages(tmp_path, *begin, done((INDEX, 6)))
    assert [wrong[0] for wrong in early.wrong] == ["BackfillJob"]


def test_a_second_read_time_after_the_first_chunk_is_wrong(tmp_path: Path) -> None:
    begin = [launched(INDEX), safe_time(), chunk("")]
    again = of_messages(tmp_path, *begin, launched(INDEX), safe_time(), chunk("", 1))
    assert ("BackfillJob", INDEX, 0, 5) in again.wrong


def test_a_read_time_that_may_not_be_written_is_left_open(tmp_path: Path) -> None:
    texts = [launched(INDEX), safe_time(), launched(INDEX), safe_time(), chunk(""), tablet_done()]
    found = of_messages(tmp_path, *texts)
    assert not found.wrong
    assert found.found.notes == ["1 indexes were left open by a change of leader"]
    assert {entity for entity, _, _ in found.recorded("BackfillJob")} == {INDEX, f"{INDEX}#1"}


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        (["", "47", "48"], None),
        (["", "47", "4621"], 4),  # back
        (["", "47", "47"], 4),  # no progress, and nothing has failed
        (["", "47", ""], 4),
        (["47"], 2),  # the first one
    ],
)
def test_chunks_go_forward_from_the_start_of_the_tablet(
    keys: list[str], wrong: int | None, tmp_path: Path
) -> None:
    found = of_messages(tmp_path, launched(INDEX), safe_time(), *map(chunk, keys))
    lines = [w[3] - 1 for w in found.wrong if w[0] == "BackfillTablet"]
    assert lines == ([] if wrong is None else [wrong])


def test_a_new_leader_goes_on_where_the_old_one_was(tmp_path: Path) -> None:
    old = [line(1, launched(INDEX)), line(2, safe_time()), line(3, chunk("")), line(4, chunk("47"))]
    late = [line(9, all_done())]
    goes_on = [
        line(5, launched(INDEX)),
        line(6, chunk("47")),
        line(7, tablet_done()),
        line(8, chunk("", 1)),
    ]
    found = of_lines(tmp_path, old + late, goes_on)
    assert not found.wrong
    assert found.found.notes == ["1 lines are of a node that had lost the job by then"]
    anew = [line(5, launched(INDEX)), line(6, chunk(""))]
    assert of_lines(tmp_path, old, anew).wrong == [("BackfillTablet", f"{TABLETS[0]}@job1", 1, 2)]
    after_all = [*goes_on, line(9, chunk("48"))]
    assert of_lines(tmp_path, old, after_all).wrong == [
        ("BackfillTablet", f"{TABLETS[0]}@job1", 1, 5)
    ]


def test_a_job_that_began_before_the_log_is_followed_by_its_tablets(tmp_path: Path) -> None:
    texts = [chunk("47"), chunk("48"), chunk("", 1), tablet_done(), all_done(), done((INDEX, 6))]
    found = of_messages(tmp_path, *texts)
    assert not found.wrong
    assert not found.found.notes
    assert permissions(found) == ["read_write_and_delete"]
    assert not found.recorded("BackfillJob")
    back = of_messages(tmp_path, *texts[:2], chunk("47"))
    assert back.wrong == [("BackfillTablet", f"{TABLETS[0]}@job1", 0, 3)]


def test_jobs_side_by_side_are_told_apart_by_the_names_of_their_indexes(tmp_path: Path) -> None:
    table = "11112222333344445555666677778888"
    texts = [
        launched(INDEX),
        launched(OTHER).replace(TABLE, table),
        safe_time("by_name").replace(TABLE, table),
        safe_time("by_day"),
        chunk("", 0, "by_day"),
        chunk("", 1, "by_name"),
        tablet_done(1),
        all_done("by_name"),
        chunk("47", 0, "by_day"),
        done((OTHER, 6)).replace(TABLE, table),
        tablet_done(0),
        all_done("by_day"),
        done((INDEX, 6)),
    ]
    found = of_messages(tmp_path, *texts)
    assert not found.wrong
    assert not found.found.notes
    of_jobs = {
        entity: [a for e, a, _ in found.recorded("BackfillJob") if e == entity]
        for entity in (INDEX, OTHER)
    }
    assert of_jobs[INDEX] == of_jobs[OTHER] == [None, "choose_read_time", "find_all_done", None]


def test_an_index_that_was_dropped_while_its_job_ended_is_left_open(tmp_path: Path) -> None:
    begin = [launched(INDEX), safe_time(), chunk(""), tablet_done()]
    drop = f"MarkIndexInfoFromTableForDeletion table {TABLE} index {INDEX} multi_stage=1"
    found = of_messages(tmp_path, *begin, all_done(), drop, done((INDEX, 6)))
    assert not found.wrong
    assert found.found.notes == ["1 indexes were dropped while their job ended"]
    logged = [updating(INDEX, 4), SENT, *begin]
    before = of_messages(tmp_path, *logged, drop, all_done(), done((INDEX, 6)))
    assert ("IndexPermissions", INDEX, 0, 9) in before.wrong
    past = (
        f"Index {INDEX} on table orders [id={TABLE}] has index_permission "
        "INDEX_PERM_WRITE_AND_DELETE_WHILE_REMOVING already past INDEX_PERM_READ_WRITE_AND_DELETE. "
        "Will not update it"
    )
    assert not of_messages(tmp_path, *begin, drop, all_done(), past, done((INDEX, 6))).wrong


def test_a_year_ends_within_a_file_and_between_files_without_a_head(tmp_path: Path) -> None:
    december = [line(1, updating(INDEX, 2), date="1231"), line(2, SENT, date="1231")]
    january = [line(1, updating(INDEX, 4), date="0101"), line(2, SENT, date="0101")]
    for files in ([december + january], [january, december], [december, january]):
        assert permissions(of_lines(tmp_path, *files)) == ["write_and_delete", "do_backfill"]


def test_what_glog_writes_to_two_files_counts_once(tmp_path: Path) -> None:
    head = ["Log file created at: 2021/09/10 18:00:00", "Running on machine: m1"]
    warning = line(5, failed(INDEX), level="E")
    texts = [line(1, launched(INDEX)), line(2, safe_time()), line(3, chunk("")), warning]
    found = of_lines(tmp_path, head + texts, [*head, warning])
    assert (
        len([s for _, _, s in found.recorded("BackfillJob") if s == {"job[index0]": "failed"}]) == 1
    )


@pytest.mark.spark
def test_the_sample_is_validated(spark: SparkSession) -> None:
    from stagewright.commands.validation.traced_machines import resolver
    from stagewright.spec.trace import TraceVerdict
    from stagewright.traces.validate import validate

    report = validate([SAMPLES], resolver(None), spark=spark)
    assert report.verdicts == {**dict.fromkeys(TraceVerdict, 0), TraceVerdict.OK: 5}
    assert report.exit_code == 0


def test_a_permission_that_the_log_never_names_is_noted(tmp_path: Path) -> None:
    logged = [
        line(1, updating(INDEX, 2)),
        line(2, SENT),
        line(3, updating(INDEX, 6)),
        line(4, SENT),
    ]
    found = of_lines(tmp_path, logged)
    assert [n for n in found.found.notes if n.startswith("1 indexes became readable, and no line")]
    named = [line(5, updating(OTHER, 2)), line(6, SENT), line(7, updating(OTHER, 4)), line(8, SENT)]
    assert not [n for n in of_lines(tmp_path, logged + named).found.notes if "became readable" in n]


def test_a_line_in_no_known_form_is_reported_with_the_form_it_should_have() -> None:
    refusal = parse_log_line(line(1, "Started BackfillChunk : nothing"), 1, "a.log")
    assert isinstance(refusal, str)
    assert refusal.endswith("known: `… Backfilling indexes { NAMES } for tablet ID from key 'KEY'`")
    bare = updating(INDEX, 2).replace(f"orders [id={TABLE}]", TABLE)
    refusal = parse_log_line(line(1, bare), 1, "a.log")
    assert isinstance(refusal, str)
    assert "on NAME [id=ID]`" in refusal


CHOSEN = 1640995194000000  # in `safe_time()`


def test_chunks_are_read_at_the_time_that_the_master_has_chosen(tmp_path: Path) -> None:
    master = [line(1, launched(INDEX)), line(2, safe_time()), line(3, chunk(""))]
    server = [line(1, begin_scan(CHOSEN, INDEX)), line(2, begin_scan(CHOSEN, INDEX, tablet=1))]
    found = of_lines(tmp_path, master, server)
    assert not found.wrong
    assert [a for _, a, _ in found.recorded("LoggedReadTime")] == [
        None,
        "choose",
        "scan",
        "scan",
    ]


def test_a_chunk_that_is_read_at_another_time_is_a_violation(tmp_path: Path) -> None:
    master = [line(1, launched(INDEX)), line(2, safe_time()), line(3, chunk(""))]
    server = [line(1, begin_scan(CHOSEN, INDEX)), line(2, begin_scan(CHOSEN + 1, INDEX, tablet=1))]
    found = of_lines(tmp_path, master, server)
    assert found.wrong == [("LoggedReadTime", "job1", 1, 2)]


def test_a_chunk_of_no_job_that_is_reported_is_noted(tmp_path: Path) -> None:
    master = [line(1, launched(INDEX)), line(2, safe_time()), line(3, chunk(""))]
    found = of_lines(tmp_path, master, [line(1, begin_scan(5, OTHER))])
    assert not found.wrong
    assert any("are of no job whose read time" in note for note in found.found.notes)
