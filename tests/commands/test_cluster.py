"""`stagewright cluster` and `stagewright shell`: what one types, what is printed, exit codes."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.commands import run_command_line
from stagewright.commands.shell import split_commands
from stagewright.impl.processes.layout import REAL, Settings
from stagewright.live.tail import CLOCKS
from stagewright.spec.errors import InputError


@pytest.mark.long
def test_a_cluster_is_started_written_to_read_and_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--dir", str(tmp_path / "c")]

    def run(*words: str) -> tuple[int, str, str]:
        code = run_command_line([words[0], *words[1:], *where])
        said = capsys.readouterr()
        return code, said.out, said.err

    code, out, err = run("cluster", "start", "--nodes", "1")
    try:
        assert (code, out) == (0, "n1 started; all nodes serve\n")
        assert err.startswith("n1 starts\n")  # on a slow machine also what is waited for
        code, out, _ = run("shell", "-c", "put a 1; get a; put 'b c' 'x; y'; delete a; get a; scan")
        assert code == 0
        assert out == "done\n1\ndone\ndone\na has no row\nb c\tx; y\n1 row\n"
        monkeypatch.setattr("sys.stdin", io.StringIO("get 'b c'\nconsistency one\n"))
        code, out, _ = run("shell", "--json")
        assert [json.loads(line) for line in out.splitlines()] == [
            {"get": "b c", "value": "x; y"},
            {"consistency": "one"},
        ]
        monkeypatch.setattr("sys.stdin", io.StringIO("get a\n\ngot a; get a\n"))
        assert "line 3: no such command: got a" in run("shell")[2]
        code, out, err = run("shell", "-c", "put a 2; got a; put a 3")
        assert (code, out) == (2, "done\n")
        assert "no such command: got a" in err
        assert "write it as: put KEY VALUE" in run("shell", "-c", "put t a 2")[2]
        assert run("shell", "-c", "get a")[1] == "2\n"  # a mistake ends a list of commands
        create = "create table t tablets 2 rf 1; put a 9; get a; tables; tablets; use rows; get a"
        code, out, _ = run("shell", "-c", create)
        tables = "ks.rows, 1 replica\nks.t, 1 replica, 2 tablets\n"
        assert out == f"done\ndone\n9\n{tables}0\tn1:0\n1\tn1:1\ndone\n2\n"
        code, out, err = run(
            "shell", "--json", "-c", "tablets; use t; tablets; create table t rf 1"
        )
        assert json.loads(out.splitlines()[1])["replicas"] == [["n1", 0]]
        assert code == 1
        assert "there is a table ks.t with 2 tablets" in err
        assert "there is no table ks.u" in run("shell", "-c", "use u")[2]
        keys_and_values_are_bytes_and_may_be_empty(run)
        assert "ks.t with 1 replica of 2 tablets" in run("cluster", "status")[1]
        code, out, _ = run("cluster", "status", "--json")
        status = json.loads(out)
        assert (code, status["well"], status["said"]["coordinator"]) == (0, True, "n1")
        code, _, err = run("shell", "-c", "balancing off; move t 0 from n1 to n9")
        assert (code, "n9 is no node that stays" in err) == (1, True)
        assert "'n1:' is no place" in run("shell", "-c", "move t 0 from n1: to n1")[2]
        code, _, err = run("cluster", "abort", "n1")
        assert (code, "nothing is asked of n1 that could be withdrawn" in err) == (1, True)
        assert run("cluster", "cleanup")[:2] == (0, "nodes clean up\n")
        what_is_not_there_is_bad_input(run)
        what_cannot_change_is_refused(run)
        code, _, err = run("cluster", "start", "--nodes", "3")
        assert code == 2
        assert "has 1 node, not 3" in err
        code, _, err = run("cluster", "decommission", "n1")
        assert code == 1
        assert "the cluster refuses: leave n1" in err or "gave up" in err
        assert run("cluster", "kill", "n1")[0] == 0
        code, out, _ = run("cluster", "status")
        assert code == 1
        assert "does not run" in out
        assert "no node answers" in out
    finally:
        code, out, _ = run("cluster", "stop")
    assert (code, out) == (0, "no node stopped\n")


def keys_and_values_are_bytes_and_may_be_empty(run: Callable[..., tuple[int, str, str]]) -> None:
    words = "use t; put '' e; get ''; put e ''; get e; put \udcff ';'; get \udcff"
    assert run("shell", "-c", words)[:2] == (0, "done\ndone\ne\ndone\n\ndone\n;\n")
    code, out, _ = run("shell", "--json", "-c", "use t; get \udcff; delete ''; delete e; get ''")
    assert code == 0
    said = [json.loads(line) for line in out.splitlines()]
    assert said[1] == {"get": "\\xff", "value": ";"}
    assert said[4] == {"get": "", "value": None}


def what_is_not_there_is_bad_input(run: Callable[..., tuple[int, str, str]]) -> None:
    for words, wrong in (
        ("split none", "there is no table ks.none"),
        ("repair rows", "ks.rows has no tablets: it is on the token ring"),
        ("alter none rf 1", "there is no table ks.none"),
        ("move t 7 from n1 to n1", "ks.t has no tablet 7"),
        ("create view v on none by value", "there is no table ks.none"),
    ):
        code, _, err = run("shell", "-c", words)
        assert (code, wrong in err) == (2, True), (words, err)


def what_cannot_change_is_refused(run: Callable[..., tuple[int, str, str]]) -> None:
    assert "there is no node n9" in run("cluster", "stop", "n9")[2]
    for flags, says in (
        ("--cdc", "there is a table ks.rows with no tablets, 1 replica and no log of changes"),
        ("--replicas 2", "there is a table ks.rows with no tablets, 1 replica"),
        ("--listen 127.0.0.2", "was begun with 127.0.0.1"),
        ("--etcd http://127.0.0.1:1", "was begun with none"),
        ("--indexes", "has a cluster of the database"),
    ):
        code, _, err = run("cluster", "start", *flags.split())
        assert (code, says in err) == (2, True), err
    assert run("cluster", "start", "--replicas", "1")[0] == 0
    code, _, err = run("shell", "-c", "create table t tablets 2 rf 1 cdc")
    assert (code, "ks.t with 2 tablets, 1 replica and no log of changes" in err) == (1, True)
    began = time.monotonic()
    write = "create table l tablets 1 rf 1 cdc; use l_scylla_cdc_log; put a b"
    code, _, err = run("shell", "-c", write)
    assert (code, "ks.l_scylla_cdc_log is a log: the database alone writes it" in err) == (1, True)
    assert time.monotonic() - began < 14, "what no node ever takes is not asked again and again"


def test_a_view_is_made_awaited_read_and_dropped_in_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--dir", str(tmp_path / "c")]

    def run(*words: str) -> tuple[int, str, str]:
        code = run_command_line([words[0], *words[1:], *where])
        said = capsys.readouterr()
        return code, said.out, said.err

    assert run("cluster", "start", "--nodes", "1")[0] == 0
    try:
        made = (
            "create table t tablets 2 rf 1; put ann red; put bob blue; put 'c c' red; "
            "create view v on t by value; await v; build status; use v; get red; get green; scan 1"
        )
        code, out, err = run("shell", "-c", made)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[5:7] == ["ks.v on ks.t by value: SUCCESS"] * 2
        assert sorted(lines[8:10]) == ["red\tann\tred", "red\tc c\tred"]
        assert lines[10:] == ["2 rows", "0 rows", lines[12], "1 row"]
        assert lines[12] in (*lines[8:10], "blue\tbob\tblue")
        for wrong, says in (
            ("use v; put a 1", "ks.v is a view: the database alone writes it"),
            ("use v; delete a", "write to its base table: use ks.t"),
            ("await w", "there is no view ks.w"),
            ("drop view w", "known: ks.v"),
            ("create view w on t by key", "`by key` does not say which rows w has"),
            ("create view w on t by value mod 0", "`by value mod 0` does not say"),
            ("create view w on t by value mod 9 where value ~ 3", "create view NAME on TABLE"),
        ):
            code, _, err = run("shell", "-c", wrong)
            assert code == 2, wrong
            assert says in err
        code, _, err = run("shell", "-c", "create view w on rows by value")
        assert code == 2
        assert "ks.rows has no tablets: it is on the token ring" in err
        code, _, err = run("shell", "-c", "create view w on v by value")
        assert code == 1
        assert "make a view of a table that has tablets, and is no view" in err
        again = "drop view v; create view v on t by value mod 5; use t; put d 12; await v; build status; use v; get 2"
        lines = run("shell", "--json", "-c", again)[1].splitlines()
        status = json.loads(lines[5])
        assert status["status"] == "SUCCESS"
        assert (status["definition"], status["done"]) == ("by value mod 5", 1.0)
        assert json.loads(lines[-2]) == {"key": "2", "base key": "d", "value": "12"}
        assert "ks.v on ks.t by value mod 5: SUCCESS" in run("cluster", "status")[1]
        a_table_is_dropped_once_it_has_no_views(run)
        assert json.loads(run("cluster", "status", "--json")[1])["views"] == []
    finally:
        run("cluster", "stop")


def a_table_is_dropped_once_it_has_no_views(run: Callable[..., tuple[int, str, str]]) -> None:
    assert json.loads(run("cluster", "status", "--json")[1])["views"][0]["view"] == "ks.v"
    for words, exit_code, says in (
        ("drop table w", 2, "there is no table ks.w"),
        ("drop table v", 1, "ks.v is a view"),
        ("drop table t", 1, "ks.t has views: ks.v"),
        (
            "drop view v; create table l tablets 2 rf 1 cdc; drop table l_scylla_cdc_log",
            1,
            "drop table ks.l",
        ),
    ):
        code, _, err = run("shell", "-c", words)
        assert (code, says in err) == (exit_code, True), (words, err)
    assert run("shell", "-c", "drop table t")[:2] == (0, "done\n")
    code, _, err = run(
        "shell", "-c", "create table t tablets 4 rf 1; put a 1; scan; drop table t; get a"
    )
    assert (code, "there is no table ks.t" in err) == (1, True)
    made = run(
        "shell", "-c", "create table t tablets 1 rf 1; scan; use rows; drop table l; tables"
    )[1]
    assert made.splitlines()[1:] == [
        "0 rows",
        "done",
        "done",
        "ks.rows, 1 replica",
        "ks.t, 1 replica, 1 tablet",
    ]


@pytest.mark.parametrize("action", ["status", "add", "stop", "watch", "kill n1"])
def test_a_directory_without_a_cluster_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    assert run_command_line(["cluster", *action.split(), "--dir", str(tmp_path)]) == 2
    assert "there is no cluster" in capsys.readouterr().err
    assert run_command_line(["shell", "-c", "get a", "--dir", str(tmp_path)]) == 2


@pytest.mark.parametrize("command", ["cluster", "shell"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([command, "--help"]) == 0
    assert f"stagewright {command}" in capsys.readouterr().out.partition("examples:")[2]


def test_help_of_an_action_keeps_its_capital_letters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["cluster", "tail", "--help"]) == 0
    assert "Print changes of rows as JSON lines" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["cluster", "kill", "n1", "n2", "--dir", "c"], "cluster kill [-h] --dir D [--json] NODE"),
        (["cluster", "tail", "--dir", "c", "--bogus"], "cluster tail [-h] --dir D"),
        (["view", "load", "folder", "file", "more"], "view load [-h]"),
    ],
)
def test_what_an_action_does_not_know_is_answered_with_its_own_usage(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: stagewright {usage}")
    assert "unrecognized arguments: " in said


def test_commands_are_cut_at_semicolons_outside_of_quotations() -> None:
    assert split_commands("put a 'b;c';; get a #1;") == [["put", "a", "b;c"], ["get", "a", "#1"]]
    assert split_commands("put '' \"\"; put k';' \\;;\t") == [["put", "", ""], ["put", "k;", ";"]]
    for open_ended, says in (
        ("put a 'b", "no closing quotation"),
        ("get a\\", "no escaped character"),
    ):
        with pytest.raises(InputError, match=says):
            split_commands(open_ended)


@pytest.mark.long
def test_changes_are_tailed_once_across_restarts_of_the_tail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--dir", str(tmp_path / "c")]
    tail = ["cluster", "tail", "--position", str(tmp_path / "position"), "--until-now", *where]
    hasty = replace(REAL, horizon=500, request=500)
    monkeypatch.setattr(
        "stagewright.commands.clusters.database._settings", lambda _: Settings(timing=hasty)
    )

    def lines(*words: str) -> list[str]:
        assert run_command_line([*words]) == 0
        return capsys.readouterr().out.splitlines()

    try:
        lines("cluster", "start", "--nodes", "1", "--cdc", *where)
        lines("shell", "-c", "put a 1; put b 2; delete a", *where)
        time.sleep((hasty.horizon + hasty.request + CLOCKS) / 1000)
        first = [json.loads(line) for line in lines(*tail)]
        assert [(c["key"], c["value"]) for c in first] == [("a", "1"), ("b", "2"), ("a", None)]
        lines("shell", "-c", "put a 3", *where)
        assert lines(*tail) == []  # too young: an earlier change may still be written
        time.sleep((hasty.horizon + hasty.request + CLOCKS) / 1000)
        assert run_command_line(tail) == 0
        printed = capsys.readouterr()
        waits = "a change is printed when it is 2 s old: until then an earlier one may follow\n"
        assert printed.err == waits
        (last,) = map(json.loads, printed.out.splitlines())
        assert (last["key"], last["value"]) == ("a", "3")
        assert last["timestamp"] > first[-1]["timestamp"]
        made = "create table t tablets 2 rf 1 cdc images; put x 1; split t; put x 2; cdc tail; cdc tail"
        assert run_command_line(["shell", "-c", made, *where]) == 0
        printed = capsys.readouterr()
        assert printed.err.startswith("reads the changes up to now, which takes 2 s: until then")
        _, _, _, _, *shown = printed.out.splitlines()
        assert [line.split("\t")[1:] for line in shown] == [
            ["x", "1", "before: no row"],
            ["x", "2", "before: 1"],
        ]
        of_t = lines("cluster", "tail", "--table", "t", "--until-now", *where)
        assert [json.loads(line)["before"] for line in of_t] == [None, "1"]
        (tmp_path / "position").write_text("?")
        assert run_command_line(tail) == 2
        assert "no position" in capsys.readouterr().err
    finally:
        run_command_line(["cluster", "stop", *where])


def test_a_table_without_a_log_has_nothing_to_tail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--dir", str(tmp_path / "c")]
    try:
        assert run_command_line(["cluster", "start", "--nodes", "1", *where]) == 0
        assert run_command_line(["cluster", "tail", "--until-now", *where]) == 2
        assert "has no log of changes" in capsys.readouterr().err
    finally:
        run_command_line(["cluster", "stop", *where])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cluster", "--dir", "c", "status"], "after the action, as in `cluster status --dir c`"),
        (["cluster", "start", "--dir", "{file}"], "{file} is not a directory"),
        (["campaign", "--seeds", "0..1", "--out", "{file}"], "{file} is not a directory"),
    ],
)
def test_a_directory_that_is_none_or_stands_at_the_wrong_place_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert run_command_line([word.format(file=file) for word in words]) == 2
    assert said.format(file=file) in " ".join(capsys.readouterr().err.split())
