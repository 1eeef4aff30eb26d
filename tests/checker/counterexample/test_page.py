"""The HTML page: nothing from outside, unbroken by hostile names, as a browser shows it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.browser import browse

from stagewright.checker.counterexample import render_mermaid, render_page, write_all
from stagewright.spec.definition import (
    Action,
    Actor,
    Assignment,
    Definition,
    Property,
    PropertyKind,
    Requirement,
    Variable,
)
from stagewright.spec.nodes import BOOL, FALSE, TRUE, Apply, Op, Read
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step

EVIL = "</script><script>document.title='broken'</script>{{title}};end #1 \"'`&"


class Elements(HTMLParser):
    """Counts elements by tag, and keeps the text of each step's title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "action")]


@pytest.fixture(scope="module")
def hostile() -> tuple[Definition, PropertyVerdict]:
    """A violated promise in which every name and text is hostile."""
    flag = Variable(EVIL, BOOL, initial=True, doc=EVIL)
    read = Read(EVIL, BOOL)
    break_it = Action(
        EVIL,
        (),
        (Requirement(EVIL, read),),
        (Assignment(read, FALSE),),
        doc=EVIL,
        actor=Actor(EVIL),
    )
    promise = Property(
        EVIL, PropertyKind.INVARIANT, (), Apply(Op.AND, (read, TRUE), BOOL), doc=EVIL
    )
    definition = Definition(EVIL, EVIL, EVIL, (flag,), (), (), (break_it,), (promise,), FALSE, ())
    states = (FrozenMap({EVIL: True}), FrozenMap({EVIL: False}))
    run = Run(states, (Step(EVIL),))
    return definition, PropertyVerdict(EVIL, Outcome.VIOLATED, EVIL, note=EVIL, run=run)


def test_the_page_needs_nothing_from_outside(
    all_cases: list[tuple[Definition, PropertyVerdict]],
) -> None:
    for definition, verdict in all_cases:
        page = render_page(definition, verdict)
        elements = Elements(page)
        assert elements.links == []
        assert not {"link", "img", "iframe", "object"} & set(elements.tags)
        assert "default-src 'none'" in page


def test_only_the_page_s_own_script_may_run(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    page = render_page(migration, incomplete)
    *_, script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_hostile_names_make_no_elements(
    hostile: tuple[Definition, PropertyVerdict],
    migration: Definition,
    incomplete: PropertyVerdict,
) -> None:
    page = render_page(*hostile)
    assert "<script>document" not in page
    assert Elements(page).tags.count("script") == 2
    assert set(Elements(page).tags) <= set(Elements(render_page(migration, incomplete)).tags)


def test_hostile_names_do_not_fill_slots_of_the_template(
    hostile: tuple[Definition, PropertyVerdict],
) -> None:
    assert render_page(*hostile).count("{{title}}") > 10


def test_hostile_names_do_not_break_the_diagram(
    hostile: tuple[Definition, PropertyVerdict],
) -> None:
    for line in render_mermaid(*hostile).splitlines()[1:]:
        text = re.sub(r"#\d+;", "", line.strip())
        assert re.fullmatch(r"(participant|p0->>p0:|Note over|rect|end)[^;#]*", text)


def test_the_page_holds_the_diagram_and_the_itf_for_copying(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    page = render_page(migration, incomplete)
    assert '<pre id="mermaid">sequenceDiagram' in page
    assert "&quot;mbt::actionTaken&quot;: &quot;read_new&quot;" in page


def test_a_browser_shows_every_step_and_the_last_state(
    tmp_path: Path, migration: Definition, incomplete: PropertyVerdict
) -> None:
    page = next(p for p in write_all(migration, incomplete, tmp_path) if p.suffix == ".html")
    dom = browse(page)
    steps = re.findall(r'<li data-state="(\d+)"', dom)
    assert steps == ["0", "1", "2", "3", "4"]
    assert re.search(r'<li data-state="4"[^>]*aria-current="step"', dom)
    assert '<h2 id="state-title">State after step 4</h2>' in dom
    changed = re.findall(r'<tr class="changed">.*?</tr>', dom)
    assert len(changed) == 1
    assert '<span class="was">{new, old}</span>{old}' in changed[0]


@pytest.mark.parametrize(
    ("keys", "state"),
    [
        (["ArrowLeft"], "State after step 3"),
        (["ArrowLeft", "ArrowLeft", "ArrowRight"], "State after step 3"),
        (["Home"], "State 0"),
        (["Home", "ArrowLeft", "ArrowRight"], "State after step 1"),
        (["ArrowRight"], "State after step 4"),
    ],
)
def test_keys_go_from_step_to_step(
    keys: list[str],
    state: str,
    tmp_path: Path,
    migration: Definition,
    incomplete: PropertyVerdict,
) -> None:
    page = tmp_path / "page.html"
    # A script of the test's own presses the keys: the page's policy must let it.
    text = re.sub(r"<meta http-equiv[^>]*>", "", render_page(migration, incomplete))
    press = "".join(
        f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{k}', bubbles: true}}));"
        for k in keys
    )
    page.write_text(text.replace("</body>", f"<script>{press}</script></body>"))
    assert f'<h2 id="state-title">{state}</h2>' in browse(page)


def test_a_browser_runs_no_script_of_a_hostile_name(
    tmp_path: Path, hostile: tuple[Definition, PropertyVerdict]
) -> None:
    page = next(p for p in write_all(*hostile, tmp_path) if p.suffix == ".html")
    dom = browse(page)
    assert "<title>broken</title>" not in dom
    assert '<h2 id="state-title">State after step 1</h2>' in dom
