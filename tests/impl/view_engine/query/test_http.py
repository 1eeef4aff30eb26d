"""Over HTTP a view answers as CouchDB's do: the engine's rows, in JSON, streamed from one snapshot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.interrupts import interrupts_ignored
from tests.patience import PATIENCE

from stagewright.impl.view_engine import Query, View, ViewEngine, doc, emit
from stagewright.impl.view_engine.http.parameters import ParameterError, read_request
from stagewright.impl.view_engine.http.server import ViewServer

CITIES = ["Ålesund", "Bergen", "Oslo"]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ViewEngine]:
    with ViewEngine(tmp_path, partitions=4) as engine:
        engine.put_many(
            (f"d{n:03}", {"n": n, "city": CITIES[n % 3], "t": ["x", n % 5]}) for n in range(60)
        )
        views = {
            "n": View(emit(doc.n, doc.city)),
            "sum": View(emit([doc.city, doc.n], doc.n), "_sum"),
        }
        engine.define("d d", views)
        yield engine


@pytest.fixture
def served(engine: ViewEngine) -> Iterator[ViewServer]:
    with ViewServer(engine, database="shop") as server:
        yield server


def asked(server: ViewServer, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection = HTTPConnection(server.host, server.port, timeout=PATIENCE)
    connection.request("GET" if body is None else "POST", path, body)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def view(name: str, **parameters: Any) -> str:
    return f"/shop/_design/{quote('d d')}/_view/{name}?{urlencode(parameters)}"


@pytest.mark.parametrize(
    ("name", "parameters", "same"),
    [
        ("n", {}, {}),
        ("n", {"limit": 3, "skip": 2, "descending": "true"}, {"limit": 3, "skip": 2, "descending": True}),
        ("n", {"startkey": 5, "end_key": 9, "inclusive_end": "false"},
         {"startkey": 5, "endkey": 9, "inclusive_end": False}),
        ("n", {"keys": "[9,1,77,9]", "stale": "ok", "on_error": "stop"}, {"keys": [9, 1, 77, 9]}),
        ("n", {"key": 7, "startkey_docid": "d007"}, {"key": 7}),
        ("sum", {}, {}),
        ("sum", {"group_level": 1, "update": "true"}, {"group_level": 1}),
        ("sum", {"group": "true", "startkey": '["Oslo"]'}, {"group": True, "startkey": ["Oslo"]}),
        ("sum", {"reduce": "false", "key": '["Ålesund",3]'}, {"reduce": False, "key": ["Ålesund", 3]}),
    ],
)  # fmt: skip
def test_answer_is_that_of_the_engine(
    engine: ViewEngine,
    served: ViewServer,
    name: str,
    parameters: dict[str, Any],
    same: dict[str, Any],
) -> None:
    engine.query("d d", name)
    status, found = asked(served, view(name, **parameters))
    expected = engine.query("d d", name, Query(**same))
    assert status == 200
    assert found.get("total_rows") == expected.total_rows
    shown = [{"id": r.id, "key": r.key, "value": r.value} for r in expected]
    if expected.total_rows is None:
        shown = [{"key": r.key, "value": r.value} for r in expected]
    assert found["rows"] == shown


def test_keys_may_come_in_a_body_and_documents_with_the_rows(served: ViewServer) -> None:
    status, found = asked(served, view("n", include_docs="true"), b'{"keys": [4, 2]}')
    assert (status, [row["id"] for row in found["rows"]]) == (200, ["d004", "d002"])
    assert found["rows"][0]["doc"] == {"n": 4, "city": "Bergen", "t": ["x", 4]}


def test_what_is_wrong_is_said_as_couchdb_says_it(served: ViewServer) -> None:
    bad, missing = "query_parse_error", "not_found"
    for path, status, error in (
        (view("n", startkey="x"), 400, bad),
        (view("n", limit="-1"), 400, bad),
        (view("n", descending="yes"), 400, bad),
        (view("n", nokey="1"), 400, bad),
        (view("n", stale="never"), 400, bad),
        (view("n", keys="7"), 400, bad),
        (view("n", group="true"), 400, bad),
        (view("sum", keys="[1]"), 400, bad),
        (view("none"), 404, missing),
        ("/shop/_design/none/_view/n", 404, missing),
        ("/other", 404, missing),
        ("/shop/d999", 404, missing),
        ("/shop/_local/x", 404, missing),
        (view("n", on_error="maybe"), 400, bad),
    ):
        found = asked(served, path)
        assert (found[0], found[1]["error"], bool(found[1]["reason"])) == (status, error, True), (
            path
        )
    assert asked(served, view("n"), b"[")[0] == 400
    assert asked(served, "/shop")[1] == {"db_name": "shop", "doc_count": 60}
    assert [*asked(served, "/shop/_design/d%20d")[1]["views"]] == ["n", "sum"]
    assert asked(served, "/")[1]["couchdb"] == "Welcome"


def sent(server: ViewServer, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    connection = HTTPConnection(server.host, server.port, timeout=PATIENCE)
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_clients_look_for_the_database_and_its_documents_first(served: ViewServer) -> None:
    assert asked(served, "/_all_dbs") == (200, ["shop"])
    assert asked(served, "/")[1]["version"].startswith("1.")
    for path in ("/", "/shop", "/shop/d003", view("n")):
        assert sent(served, "HEAD", path) == (200, b"")
    assert sent(served, "HEAD", "/shop/d999") == (404, b"")
    assert asked(served, "/shop/d003")[1] == {
        "_id": "d003", "n": 3, "city": "Ålesund", "t": ["x", 3],
    }  # fmt: skip
    quoted = asked(served, "/shop/_design%2Fd%20d")[1]
    assert quoted["views"]["sum"] == {"map": "emit([doc.city, doc.n], doc.n)", "reduce": "_sum"}
    assert (
        sent(served, "PUT", "/shop/d003", {})[0] == sent(served, "DELETE", "/shop/d003")[0] == 501
    )


def test_design_documents_are_made_and_deleted_by_requests(
    engine: ViewEngine, served: ViewServer
) -> None:
    views = {"old": {"map": "emit(doc.n, 1, where=doc.n != 3)", "reduce": "_count"}}
    assert sent(served, "PUT", "/shop/_design/new", {"views": views})[0] == 201
    assert asked(served, "/shop/_design/new")[1]["views"] == views
    assert asked(served, "/shop/_design/new/_view/old")[1]["rows"] == [{"key": None, "value": 59}]
    damaged: list[object] = [
        {"views": {"v": {"map": "emit(1 + 1)"}}},
        {"views": {}},
        {"views": 7},
        {},
    ]
    for wrong in damaged:
        status, said = sent(served, "PUT", "/shop/_design/new", wrong)
        assert (status, json.loads(said)["error"]) == (400, "invalid_design_document")
    assert engine.designs() == {"d d": ["n", "sum"], "new": ["old"]}
    assert sent(served, "DELETE", "/shop/_design/new")[0] == 200
    assert sent(served, "DELETE", "/shop/_design/new")[0] == 404


def test_answer_streams_from_one_snapshot_while_the_world_changes(
    engine: ViewEngine, served: ViewServer
) -> None:
    engine.put_many((f"e{n:06}", {"n": n, "city": "x" * 600}) for n in range(20_000))
    engine.query("d d", "n", stale="false", limit=0)
    connection = HTTPConnection(served.host, served.port, timeout=PATIENCE)
    connection.request("GET", view("n", startkey=0))
    answer = connection.getresponse()
    start = answer.read(1000)  # 12 MB do not fit between server and client: it waits for us
    assert answer.getheader("Transfer-Encoding") == "chunked"
    engine.delete(*(f"e{n:06}" for n in range(20_000)))
    assert engine.query("d d", "n").total_rows == 60
    engine.compact("d d")
    found = json.loads(start + answer.read())
    assert len(found["rows"]) == found["total_rows"] == 20_060
    connection.close()


def test_failure_within_an_answer_ends_it_with_an_error(tmp_path: Path) -> None:
    broken: list[int] = []

    def failing(_keys: object, values: list[int], _again: bool) -> int:
        if broken:
            broken.append(1)
            if len(broken) > 12:
                raise RuntimeError("no more")
        return sum(values)

    with ViewEngine(tmp_path, partitions=2) as engine:
        engine.put_many((f"d{n:03}", {"n": n}) for n in range(900))
        engine.define("d", {"v": View(emit(doc.n, doc.n), failing)})
        engine.query("d", "v")
        with ViewServer(engine, database="shop") as server:
            broken.append(1)
            status, found = asked(server, "/shop/_design/d/_view/v?group=true")
            assert status in (200, 500)
            text = found["errors"][0]["reason"] if status == 200 else found["reason"]
            assert "no more" in text


def test_names_of_couchdb_and_couchbase_mean_the_same() -> None:
    one = read_request([("start_key", "1"), ("end_key_doc_id", "x"), ("update", "lazy")])
    other = read_request([("startkey", "1"), ("endkey_docid", "x"), ("stale", "update_after")])
    assert one == other
    assert read_request([("full_set", "true"), ("connection_timeout", "9")]) == read_request([])
    with pytest.raises(ParameterError, match="include_docs"):
        read_request([("include_docs", "true"), ("reduce", "true")])


def test_command_serves_a_folder(tmp_path: Path) -> None:
    with ViewEngine(tmp_path / "shop", partitions=2) as engine:
        engine.put("a", {"n": 1})
        engine.define("d", {"v": View(emit(doc.n), "_count")})
    command = [sys.executable, "-P", "-m", "stagewright", "view", "serve", str(tmp_path / "shop")]
    path = os.pathsep.join(part for part in sys.path if part)
    with interrupts_ignored():
        process = subprocess.Popen(
            [*command, "--port", "0", "--load", "-", "--id", "no"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split("/_design")[0]
        host, _, port = address.split("/")[2].partition(":")
        connection = HTTPConnection(host, int(port), timeout=PATIENCE)
        connection.request("GET", "/shop/_design/d/_view/v")
        assert json.loads(connection.getresponse().read()) == {"rows": [{"key": None, "value": 1}]}
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write('{"no": "b", "n": 2}\n{"n": 3}\n')
        process.stdin.flush()
        assert "line 2: no object with a member 'no'" in process.stderr.readline()
        process.stdin.write('{"no": "c", "n": 4}\n')
        process.stdin.close()
        assert process.stdout.readline() == "2 documents\n"
        connection.request("GET", "/shop/_design/d/_view/v")
        assert json.loads(connection.getresponse().read()) == {"rows": [{"key": None, "value": 3}]}
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
