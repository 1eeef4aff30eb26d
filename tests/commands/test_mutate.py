"""`stagewright mutate`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.evaluation import Evaluation, evaluate
from stagewright.checker.mutation.original import Original
from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode

LEASE = Path(__file__).resolve().parents[1] / "models" / "lease.py"
SYSTEM = Path(__file__).resolve().parents[1] / "checker" / "mutation" / "machines.py"
NOT_STUCK = '"it is not stuck"'
TOGGLE = '''\
from typing import Self

from stagewright.spec import (
    Bool, FlagVar, Machine, OneVar, States, equivalent_drop, equivalent_step, equivalents, final, flag,
    one_of, require, step_property,
)


class Switch(States):
    off = False
    on = True

    def __init__(self, lit: bool) -> None:
        self.lit = lit


class Toggle(Machine):
    """A switch that is pressed, and is stuck at last."""

    switch: OneVar[Switch] = one_of(Switch, init=Switch.off)
    stuck: FlagVar = flag()

    @switch.step(Switch.off, Switch.on)
    def press(self) -> None:
        """It is pressed."""
        require(~self.stuck, "it is not stuck")

    @switch.step(Switch.on, Switch.off)
    def release(self) -> None:
        """It is let go, and is stuck."""
        self.stuck = True

    @step_property
    def it_is_stuck_where_it_was(self, after: Self) -> Bool:
        return self.stuck.implies(after.switch == self.switch)

    @step_property
    def it_moves_or_is_stuck(self, after: Self) -> Bool:
        return (after.switch != self.switch) & (after.stuck == (self.switch == Switch.on))

    @final
    def it_is_off(self) -> Bool:
        return self.switch == Switch.off

    harmless = equivalents(REASONS)
'''


@pytest.fixture
def toggle(tmp_path: Path) -> Path:
    file = tmp_path / "toggle.py"
    file.write_text(TOGGLE.replace("REASONS", ""))
    return file


def run(*words: str | Path) -> int:
    return run_command_line(["mutate", *map(str, words)])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_survivors_come_first_with_place_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(LEASE, "--size", "node=2") == ExitCode.VIOLATED
    printed = capsys.readouterr()
    assert "checking 44 mutants" in printed.err
    lines = printed.out.splitlines()
    (counted,) = re.findall(r"^all +(\d+) ", printed.out, re.MULTILINE)
    (same,) = re.findall(
        r"^(\d+) more means? the same as the definition", printed.out, re.MULTILINE
    )
    assert int(counted) + int(same) == 44
    assert lines[:2] == ["LeaseTable", "  at Node=2: 21 states"]
    assert "survive without a reason" in printed.out
    first = next(i for i, line in enumerate(lines) if line.endswith("survive without a reason"))
    assert "lease.py:" in lines[first + 1]
    assert "state what" in lines[first + 2] or "it never refuses alone" in lines[first + 2]


def test_no_survivor_without_a_reason_is_success(
    toggle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(toggle, "--kind", "lose") == ExitCode.HOLDS
    assert "survive" not in capsys.readouterr().out


def test_json_holds_every_mutant_with_its_fate(
    toggle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(toggle, "--json", "--workers", "2")
    found = document(capsys)
    assert found["machine"] == "Toggle"
    assert found["whole"] is True
    mutants = found["mutants"]
    assert isinstance(mutants, list)
    summary = found["summary"]
    assert isinstance(summary, dict)
    assert summary["mutants"] + summary["same"] == len(mutants)
    caught = [m for m in mutants if m["fate"] == "caught"]
    assert caught
    assert all(m["by"] and m["depth"] == len(m["steps"]) for m in caught)
    assert all(m["file"].endswith("toggle.py") and m["line"] for m in mutants)


def test_of_a_system_it_says_what_is_checked_with_its_parts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(f"{SYSTEM}:Signals") == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "71 more are checked with the part that says what they change: 71 of Crossing" in printed
    run(f"{SYSTEM}:Signals", "--json")
    found = document(capsys)
    assert found["with_parts"] == {"crossing": 71}
    assert found["whole"] is True
    mutants = found["mutants"]
    assert isinstance(mutants, list)
    assert len([m for m in mutants if m["kind"] != "tighten"]) == 8
    run(f"{SYSTEM}:Signals", "--json", "--parts", "--action", "shut_gate")
    found = document(capsys)
    assert found["with_parts"] == {"crossing": 0}
    assert {m["action"] for m in found["mutants"]} == {"shut_gate"}  # type: ignore[attr-defined]


def test_a_page_and_a_document_are_written(
    toggle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(toggle, "--out", tmp_path / "found", "--verbose")
    assert " steps, " in capsys.readouterr().out
    page = (tmp_path / "found" / "mutants.html").read_text("utf-8")
    written = json.loads((tmp_path / "found" / "mutants.json").read_text("utf-8"))
    assert page.count("<strong>press</strong>") > 0
    assert written["summary"]["mutants"] > 0


def test_a_stale_reason_is_a_failure_and_one_that_matches_nothing_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "toggle.py"
    file.write_text(
        TOGGLE.replace(
            "REASONS", f"equivalent_drop(press, {NOT_STUCK}, because='nobody presses twice')"
        )
    )
    assert run(file) == ExitCode.VIOLATED
    assert "nobody presses twice" in capsys.readouterr().out
    file.write_text(
        TOGGLE.replace("REASONS", "equivalent_step(switch, Switch.off, Switch.on, because='so')")
    )
    assert run(file) == ExitCode.BAD_INPUT
    assert "matches nothing" in capsys.readouterr().out


def test_reasons_can_be_checked_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "toggle.py"
    stale = f"equivalent_drop(press, {NOT_STUCK}, because='nobody presses twice')"
    file.write_text(TOGGLE.replace("REASONS", stale))
    kept = tmp_path / "toggle.jsonl"
    assert run(file, "--reasons", "--checkpoint", kept) == ExitCode.VIOLATED
    printed = capsys.readouterr()
    assert "checking 1 mutant " in printed.err
    assert "1 reason: 0 needed, 1 stale, 0 undecided (1 mutant)" in printed.out
    assert run(file, "--reasons", "--checkpoint", kept, "--json") == ExitCode.VIOLATED
    found = document(capsys)
    assert found["reasons"] == {"needed": 0, "stale": 1, "open": 0}
    assert found["whole"] is False
    assert [m["text"] for m in cast("list[dict[str, str]]", found["mutants"])] == [
        "it is not stuck: not stuck"
    ]
    assert run(file, "--reasons", "--kind", "drop") == ExitCode.BAD_INPUT
    assert "leave out --kind" in capsys.readouterr().err


def test_of_what_a_whole_run_left_reasons_count_what_they_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, kept = tmp_path / "toggle.py", tmp_path / "kept"
    stale = f"equivalent_drop(press, {NOT_STUCK}, because='nobody presses twice')"
    file.write_text(TOGGLE.replace("REASONS", stale))
    run(file, "--checkpoint", kept)
    capsys.readouterr()
    run(file, "--reasons", "--checkpoint", kept)
    assert "1 of 1 were checked before" in capsys.readouterr().err


def test_a_property_can_be_asked_what_it_alone_catches(
    toggle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--property", "it_moves_or_is_stuck", "--checkpoint", tmp_path / "kept")
    assert run(toggle, *asked) == ExitCode.HOLDS
    said = capsys.readouterr()
    assert said.out.startswith("it_moves_or_is_stuck: alone catches ")
    assert "\n  at " in said.out
    assert said.out in said.err  # at once, as it may take long until all have one
    assert run(toggle, *asked, "--json", "--out", tmp_path / "found") == ExitCode.HOLDS
    found = document(capsys)
    assert json.loads((tmp_path / "found" / "mutants.json").read_text("utf-8")) == found
    needs = cast("dict[str, dict[str, str]]", found["needs"])
    assert list(needs) == ["it_moves_or_is_stuck"]
    assert needs["it_moves_or_is_stuck"]["need"] == "alone"
    assert " / " in needs["it_moves_or_is_stuck"]["mutant"]


def test_what_was_found_before_is_tried_first(
    toggle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ("--property", "it_moves_or_is_stuck")
    run(toggle, *named, "--out", tmp_path)
    before = capsys.readouterr()
    kept = tmp_path / "mutants.json"
    assert run(toggle, *named, "--again", kept) == ExitCode.HOLDS
    again = capsys.readouterr()
    assert again.out == before.out
    assert "checking 1 mutant of Toggle" in again.err
    known = kept.read_text("utf-8")
    kept.write_text(known.replace('"mutant": "', '"mutant": "no longer '), "utf-8")
    assert run(toggle, *named, "--again", kept) == ExitCode.HOLDS, "it is searched for, then"
    assert capsys.readouterr().out.startswith("it_moves_or_is_stuck: alone catches ")
    kept.write_text(known.replace("no entities", "lamp=2, kicks=1"), "utf-8")
    assert run(toggle, *named, "--again", kept) == ExitCode.HOLDS, "the scope is of another time"
    capsys.readouterr()
    run(toggle, "--again", kept, "--json")
    assert set(cast("dict[str, object]", document(capsys)["needs"])) > {named[1]}, "of all"
    for wrong in ("{", "[]", '{"needs": 3}'):
        kept.write_text(wrong, "utf-8")
        assert run(toggle, "--again", kept) == ExitCode.BAD_INPUT
        assert "does not hold what `mutate --out` wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("above", "code"), [("", ExitCode.VIOLATED), ("@lemma\n    ", ExitCode.HOLDS)]
)
def test_a_lemma_is_no_other_property(toggle: Path, above: str, code: ExitCode) -> None:
    own = toggle.read_text("utf-8")
    at, end = own.index("    @step_property\n    def it_moves"), own.index("    @final")
    again = own[at:end].replace("it_moves_or_is_stuck", "it_does").replace("@", f"{above}@", 1)
    toggle.write_text(
        own.replace("    @final", f"{again}    @final").replace(" flag,", " flag, lemma,")
    )
    assert run(toggle, "--property", "it_moves_or_is_stuck") == code


def test_of_a_system_the_parts_own_mutants_are_tried_if_that_is_asked_for() -> None:
    asked = (f"{SYSTEM}:Signals", "--property", "crossing.cars_enter_one_by_one")
    assert run(*asked) == ExitCode.VIOLATED
    assert run(*asked, "--parts") == ExitCode.HOLDS


def test_a_property_is_known_and_asked_for_by_itself(
    toggle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(toggle, "--property", "it_moves") == ExitCode.BAD_INPUT
    assert "no property named `it_moves`" in capsys.readouterr().err
    assert run("--all", "--property", "it_moves_or_is_stuck") == ExitCode.BAD_INPUT
    assert "leave out --all" in capsys.readouterr().err
    asked = ("--property", "it_moves_or_is_stuck", "--json")
    for few in (
        ("--timeout", "0.001"),
        ("--mutant", "no mutant is called so"),
        ("--kind", "tighten"),
    ):
        assert run(toggle, *asked, *few) == ExitCode.UNDECIDED
        (need,) = cast("dict[str, dict[str, str]]", document(capsys)["needs"]).values()
        assert need["need"] == "undecided"


def test_a_sample_depends_on_the_seed_alone(
    toggle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen: list[list[str]] = []
    for seed in ("1", "1", "2"):
        run(toggle, "--max-mutants", "3", "--seed", seed, "--json")
        mutants = document(capsys)["mutants"]
        assert isinstance(mutants, list)
        chosen.append([m["text"] for m in mutants])
    assert len(chosen[0]) == 3
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


def test_what_the_budget_does_not_reach_is_undecided(
    toggle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(toggle, "--kind", "lose", "--max-states", "1") == ExitCode.UNDECIDED
    assert "undecided" in capsys.readouterr().out


def test_a_run_that_was_cut_off_goes_on_from_its_checkpoint(
    toggle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(*words: str | Path) -> tuple[dict[str, object], str]:
        run(toggle, "--json", "--workers", "1", *words)
        printed = capsys.readouterr()
        document: dict[str, object] = json.loads(printed.out)
        for mutant in cast("list[dict[str, object]]", document["mutants"]):
            del mutant["seconds"]
        del document["seconds"]
        return document, printed.err

    whole, _ = found()
    kept = tmp_path / "kept" / "toggle"
    first, said = found("--checkpoint", kept)
    assert first == whole
    assert "checked before" not in said
    file = kept / "mutants.jsonl"
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([*lines[:4], "not JSON", '{"of": 1}', lines[4][:50]]), "utf-8")
    evaluated: list[str] = []

    def noted(mutant: Mutant, originals: Sequence[Original], limits: Limits) -> Evaluation:
        evaluated.append(mutant.id)
        return evaluate(mutant, originals, limits)

    monkeypatch.setattr("stagewright.checker.mutation.run.evaluate", noted)
    second, said = found("--checkpoint", kept)
    assert second == whole
    assert f"4 of {len(lines)} were checked before" in said
    assert len(evaluated) == len(lines) - 4
    third, _ = found("--checkpoint", kept)
    assert third == whole
    assert len(evaluated) == len(lines) - 4
    toggle.write_text(toggle.read_text("utf-8").replace("~self.stuck,", "self.stuck,"), "utf-8")
    found("--checkpoint", kept)  # another definition: what is known of this one says nothing
    assert len(evaluated) > len(lines)


def test_what_is_undecided_is_no_result_that_is_kept(
    toggle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (toggle, "--kind", "lose", "--checkpoint", tmp_path / "kept")
    assert run(*words, "--max-states", "1") == ExitCode.UNDECIDED
    assert run(*words) == ExitCode.HOLDS
    assert run(toggle, "--checkpoint", toggle) == ExitCode.BAD_INPUT
    assert "is not a directory" in capsys.readouterr().err


def test_the_run_of_a_single_mutant_is_reported(
    toggle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(toggle, "--mutant", "lose / release / stuck") == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "it_moves_or_is_stuck" in printed
    assert "  1  " in printed
    assert "press" in printed


def test_all_shipped_machines_are_a_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stagewright.machines as machines

    here = "tests.checker.mutation.machines"
    monkeypatch.setattr(machines, "SHIPPED", {"calm": f"{here}:Crossing", "hasty": f"{here}:Hasty"})
    found = run("--all", "--kind", "edge", "--out", tmp_path, "--workers", "1")
    assert found == ExitCode.VIOLATED
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["calm", "hasty"]
    assert "3 mutants: 2 caught, 0 that nothing observes, 1 unexplained, 0 undecided" in lines[0]
    assert (tmp_path / "hasty" / "mutants.html").is_file()
    run("--all", "--kind", "edge", "--json", "--workers", "1")
    listed = document(capsys)["machines"]
    assert isinstance(listed, list)
    assert [m["machine"] for m in listed] == ["Crossing", "Hasty"]
    assert run("--all", "tablet") == ExitCode.BAD_INPUT


def test_scopes_are_checked_one_after_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(LEASE, "--scope", "node=1", "--scope", "node=2", "--kind", "lose", "--json")
    scopes = document(capsys)["scopes"]
    assert isinstance(scopes, list)
    assert [s["scope"] for s in scopes] == ["Node=1", "Node=2"]


def test_what_is_sought_at_another_scope_is_said_to_decide_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lease.py"
    witness = """
    @sw.sometimes(at={Node: 1})
    def it_is_held(self) -> sw.Bool:
        return self.lease == Lease.held
"""
    file.write_text(LEASE.read_text() + witness)
    run(file, "--scope", "node=2", "--kind", "lose")
    assert "not decided here, but at Node=1: it_is_held" in capsys.readouterr().out
    run(file, "--scope", "node=2", "--kind", "lose", "--json")
    assert document(capsys)["sought_elsewhere"] == {"it_is_held": "Node=1"}
    run(file, "--scope", "node=1", "--scope", "node=2", "--kind", "lose", "--json")
    assert document(capsys)["sought_elsewhere"] == {}


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--action", "preß"], "has no action `preß`"),
        (["--scope", "switch=3", "--size", "node=2"], "both given"),
        (["--scope", "node=2"], "no entity named `node`"),
        (["--profile", "new"], "has no profiles"),
    ],
)
def test_bad_input_is_reported(
    toggle: Path, capsys: pytest.CaptureFixture[str], words: list[str], printed: str
) -> None:
    assert run(toggle, *words) == ExitCode.BAD_INPUT
    assert printed in capsys.readouterr().err


def test_a_machine_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == ExitCode.BAD_INPUT
    assert "no machine is named" in capsys.readouterr().err


def test_known_bugs_are_found_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.checker.mutation.test_known import FOUND, KEPT

    import stagewright.machines.known_bugs as known_bugs
    from stagewright.spec.known_bugs import Absence, NotFound

    absent = NotFound("X9", "crossing #9", Absence.OUT_OF_SCOPE, "no bridge is described")
    monkeypatch.setattr(known_bugs, "KNOWN_BUGS", (FOUND,))
    monkeypatch.setattr(known_bugs, "NOT_FOUND", (absent,))
    assert run("--known", "--out", tmp_path) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "nobody_crosses_at_red" in printed
    assert "no bridge is described" in printed
    assert "found 1 of 2" in printed
    assert json.loads((tmp_path / "known-bugs.json").read_text("utf-8"))["found"] == 1
    monkeypatch.setattr(known_bugs, "KNOWN_BUGS", (FOUND, KEPT))
    assert run("--known", "--json") == ExitCode.VIOLATED
    found = document(capsys)
    assert (found["found"], found["of"]) == (1, 3)


def test_known_bugs_of_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--known", "tests.checker.mutation.machines:Crossing") == ExitCode.BAD_INPUT
    assert "Crossing declares no known bug" in capsys.readouterr().err


def test_texts_of_a_machine_end_no_page_and_no_line(
    hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(hostile, "--out", tmp_path / "found", "--verbose") == ExitCode.VIOLATED
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    page = (tmp_path / "found" / "mutants.html").read_text("utf-8")
    assert "<b>" not in page
    json.loads((tmp_path / "found" / "mutants.json").read_text("utf-8"))
