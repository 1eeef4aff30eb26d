"""Nodes as real processes: they are killed at any time, and every answer is map/reduce over the documents."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE
from tests.traces.readers.evaluated_log import evaluated

from stagewright.commands import run_command_line
from stagewright.impl.view_engine import View, doc, emit
from stagewright.impl.view_engine.cluster.coordinator import ClusterAnswer, ClusterQueryError
from stagewright.impl.view_engine.cluster.messages import NodeUnavailableError
from stagewright.impl.view_engine.defects import Defect
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.documents.changes import Position, RollbackError
from stagewright.impl.view_engine.documents.store import partition_of
from stagewright.impl.view_engine.http.server import ViewServer
from stagewright.impl.view_engine.nodes.documents import NodeDocuments
from stagewright.impl.view_engine.nodes.layout import ClusterFolder
from stagewright.impl.view_engine.nodes.manager import (
    ClusterTimeoutError,
    MoveStoppedError,
    ViewCluster,
)
from stagewright.impl.view_engine.nodes.messages import AskState, Copied, Copy, State
from stagewright.impl.view_engine.nodes.remote import RemoteNode, numbered

DESIGN = DesignDocument("d", {"sums": View(emit(doc.n, doc.v), "_sum")})
NAMES = ("n0", "n1", "n2")
PARTITIONS = 6


class WrongAnswerError(AssertionError):
    """The text says what came and what should have."""


class Life:
    """A cluster with a writer and a reader, and what both were told."""

    def __init__(self, cluster: ViewCluster, seed: int) -> None:
        self.cluster = cluster
        self.chosen = random.Random(seed)
        self.written: list[tuple[int, Position, bytes, bytes]] = []
        self.answers = self.refused = self.kills = self.failovers = 0
        self._over = threading.Event()
        self._wrong: list[BaseException] = []
        self._threads = [threading.Thread(target=w) for w in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let both end; raises what they found wrong."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self._wrong:
            raise self._wrong[0]

    def _write(self) -> None:
        chosen = random.Random(1)
        while not self._over.wait(0.02):
            name, document = f"d{chosen.randrange(60)}", {"n": chosen.randrange(5), "v": 1}
            document["v"] = chosen.randrange(1000)
            with suppress(NodeUnavailableError):
                at = self.cluster.put(name, document)
                partition = partition_of(name.encode(), PARTITIONS)
                body = json.dumps(document).encode()
                self.written.append((partition, at, name.encode(), body))

    def _read(self) -> None:
        try:
            while not self._over.wait(0.1):
                try:
                    self.check_answer()
                    self.answers += 1
                except (ClusterQueryError, NodeUnavailableError):
                    self.refused += 1
        except BaseException as error:  # noqa: BLE001 - raised by `end`
            self._wrong.append(error)

    # -- what must hold --------------------------------------------------------------------------------------

    def check_answer(self) -> None:
        """A query now is map/reduce over the documents at what it reports."""
        answer = self.cluster.query("sums", group=True)
        documents: dict[bytes, dict[str, Any]] = {}
        for partition, at in answer.indexed.items():
            copied = self.copy(partition)
            if at.history not in (None, copied.log[0][0]):
                return  # there was a failover since
            for seq, name, body in copied.changes:
                if seq <= at.seq:
                    documents[name] = json.loads(body or b"null")
        self._compare(answer, documents)

    def _compare(self, answer: ClusterAnswer, documents: dict[bytes, dict[str, Any]]) -> None:
        expected: dict[int, int] = {}
        for document in documents.values():
            expected[document["n"]] = expected.get(document["n"], 0) + document["v"]
        found = [(row.key, row.value) for row in answer.rows]
        if set(answer.indexed) != set(range(PARTITIONS)) or found != sorted(expected.items()):
            raise WrongAnswerError(f"{found} instead of {sorted(expected.items())}: {answer}")

    def copy(self, partition: int) -> Copied:
        """All that the active copy has."""
        question = Copy(numbered(), partition, 0, ())
        return self.cluster.node(self.cluster.map.active[partition]).ask(question, Copied)

    def check_writes(self) -> None:
        """What was acknowledged is there, unless a failover left the history in which it was."""
        written = [*self.written]
        copies = {p: self.copy(p) for p in range(PARTITIONS)}
        at = {(p, seq): (name, body) for p, c in copies.items() for seq, name, body in c.changes}
        for partition, position, name, body in written:
            if position.uuid == copies[partition].log[0][0]:
                assert at[partition, position.seq] == (name, body)

    # -- what happens ----------------------------------------------------------------------------------------

    def kill_one(self) -> None:
        """Kill a node at any time, also while partitions move; then start it, or fail it over before."""
        cluster, chosen = self.cluster, self.chosen
        time.sleep(chosen.random() * 0.3)
        name = chosen.choice(NAMES)
        if chosen.random() < 0.4:
            timer = threading.Timer(chosen.random() * 1.5, cluster.kill, (name,))
            timer.start()
            with suppress(MoveStoppedError, ClusterTimeoutError):
                cluster.rebalance(*chosen.sample(NAMES, 2))
            timer.join()
        else:
            cluster.kill(name)
        self.kills += 1
        if name in cluster.map.members and chosen.random() < 0.4:
            with suppress(ClusterTimeoutError):
                cluster.fail_over(name)
                self.failovers += 1
        cluster.start(*NAMES)
        cluster.rebalance(*NAMES)
        for _ in range(200):
            with suppress(ClusterQueryError, NodeUnavailableError):
                self.check_answer()
                break
            time.sleep(0.05)
        else:
            raise WrongAnswerError("no query was answered")
        self.check_writes()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ViewCluster]:
    folder = ClusterFolder.create(tmp_path / "cluster", DESIGN, PARTITIONS)
    made = ViewCluster(folder, trace=tmp_path / "trace")
    try:
        made.begin(*NAMES)
        yield made
    finally:
        made.close()


def live_with_kills(cluster: ViewCluster, kills: int) -> Life:
    life = Life(cluster, kills)
    try:
        for _ in range(kills):
            life.kill_one()
    finally:
        life.end()
    logs = [cluster.folder.node(name) / "couchdb.log" for name in NAMES]
    found = evaluated("couchbase-log", logs)
    assert not found.wrong
    return life


@pytest.mark.long
def test_nodes_are_killed_and_every_answer_is_map_reduce(
    cluster: ViewCluster, tmp_path: Path
) -> None:
    life = live_with_kills(cluster, 3)
    assert life.answers > 5
    assert len(life.written) > 50
    again = ViewCluster(cluster.folder)  # a manager that is started again goes on from its map
    assert again.map == cluster.map
    assert again.query("sums", group=True).rows == cluster.query("sums", group=True).rows
    with pytest.raises(NodeUnavailableError, match="n0"):
        RemoteNode("n0", cluster.folder.address, b"other").ask(AskState(numbered()), State)
    again.close()
    cluster.close()
    assert len([*(tmp_path / "trace").glob("n*-*")]) > len(NAMES)  # a folder for each life
    assert validated(tmp_path / "trace") == 0  # also of what the killed ones left


def test_cluster_answers_over_http_and_names_the_nodes_that_do_not(cluster: ViewCluster) -> None:
    for number in range(30):
        cluster.put(f"d{number}", {"n": number % 3, "v": number})
    with ViewServer(cluster, database="shop") as server:

        def asked(rest: str) -> tuple[int, Any]:
            connection = HTTPConnection(server.host, server.port, timeout=PATIENCE)
            connection.request("GET", f"/shop/{rest}")
            answer = connection.getresponse()
            found = answer.status, json.loads(answer.read())
            connection.close()
            return found

        path = "_design/d/_view/sums"
        sums = [{"key": k, "value": sum(range(k, 30, 3))} for k in range(3)]
        assert asked(f"{path}?group=true") == (200, {"rows": sums})
        status, found = asked(f"{path}?reduce=false&descending=true&limit=2&skip=1")
        assert (status, found["total_rows"], [r["key"] for r in found["rows"]]) == (200, 30, [2, 2])
        assert asked("_design/d")[1]["views"]["sums"]["map"] == "emit(doc.n, doc.v)"
        assert asked("_design/e/_view/sums")[0] == 404
        assert asked(f"{path}?reduce=false&include_docs=true")[0] == asked("d1")[0] == 501
        cluster.kill("n1")
        status, found = asked(f"{path}?on_error=stop")
        assert (status, found["error"]) == (500, "error")
        assert "n1" in found["reason"]
        status, found = asked(path)  # as Couchbase's, goes on without the node unless it is told
        assert status == 200
        assert [error["from"] for error in found["errors"]] == ["n1"]
        assert found["rows"][0]["value"] < sum(range(30))


def validated(trace: Path) -> int:
    return run_command_line(["validate", *map(str, trace.iterdir()), "--engine", "embedded"])


@pytest.mark.parametrize(
    ("defect", "says"),
    [
        (Defect.old_rows_stay, "the rows that the documents had before are removed"),
        (Defect.cleanup_ends_at_once, "the header has a state for each partition with rows"),
    ],
)
@pytest.mark.long
def test_processes_of_a_wrong_build_are_refused_by_their_traces(
    defect: Defect, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ClusterFolder.create(tmp_path / "cluster", DESIGN, PARTITIONS)
    program = (str(Path(__file__).with_name("wrong_node.py")), defect.name)
    cluster = ViewCluster(folder, trace=tmp_path / "trace", program=program)
    try:
        cluster.begin("n0")
        for number in range(40):
            cluster.put(f"d{number % 20}", {"n": number % 5, "v": number})
            if number % 10 == 9:
                cluster.query("sums")
        cluster.start("n1")
        cluster.rebalance("n0", "n1")
        cluster.query("sums")
    finally:
        cluster.close()
    assert validated(tmp_path / "trace") == 1
    assert says in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.timeout(5400)  # every kill waits until the cluster is whole again
def test_nodes_are_killed_two_hundred_times(cluster: ViewCluster) -> None:
    life = live_with_kills(cluster, 200)
    assert life.failovers > 20


def test_python_functions_are_no_design_of_a_cluster(tmp_path: Path) -> None:
    design = DesignDocument("d", {"v": View(lambda document, _: [(document, 1)])})
    with pytest.raises(ValueError, match="use declared or JavaScript maps"):
        ClusterFolder.create(tmp_path / "cluster", design, 4)


def test_copy_goes_back_to_where_a_failover_left_history(tmp_path: Path) -> None:
    active, copy = (NodeDocuments(tmp_path / f"{name}.sqlite") for name in "ac")
    active.hold([0], [0], [])
    copy.hold([0], [], [])
    assert copy.write(0, b"a", b"1") is None
    for number in range(3):
        active.write(0, f"d{number}".encode(), b"1")
    sent = active.send(0, 0, ())
    assert sent is not None
    copy.receive(0, 0, (), sent)
    log = copy.failover_log(0)
    active.write(0, b"d0", b"2")  # is lost
    copy.hold([0], [0], [0])
    assert copy.write(0, b"d1", None) == Position(4, copy.failover_log(0)[0][0])
    with pytest.raises(RollbackError, match="sequence number 3"):
        copy.snapshot(0, 4, log)
    back = copy.send(0, 4, log)
    assert back is not None
    active.hold([0], [], [])
    active.receive(0, 4, log, back)
    assert active.states() == copy.states()
    assert [c.doc_id for part in active.snapshot(0, 0, ()).parts for c in part] == [
        b"d0", b"d2", b"d1",
    ]  # fmt: skip
    active.close()
    assert NodeDocuments(tmp_path / "a.sqlite").states() == copy.states()


def test_address_that_nobody_listens_at_is_an_unavailable_node(tmp_path: Path) -> None:
    folder = ClusterFolder.create(tmp_path / "cluster", DESIGN, 4)
    with pytest.raises(NodeUnavailableError, match="n7"):
        RemoteNode("n7", folder.address, folder.secret).ask(AskState(numbered()), State)
