"""`draw` and `docs`: diagrams, tables and pages from the definitions, and `check --all`."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.commands.pages.page_facts import facts_of
from tests.thorough import THOROUGH

from stagewright.commands import run_command_line
from stagewright.commands.pages.machine_page import page_of
from stagewright.machines import SHIPPED
from stagewright.machines.known_bugs import KNOWN_BUGS
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.define import define
from stagewright.spec.loading import find

LEASE = Path(__file__).resolve().parents[2] / "models" / "lease.py"
DOCS = Path(__file__).resolve().parents[3] / "docs" / "machines"
QUICKLY = ("index-permissions", "index-triggers", "topology-node", "view-task")
LONGEST_PAGE = 65_000  # characters
SVG = "{http://www.w3.org/2000/svg}"


def drawn(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command_line(["draw", *words]) == 0
    return capsys.readouterr().out


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()).strip() for t in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_svg_shows_every_stage_and_every_edge_of_the_definition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = texts(drawn(capsys, "tablet-migration", "--to", "svg"))
    assert {stage.name for stage in Stage} <= set(shown)
    assert {"write_both", "give_up_after_fall_back", "finish_revert"} <= set(shown)


def test_an_older_version_is_drawn_without_what_it_lacks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mermaid = drawn(capsys, "tablet-migration", "--profile", "seed")
    assert mermaid.splitlines()[3] == "stateDiagram-v2"
    assert "revert_migration" not in mermaid
    assert "finish_without_cleanup" in mermaid


def test_the_stage_table_has_a_row_a_stage_and_its_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = texts(drawn(capsys, "tablet-migration", "--table", "--to", "svg"))
    assert cells[:6] == ["Stage", "writes", "reads", "storage", "barrier", "action"]
    row = cells.index("use_new")
    assert cells[row : row + 6] == ["use_new", "next", "next", "both", "yes", "nothing"]
    mermaid = drawn(capsys, "tablet-migration", "--table")
    assert mermaid.startswith("block-beta\n    columns 6\n")
    assert len(re.findall(r"^    r\d+c0", mermaid, re.MULTILINE)) == len(Stage) + 1


def test_a_users_machine_is_drawn_into_a_directory_in_every_form(tmp_path: Path) -> None:
    assert run_command_line(["draw", str(LEASE), "--out", str(tmp_path / "d")]) == 0
    names = {file.name.rpartition(".")[0] for file in (tmp_path / "d").iterdir()}
    assert len(list((tmp_path / "d").iterdir())) == 2 * len(names) == 4
    for file in (tmp_path / "d").glob("*.svg"):
        assert texts(file.read_text())


def test_contradicting_flags_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["draw", "tablet-migration", "--table", "--out", "d"]) == 2
    assert "drop --table" in capsys.readouterr().err
    assert run_command_line(["draw", "tablet-migration", "--variable", "stages"]) == 2
    assert "no enum variable `stages`" in capsys.readouterr().err


def test_a_missing_program_is_named_with_the_mend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert run_command_line(["draw", "tablet-migration", "--to", "svg"]) == 2
    assert "graphviz-pure" in capsys.readouterr().err


@pytest.mark.parametrize("name", SHIPPED)
def test_the_pages_in_the_repository_say_in_short_what_the_definitions_say(name: str) -> None:
    """An order or a sentence that has changed is no reason to refuse a definition: `stagewright docs` brings it."""
    page = page_of(name, SHIPPED, KNOWN_BUGS, drawn=False)
    assert len(page.markdown) < LONGEST_PAGE
    written = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    undrawn = re.sub(r"^## States of .*?(?=^## )", "", written, flags=re.DOTALL | re.MULTILINE)
    assert facts_of(undrawn) == facts_of(page.markdown), "write them again: stagewright docs"
    if THOROUGH:
        assert undrawn == page.markdown, "write them again: stagewright docs"


def test_a_page_is_of_another_definition_if_a_guard_a_promise_or_an_edge_is_another_one() -> None:
    page = page_of("view-task", SHIPPED, KNOWN_BUGS).markdown
    rows = page.splitlines()
    drop, abort = (
        next(row for row in rows if row.startswith(f"| `{n}`")) for n in ("drop", "abort")
    )
    same = page.replace(drop, "DROP").replace(abort, drop).replace("DROP", abort)
    same = same.replace("the task itself is still needed", "the task is needed all the same")
    same = same.replace(": drop, give_way", ": give_way, drop")
    assert same != page
    assert facts_of(same) == facts_of(page)
    for old, new in (
        ("life is normal or aborted", "life is normal"),
        ("s2 --> s4: drop, give_way", "s2 --> s4: drop"),
        ("| `answers_are_true` | invariant |", "| `answers_are_right` | invariant |"),
        ("in all of its 1,320 states", "in all of its 1,319 states"),
    ):
        assert old in page
        assert facts_of(page.replace(old, new)) != facts_of(page)


def test_a_page_of_a_system_leaves_its_parts_to_their_pages_and_names_each_promise() -> None:
    page = page_of("cluster-views", SHIPPED, KNOWN_BUGS, drawn=False).markdown
    (listed,) = re.findall(r"Properties of the part `tablet`, see \[tablet-migration\].*", page)
    promised = {p.name for p in define(find("tablet-migration", SHIPPED)).properties}
    left_out = {n.name for n in define(find("cluster-views", SHIPPED)).not_asked}
    asked = {name for name in promised if f"tablet.{name}" not in left_out}
    assert asked == set(re.findall(r"`(\w+)`", listed)[1:])
    assert len(promised - asked) == 2, "nobody repairs, or gives up dead nodes, there"
    promises = page.partition("## Properties")[2].partition("## What parts promise")[0]
    assert re.findall(r"^\| `tablet\.", promises, re.MULTILINE) == []


def test_the_versions_on_a_page_differ_in_brief() -> None:
    page = page_of("view-resize", SHIPPED, KNOWN_BUGS, drawn=False).markdown
    (lines,) = re.findall(r"```diff\n(.*?)```", page, re.DOTALL)
    assert "- split_all: All tablets split: the task of tablet n becomes" in lines
    assert "+ split: A tablet splits after slot `s`" in lines
    page = page_of("topology-control", SHIPPED, KNOWN_BUGS, drawn=False).markdown
    assert (
        "~ commit_generation\n-     then transition_state becomes publish_cdc_generation\n" in page
    )
    assert "~     when no request to replace comes before it otherwise\n" in page
    assert "`stagewright show topology-control --compare seed`" in page


SEARCHED = [
    pytest.param(name, marks=() if name in QUICKLY else pytest.mark.thorough) for name in SHIPPED
]


@pytest.mark.parametrize("name", SEARCHED)
def test_the_pages_in_the_repository_draw_the_edges_that_runs_take(name: str) -> None:
    page = page_of(name, SHIPPED, KNOWN_BUGS)
    written = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert facts_of(written) == facts_of(page.markdown), "write them again: stagewright docs"
    assert (page.diagram is None) or (DOCS / f"{name}.svg").exists()


def test_an_edge_that_the_guards_allow_and_no_run_takes_is_not_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mermaid = drawn(capsys, "index-permissions")
    assert "at the default scope, in all of its" in mermaid.splitlines()[1]
    assert "    %% default scope: Server=2" in mermaid.splitlines()
    assert len(re.findall(r"^    s\d --> s\d: ", mermaid, re.MULTILINE)) == 11
    assert "    s3 --> s4: publish\n" in mermaid
    assert "    %% delete_only --> read_write_and_delete: publish\n" in mermaid


def test_an_edge_of_another_scope_than_the_default_one_is_marked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mermaid = drawn(capsys, "view-building")
    assert re.search(r"^    s\d --> s\d: .*\*", mermaid, re.MULTILINE)
    assert "    %% marked by a star: taken at other scopes only\n" in mermaid
    dot = drawn(capsys, "view-building", "--to", "dot")
    assert 'style="dashed"' in dot
    assert "dashed: at other scopes only" in dot


def test_a_scope_can_be_asked_for_and_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    title = drawn(capsys, "index-permissions", "--size", "server=1").splitlines()[1]
    assert "edges that runs take at Server=1, in all of its" in title
    assert run_command_line(["draw", "index-permissions", "--table", "--size", "server=1"]) == 2
    assert "drop --size, or --table" in capsys.readouterr().err


def test_of_a_machine_that_is_too_big_it_is_said_how_much_was_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = drawn(capsys, "index-permissions", "--max-states", "100")
    printed = re.search(r"edges seen in (\d+) orbits of states, up to depth \d+", text)
    assert printed is not None
    assert int(printed[1]) <= 100
    assert "there are more states, and perhaps more edges" in text
    assert "no run takes them" not in text


def test_of_a_machine_that_cannot_be_searched_the_guards_are_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = drawn(capsys, "index-permissions", "--max-states", "1")
    assert "edges read off the guards; runs may take fewer" in text
    assert "could not be searched for: the limit of 1 states was reached" in text


def test_what_an_older_version_leaves_open_is_written_with_its_run(tmp_path: Path) -> None:
    assert run_command_line(["docs", "tablet-migration", "--out", str(tmp_path)]) == 0
    printed = (tmp_path / "machines" / "tablet-migration" / "README.md").read_text(encoding="utf-8")
    assert "## seed" in printed
    links = re.findall(r"\]\((.+?\.md)\)", printed)
    for link in links:
        run = (tmp_path / "machines" / "tablet-migration" / link).read_text(encoding="utf-8")
        assert "```mermaid" in run


def test_check_all_reports_one_line_a_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "stagewright.machines.SHIPPED",
        {"lease": "tests.models.lease:LeaseTable", "tablet-migration": SHIPPED["tablet-migration"]},
    )
    assert run_command_line(["check", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["✓", "lease"], ["✓", "tablet-migration"]]
    assert lines[2].startswith("5 checks: 5 hold; ")  # the second at four scopes
    assert run_command_line(["check", "--all", "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [r["machine"] for r in reports] == ["LeaseTable", *["TabletMigration"] * 4]
    assert run_command_line(["check", "tablet", "--all"]) == 2
    assert "MACHINE is said of one" in capsys.readouterr().err


def test_the_catalog_lists_the_machines_as_they_are_defined(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["list", "--json"]) == 0
    catalog = json.loads(capsys.readouterr().out)
    assert run_command_line(["list", "--fresh", "--json"]) == 0
    fresh = json.loads(capsys.readouterr().out)
    assert catalog == fresh, "run `stagewright list --fresh --json > machines/catalog.json`"
    assert [row["name"] for row in catalog["machines"]] == list(SHIPPED)


def test_only_machines_that_there_are_have_pages() -> None:
    pages = {path.name.removesuffix(".md") for path in DOCS.iterdir() if path.suffix != ".svg"}
    assert pages - {"README"} == {*SHIPPED}
