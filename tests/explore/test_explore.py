"""`stagewright explore`: over HTTP as its page asks, in a browser, and in the terminal."""

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
from tests.browser import visit
from tests.models.lease import LeaseTable
from tests.models.stuck import Stuck
from tests.patience import PATIENCE

from stagewright.commands import run_command_line
from stagewright.explore.explorer import Explorer
from stagewright.explore.recorded import recorded_path
from stagewright.explore.server import ExploreServer
from stagewright.spec.define import define
from stagewright.spec.errors import InputError
from stagewright.spec.scope import scope_of

LEASE = define(LeaseTable)


def explorer() -> Explorer:
    return Explorer(LEASE, scope_of(LEASE, {"node": 2}))


def served(walked: Explorer) -> Iterator[ExploreServer]:
    serving = ExploreServer(walked)
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[ExploreServer]:
    yield from served(explorer())


def get(server: ExploreServer, path: str, host: str = "") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def look(server: ExploreServer, *path: str) -> tuple[int, Any]:
    status, text = get(server, "/api/look?path=" + quote(json.dumps(path)))
    return status, json.loads(text)


def test_the_start_offers_what_is_enabled_and_says_what_refuses_the_rest() -> None:
    seen = explorer().look([])
    assert [step.label for step in seen.enabled] == ["acquire(node0)", "acquire(node1)"]
    assert "lease: free → held" in seen.enabled[0].changes
    refused = {step.label: step.refused for step in seen.refused}
    assert set(refused) == {"go_silent", "expire"}
    assert all(refused.values())
    assert seen.broken == ()


def test_values_that_the_last_step_changed_are_marked() -> None:
    seen = explorer().look(["0", "acquire(node1)"])
    changed = {leaf.place: (leaf.old, leaf.value) for leaf in seen.leaves if leaf.old is not None}
    assert changed == {
        "lease": ("free", "held"),
        "holder": ("none", "node1"),
        "epoch": ("0", "1"),
    }


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (["9"], "there is no initial state 9"),
        (["0", "expire"], "step 1, `expire`, is refused"),
        (["0", "aquire(node0)"], "there is no step `aquire"),
    ],
)
def test_a_path_that_is_none_is_refused(path: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        explorer().look(path)


def test_the_page_and_its_machine_are_served(server: ExploreServer) -> None:
    status, page = get(server, "/")
    assert status == 200
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    about = json.loads(get(server, "/api/about")[1])
    assert (about["name"], about["initial"]) == ("LeaseTable", 1)
    assert about["drawing"]["members"] == ["free", "held", "expiring"]
    assert ["free", "held", "acquire"] in about["drawing"]["edges"]


def test_a_walk_is_followed_by_its_address(server: ExploreServer) -> None:
    status, seen = look(server, "0", "acquire(node0)", "go_silent", "expire")
    assert status == 200
    assert {leaf["place"]: leaf["value"] for leaf in seen["leaves"]}["epoch"] == "1"
    status, refused = look(server, "0", "expire")
    assert status == 400
    assert "is refused" in refused["error"]
    assert get(server, "/api/look?path=7")[0] == 400
    assert get(server, "/api/nothing")[0] == 404


def test_a_browser_shows_the_state_that_an_address_names(
    server: ExploreServer, tmp_path: Path
) -> None:
    walk = quote(json.dumps(["0", "acquire(node1)"]))
    dom = visit(f"{server.address}#{walk}", tmp_path, "--virtual-time-budget=5000")
    shown = re.sub(r"<script>.*</script>", "", dom, flags=re.DOTALL)
    row = '<tr class="changed"><td>holder</td><td>node1</td><td class="old">was none</td></tr>'
    assert row in shown
    assert "<li><a>acquire(node1)</a></li>" in shown
    assert "go silent</b>" in shown
    assert re.search(r'<rect [^>]*class="here"></rect><text [^>]*>held</text>', shown)
    assert 'role="alert"></p>' in shown
    assert "NaN" not in shown
    assert '<button id="back">' in shown, "it leads along the path, not out of the page"
    assert '<button id="forward" disabled="">' in shown


def test_only_the_loopback_is_answered(server: ExploreServer) -> None:
    assert get(server, "/api/about", host="example.com")[0] == 403


@pytest.fixture(scope="module")
def stuck() -> Iterator[ExploreServer]:
    definition = define(Stuck)
    yield from served(Explorer(definition, scope_of(definition)))


def test_counterexamples_have_paths_that_can_be_walked(stuck: ExploreServer) -> None:
    found = json.loads(get(stuck, "/api/runs")[1])
    assert {run["property"] for run in found} >= {"it_ends", "it_can_end"}
    for run in found:
        status, seen = look(stuck, *run["path"])
        assert (status, seen["path"]) == (200, run["path"])


def test_a_machine_is_walked_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["2", "r", "p", "b", "what", "q"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert run_command_line(["explore", "tests/models/lease.py", "--terminal"]) == 0
    out = capsys.readouterr().out
    assert "holder = node1   (was none)" in out
    assert "0;acquire(node1)" in out
    assert "not: the lease" in out or "not: lease" in out
    assert out.count("after 0 steps") == 2
    assert "after 1 step\n" in out
    assert "there is no `what` here; steps: 1 to 3\nnumber: take the step" in out


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of two leases, of five steps each."""
    folder = tmp_path_factory.mktemp("walk")
    flags = ["--size", "node=2", "--steps", "5", "--instances", "2", "--out", str(folder)]
    assert run_command_line(["simulate", "tests/models/lease.py", *flags]) == 0
    return folder / "trace.jsonl"


def test_a_recorded_entity_has_a_path_that_can_be_walked(recorded: Path) -> None:
    walked = explorer()
    events = [json.loads(line) for line in recorded.read_text().splitlines()]
    for name in {event["entity"] for event in events}:
        found = recorded_path(walked, recorded, name)
        own = [e for e in events if e["entity"] == name and e["action"] is not None]
        assert (found.problem, len(found.path) - 1) == ("", len(own))
        seen = {leaf.place: leaf.value for leaf in walked.look(found.path).leaves}
        assert seen["lease"] == own[-1]["observed"]["lease"]
    assert recorded_path(walked, recorded).entity == events[0]["entity"]


def test_a_recorded_step_that_is_refused_ends_the_path(recorded: Path, tmp_path: Path) -> None:
    lines = recorded.read_text().splitlines()
    first = json.loads(lines[0])["entity"]
    own = [i for i, line in enumerate(lines) if json.loads(line)["entity"] == first]
    event = json.loads(lines[own[1]]) | {"action": "expire", "params": {}}
    spoiled = tmp_path / "trace.jsonl"
    spoiled.write_text("\n".join([*lines[: own[1]], json.dumps(event), *lines[own[1] + 1 :]]))
    found = recorded_path(explorer(), spoiled, first)
    assert found.path == ("0",)
    assert "step 1, `expire`, is refused" in found.problem
    with pytest.raises(InputError, match="has no event of nobody"):
        recorded_path(explorer(), recorded, "nobody")


def test_a_recorded_event_that_is_missing_ends_the_path(recorded: Path, tmp_path: Path) -> None:
    lines = recorded.read_text().splitlines()
    first = json.loads(lines[0])["entity"]
    own = [line for line in lines if json.loads(line)["entity"] == first]
    spoiled = tmp_path / "trace.jsonl"
    spoiled.write_text("\n".join([own[0], *own[2:]]))
    found = recorded_path(explorer(), spoiled)
    assert (found.path, found.problem) == (("0",), "event 1 is missing, or is there twice")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"\xff\xfe no trace", "is no event"),
        (
            b'{"entity": "a", "machine": "Other", "seq": 0}',
            "of the machine Other, not of LeaseTable",
        ),
        (b"", "has no event of any entity"),
    ],
)
def test_what_is_no_trace_of_the_machine_is_refused(
    text: bytes, problem: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(text)
    with pytest.raises(InputError, match=problem):
        recorded_path(explorer(), trace)
    with pytest.raises(InputError, match="No such file"):
        recorded_path(explorer(), tmp_path / "nothing.jsonl")


def test_an_entity_without_a_trace_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explore", "tests/models/lease.py", "--entity", "a"]) == 2
    assert "--entity names one of a trace" in capsys.readouterr().err


def test_what_was_observed_otherwise_ends_the_path(recorded: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    event = next(e for e in lines if e["seq"] == 1)
    event["observed"]["epoch"] = 7
    spoiled = tmp_path / "trace.jsonl"
    spoiled.write_text("\n".join(map(json.dumps, lines)))
    found = recorded_path(explorer(), spoiled, event["entity"])
    assert found.problem.startswith("after step 1 epoch is 7 in the trace, not ")


def test_profiles_stand_side_by_side(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "q")
    compared = ["--compare", "seed", "--compare", "scylla-2025.4"]
    terminal = ["explore", "tablet-migration", "--terminal", *compared]
    path = "0;start(migration);pass_barrier;write_both;fail_barrier;exclude(pending)"
    assert run_command_line([*terminal, "--path", path]) == 0
    out = capsys.readouterr().out
    assert "under scylla-2025.4: the same state, the same steps" in out
    seed = next(line for line in out.splitlines() if line.startswith("under seed: "))
    assert seed == (
        "under seed: session: no; enabled only there: retry_barrier; "
        "enabled only here: give_up_before_streaming"
    )
    assert run_command_line([*terminal, "--path", "0;start(rebuild_v2)"]) == 0
    refused = "step 1, `start(rebuild_v2)`, is refused; unmet: migration is the only kind"
    assert f"under seed: {refused}" in capsys.readouterr().out


def test_a_browser_begins_where_the_trace_ends(recorded: Path, tmp_path: Path) -> None:
    walked = explorer()
    found = recorded_path(walked, recorded)
    other = Explorer(walked.source, walked.scope, [explorer()])
    for serving in served(other):
        dom = visit(serving.address_of(found.path), tmp_path, "--virtual-time-budget=5000")
        assert f"<li><a>{found.path[-1]}</a></li>" in dom
        assert "the same state, the same steps</li>" in dom
