"""The program of one node: `python -m stagewright.impl.view_engine.nodes.program FOLDER NAME [TRACE]`.

TRACE is a folder for what the processes of a cluster record.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from stagewright.impl.processes.errors import WireError
from stagewright.impl.processes.frames import Frames, framed
from stagewright.impl.processes.handshake import SECONDS, Called, refusal
from stagewright.impl.view_engine.nodes.layout import ClusterFolder
from stagewright.impl.view_engine.nodes.messages import view_codec
from stagewright.impl.view_engine.nodes.node import ViewNode
from stagewright.impl.view_engine.nodes.remote import RemoteNode
from stagewright.impl.view_engine.trace.files import TraceFiles
from stagewright.impl.view_engine.trace.trace import NO_TRACE, Trace


def main(words: list[str] | None = None) -> int:
    """Serve until SIGTERM."""
    path, name, *kept = sys.argv[1:] if words is None else words
    folder = ClusterFolder(Path(path))
    secret = folder.secret
    others: dict[str, RemoteNode] = {}

    def remote(other: str) -> RemoteNode:
        return others.setdefault(other, RemoteNode(other, folder.address, secret))

    files = TraceFiles.of_process(Path(kept[0]), name) if kept else None
    trace = NO_TRACE if files is None else Trace(files.take, name)
    node = ViewNode(name, folder.node(name), folder.design, folder.partitions, remote, trace)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        accepting = partial(_accept, server, node, name, secret)
        threading.Thread(target=accepting, daemon=True).start()
        host, port = server.getsockname()
        address = folder.node(name) / "address"
        address.with_suffix(".new").write_text(f"{host}:{port}", "utf-8")
        address.with_suffix(".new").replace(address)
        ending.wait()
        address.unlink(missing_ok=True)
    node.close()
    if files is not None:
        files.close()
    return 0


def _accept(server: socket.socket, node: ViewNode, name: str, secret: bytes) -> None:
    with suppress(OSError):  # it was closed
        while True:
            connection, _ = server.accept()
            serving = partial(_serve, connection, node, name, secret)
            threading.Thread(target=serving, daemon=True).start()


def _serve(connection: socket.socket, node: ViewNode, name: str, secret: bytes) -> None:
    """One caller, until it hangs up: it has to know the secret first."""
    codec = view_codec()
    with connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(SECONDS)
        called, frames = Called(secret, name), Frames()
        connection.sendall(framed(called.opening()))
        while data := connection.recv(1 << 16):
            bodies = frames.feed(data)
            while bodies:
                body = bodies.pop(0)
                try:
                    if called.hello is None:
                        answer = called.answer(body)
                        connection.settimeout(None)
                        frames.trusts = True
                        bodies += frames.feed(b"")
                    else:
                        answer = codec.encode(node.answer(codec.decode(body)))
                except WireError as error:
                    connection.sendall(framed(refusal(error.problem, error.help)))
                    return
                connection.sendall(framed(answer))


if __name__ == "__main__":
    sys.exit(main())
