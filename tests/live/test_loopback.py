"""A page's server: who asks for nonsense is refused, and who hangs up is no error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from stagewright.loopback import LoopbackServer


@pytest.fixture
def port() -> Iterator[int]:
    server = LoopbackServer("<p>page</p>", {"/state": lambda _: {"x": "y" * 5_000_000}})
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def said(port: int, request: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), 20)) as door:
        door.sendall(request)
        return door.recv(1 << 12)


HOST = b"\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET http://[ HTTP/1.0" + HOST, b"400"),
        (b"GET /none HTTP/1.0" + HOST, b"404"),
        (b"GET / HTTP/1.0\r\nHost: elsewhere\r\n\r\n", b"403"),
        (b"G\0T / HTTP/1.0" + HOST, b"501"),
        (b"GET / HTTP/1.0" + HOST, b"200"),
    ],
)
def test_each_request_has_its_answer(port: int, request_: bytes, status: bytes) -> None:
    assert said(port, request_).split(b" ")[1] == status


def test_who_hangs_up_is_no_error(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(20):
        with closing(socket.create_connection(("127.0.0.1", port), 20)) as door:
            door.sendall(b"GET /state HTTP/1.0" + HOST)
    assert b"200" in said(port, b"GET /state HTTP/1.0" + HOST)
    assert capfd.readouterr().err == ""
