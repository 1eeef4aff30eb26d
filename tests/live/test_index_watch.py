"""The page of an indexed table shows its builds, who leads what, and what masters have decided."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.browser import visit
from tests.impl.indexes.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.live.index_watch import IndexWatch
from stagewright.live.pages import server
from stagewright.loopback import LoopbackServer


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[IndexSupervisor]:
    with cluster(tmp_path / "c", rows_per_second=0) as running:
        yield running


@pytest.fixture
def served(supervisor: IndexSupervisor) -> Iterator[LoopbackServer]:
    serving = server(IndexWatch(supervisor))
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()


def seen_when(
    supervisor: IndexSupervisor, enough: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    watch, until = IndexWatch(supervisor), time.monotonic() + PATIENCE
    while not enough(seen := watch.look({})):
        assert time.monotonic() < until, json.dumps(seen, indent=1)
        time.sleep(0.1)
    return seen


def test_builds_processes_and_decisions_are_seen(
    supervisor: IndexSupervisor, served: LoopbackServer, tmp_path: Path
) -> None:
    client = supervisor.client(PATIENCE)
    client.write({1: {"v": 1, "w": 7}, 2: {"v": 2, "w": 7}})
    client.create("i", "v", unique=True)
    client.create("j", "w", unique=True)
    client.create("d", "w", deferred=True)
    client.close()
    seen = seen_when(
        supervisor,
        lambda s: (
            {(b["index"], b["status"]) for b in s["builds"] or ()}
            >= {("i", "SUCCESS"), ("j", "FAILED")}
        ),
    )
    assert {b["index"] for b in seen["builds"]} == {"i", "j", "d"}
    assert any(s["step"] == "index1: find violation" for s in seen["steps"])
    leads = [place for p in seen["processes"] for place in p["leads"]]
    assert {"master", "transactions", "table/0", "table/1", "table/2"} <= set(leads)
    victim = supervisor.layout.file().servers[0]
    supervisor.kill(victim)
    dom = visit(served.address, tmp_path, "--virtual-time-budget=5000")
    assert re.search(r'unique i</td><td>v</td>.*?SUCCESS.*?<progress value="1">', dom)
    assert "rows 1 and 2 both have w = 7" in dom
    assert f'<td>{victim}</td><td class="alert">dead</td>' in dom
    assert "index0: publish" in dom


@pytest.mark.long
def test_a_cluster_that_does_not_run_is_shown_as_dead(supervisor: IndexSupervisor) -> None:
    supervisor.stop()
    seen = seen_when(supervisor, lambda s: all(p["process"] is None for p in s["processes"]))
    assert seen["builds"] is None
    assert len(seen["processes"]) == 5
