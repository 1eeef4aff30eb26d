"""`show` and `export`: a machine in words, two profiles compared, diagrams and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.pages.state_diagram import render_diagram
from stagewright.spec.errors import InputError
from stagewright.spec.loading import load
from stagewright.spec.text.state_diagram import diagram_of

MODEL = Path(__file__).resolve().parents[1] / "models" / "broken.py"
MIGRATION = f"{MODEL}:Migration"
WORKERS = f"{MODEL}:Workers"

PROFILES = '''
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import (
    Machine, Profile, action, flag, invariant, Bool, one_of, only_when, profiles, require,
)


class Light(Enum):
    """A traffic light."""

    red = auto()
    green = auto()
    off = auto()


@dataclass(frozen=True)
class Release(Profile):
    night: bool = False


class Crossing(Machine):
    """A crossing with a light."""

    release = profiles(Release("day"), Release("night", night=True))
    light = one_of(Light, init=Light.red)
    waiting = flag()

    @action
    def come(self) -> None:
        """Somebody comes."""
        require(~self.waiting, "nobody waits")
        self.waiting = True

    @action
    def go(self) -> None:
        """The light turns green."""
        require(self.light == Light.red, "red")
        if not self.release.night:
            require(self.waiting, "somebody waits")
        self.light = Light.green
        self.waiting = False

    @light.step(Light.green, Light.red)
    def stop(self) -> None:
        """The light turns red."""

    @light.step((Light.red, Light.green), Light.off)
    def switch_off(self) -> None:
        """Nobody needs it at night."""
        only_when(self.release.night)

    @invariant
    def fine(self) -> Bool:
        """It is red or green."""
        return self.light.any_of(Light.red, Light.green)
'''


@pytest.fixture
def crossing(tmp_path: Path) -> str:
    path = tmp_path / "crossing.py"
    path.write_text(PROFILES)
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command_line(words) == 0
    return capsys.readouterr().out


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command_line(words) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_show_prints_states_actions_and_promises(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(output(capsys, "show", WORKERS))
    assert lines[0] == "Workers"
    assert "owner       Node or none per Task    none" in lines
    assert "budget crashes: 1, faults: crashes of a worker" in lines
    assert "crash(n: Node, heir: Node)  spends crashes" in lines
    assert "it owns a task: some t in Task: owner[t] = n" in lines
    assert "then leader becomes heir" in lines
    assert "size of done ≤ 1 and (no t in Task: rows[t].written)" in lines


def test_show_prints_an_enum_as_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(output(capsys, "show", MIGRATION))
    at = next(i for i, line in enumerate(lines) if line.split() == ["Stage", "writes", "reads"])
    assert lines[at + 1].split() == ["rest", "{old}", "{old}"]
    assert lines[at + 4].split() == ["cleanup", "{new}", "{new}"]


def test_show_as_json_holds_the_same_facts(capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(output(capsys, "show", MIGRATION, "--json"))
    assert facts["name"] == "Migration"
    learn = next(a for a in facts["actions"] if a["name"] == "learn")
    assert learn["requirements"] == ["the stage is news: learned[n] ≠ stage"]
    assert learn["effects"] == ["learned[n] becomes stage"]
    assert [p["kind"] for p in facts["properties"]] == [
        "invariant",
        "invariant",
        "step property",
        "always reachable",
        "leads to",
    ]


def test_show_as_markdown_is_a_page_with_tables(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "show", MIGRATION, "--to", "markdown")
    assert text.startswith("# Migration\n")
    assert "| Stage | writes | reads |\n| --- | --- | --- |\n| rest | \\{old\\} |" in text
    assert "- then learned\\[n\\] becomes stage\n" in text


def test_compare_prints_what_a_profile_adds_removes_and_changes(
    capsys: pytest.CaptureFixture[str], crossing: str
) -> None:
    text = output(capsys, "show", crossing, "--profile", "night", "--compare", "day")
    assert text.splitlines() == [
        "from day to night",
        "",
        "actions",
        "~ go",
        "-     when somebody waits: waiting",
        "+ switch_off",
        "+     when light is red or green: light is one of red, green",
        "+     then light becomes off",
    ]


def test_compare_the_other_way_round_is_the_mirror_image(
    capsys: pytest.CaptureFixture[str], crossing: str
) -> None:
    there = output(capsys, "show", crossing, "--profile", "day", "--compare", "night")
    back = output(capsys, "show", crossing, "--profile", "night", "--compare", "day")
    swapped = str.maketrans("+-", "-+")
    assert sorted(line.translate(swapped) for line in there.splitlines()[2:]) == sorted(
        back.splitlines()[2:]
    )


def test_another_machine_is_compared(capsys: pytest.CaptureFixture[str], crossing: str) -> None:
    text = output(capsys, "show", crossing, "--profile", "night", "--compare", MIGRATION)
    assert text.splitlines()[0] == "from Migration to Crossing"
    assert "- learn" in text.splitlines()
    assert "+ switch_off" in text.splitlines()
    same = json.loads(output(capsys, "show", MIGRATION, "--compare", MIGRATION, "--json"))
    assert same == {"from": "Migration", "to": "Migration", "differences": []}


def test_a_profile_compared_with_itself_says_the_same(
    capsys: pytest.CaptureFixture[str], crossing: str
) -> None:
    text = output(capsys, "show", crossing, "--profile", "day", "--compare", "day")
    assert text.splitlines()[-1] == "they say the same"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("show", "nothing-like-it"), "there is no machine `nothing-like-it`"),
        (("show", MIGRATION, "--compare", "dawn"), "`dawn`"),
        (("show", WORKERS, "--to", "mermaid"), "has no enum variable to draw"),
        (("export", WORKERS, "--to", "itf"), "--to itf writes a run, and none is given"),
        (("export", MIGRATION, "--to", "mermaid", "--variable", "x"), "no enum variable `x`"),
        (("export", MIGRATION, "--to", "itf", "--run", "/no/such"), "cannot read /no/such"),
    ],
)
def test_bad_use_is_one_clear_error(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in complaint(capsys, *words)


@pytest.mark.parametrize("words", [("show", "--to"), ("export", "--to")])
def test_show_and_export_draw_what_runs_take(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str], crossing: str
) -> None:
    command, form = words
    text = output(capsys, command, crossing, "--profile", "night", form, "mermaid")
    assert 'title: "light: edges that runs take at the default scope, in all of its' in text
    assert "    s0 --> s1: go\n" in text


def test_a_state_diagram_by_guards_has_the_edges_that_the_actions_allow(crossing: str) -> None:
    diagram = diagram_of(load(crossing, "night"))
    edges = [(a.name, b.name, action) for a, b, action in diagram.edges]
    assert edges == [
        ("red", "green", "go"),
        ("green", "red", "stop"),
        ("red", "off", "switch_off"),
        ("green", "off", "switch_off"),
    ]
    assert render_diagram(diagram) == (
        '---\ntitle: "light: edges read off the guards; runs may take fewer"\n---\n'
        "stateDiagram-v2\n"
        '    state "red" as s0\n'
        '    state "green" as s1\n'
        '    state "off" as s2\n'
        "    [*] --> s0\n"
        "    s0 --> s1: go\n"
        "    s1 --> s0: stop\n"
        "    s0 --> s2: switch_off\n"
        "    s1 --> s2: switch_off\n"
    )


def test_a_target_that_is_not_known_is_named_instead_of_drawn() -> None:
    diagram = diagram_of(load(MIGRATION), "learned")
    assert diagram.edges == ()
    assert diagram.undrawn == ("learn",)
    assert "%% not drawn, for their targets depend on more: learn" in render_diagram(diagram)


def test_the_diagram_shows_the_variable_with_most_edges_unless_told() -> None:
    assert diagram_of(load(MIGRATION)).variable == "stage"
    with pytest.raises(InputError, match="known: stage, learned"):
        diagram_of(load(MIGRATION), "stagee")


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """A violation as `check --out` writes it."""
    from stagewright.checker.check import check
    from stagewright.checker.counterexample import write_all
    from stagewright.spec.scope import scope_of

    definition = load(MIGRATION)
    scope = scope_of(definition)
    report = check(definition, scope, properties=["no_lag"])
    verdict = next(v for v in report.verdicts if v.name == "no_lag")
    return next(p for p in write_all(definition, verdict, tmp_path, scope) if p.suffix == ".json")


def test_a_run_that_check_wrote_is_written_again_in_every_form(
    capsys: pytest.CaptureFixture[str], run_file: Path, tmp_path: Path
) -> None:
    def exported(form: str) -> str:
        return output(capsys, "export", MIGRATION, "--run", str(run_file), "--to", form)

    assert exported("mermaid").startswith("sequenceDiagram\n")
    assert exported("text").startswith("Migration breaks no_lag after 1 step\n")
    assert exported("html").startswith("<!doctype html>\n")
    assert json.loads(exported("itf"))["states"] == json.loads(run_file.read_text())["states"]
    target = tmp_path / "again.html"
    output(
        capsys, "export", MIGRATION, "--run", str(run_file), "--to", "html", "--out", str(target)
    )
    assert target.read_text().startswith("<!doctype html>\n")


def test_a_run_of_another_machine_is_refused(
    capsys: pytest.CaptureFixture[str], run_file: Path, crossing: str
) -> None:
    words = ("export", crossing, "--run", str(run_file), "--to", "text")
    assert "which is no variable" in complaint(capsys, *words)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 100_000, b"3"])
def test_a_file_that_is_no_itf_is_refused(
    content: bytes, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "run.itf.json"
    path.write_bytes(content)
    assert "error[SW400]" in complaint(
        capsys, "export", MIGRATION, "--run", str(path), "--to", "itf"
    )
