"""The files of a trace report: a page that shows everything, a table of all that is not ok, tests to replay."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.browser import browse

from stagewright.commands.pages.coverage_drawings import drawings
from stagewright.commands.reports import github, junit, sarif
from stagewright.commands.reports.of_traces import suite_of
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.coverage.exercised import coverage_of
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.event_block import EntityKey, Stream
from stagewright.traces.events.observability import Recording
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.events.where import Where
from stagewright.traces.options import Options
from stagewright.traces.replay.exact_verdicts import Cause
from stagewright.traces.report.files import write_report
from stagewright.traces.report.page import render_page
from stagewright.traces.report.results import EntityReport, TraceReport, UnparsedLine
from stagewright.traces.validate import validate

EVIL = "</script><script>document.title='broken'</script>{{title}};end #1 \"'`&\x1b[31m\ud800\u202e"
EVIL += "\n::error::x\r::error::x\u2028::error::x\x85::error::x\v::error::x"


class Elements(HTMLParser):
    """The elements of a page by tag, with all that links lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "action")]


def events_of(lease: Any) -> list[Event]:
    start: dict[str, object] = {"phase": "free", "watchers": []}
    return [
        lease.event("good", 0, None, {}, start),
        lease.event("good", 1, None, {}, {}, end=True),
        lease.event("early", 0, None, {}, start),
        lease.event("early", 1, "watch", {"node": "node0"}, {"phase": "free"}),
        lease.event("early", 2, "give_back", {}, {}),
        lease.event("wrong", 0, None, {}, start),
        lease.event("wrong", 1, "watch", {"node": "node0"}, {"watchers": ["node1"]}),
        lease.event("holey", 0, None, {}, start),
        lease.event("holey", 2, None, {}, {}, end=True),
    ]


@pytest.fixture
def report(lease: Any, tmp_path: Path) -> TraceReport:
    """Of one good entity and three others, with what they exercised."""
    path = tmp_path / "trace.jsonl"
    events = events_of(lease)
    path.write_text("".join(e.to_json() + "\n" for e in events) + "no event\n")
    found = validate(
        [path], lease.definition, Options(scope=lambda _: lease.scope), engine=Embedded(1)
    )
    model = ground(lease.definition, lease.scope)
    evaluator = Evaluator(lease.definition, lease.scope, model, of_model(model, Recording()))
    first = [((), symbol_of(e).text, 1) for e in events if e.sequence == 0]
    return replace(
        found, coverage=coverage_of({("Lease", "", ""): evaluator}, {("Lease", "", ""): first})
    )


def test_everything_is_written_and_says_the_same(report: TraceReport, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written = write_report(report, out, command="stagewright validate t.jsonl", draw=drawings)
    names = ["coverage.json", "report.html", "report.json", "report.txt", "violations.parquet"]
    assert sorted(p.name for p in written) == sorted([*names, "violations"])
    assert sorted(p.name for p in out.iterdir()) == sorted([*names, "violations"])
    rows = pq.read_table(out / "violations.parquet").to_pylist()
    listed = json.loads((out / "report.json").read_text())["findings"]
    assert [(r["entity"], r["verdict"], r["cause"], r["sequence"]) for r in rows] == [
        (f["entity"], f["verdict"], f["cause"], f["sequence"]) for f in listed
    ]
    by_entity = {r["entity"]: r for r in rows}
    assert by_entity["early"]["requirement"] == "lease is held"
    assert by_entity["early"]["event"] == "give_back"
    assert by_entity["early"]["line"] == 5
    assert by_entity["wrong"]["differs"] == "watchers"
    assert by_entity["holey"]["verdict"] == "gap"
    tests = sorted(p.name for p in (out / "violations").iterdir())
    assert tests == [
        "001-run-early.itf.json",
        "003-run-wrong.itf.json",
        "test_001_run_early.py",
        "test_003_run_wrong.py",
    ]
    text = (out / "report.txt").read_text()
    assert "1 step would have had to happen between, then the event is legal" in text
    assert "coverage  Lease" in text


def test_files_of_violations_that_are_mended_do_not_stay(
    report: TraceReport, tmp_path: Path
) -> None:
    write_report(report, tmp_path)
    (tmp_path / "violations" / "notes.txt").write_text("mine")
    write_report(replace(report, entities=()), tmp_path)
    assert [p.name for p in (tmp_path / "violations").iterdir()] == ["notes.txt"]


def test_the_page_needs_nothing_from_outside(report: TraceReport, tmp_path: Path) -> None:
    write_report(report, tmp_path, draw=drawings)
    page = (tmp_path / "report.html").read_text()
    elements = Elements(page)
    assert not {"link", "img", "iframe", "object"} & set(elements.tags)
    for link in elements.links:
        assert link.startswith("#e") or (tmp_path / link).is_file(), link
    *_, script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert "http://" not in re.sub(r'xmlns(:xlink)?="http://www.w3.org/[0-9a-z/]*"', "", page)


def test_the_page_reports_kinds_entities_and_coverage(report: TraceReport) -> None:
    page = render_page(report, [drawings(one) for one in report.coverage])
    assert "2 of 4 entities did what the definition does not allow" in page
    assert "conftest.py" in page
    assert page.count('<details class="entity ') == 3
    assert "watchers differs" in page
    assert "must be <b>{node0}</b>, observed was <b>{node1}</b>" in page
    assert 'class="column refused"' in page
    assert 'class="edge never"' in page
    assert "not JSON" in page


def hostile(number: int = 1) -> TraceReport:
    stream = Stream(EVIL, EVIL, EVIL, EVIL)
    entities = tuple(
        EntityReport(
            EntityKey(stream, f"{EVIL}{i}"), TraceVerdict.VIOLATION, Cause.STEP, i, Where(EVIL, i),
            None, note=EVIL,
        )
        for i in range(number)
    )  # fmt: skip
    from stagewright.traces.report.results import Totals

    counts = {TraceVerdict.VIOLATION: number}
    lines = (UnparsedLine(Where(EVIL, 1), EVIL),)
    return TraceReport((EVIL,), {EVIL: counts}, counts, Totals(), entities, 0, lines, (EVIL,))


def test_hostile_names_are_reported_and_do_nothing(tmp_path: Path) -> None:
    write_report(hostile(), tmp_path)
    page = tmp_path / "report.html"
    assert len(Elements(page.read_text()).tags) > 40
    dom = browse(page, fragment="e1")
    assert "<title>broken</title>" not in dom
    assert '<details class="entity violation" id="e1"' in dom
    (row,) = pq.read_table(tmp_path / "violations.parquet").to_pylist()
    assert row["trace"].startswith("</script>")


def test_no_name_begins_a_line_of_its_own(tmp_path: Path) -> None:
    where = Where("t.jsonl\n::error::x", 1)
    (entity,) = hostile().entities
    lines = (UnparsedLine(where, EVIL),)
    report = replace(hostile(), entities=(replace(entity, where=where),), unparsed=lines)
    write_report(report, tmp_path)
    suites = [suite_of(report, "stagewright validate")]
    forms = {
        "text": (tmp_path / "report.txt").read_text(),
        "page": (tmp_path / "report.html").read_text(),
        "JUnit": junit.document(suites),
        "SARIF": json.dumps(sarif.document(suites, 1), ensure_ascii=False),
        "GitHub": "\n".join(github.workflow_commands(suites)),
        "summary": github.summary(suites),
    }
    for name, text in forms.items():
        assert "::error::x" in text or name == "GitHub", name  # where commands are escaped
        for line in text.splitlines():
            assert not line.lstrip().startswith(("::error::x", "##[")), (name, line)
        unseen = [c for c in text if not c.isprintable() and c not in "\n\t"]
        assert not unseen, (name, unseen)


def probe(page: Path, script: str, *flags: str, fragment: str = "") -> str:
    """What a script of the test's own writes into the title; the page's policy must let it."""
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text())
    looked = page.with_name("looked.html")
    looked.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
    found = re.search(r"<title>(.*?)</title>", browse(looked, *flags, fragment=fragment), re.DOTALL)
    assert found is not None
    return found[1]


def test_keys_and_the_filter_find_an_entity_among_a_thousand(tmp_path: Path) -> None:
    write_report(hostile(1000), tmp_path)
    page = tmp_path / "report.html"
    press = "const press = (k) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true}));"
    at = "document.title = document.activeElement.closest('.entity').id;"
    assert probe(page, f"{press} press('j'); press('j'); press('j'); press('k'); {at}") == "e2"
    narrowed = "const f = document.getElementById('filter'); f.value = '999'; f.dispatchEvent(new Event('input'));"
    count = "document.title = document.getElementById('shown').textContent;"
    assert probe(page, narrowed + count) == "1 of 1000"
    assert probe(page, f"{narrowed} {press} press('j'); {at}") == "e1000"


def test_a_narrow_window_scrolls_only_inside(report: TraceReport, tmp_path: Path) -> None:
    write_report(report, tmp_path, draw=drawings)
    # A headless window has a least width: a frame has none.
    frame = tmp_path / "frame.html"
    page = (tmp_path / "report.html").read_text()
    page = re.sub(r"<meta http-equiv[^>]*>", "", page).replace(
        "</body>",
        "<script>for (const d of document.querySelectorAll('details')) d.open = true;"
        "parent.document.title = document.documentElement.scrollWidth;</script></body>",
    )
    (tmp_path / "inner.html").write_text(page)
    frame.write_text(
        '<title>0</title><iframe src="inner.html" style="width:400px;height:900px;border:0">'
    )
    dom = browse(frame, "--allow-file-access-from-files")
    found = re.search(r"<title>(\d+)</title>", dom)
    assert found is not None
    assert 0 < int(found[1]) <= 400
