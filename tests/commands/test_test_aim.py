"""`stagewright test --aim`: tests of what recorded traces never did, and of nothing else."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from stagewright.checker.conformance.oracle import Oracle
from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import machine_from
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import Event, observation

MACHINE = '''
from enum import Enum, auto

from stagewright.spec import Machine, action, budget, flag, one_of, require


class Phase(Enum):
    """Where a door is."""

    open = auto()
    closed = auto()
    locked = auto()
    broken = auto()
    lost = auto()  # never


class Door(Machine):
    """Opens, closes and is locked; rarely it breaks."""

    quakes = budget(QUAKES)
    phase = one_of(Phase, init=Phase.open)
    key = flag()

    @action
    def close(self) -> None:
        """It falls shut."""
        require((self.phase == Phase.open) | self.key, "open, or somebody has the key")
        require(self.phase != Phase.broken, "whole")
        self.phase = Phase.closed

    @action
    def open(self) -> None:
        """It is opened."""
        require(self.phase == Phase.closed, "closed")
        self.phase = Phase.open

    @action
    def find_key(self) -> None:
        """Somebody finds the key."""
        require(~self.key, "nobody has the key")
        self.key = True

    @action
    def lock(self) -> None:
        """Whoever has the key locks it."""
        require(self.key, "somebody has the key")
        require(self.phase == Phase.closed, "closed")
        self.phase = Phase.locked

    @action(spends=quakes)
    def quake(self) -> None:
        """It breaks."""
        require(self.phase != Phase.broken, "whole")
        self.phase = Phase.broken
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("door.py", MACHINE.replace("QUAKES", "1"))
    return tmp_path


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def record(walks: Iterable[list[str]], name: str) -> None:
    """Record runs of the door: the actions of each walk, refused ones left out."""
    definition = machine_from("door.py", "")
    oracle = Oracle(definition, scope_of(definition))
    steps = {step.label: step for step in oracle.steps}
    lines: list[str] = []
    for number, walk in enumerate(walks):
        entity = f"{name}{number}"
        (state,) = oracle.initial_states()
        events: list[tuple[str | None, Any]] = [(None, state)]
        for label in walk:
            state = oracle.after(steps[label], state)
            events.append((label, state))
        for sequence, (action, after) in enumerate(events):
            observed = {n: v for n, v in observation(after).items() if n in ("phase", "key")}
            lines.append(event(definition, entity, sequence, action, observed).to_json())
        lines.append(event(definition, entity, len(events), None, {}, end=True).to_json())
    write(f"{name}.jsonl", "\n".join(lines) + "\n")


def event(
    definition: Any,
    entity: str,
    sequence: int,
    action: str | None,
    observed: Any,
    *,
    end: bool = False,
) -> Event:
    """An event of a door."""
    return Event(
        "run", "Door", "", definition.fingerprint(), entity, sequence,
        action=action, observed=observed, end=end,
    )  # fmt: skip


def validate(*names: str, out: str = "report") -> Any:
    """What traces exercised."""
    words = ["validate", *names, "--machine", "door.py", "--engine", "embedded", "--out", out]
    assert run_command_line(words) == 0
    return json.loads(Path(out, "coverage.json").read_text())


def never(coverage: Any) -> set[tuple[str, ...]]:
    """The names of all things that were never exercised."""
    (machine,) = coverage["machines"]
    whole = [
        row
        for kind in ("values", "actions", "moves", "edges", "requirements")
        for row in machine[kind]
    ]
    parts = [{"action": r["action"], **p} for r in machine["requirements"] for p in r["parts"]]
    return {
        tuple(str(v) for n, v in row.items() if n in NAMES)
        for row in (*whole, *parts)
        if row["seen"] == "never"
    }


NAMES = {"place", "value", "variable", "source", "target", "action", "requirement", "part"}


def test_what_production_never_did_is_done_by_the_exported_tests(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record([["close", "open", "close"], ["find_key"]], "production")
    missing = never(validate("production.jsonl"))
    assert {("lock",), ("quake",), ("phase", "locked")} <= missing
    assert ("close", "somebody has the key") not in missing
    capsys.readouterr()
    words = ["test", "door.py", "--aim", "report/coverage.json", "--export", "test_aimed.py"]
    assert run_command_line([*words, "--json"]) == ExitCode.HOLDS
    aim = json.loads(capsys.readouterr().out)["aim"]
    assert (aim["events"], aim["left_out"], aim["all_states_explored"]) == (6, [], True)
    assert {t["name"] for t in aim["reached"] if t["kind"] == "action"} == {"lock", "quake"}
    refused = {t["name"] for t in aim["reached"] if t["kind"] == "requirement"}
    assert refused == {"lock: somebody has the key", "lock: closed", "quake: whole"}
    walks = runpy.run_path("test_aimed.py")["WALKS"]
    tours = [moves.split() for name, (_, moves) in walks.items() if name.startswith("tour")]
    assert sum(map(len, tours)) < 15
    record(tours, "tests")
    left = never(validate("production.jsonl", "tests.jsonl", out="both"))
    assert ("phase", "lost") in left
    assert all("lost" in words for words in left)
    unreachable = {thing["name"] for thing in aim["unreachable"]}
    assert "phase = lost" in unreachable
    assert len(unreachable) == len(left)


def test_what_the_scope_does_not_reach_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    record([["close", "open"]], "production")
    validate("production.jsonl")
    capsys.readouterr()
    assert run_command_line(["test", "door.py", "--aim", "report", "--budget", "quakes=0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "aimed at what 3 recorded events never did: 4 values, 3 actions" in out
    assert "unreachable at this scope: action quake" in out
    assert "unreachable at this scope: value phase = broken" in out
    assert "--aim report" in out


def test_suites_that_are_not_asked_for_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    record([["close", "open"]], "production")
    validate("production.jsonl")
    capsys.readouterr()
    assert run_command_line(["test", "door.py", "--aim", "report", "--suite", "refusals"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "left out: action find_key, lock, quake" in out
    assert "tour" not in out.partition("reproduce")[0]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--suite", "hypothesis"], "random runs cannot be aimed"),
        (["--cover", "control"], "--aim says itself what is covered"),
    ],
)
def test_flags_that_contradict_an_aim_are_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["test", "door.py", "--aim", "report", *words]) == 2
    assert problem in capsys.readouterr().err


def test_a_coverage_of_another_definition_is_refused_with_the_mend(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record([["close"]], "production")
    validate("production.jsonl")
    write("door.py", MACHINE.replace("QUAKES", "1").replace('"whole"', '"not broken"'))
    assert run_command_line(["test", "door.py", "--aim", "report"]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert "is about Door as it was with the fingerprint" in printed
    assert "validate the traces by this version" in printed
    assert run_command_line(["test", "tablet-migration", "--aim", "report"]) == 2
    assert "not about TabletMigration (scylla-2026.2), but about Door" in capsys.readouterr().err


def test_a_coverage_of_another_profile_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    definition = machine_from("tablet-migration", "seed")
    entry = {"machine": definition.name, "profile": "seed", "fingerprint": definition.fingerprint()}
    write("coverage.json", json.dumps({"version": 1, "machines": [entry]}))
    assert run_command_line(["test", "tablet-migration", "--aim", "coverage.json"]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert "but about the profiles seed help: test one of these: --profile seed" in printed


def damaged(coverage: Any, how: str) -> str:
    machine = coverage["machines"][0]
    match how:
        case "cut":
            return json.dumps(coverage)[:200]
        case "a list":
            return json.dumps([coverage])
        case "version":
            coverage["version"] = 9
        case "edges":
            del machine["edges"]
        case "seen":
            machine["actions"][0]["seen"] = "sometimes"
        case "action":
            machine["actions"][0]["action"] = "fly"
        case "requirement":
            machine["requirements"][0]["requirement"] = "is so"
        case "row":
            machine["moves"][0] = 7
        case "events":
            machine["events"] = "many"
    return json.dumps(coverage)


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("cut", "is not a coverage of traces"),
        ("a list", "it has no `machines`"),
        ("version", "has version 9; this program reads version 1"),
        ("edges", "`edges` is not a list"),
        ("seen", "`seen` is 'sometimes'"),
        ("action", "the definition has no ActionOf(action='fly')"),
        ("requirement", "the definition has no RequirementOf"),
        ("row", "`moves` has what is no object"),
        ("events", "`events` is not a number"),
    ],
)
def test_a_damaged_coverage_is_refused(
    how: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("report").exists():
        record([["close"]], "production")
        text = damaged(validate("production.jsonl"), how)
        write("report/coverage.json", text)
    assert run_command_line(["test", "door.py", "--aim", "report"]) == 2
    printed = capsys.readouterr().err
    assert problem in " ".join(printed.split())
    assert "write it again: stagewright validate" in printed


def test_a_missing_coverage_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["test", "door.py", "--aim", "nowhere.json"]) == 2
    assert "nowhere.json cannot be read" in capsys.readouterr().err
