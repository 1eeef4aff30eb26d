"""`stagewright check` of machines that are seen as others: what it prints and writes, and how it exits."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.checking.declared import Declared, declared_in
from stagewright.machines import REFINEMENTS
from stagewright.spec.refinement import refinements_in

MODELS = Path(__file__).resolve().parents[2] / "models"
SOURCES = Path(__file__).resolve().parents[3] / "src"
COMMIT = f"{MODELS / 'transaction_commit.py'}"

JOBS = '''\
"""A job, and a worker that may be done before it has begun."""

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import Machine, Profile, action, choose, final, flag, one_of, profiles
from stagewright.spec import refinement, require


class Phase(Enum):
    idle = auto()
    running = auto()
    done = auto()


class Job(Machine):
    release = profiles(Profile("old"), Profile("new"))
    phase = one_of(Phase, init=Phase.idle)

    @phase.step(Phase.idle, Phase.running)
    def start(self): ...

    @phase.step(Phase.running, Phase.done)
    def finish(self): ...

    @final
    def over(self):
        return self.phase == Phase.done


class Worker(Machine):
    started = flag()
    stopped = flag()

    @action
    def begin(self):
        """It begins to work."""
        require(~self.started, "it has not begun")
        self.started = True

    @action
    def stop(self):
        """It stops."""
        GUARD
        self.stopped = True

    @final
    def over(self):
        return self.stopped & self.started


@refinement(profiles={"": "new"})
def a_job(worker: Worker, seen: Job) -> None:
    """A worker does one job."""
    busy = choose(worker.started, Phase.running, choose(worker.started, Phase.idle, Phase.idle))
    seen.phase = choose(worker.stopped, Phase.done, busy)
'''


@pytest.fixture
def right(tmp_path: Path) -> str:
    path = tmp_path / "right.py"
    path.write_text(JOBS.replace("GUARD", 'require(self.started, "it has begun")'))
    return str(path)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.py"
    path.write_text(JOBS.replace("GUARD", 'require(~self.stopped, "it works")'))
    return str(path)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_it_is_decided_with_the_promises(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", f"{right}:Worker"]) == 0
    out = flat(capsys.readouterr().out)
    assert (
        "✓ a_job all 3 steps of Worker are steps of Job (new), or change nothing that is seen; "
        "2 of its 2 edges are taken"
    ) in out


def test_it_is_decided_for_the_machine_that_is_seen(
    right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", f"{right}:Job"]) == 0
    assert "a_job of Worker" in capsys.readouterr().out


def test_other_machines_refinements_are_decided_when_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["check", "recorded-session"]) == 0
    captured = capsys.readouterr()
    assert "a_session_of_a_tablet of TabletCluster" in captured.err
    assert "a_session_of_a_tablet" not in captured.out
    assert run_command_line(["check", "recorded-session", "--dependents"]) == 0
    assert "a_session_of_a_tablet of TabletCluster" in flat(capsys.readouterr().out)


def test_profiles_that_nothing_covers_are_listed(
    right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", f"{right}:Job", "--profile", "old"]) == 0
    out = capsys.readouterr().out
    assert "not covered by a refinement:" in out
    assert "no profile of Worker is seen as Job under old" in out


def test_a_run_that_is_none_is_shown_and_exits_with_1(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", f"{wrong}:Worker"]) == 1
    out = capsys.readouterr().out
    assert "Worker no longer refines Job (new) after 1 step" in out
    assert "seen: phase: idle → done" in out
    assert "stop is no step of Job (new): phase: idle → done." in out
    assert "where phase = idle, Job could do:\n      start: phase: idle → running" in out


def test_the_run_is_shown_too_when_the_seen_machine_is_checked(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", f"{wrong}:Job", "--out", str(tmp_path / "out")]) == 1
    assert "stop is no step of Job (new)" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {name.partition(".")[2] for name in names} == {"txt", "md", "itf.json", "html"}


def test_only_one_can_be_asked_for(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", f"{right}:Worker", "--property", "a_job"]) == 0
    out = capsys.readouterr().out
    assert "a_job" in out
    assert "no deadlock" not in out
    assert run_command_line(["check", f"{right}:Worker", "--property", "a_jop"]) == 2
    assert "did you mean `a_job`?" in capsys.readouterr().err


def test_json_has_what_is_seen(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", f"{wrong}:Worker", "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    (verdict,) = [v for v in report["verdicts"] if v["name"] == "a_job"]
    assert (verdict["kind"], verdict["outcome"]) == ("refinement", "violated")
    assert verdict["refinement"] == {
        "concrete": {"machine": "Worker", "profile": ""},
        "scope": "no entities",
        "seen": {"machine": "Job", "profile": "new"},
        "hidden": [],
        "looks": [{"phase": "idle"}, {"phase": "done"}],
        "instead": ["start: phase: idle → running"],
        "edges": 0,
        "taken": 0,
        "untaken": [],
    }


def test_ci_systems_get_it_with_its_place(wrong: str, tmp_path: Path) -> None:
    junit, sarif = tmp_path / "check.xml", tmp_path / "check.sarif"
    flags = ["--junit", str(junit), "--sarif", str(sarif)]
    assert run_command_line(["check", f"{wrong}:Worker", *flags]) == 1
    (case,) = [c for c in ET.parse(junit).iter("testcase") if c.get("name") == "a_job"]
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("type") == "refinement"
    (run,) = json.loads(sarif.read_text())["runs"]
    (result,) = [r for r in run["results"] if r["ruleId"] == "Worker.a_job"]
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert Path(wrong).read_text().splitlines()[line - 1].startswith("def a_job")
    assert "seen: phase: idle → done" in json.dumps(result["codeFlows"], ensure_ascii=False)


def test_two_phase_commit_commits_transactions_by_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["check", f"{COMMIT}:TwoPhaseCommit"]) == 0
    out = flat(capsys.readouterr().out)
    assert "80 orbits" in out  # which are not enough to decide a refinement
    assert "all 1,145 steps of TwoPhaseCommit are steps of TransactionCommit" in out


@pytest.mark.parametrize("place", REFINEMENTS)
def test_what_a_module_declares_is_read_off_its_source(place: str) -> None:
    imported = [
        Declared(one.name, one.concrete.__name__, one.seen.__name__)
        for one in refinements_in(import_module(place))
    ]
    assert list(declared_in(place)) == imported


def test_what_is_left_to_dependents_is_named_and_not_imported() -> None:
    code = (
        "import sys; from stagewright.commands import run_command_line as run; "
        "assert run(['check', 'tablet-migration', '--max-states', '100']) == 3; "
        "print(*sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert "a_tablet_behind_a_fence of Fencing, " in ran.stderr
    assert "stagewright.machines.scylladb.tablets.tablet_migration" in ran.stdout.split()
    assert "stagewright.machines.scylladb.tablets.load_balancer" not in ran.stdout.split()
