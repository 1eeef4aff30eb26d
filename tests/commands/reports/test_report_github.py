"""`--github`: annotations as the runner reads them, and the summary of the job."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.reports import github
from stagewright.commands.reports.github import MOST_MESSAGE, SUMMARY_BYTES
from stagewright.commands.reports.suite import Level, Remark, Suite
from stagewright.spec.verdict import Outcome

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests" / "models"
TURNSTILE = str(MODELS / "turnstile.py")
COMMIT = str(MODELS / "two_phase_commit.py")

Captured = pytest.CaptureFixture[str]


class Annotation(NamedTuple):
    """One workflow command, read back."""

    kind: str
    properties: dict[str, str]
    message: str


def read(line: str) -> Annotation:
    """A line as the runner reads it: the first `::` begins, the next one ends name and properties."""
    opened, named, message = line.split("::", maxsplit=2)
    assert opened == ""
    kind, _, listed = named.partition(" ")
    pairs = [entry.split("=", maxsplit=1) for entry in listed.split(",") if entry]
    return Annotation(kind, {key: _value(value) for key, value in pairs}, _text(message))


def _text(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def _value(text: str) -> str:
    text = text.replace("%0D", "\r").replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",")
    return text.replace("%25", "%")


def annotated(capsys: Captured, *words: str) -> tuple[int, list[Annotation]]:
    """The exit code of a command, and its annotations."""
    code = run_command_line([*words])
    lines = [*capsys.readouterr().err.splitlines()]
    return code, [read(line) for line in lines if line.startswith("::")]


def test_a_command_escapes_what_would_end_it() -> None:
    properties, message = {"title": "a::b, 100%\r\nc", "file": "%0A.py"}, "x::y, 50%\r\n%0Az"
    line = github.command("error", properties, message)
    assert line == (
        "::error title=a%3A%3Ab%2C 100%25%0D%0Ac,file=%250A.py::x::y, 50%25%0D%0A%250Az"
    )
    assert read(line) == ("error", properties, message)


def test_a_broken_promise_is_an_error_on_its_lines(capsys: Captured) -> None:
    code, found = annotated(capsys, "check", TURNSTILE, "--github")
    assert code == 1
    assert Counter(one.kind for one in found) == {"error": 7, "warning": 3}
    small = found[0]
    assert small.properties == {
        "file": "tests/models/turnstile.py",
        "line": "90",
        "endLine": "92",
        "title": "Turnstile breaks small after 3 steps",
    }
    assert small.message.splitlines()[:3] == [
        "The count stays below two.",
        "It is false in state 3:",
        "  count (2) ≥ 2",
    ]
    assert "  3  Turnstile: tick\nat Gate=2, kicks=1; reproduce: stagewright check" in small.message
    assert [one.properties["title"] for one in found if one.kind == "warning"] == [
        "Turnstile: nowhere_is_empty is vacuous",
        "Turnstile: never_ends is vacuous",
        "action never happens: vanish",
    ]


def test_what_holds_is_not_annotated(capsys: Captured) -> None:
    assert annotated(capsys, "check", COMMIT, "--github") == (0, [])


def test_what_a_spent_budget_leaves_open_is_reported_once(capsys: Captured) -> None:
    code, found = annotated(capsys, "check", COMMIT, "--max-depth", "1", "--github")
    assert code == 3
    assert [one.kind for one in found] == ["warning", "notice", "notice"]
    assert found[0].properties["title"] == "TwoPhaseCommit: 4 properties are undecided"
    assert found[0].message.splitlines()[0].startswith("not exhausted: ")
    assert "consistent: no violation up to depth 1 (not exhausted)" in found[0].message
    assert found[1].properties["title"] == "TwoPhaseCommit: 4 x action never happens"
    assert len(found[1].message.splitlines()) == 4
    assert "`commit` of TwoPhaseCommit never happened so far." in found[1].message


def test_a_single_open_question_is_a_warning_on_its_lines(capsys: Captured) -> None:
    words = ["check", COMMIT, "--max-depth", "3", "--property", "consistent", "--github"]
    code, found = annotated(capsys, *words)
    assert code == 3
    (undecided,) = [one for one in found if one.kind == "warning"]
    assert undecided.properties["title"] == "TwoPhaseCommit: consistent is undecided"
    line = Path(COMMIT).read_text().splitlines()[int(undecided.properties["line"]) - 1]
    assert "def consistent" in line


def test_github_is_told_by_itself_where_it_runs_unless_it_is_not_to_be(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert annotated(capsys, "check", TURNSTILE)[1] == []
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert annotated(capsys, "check", TURNSTILE)[1] != []
    assert annotated(capsys, "check", TURNSTILE, "--no-github")[1] == []


def test_annotations_leave_standard_output_to_the_report(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    run_command_line(["check", TURNSTILE, "--json"])
    assert "::error" not in capsys.readouterr().out


def test_hostile_text_forges_no_command(
    hostile: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hostile.parent.parent / ".git").mkdir()
    code, found = annotated(capsys, "check", str(hostile), "--github")
    assert code == 1
    assert len(found) == 2  # the promise and the deadlock; none that the texts ask for
    assert found[0].properties["file"] == "od d,%ü/odd.py"
    assert "100% of: 3, ]]> \\ud800\\x07." in found[0].message
    assert "`a, b: c%\\r\n::error::x | `y` \\x00]]>`" in found[1].message


def test_a_file_outside_of_the_repository_is_not_named(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "turnstile.py").write_text(Path(TURNSTILE).read_text())
    monkeypatch.chdir(inside)
    _, found = annotated(capsys, "check", "../outside/turnstile.py", "--github")
    assert found
    assert all("file" not in one.properties for one in found)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    _, found = annotated(capsys, "check", "../outside/turnstile.py", "--github")
    assert {one.properties["file"] for one in found} == {"outside/turnstile.py"}


def test_files_are_named_from_the_root_of_their_own_repository(
    tmp_path: Path, capsys: Captured
) -> None:
    inner = tmp_path / "vendored"
    (inner / "machines").mkdir(parents=True)
    for repository in (tmp_path, inner):
        (repository / ".git").mkdir()
    file = inner / "machines" / "turnstile.py"
    file.write_text(Path(TURNSTILE).read_text())
    _, found = annotated(capsys, "check", str(file), "--github")
    assert {one.properties["file"] for one in found} == {"machines/turnstile.py"}


def test_bad_input_is_annotated_where_it_is_written(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    file = tmp_path / "light.py"
    file.write_text(
        "from stagewright.spec import Machine, action, flag\n\n\nclass Light(Machine):\n"
        "    on = flag()\n\n    @action\n    def switch(self) -> None:\n        self.off = ~self.on\n"
    )
    code, found = annotated(capsys, "check", str(file), "--github")
    assert code == 2
    ((kind, properties, message),) = found
    assert (kind, properties["file"], properties["line"]) == ("error", "light.py", "9")
    assert properties["title"].startswith("SW103: ")
    assert "\nhelp: " in message
    assert annotated(capsys, "check", str(file), "--no-github") == (2, [])


def suite_of(remarks: int, text: str = "") -> Suite:
    """A suite with so many remarks."""
    printed = tuple(
        Remark("action-never-happens", f"a{i}", Level.WARNING, f"`a{i}` {text}", None)
        for i in range(remarks)
    )
    return Suite("check", "Many", "", "none", Outcome.HOLDS, (), "0 states", "again", None, printed)


@pytest.mark.parametrize(("remarks", "shown"), [(10, 10), (11, 10), (500, 10)])
def test_what_github_would_drop_is_counted(remarks: int, shown: int) -> None:
    found = [read(line) for line in github.workflow_commands([suite_of(remarks)])]
    assert len(found) == shown
    if remarks > shown:
        assert found[-1].properties["title"] == f"{remarks - 9} more of this kind"
        assert [one.properties["title"] for one in found[:-1]] == [
            f"action never happens: a{i}" for i in range(9)
        ]
        assert "action never happens: a9\n" in found[-1].message


def test_no_message_is_longer_than_the_runner_takes() -> None:
    (line,) = github.workflow_commands([suite_of(1, "x" * 10_000)])
    message = read(line).message
    assert len(message) == MOST_MESSAGE
    assert message.endswith("(10,005 characters in all)")


def test_the_summary_has_a_table_and_every_counterexample(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert annotated(capsys, "check", TURNSTILE)[0] == 1
    assert file.read_text() == "before\n"  # not asked for
    assert annotated(capsys, "check", TURNSTILE, "--github")[0] == 1
    text = file.read_text(encoding="utf-8")
    assert text.startswith("before\n\n## ❌ Turnstile: check\n")
    assert "| ❌ | <code>small</code> | Turnstile breaks small after 3 steps: The count" in text
    assert "| ✅ | <code>nowhere&#95;is&#95;empty</code> | holds in all 7 states; vacuous" in text
    assert text.count("<details>") == text.count("</details>") == 8
    assert "`vanish` of Turnstile never happened." in text
    assert annotated(capsys, "check", COMMIT, "--github")[0] == 0
    assert "## ✅ TwoPhaseCommit: check" in file.read_text(encoding="utf-8")


def test_hostile_text_does_not_leave_its_cell_or_fence(
    hostile: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    annotated(capsys, "check", str(hostile), "--github")
    text = file.read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if "<code>stays</code>" in line]
    assert row.count("|") == 4
    assert "<!--" not in row
    # The promise quotes a fence of three: the ones around it are longer.
    assert text.count("\n````text\n") == text.count("\n````\n") == 1


def test_a_summary_that_github_would_refuse_is_cut_and_says_so() -> None:
    suites = [suite_of(2_000, "x" * 100) for _ in range(10)]
    text = github.summary(suites)
    assert SUMMARY_BYTES // 2 < len(text.encode()) <= SUMMARY_BYTES
    assert text.rstrip().endswith("more parts did not fit into this summary.*")
    assert github.summary(suites, room=50) == ""


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full.md"
    full.write_bytes(b"x" * SUMMARY_BYTES)
    for place, printed in ((tmp_path, "Is a directory"), (full, "it is full")):
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
        code, found = annotated(capsys, "check", COMMIT, "--github")
        assert code == 0
        assert found[-1].kind == "warning"
        assert found[-1].message.endswith(printed)
    assert full.stat().st_size == SUMMARY_BYTES
