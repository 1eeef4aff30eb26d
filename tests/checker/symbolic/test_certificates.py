"""The SMT-LIB files say what the report says, and other solvers agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import z3

from stagewright.checker.symbolic.certificates import Script, write_scripts
from stagewright.spec.errors import InputError
from stagewright.spec.verdict import Outcome, PropertyVerdict

Prove = Callable[..., dict[str, PropertyVerdict]]
MACHINES = ["Handover", "HastyHandover", "TwoRingsStrengthened", "ShortRuns", "Exchange", "Pacing"]


def by_default_z3(text: str) -> str:
    """The answer of Z3's general solver, which shares neither our terms nor the solver we used."""
    solver = z3.Solver(ctx=z3.Context())
    solver.from_string(text)
    return str(solver.check())


def by_cvc5(text: str) -> str:
    cvc5 = pytest.importorskip("cvc5", reason="the second solver is not installed")
    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "condition")
    said, symbols = "", parser.getSymbolManager()
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, symbols)
    return said.strip()


def expected(text: str) -> str:
    (line,) = [one for one in text.splitlines() if one.startswith("; expected: ")]
    assert f"(set-info :status {line.removeprefix('; expected: ')})" in text
    return line.removeprefix("; expected: ")


@pytest.mark.parametrize("solver", [by_default_z3, by_cvc5])
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("simple", [False, True])
def test_another_solver_gives_the_expected_answers(
    solver: Callable[[str], str], name: str, simple: bool, verdicts: Prove, tmp_path: Path
) -> None:
    found = verdicts(name, max_k=3, depth=4, simple_paths=simple, smtlib=tmp_path)
    files = sorted(tmp_path.iterdir())
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert (file.name, solver(text)) == (file.name, expected(text))
    assert_complete(found, {f.name: expected(f.read_text(encoding="utf-8")) for f in files})


def assert_complete(found: dict[str, PropertyVerdict], status: dict[str, str]) -> None:
    """Every verdict has the conditions that it rests on."""
    for verdict in found.values():
        stem = verdict.name.replace(" ", "-")
        own = {name: answer for name, answer in status.items() if name.startswith(f"{stem}.")}
        base = {answer for name, answer in own.items() if ".base-" in name}
        match verdict.outcome:
            case Outcome.HOLDS:
                assert set(own.values()) == {"unsat"}
                assert any(".step-" in name or ".no-run-" in name for name in own)
                assert base == {"unsat"}
            case Outcome.VIOLATED:
                (broken,) = [name for name in own if ".broken-" in name]
                assert own[broken] == "sat"
                assert verdict.run is not None
                assert f".broken-{len(verdict.run.steps)}." in broken
            case Outcome.UNDECIDED:
                assert [a for n, a in own.items() if ".step-" in n] == ["sat"]
                assert base == {"unsat"}


def test_a_proof_needs_its_lemma(verdicts: Prove, tmp_path: Path) -> None:
    """Without the strengthening the same condition has the other answer."""
    verdicts("TwoRingsStrengthened", smtlib=tmp_path / "with")
    verdicts("TwoRings", max_k=1, smtlib=tmp_path / "without")
    step = "never_five.step-1.smt2"
    assert by_default_z3((tmp_path / "with" / step).read_text(encoding="utf-8")) == "unsat"
    assert by_default_z3((tmp_path / "without" / step).read_text(encoding="utf-8")) == "sat"
    assert "proved before: `stays_home`" in (tmp_path / "with" / step).read_text(encoding="utf-8")


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot write SMT-LIB files here"):
        write_scripts([Script("a.smt2", "sat", "")], blocked / "inside")


def test_writing_leaves_nothing_but_whole_files(tmp_path: Path) -> None:
    written = write_scripts([Script("a.smt2", "sat", "(check-sat)\n")], tmp_path / "deep" / "er")
    assert list((tmp_path / "deep" / "er").iterdir()) == written
    assert written[0].read_text(encoding="utf-8") == "(check-sat)\n"
