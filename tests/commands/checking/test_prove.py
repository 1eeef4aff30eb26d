"""`stagewright prove`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import re
import shlex
import signal
from pathlib import Path

import pytest
from tests.commands.checking.test_other_scopes import mirror

from stagewright.checker.symbolic.limits import Progress
from stagewright.commands import run_command_line
from stagewright.commands.checking import prove
from stagewright.commands.console.exit_codes import ExitCode

MACHINE = '''
from stagewright.spec import Bool, Entity, LeadsTo, Machine, Term, action, budget, flag, invariant
from stagewright.spec import leads_to, liveness, number, per, require


class Door(Entity):
    """A door."""


class Lock(Machine):
    """Two doors of an airlock."""

    slams = budget(1)
    open = per(Door, flag())
    opened = number(0, 2)

    @action
    def enter(self, d: Term[Door]) -> None:
        require({guard}, "no door is open")
        self.open[d] = True
        self.opened = 1

    @action
    def leave(self, d: Term[Door]) -> None:
        require(self.open[d], "it is open")
        self.open[d] = False
        self.opened = 0

    @action(spends=slams)
    def slam(self) -> None:
        for d in Door:
            self.open[d] = False
        self.opened = 0

    @invariant
    def never_both(self, d: Term[Door], other: Term[Door]) -> Bool:
        """At most one door is open."""
        return (self.open[d] & self.open[other]).implies(d == other)

    @invariant
    def count_is_right(self) -> Bool:
        return self.opened <= 1

    @liveness
    def closes(self, d: Term[Door]) -> LeadsTo:
        return leads_to(self.open[d], ~self.open[d])
'''


@pytest.fixture
def sound(tmp_path: Path) -> str:
    """An airlock whose promises hold, though only one of them is inductive."""
    return written(tmp_path, guard="self.opened == 0")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """An airlock that opens a second door."""
    return written(tmp_path, guard="self.opened <= 1")


def written(directory: Path, guard: str) -> str:
    file = directory / "lock.py"
    file.write_text(MACHINE.replace("{guard}", guard), encoding="utf-8")
    return str(file)


def test_a_violation_is_reported_and_exits_with_1(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["prove", broken]) == ExitCode.VIOLATED
    out, err = capsys.readouterr()
    assert "violated after 2 steps: At most one door is open." in out
    assert "searched to depth" in out
    assert "left to `stagewright check`: closes" in out
    assert f"reproduce: stagewright prove {broken}" in out.replace("\n", " ").replace("  ", " ")
    assert err.startswith("proving Lock at Door=2, slams=1\n")


def test_an_undecided_promise_exits_with_3_and_shows_what_stopped_the_induction(
    sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["prove", sound, "--k", "1"]) == ExitCode.UNDECIDED
    out, _ = capsys.readouterr()
    assert "not inductive up to k = 1" in " ".join(out.split())
    assert "This does not refute" in out
    assert "proved by 1-induction" in out


def test_a_proof_exits_with_0_whatever_is_left_to_check(
    sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["prove", sound, "--property", "count_is_right", "--size", "door=3"]
    assert run_command_line(arguments) == ExitCode.HOLDS
    assert "proved by 1-induction" in capsys.readouterr().out


def test_simple_paths_and_a_small_scope_decide_the_rest(
    sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["prove", sound, "--simple-paths", "--k", "20", "--size", "door=1"]
    assert run_command_line([*arguments, "--budget", "slams=0"]) == ExitCode.HOLDS
    assert "Door=1, slams=0" in capsys.readouterr().out


def test_a_kind_that_is_not_handled_is_undecided_only_if_asked_for(
    sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["prove", sound, "--property", "closes", "--property", "count_is_right"]
    assert run_command_line(arguments) == ExitCode.UNDECIDED
    assert "use `stagewright check`" in " ".join(capsys.readouterr().out.split())


def test_json_is_one_object_with_runs_and_files(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, conditions = tmp_path / "out", tmp_path / "conditions"
    arguments = ["prove", broken, "--json", "--out", str(target), "--smtlib", str(conditions)]
    assert run_command_line(arguments) == ExitCode.VIOLATED
    document = json.loads(capsys.readouterr().out)
    (report,) = document["reports"]
    verdict = next(v for v in report["verdicts"] if v["name"] == "never_both")
    assert verdict["outcome"] == "violated"
    assert verdict["method"] == "bounded search"
    assert [step["action"] for step in verdict["run"]["steps"]] == ["enter", "enter"]
    assert all(Path(file).is_file() for file in report["files"])
    assert {"never_both.html", "never_both.itf.json"} <= {p.name for p in target.iterdir()}
    assert (conditions / "never_both.broken-2.smt2").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--property", "never_bot"], "did you mean `never_both`"),
        (["--size", "door"], "not NAME=N"),
        (["--size", "door=2", "--size", "door=3"], "given twice"),
        (["--size", "window=2"], "no entity named `window`"),
        (["--size", "door=0"], "at least one"),
        (["--size", "door=" + "9" * 5000], "not NAME=N"),
        (["--budget", "slams=lots"], "crashes=any"),
        (["--profile", "newest"], "profile"),
        (["--k", "0"], "at least 1"),
        (["--timeout", "0"], "seconds above 0"),
        (["--timeout", "nan"], "seconds above 0"),
        (["--depth", "-1"], "at least 0"),
    ],
)
def test_bad_arguments_are_named_and_exit_with_2(
    arguments: list[str], said: str, sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["prove", sound, *arguments]) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert said in err
    assert "Traceback" not in err
    assert not out


def test_an_unwritable_directory_is_bad_input(
    sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["prove", sound, "--k", "1", "--depth", "1"]
    for flag in ("--smtlib", "--out"):
        assert run_command_line([*arguments, flag, f"{sound}/inside"]) == ExitCode.BAD_INPUT
        err = capsys.readouterr().err
        assert flag in err
        assert "is not a directory" in err


def test_running_out_of_time_is_undecided(sound: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["prove", sound, "--timeout", "0.000001"]) == ExitCode.UNDECIDED
    assert "time ran out" in capsys.readouterr().out


def test_help_has_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["prove", "--help"]) == ExitCode.HOLDS
    assert "stagewright prove tablet" in capsys.readouterr().out


def test_the_shipped_machine_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["prove", "tablet-migration"]) == ExitCode.HOLDS
    assert "nothing_is_remembered_at_rest" in capsys.readouterr().out


def test_the_other_scopes_that_a_machine_names_are_proved_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = mirror(tmp_path, 2)
    assert run_command_line(["prove", machine]) == ExitCode.HOLDS
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("also at the other scopes that the definition names:")
    assert [line.partition(" proved")[0].strip() for line in lines[at + 1 :]] == [
        "✓  Disk=3, losses=2: 2 of 2",
        "✓  losses=0, repairs=1: 2 of 2",  # its witness is not looked for here
    ]
    assert run_command_line(["prove", machine, "--timeout", "0.000001"]) == ExitCode.UNDECIDED
    assert "no time is left for 2 other scopes" in capsys.readouterr().err


def test_an_interrupt_ends_the_proof_and_leaves_out_the_other_scopes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Progress) -> str:
        signal.raise_signal(signal.SIGINT)
        return "interrupted here"

    monkeypatch.setattr(prove, "_PLAIN_SECONDS", -1.0)
    monkeypatch.setattr(prove, "_line", interrupt)
    assert run_command_line(["prove", mirror(tmp_path, 2)]) == ExitCode.UNDECIDED
    printed = capsys.readouterr()
    assert "; interrupted" in printed.out
    assert "other scopes" not in printed.out
    assert printed.err.count("interrupted here") == printed.err.count("proving Mirror") == 1


def test_what_breaks_only_at_another_scope_is_shown_with_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = mirror(tmp_path, 1)
    assert run_command_line(["prove", machine, "--default-scope"]) == ExitCode.HOLDS
    assert run_command_line(["prove", machine, "--size", "disk=2"]) == ExitCode.HOLDS
    capsys.readouterr()
    assert run_command_line(["prove", machine, "--json"]) == ExitCode.VIOLATED
    document = json.loads(capsys.readouterr().out)
    assert [report["outcome"] for report in document["reports"]] == ["holds", "violated"]
    again = shlex.split(document["reports"][1]["reproduce"])
    assert run_command_line(again[1:]) == ExitCode.VIOLATED
    assert "violated after 2 steps" in capsys.readouterr().out


def test_prove_all_reports_what_is_proved_and_what_resists(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = {
        "lease": "tests.models.lease:LeaseTable",
        "tablet-migration": "stagewright.machines.scylladb.tablets.tablet_migration:TabletMigration",
    }
    monkeypatch.setattr("stagewright.machines.SHIPPED", shipped)
    code = run_command_line(["prove", "--all", "--depth", "3", "--k", "2"])
    lines = capsys.readouterr().out.splitlines()
    row = r"✓ tablet-migration \(scylla-2026\.2\)  (\d+) of \1 proved at 4 scopes, "
    assert re.match(row, lines[1])
    assert lines[2].startswith("2 machines: ")
    assert code == (0 if lines[0].startswith("✓") else 3)
    assert run_command_line(["prove", "lease", "--all"]) == 2
    assert "MACHINE is said of one" in capsys.readouterr().err
    assert run_command_line(["prove"]) == 2
    assert "no MACHINE is named" in capsys.readouterr().err
