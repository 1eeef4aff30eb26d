"""The page of a running cluster shows what real processes do, say and hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.browser import visit
from tests.impl.processes.clusters import cluster
from tests.interrupts import interrupts_ignored
from tests.patience import PATIENCE

from stagewright.impl.processes.children import environment
from stagewright.impl.processes.supervisor import Supervisor
from stagewright.live.pages import server
from stagewright.live.watch import Watch
from stagewright.loopback import LoopbackServer


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    with cluster(tmp_path_factory.mktemp("watched") / "c", 2) as running:
        yield running


@pytest.fixture(scope="module")
def watch(supervisor: Supervisor) -> Iterator[Watch]:
    watched = Watch(supervisor.layout)
    yield watched
    watched.close()


@pytest.fixture(scope="module")
def served(watch: Watch) -> Iterator[LoopbackServer]:
    serving = server(watch)
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()


def seen_when(watch: Watch, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while not enough(seen := watch.look({})):
        assert time.monotonic() < until, json.dumps(seen, indent=1)
        time.sleep(0.1)
    return seen


def test_what_nodes_do_own_and_decide_is_seen(supervisor: Supervisor, watch: Watch) -> None:
    before = seen_when(watch, lambda s: s["begun"] and all(n["answers"] for n in s["nodes"]))
    assert sum(n["share"] for n in before["nodes"]) == pytest.approx(1)
    assert before["rings"]["now"] == before["rings"]["next"]
    assert len(before["rings"]["now"]) == 16  # 8 vnodes of each node
    session = supervisor.session()
    for number in range(30):
        session.put(b"k%d" % number, b"v")
    assert session.get(b"k7") == b"v"
    assert len(list(session.scan())) == 30
    session.close()

    def done(seen: dict[str, Any], name: str) -> int:
        return sum(n["load"][name] for n in seen["nodes"])

    after = watch.look({})
    asked = {k: done(after, k) - done(before, k) for k in ("writes", "reads", "scans")}
    again = {k: asked[k] - n for k, n in (("writes", 30), ("reads", 1), ("scans", 1))}
    assert min(again.values()) >= 0
    # A node under load may fail, and another one is asked.
    assert sum(again.values()) <= session.repeated
    # Both nodes are replicas of each row; the second answer of a write may still be on its way.
    stored = done(after, "replica_writes") - done(before, "replica_writes")
    assert 30 <= stored <= 2 * asked["writes"]
    assert done(after, "open") == 0

    assert supervisor.add() == "n3"
    grown = seen_when(watch, lambda s: len(s["rings"]["now"]) == 24)
    steps = [step for commit in grown["history"] for step in commit["steps"]]
    assert steps.index("finish_bootstrap(n3)") < steps.index("join_group0(n3)")  # newest first
    assert {n["name"]: n["state"] for n in grown["nodes"]} == dict.fromkeys(
        ("n1", "n2", "n3"), "normal"
    )


def test_tablets_and_why_they_move_are_seen(
    supervisor: Supervisor, watch: Watch, served: LoopbackServer, tmp_path: Path
) -> None:
    seen_when(watch, lambda s: s["begun"] and all(n["answers"] for n in s["nodes"]))
    session = supervisor.session()
    session.create("ks.t", 2, 4)
    session.close()
    seen = seen_when(watch, lambda s: len(s["tablets"]) == 4)
    assert {t["stage"] for t in seen["tablets"]} == {""}
    new = supervisor.add()
    seen = seen_when(watch, lambda s: s["moves"] and not any(t["stage"] for t in s["tablets"]))
    assert f"to {new}:" in seen["moves"][0]
    assert "the shard has" in seen["moves"][0]
    dom = visit(served.address, tmp_path, "--virtual-time-budget=3000")
    assert dom.count('title="ks.t:') == 4
    assert f"<li>{seen['moves'][0]}</li>" in dom
    assert '<h2 id="moved">' in dom


def test_logs_of_changes_and_their_streams_are_seen(
    supervisor: Supervisor, watch: Watch, served: LoopbackServer, tmp_path: Path
) -> None:
    session = supervisor.session("ks.l")
    session.create("ks.l", 2, 2, cdc=True, images=True, ttl=60_000)
    session.close()
    seen = seen_when(watch, lambda s: s["logs"])
    (log,) = seen["logs"]
    assert (log["base"], log["images"], log["ttl"]) == ("ks.l", True, 60_000)
    assert [count for _, count in log["streams"]] == [2]  # one of each tablet
    dom = visit(served.address, tmp_path, "--virtual-time-budget=3000")
    row = r"<td>ks\.l</td><td[^>]*>changes, and what was before</td><td>60 s</td>"
    assert re.search(row, dom)


def test_how_far_views_are_built_is_seen(
    supervisor: Supervisor, watch: Watch, served: LoopbackServer, tmp_path: Path
) -> None:
    session = supervisor.session("ks.t")
    session.create("ks.t", 2, 4)  # which is there, if the test before ran in this process
    session.put(b"k", b"12")
    session.create_view("ks.v", "ks.t", 7)
    seen = seen_when(watch, lambda s: s["views"] and s["views"][0]["status"] == "SUCCESS")
    view = seen["views"][0]
    assert (view["view"], view["base"], view["definition"]) == ("ks.v", "ks.t", "by value mod 7")
    assert (view["tasks left"], view["tasks"], view["seconds left"]) == (0, 8, 0.0)
    dom = visit(served.address, tmp_path, "--virtual-time-budget=3000")
    assert re.search(r"<td>ks\.v</td><td>ks\.t</td>.*SUCCESS.*<progress max=\"8\"", dom)
    session.drop_view("ks.v")
    session.create_view("ks.v", "ks.t")
    seen = seen_when(watch, lambda s: s["views"] and s["views"][0]["definition"] == "by value")
    assert "ks.v" in seen["tables"]  # by its name, though it is the second one of it
    session.close()


def test_a_node_that_was_killed_does_not_look_well(
    supervisor: Supervisor, watch: Watch, served: LoopbackServer, tmp_path: Path
) -> None:
    victim = supervisor.layout.names()[-1]
    supervisor.kill(victim)
    seen = seen_when(watch, lambda s: s["nodes"][-1]["process"] is None)
    assert seen["nodes"][-1]["load"] is None
    dom = visit(served.address, tmp_path, "--virtual-time-budget=3000")
    row = re.search(rf"<tr><td><span[^>]*></span>{victim}.*?</tr>", dom)
    assert row is not None, dom
    assert '<td class="alert">does not run</td>' in row[0]
    assert dom.count("% of the tokens</title>") == len(seen["rings"]["now"])
    assert "create table ks.rows" in dom
    supervisor.start()
    seen_when(watch, lambda s: all(n["answers"] for n in s["nodes"]))


def test_only_the_loopback_is_answered(served: LoopbackServer) -> None:
    for host, status in (("127.0.0.1", 200), ("rebound.example", 403)):
        connection = HTTPConnection("127.0.0.1", served.server_port, timeout=PATIENCE)
        connection.request("GET", "/api/look", headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


def test_the_command_serves_until_it_is_interrupted(
    supervisor: Supervisor, served: LoopbackServer
) -> None:
    watching = [sys.executable, "-P", "-m", "stagewright", "cluster", "watch", "--json"]
    watching += ["--dir", str(supervisor.layout.directory)]
    with interrupts_ignored():
        process = subprocess.Popen(watching, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"]
    connection = HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=PATIENCE)
    connection.request("GET", "/")
    assert b"Token ring" in connection.getresponse().read()
    connection.close()
    process.send_signal(2)
    assert process.wait(PATIENCE) == 0
    taken = subprocess.run(
        [*watching, "--port", str(served.server_port)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        check=False,
    )
    assert taken.returncode == 2
    assert "choose another port" in taken.stderr
