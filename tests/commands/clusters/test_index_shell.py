"""The shell of an indexed table, with a client that answers as a cluster would."""

from __future__ import annotations

import re
from typing import cast

import pytest

from stagewright.commands.clusters.index_shell import IndexShell
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.shell import run_commands
from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.processes.client import IndexClient
from stagewright.impl.processes.errors import ClusterError
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec.errors import InputError


class Known:
    """A cluster that has a unique index u on v, which `create` leaves alone, and had three others."""

    def create(self, name: str, column: str, *, unique: bool, deferred: bool) -> Build:
        del column, unique, deferred
        return Build(name, Status.success, column="v", unique=True)

    def builds(self) -> tuple[Build, ...]:
        error = "rows 1 and 2 both have v = 5"
        return (
            Build("u", Status.success, column="v", unique=True),
            Build("f", Status.failed, error, column="v", unique=True, gone=True),
            Build("leaving", Status.in_progress, column="w", dropped=True),
            Build("left", Status.in_progress, column="w", dropped=True, gone=True),
        )


SHELL = IndexShell(cast("IndexClient", Known()), as_json=False)


@pytest.mark.parametrize("words", ["create unique index u on w", "create index u on v"])
def test_another_index_of_a_name_that_is_taken_is_refused(words: str) -> None:
    with pytest.raises(InputError, match="u is there already, a unique index on v"):
        SHELL.do(words.split())


def test_the_same_index_may_be_created_again(capsys: pytest.CaptureFixture[str]) -> None:
    SHELL.do(["create", "unique", "index", "u", "on", "v"])
    assert capsys.readouterr().out == "unique index u on v: SUCCESS\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("merge 1", "has no `merge`: one table, whose tablets only split"),
        ("cdc tail", "has no `cdc`"),
        ("create view v on t by value", "has one table, and no views beside it"),
        ("create table t rf 3", "has one table, and no tables beside it"),
        ("put 1 v=99999999999999999999999", "99999999999999999999… is too large a number"),
        ("get 1 at 9999999999999999999", "9999999999999999999 is too large a number"),
        ("put 1 v=x", "'v=x' assigns nothing"),
        ("put 1 v=3 z=3", "the table has no column z"),
        ("put 1 v=3 v=4", "'v=4' assigns v again"),
        ("create index i on z", "the table has no column z"),
        ("read u x", "'x' is not a whole number"),
    ],
)
def test_what_an_indexed_table_has_not_is_said(line: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        SHELL.do(line.split())


def test_a_command_that_is_misspelt_gets_one_line_and_not_the_whole_help() -> None:
    with pytest.raises(InputError, match="no such command: splitt 0") as refused:
        SHELL.do(["splitt", "0"])
    assert refused.value.help == "did you mean `split`? `help` lists all commands"


def test_an_index_that_is_dropped_is_not_in_progress_and_forgotten_once_it_is_deleted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    SHELL.do(["build", "status"])
    assert capsys.readouterr().out.splitlines() == [
        "unique index u on v: SUCCESS",
        "unique index f on v: FAILED, rows 1 and 2 both have v = 5, deleted",
        "index leaving on w: DROPPED",
    ]


@pytest.mark.parametrize(
    ("name", "shown", "says"),
    [
        ("f", "unique index f on v: FAILED", "f is not built: rows 1 and 2 both have v = 5"),
        ("leaving", "index leaving on w: DROPPED", "leaving was dropped"),
        ("left", "index left on w: DROPPED, deleted", "left was dropped"),
    ],
)
def test_who_awaits_what_will_not_be_built_hears_so_and_fails(
    name: str, shown: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ClusterError, match=says):
        SHELL.do(["await", name])
    assert capsys.readouterr().out.startswith(shown)


def test_awaiting_a_built_index_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    SHELL.do(["await", "u"])
    assert capsys.readouterr().out == "unique index u on v: SUCCESS\n"


def test_the_second_word_of_a_command_is_known_too() -> None:
    with pytest.raises(InputError, match="no such command: status i") as refused:
        SHELL.do(["status", "i"])
    assert refused.value.help == "did you mean `build status`? `help` lists all commands"


class Slow:
    """A cluster whose index is built when it has been asked for its builds often enough."""

    def __init__(self) -> None:
        self.rows = -1

    def builds(self) -> tuple[Build, ...]:
        self.rows += 1
        status = Status.success if self.rows == 4 else Status.in_progress
        return (Build("i", status, column="v", rows=self.rows // 2, expected=4),)


def test_who_awaits_a_build_hears_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stagewright.commands.clusters.waiting.EVERY", 0)
    IndexShell(cast("IndexClient", Slow()), as_json=False).do(["await", "i"])
    said = capsys.readouterr()
    assert said.out == "index i on v: SUCCESS\n"
    assert said.err.splitlines() == [  # once each
        "index i on v: IN-PROGRESS, 0 %",
        "index i on v: IN-PROGRESS, 25 %, about 0.0 s to go",
    ]


class Impatient:
    """A shell whose first command takes too long for whoever waits for it."""

    commands = ""

    def __init__(self) -> None:
        self.done: list[str] = []

    def do(self, words: list[str]) -> None:
        self.done.append(words[0])
        if len(self.done) == 1:
            raise KeyboardInterrupt

    def close(self) -> None:
        self.done.append("hung up")


def test_ctrl_c_ends_a_typed_command_and_not_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Impatient()
    assert run_commands(shell, ["await i", "get 1"], forgiving=True) is ExitCode.INTERRUPTED
    assert shell.done == ["await", "hung up", "get"]
    assert capsys.readouterr().err == "interrupted\n"
    with pytest.raises(KeyboardInterrupt):
        run_commands(Impatient(), ["await i; get 1"], forgiving=False)
