"""Strangers at every door: random, cut and changed bytes to nodes of both kinds of cluster, and to the pages that watch them.

`python -m tests.impl.processes.strangers --seconds 60`; ends with 1 where a process has ended, an error was not handled, or
one that behaves is no longer served.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import socket
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stderr
from pathlib import Path
from random import Random

from tests.impl.indexes.processes.clusters import cluster as index_cluster
from tests.impl.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.impl.indexes.processes.wire import outer_codec
from stagewright.impl.node.messages import StatusRequest
from stagewright.impl.processes.codec import Codec, codec
from stagewright.impl.processes.frames import framed
from stagewright.impl.processes.handshake import Called, Calling
from stagewright.live import index_watch, watch
from stagewright.live.pages import server
from stagewright.loopback import LoopbackServer

Attack = Callable[[socket.socket, Random], None]
GREETING = 4 << 10


def noise(door: socket.socket, chance: Random) -> None:
    """Anything."""
    door.sendall(chance.randbytes(chance.randrange(1, 3000)))


def cut_greeting(door: socket.socket, chance: Random) -> None:
    """A greeting of who does not know the secret, cut off or changed somewhere."""
    hello = Calling(b"another", "n1", "127.0.0.1:1").answer(Called(b"another", "n1").opening())
    body = bytearray(framed(hello or b""))
    for _ in range(chance.randrange(3)):
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    door.sendall(body[: chance.randrange(1, len(body) + 1)])


def silence(door: socket.socket, chance: Random) -> None:
    """Nothing, or half a length."""
    door.sendall(b"\0" * chance.randrange(3))


def request(door: socket.socket, chance: Random) -> None:
    """A request of HTTP that is none, or whose path, headers or body are."""
    method = chance.choice(["GET", "POST", "G\0T", "", "GET / GET", "HEAD"])
    path = chance.choice(
        ["/", "//[", "/state?x=%ff%fe", "http://[::1", "/\u00ff" * 20, "/" + "a" * 70_000]
    )
    host = chance.choice(["127.0.0.1", "elsewhere", "", "127.0.0.1\r\nHost: x", "\0"])
    text = f"{method} {path} HTTP/1.{chance.randrange(3)}\r\nHost: {host}\r\n{'A: b' * chance.randrange(3)}\r\n\r\n"
    raw = text.encode("latin-1")
    door.sendall(raw[: chance.randrange(1, len(raw) + 1)])


def insider(secret: bytes, speaks: Codec) -> Attack:
    """One that knows the secret, and then says what is no message, or one with bytes changed."""

    def attack(door: socket.socket, chance: Random) -> None:
        calling, stream = Calling(secret, ""), door.makefile("rb")
        while True:
            answer = calling.answer(stream.read(int.from_bytes(stream.read(4), "big")))
            if answer is None:
                break
            door.sendall(framed(answer))
        body = bytearray(
            speaks.encode(StatusRequest(chance.randrange(9)))
            if speaks is codec()
            else b"\x93\1\2\3"
        )
        for _ in range(chance.randrange(1, 4)):
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        door.sendall(framed(bytes(body)) + chance.randbytes(chance.randrange(40)))

    return attack


@contextmanager
def served(server: LoopbackServer) -> Iterator[tuple[str, int]]:
    """A page."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield "127.0.0.1", server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def knock(address: tuple[str, int], attack: Attack, chance: Random) -> str:
    """Let a stranger in; what it was told: nothing, or something."""
    with contextlib.suppress(OSError), closing(socket.create_connection(address, 5)) as door:
        door.settimeout(2)
        attack(door, chance)
        if chance.random() < 0.5:
            return "hung up"
        door.shutdown(socket.SHUT_WR)
        return "answered" if door.recv(GREETING) else "cut off"
    return "cut off"


def besiege(directory: Path, seconds: float, seed: int) -> Counter[str]:
    """Knock at every door for so long; how often, and what strangers were told."""
    chance, answers, errors = Random(seed), Counter[str](), io.StringIO()
    with ExitStack() as stack:
        nodes = stack.enter_context(cluster(directory / "c", 2))
        indexes = stack.enter_context(index_cluster(directory / "i"))
        stack.enter_context(redirect_stderr(errors))  # where a page would say that it failed
        seen = watch.Watch(nodes.layout)
        stack.callback(seen.close)
        seen_too = index_watch.IndexWatch(indexes)
        stack.callback(seen_too.close)
        pages = [stack.enter_context(served(server(s))) for s in (seen, seen_too)]
        doors = [nodes.layout.node_file(n).identity.host.address for n in nodes.layout.names()]
        of_indexes = [a for n in indexes.names if (a := indexes.layout.address(n))]
        attacks: list[tuple[tuple[str, int], Attack]] = [
            (page, attack) for page in pages for attack in (noise, silence, request)
        ]
        for addresses, secret, speaks in (
            (doors, nodes.layout.secret(), codec()),
            (of_indexes, indexes.layout.layout.secret(), outer_codec()),
        ):
            for text in addresses:
                host, _, port = text.rpartition(":")
                each = (noise, cut_greeting, silence, request, insider(secret, speaks))
                attacks += [((host, int(port)), attack) for attack in each]
        before = [nodes.running(n) for n in nodes.layout.names()]
        before += [indexes.running(n) for n in indexes.names]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answers[knock(*chance.choice(attacks), chance)] += 1
        after = [nodes.running(n) for n in nodes.layout.names()]
        after += [indexes.running(n) for n in indexes.names]
        assert before == after
        assert None not in after
        assert nodes.status().is_well
        assert indexes.status().is_well
        for _, number in pages:
            with urllib.request.urlopen(f"http://127.0.0.1:{number}/", timeout=PATIENCE) as page:
                assert page.status == 200
        logs = [nodes.layout.node(n) / "log" for n in nodes.layout.names()]
        logs += [indexes.layout.node(n) / "log" for n in indexes.names]
        texts = [errors.getvalue(), *(log.read_text("utf-8", "replace") for log in logs)]
    unhandled = next((text[text.index("Traceback") :] for text in texts if "Traceback" in text), "")
    assert not unhandled, unhandled[:2000]
    return answers


def main(words: list[str] | None = None) -> None:
    """Besiege a cluster of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="strangers-") as scratch:
        print(json.dumps(besiege(Path(scratch), wanted.seconds, wanted.seed)))


if __name__ == "__main__":
    main()
