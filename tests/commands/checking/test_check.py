"""`stagewright check`: what it prints, what it writes, and how it exits."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

MODELS = Path(__file__).resolve().parents[2] / "models"
TURNSTILE = str(MODELS / "turnstile.py")
COMMIT = str(MODELS / "two_phase_commit.py")
EWD840 = str(MODELS / "ewd840.py")


def test_a_machine_that_keeps_its_promises_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", COMMIT]) == 0
    out, err = capsys.readouterr()
    assert "holds in all 80 orbits of states" in out
    assert "symmetry: Manager: 3 interchangeable; 80 orbits stand for 288 states" in out
    assert f"reproduce: stagewright check {COMMIT} --size manager=3" in out
    assert "checking TwoPhaseCommit at Manager=3" in err


BOUNDS = """
from stagewright.spec import *

class Node(Entity): ...

class Acks(Machine):
    acked = number(0, 3)
    got = set_of(Node)

    @action
    def take(self, n: Term[Node]) -> None:
        require(~self.got.has(n), "new")
        self.got.add(n)
        self.acked = least(self.acked + 1, 3)

    @action
    def again(self) -> None:
        self.acked = 0

    @invariant
    def bounded(self) -> Bool:
        return {condition}
"""


@pytest.mark.parametrize(
    ("condition", "empty"),
    [
        ("self.acked >= 0", True),
        ("self.acked <= 3", True),
        ("~(self.acked + 1 == 0)", True),
        ("count(self.got.has(n) for n in Node) >= 0", True),
        ("every((self.acked < 4) | self.got.has(n) for n in Node)", True),
        ("(self.acked > -1) & (self.acked < 9)", True),
        ("(self.acked < 9) & (self.acked < 3) | (self.acked == 3)", False),
        (
            "some((self.acked < 9) & (count(self.got.has(m) for m in Node) <= 9) for n in Node)",
            False,
        ),
        ("self.acked < 4 - count(self.got.has(n) for n in Node) + 9", False),
        ("self.acked >= self.acked * 0", True),
        ("(self.acked != 4) | (self.acked < 0)", True),
        ("self.acked.__lt__(0).implies(self.acked > 9)", True),
    ],
)
def test_a_property_that_nothing_can_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], condition: str, empty: bool
) -> None:
    file = tmp_path / "acks.py"
    file.write_text(BOUNDS.format(condition=condition), "utf-8")
    for command in ("check", "prove"):
        run_command_line([command, str(file), "--size", "node=2"])
        err = capsys.readouterr().err
        assert ("warning: `bounded` is true whatever the variables are" in err) == empty
        run_command_line([command, str(file), "--property", "no deadlock"])
        assert "whatever" not in capsys.readouterr().err


def test_a_command_to_copy_is_one_line_however_long_the_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ("far" * 20) / ("away" * 20) / "machine.py"
    file.parent.mkdir(parents=True)
    file.write_text(Path(COMMIT).read_text("utf-8"), "utf-8")
    out = tmp_path / "out"
    assert run_command_line(["check", str(file), "--out", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert f"reproduce: stagewright check {file} --size manager=3" in printed


def test_lines_end_with_what_they_say_and_states_break_between_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wide.py"
    variables = [f"quite_a_long_name_{i}" for i in range(8)]
    declared = "".join(f"    {name} = number(0, 3)\n" for name in variables)
    changed = "".join(f"        self.{name} = 1\n" for name in variables)
    head = "from stagewright.spec import *\n\nclass Wide(Machine):\n"
    fine = (
        "    @invariant\n    def fine(self) -> Bool:\n        return self.quite_a_long_name_0 < 1\n"
    )
    body = f"{declared}    @action\n    def go(self) -> None:\n{changed}{fine}"
    file.write_text(head + body, "utf-8")
    assert run_command_line(["check", str(file), "--property", "fine"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    start = lines.index("  0  initially") + 1
    state = lines[start : lines.index("  1  Wide: go")]
    assert len(state) == 3
    assert ", ".join(line.strip(" ,") for line in state) == ", ".join(
        f"{name} = 0" for name in variables
    )


def test_symmetry_can_be_left_aside(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", COMMIT, "--no-symmetry"]) == 0
    out = capsys.readouterr().out
    assert "holds in all 288 states" in out
    assert "288 distinct states, 1,145 steps, depth 10" in out


def test_a_broken_promise_is_reported_in_its_own_words_and_exits_with_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["check", TURNSTILE]) == 1
    out = capsys.readouterr().out
    assert "violated after 3 steps: The count stays below two." in out
    assert "never happened:\n  vanish" in out
    assert "\x1b" not in out


def test_a_spent_budget_exits_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", COMMIT, "--max-depth", "3"]) == 3
    assert "no violation up to depth 3 (not exhausted)" in capsys.readouterr().out


def test_json_is_one_object_with_the_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", TURNSTILE, "--json", "--property", "ends"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["outcome"] == "violated"
    (report,) = document["reports"]
    ends = report["verdicts"][0]
    assert (ends["name"], ends["outcome"], ends["kind"]) == ("ends", "violated", "leads to")
    assert ends["run"]["loop"] == 1
    assert ends["run"]["states"][0]["phase"] == "IDLE"
    assert report["sizes"] == {"Gate": 2}
    assert report["budgets"] == {"kicks": 1}
    assert report["coverage"]["never_fired"] == ["vanish"]


def test_counterexamples_are_written_to_the_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert run_command_line(["check", TURNSTILE, "--out", str(target), "--property", "small"]) == 1
    names = {path.name for path in target.iterdir()}
    assert {"small.txt", "small.md", "small.itf.json", "small.html"} <= names
    assert f"written: {target / 'small.txt'}" in capsys.readouterr().out.replace("\n", "")


def test_all_profiles_are_checked_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", EWD840, "--all-profiles", "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [(r["profile"], r["states"]) for r in reports] == [("three", 302), ("six", 36_990)]


def test_sizes_and_budgets_choose_the_scope(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--size", "gate=1", "--budget", "kicks=any", "--json"]
    assert run_command_line(["check", TURNSTILE, *words]) == 1
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    assert (report["sizes"], report["budgets"]) == ({"Gate": 1}, {"kicks": None})


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["nothing"], "there is no machine `nothing`"),
        ([TURNSTILE, "--size", "gate"], "--size gate: this is not NAME=N"),
        ([TURNSTILE, "--size", "gate=0"], "a scope needs at least one"),
        ([TURNSTILE, "--size", "gates=2"], "did you mean `Gate`"),
        ([TURNSTILE, "--size", "gate=1", "--size", "gate=2"], "`gate` is given twice"),
        ([TURNSTILE, "--budget", "kicks=-1"], "cannot be negative"),
        ([TURNSTILE, "--property", "smal"], "did you mean `small`"),
        ([TURNSTILE, "--max-states", "0"], "at least 1"),
        ([TURNSTILE, "--max-depth", "x"], "is not a whole number"),
        ([TURNSTILE, "--timeout", "nan"], "is not a number of seconds"),
        ([EWD840, "--profile", "thre"], "did you mean `three`"),
        ([EWD840, "--profile", "six", "--all-profiles"], "not allowed with"),
    ],
)
def test_bad_input_is_named_with_its_mend_and_exits_with_2(
    words: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", *words]) == 2
    out, err = capsys.readouterr()
    assert printed in err
    assert out == ""


def limited() -> None:
    """Less address space than a few threads and tables would like."""
    resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))


def test_little_address_space_is_shared_with_threads_and_questions() -> None:
    barrier = [str(MODELS / "tablet_barrier.py"), "--size", "tablet=3", "--size", "node=3"]
    command = [sys.executable, "-P", "-m", "stagewright", "check", *barrier, "--no-symmetry"]
    ran = subprocess.run(
        [*command, "--workers", "2", "--json"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["reports"][0]["states"] == 171_458


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize(("words", "code"), [([COMMIT], 0), ([COMMIT, "--size", "x=1"], 2)])
def test_what_cannot_be_told_on_the_way_is_no_violation(words: list[str], code: int) -> None:
    command = [sys.executable, "-P", "-m", "stagewright", "check", *words]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert ran.returncode == code
    assert ("holds in all 80 orbits" in ran.stdout) == (code == 0)


def test_more_threads_than_a_process_may_have_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["check", COMMIT, "--workers", "1025"]) == 2
    assert "argument --workers: 1025 is more than 1024" in capsys.readouterr().err
    assert run_command_line(["check", COMMIT, "--workers", "1024"]) == 0
