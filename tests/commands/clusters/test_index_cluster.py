"""`stagewright cluster` and `stagewright shell` of an indexed table: what one types, what is printed, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.commands import run_command_line
from stagewright.commands.clusters.index_shell import build_as_text
from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.processes.progress import shown_build
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.indexes.schema import row_key, tablet_of
from stagewright.machines.yugabytedb.indexes.index_states import Status

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command about the cluster of the test: exit code, output, errors."""

    def run(*words: str) -> tuple[int, str, str]:
        code = run_command_line([*words, "--dir", str(tmp_path / "c")])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_an_index_is_built_by_hand(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("cluster", "start", "--indexes", "--nodes", "2")
    try:
        assert (code, out) == (0, "n1, n2, m1, m2 started; the table is served\n")
        indexes_are_built_and_read(run)
        mistakes_are_refused(run)
        code, out, _ = run("cluster", "status", "--json")
        assert (code, json.loads(out)["well"]) == (0, True)
        assert run("cluster", "kill", "n1")[0] == 0
        code, out, _ = run("cluster", "status")
        assert code == 1
        assert "n1\tis dead" in out
        _, out, _ = run("cluster", "trace", "--out", str(tmp_path / "traces"))
        for line in out.splitlines():
            assert run_command_line(line.split()[1:]) == 0, line
        assert run("cluster", "start")[0] == 0
    finally:
        code, out, _ = run("cluster", "stop")
    assert (code, out) == (0, "n1, n2, m1, m2 stopped\n")


def indexes_are_built_and_read(run: Run) -> None:
    code, out, _ = run("shell", "--json", "-c", "put 1 v=5 w=2; put 2 v=6 w=2; get 1; get 3")
    said = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert said[2:] == [{"key": 1, "row": {"v": 5, "w": 2}}, {"key": 3, "row": None}]
    before = said[1]["time"]
    create = "create unique index i on v; await i; read i 5; create unique index j on w; await j"
    code, out, err = run("shell", "-c", create)
    created, awaited, found, second, last = out.splitlines()
    assert (code, "j is not built: rows 1 and 2 both have w = 2" in err) == (1, True)
    assert created.startswith("unique index i on v: ")  # it may be built already, on a slow machine
    assert second.startswith("unique index j on w: ")
    assert (awaited, found) == ("unique index i on v: SUCCESS", "1")
    assert last.startswith("unique index j on w: FAILED, rows 1 and 2 both have w = 2")
    code, out, err = run("shell", "-c", "put 3 v=5")
    assert (code, out) == (1, "")
    assert "3 is not written: duplicate" in err
    code, out, _ = run("shell", "-c", f"delete 1; read i 5; get 1 at {before}; scan at {before}")
    assert code == 0
    rows = sorted(["1\tv=5 w=2", "2\tv=6 w=2"], key=lambda r: tablet_of(row_key(int(r[0])), 3))
    assert out.splitlines()[1:] == ["no row", "v=5 w=2", *rows, "2 rows"]
    deferred = "create deferred index d on w; backfill; await d; drop index d"
    code, out, _ = run("shell", "-c", deferred)
    assert out.splitlines()[0] == "index d on w: IN-PROGRESS, waits for `backfill`"
    assert out.splitlines()[2] == "index d on w: SUCCESS"
    assert out.splitlines()[3] in (
        "index d on w: SUCCESS, dropped",
        "index d on w: SUCCESS, deleted",
    )
    with_another = "create deferred index e on w; create index f on v; await f; await e"
    code, out, _ = run("shell", "-c", with_another)
    assert out.splitlines()[2:] == ["index f on v: SUCCESS", "index e on w: SUCCESS"]


def mistakes_are_refused(run: Run) -> None:
    for words, wrong in (
        ("put a v=1", "'a' is not a whole number"),
        ("put 1 v", "'v' assigns nothing"),
        ("drop index none", "there is no index none"),
        ("await none", "there is no index none"),
        ("read none 1", "there is no index none"),
        ("read d 1 at 1", "d was dropped"),
        ("read i 5 at 1", "i has nothing from before"),
        ("split none 0", "there is no index none"),
        ("split 99", "there is no tablet 99"),
        ("tablets none", "there is no index none"),
        ("put 1 z=3", "the table has no column z"),
        ("create index i of v", "write it as: create [unique] [deferred] index NAME on COLUMN"),
    ):
        code, _, err = run("shell", "-c", words)
        assert code == 2
        assert wrong in err
    assert run("shell", "-c", "read j 1")[0] == 1  # it has failed
    for action, wrong in (
        (["add"], "a cluster with an indexed table has no `add`"),
        (["start", "--nodes", "3"], "--nodes 3: the cluster in"),
        (["stop", "x9"], "there is no process x9"),
    ):
        code, _, err = run("cluster", *action)
        assert code == 2
        assert wrong in err


def test_what_only_one_kind_of_cluster_has_is_refused_by_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--dir", str(tmp_path / "c")]
    for words, wrong in (
        (["start", "--tablets", "4"], "a cluster of the database has no --tablets"),
        (["trace", "--out", str(tmp_path)], "there is no cluster in"),
        (["start", "--indexes", "--cdc"], "has no --cdc"),
        (["start", "--builder-share", "20"], "a cluster of the database has no --builder-share"),
    ):
        assert run_command_line(["cluster", *words, *where]) == 2
        assert wrong in capsys.readouterr().err


def test_the_share_of_builders_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexSupervisor, "start", lambda _: [])
    layout, where = IndexLayout(tmp_path / "c"), ["--dir", str(tmp_path / "c")]
    assert run_command_line(["cluster", "start", "--indexes", "--builder-share", "20", *where]) == 0
    assert layout.file().settings.builder_share == 20
    for share, code in (("20", 0), ("30", 2), ("0", 2), ("101", 2)):
        assert run_command_line(["cluster", "start", "--builder-share", share, *where]) == code


def test_a_build_is_shown_with_its_progress_and_an_estimate() -> None:
    build = Build("i", Status.in_progress, column="v", rows=25, expected=100, elapsed=3_000)
    assert build_as_text(shown_build(build)) == "index i on v: IN-PROGRESS, 25 %, about 9.0 s to go"
    assert shown_build(replace(build, rows=0))["seconds left"] is None
    assert shown_build(replace(build, rows=120))["done"] == 1.0
    dropped = replace(build, status=Status.failed, error="the index was dropped", dropped=True)
    assert build_as_text(shown_build(dropped)) == "index i on v: DROPPED"
    built = replace(build, status=Status.success, rows=0, expected=0)  # its job is over
    assert shown_build(built)["rows read"] is None
    failed = replace(build, status=Status.failed, error="rows 1 and 2 both have v = 5", gone=True)
    assert (
        build_as_text(shown_build(failed))
        == "index i on v: FAILED, rows 1 and 2 both have v = 5, deleted"
    )
