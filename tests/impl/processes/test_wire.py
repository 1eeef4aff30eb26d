"""Messages, frames and the handshake: what is sent arrives, and what is no message is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("msgspec")

from tests.impl.processes.messages import messages
from tests.patience import PATIENCE, within

from stagewright.impl.node.messages import Message, StatusRequest
from stagewright.impl.processes.asking import Conversation
from stagewright.impl.processes.codec import codec
from stagewright.impl.processes.errors import WireError
from stagewright.impl.processes.frames import MOST_OF_A_STRANGER, Frames, framed
from stagewright.impl.processes.handshake import Called, Calling
from stagewright.impl.processes.links import Accepted, Link, split

SECRET = b"of this cluster"


@settings(max_examples=150, deadline=None)
@given(messages())
def test_every_message_arrives_as_it_was_sent(message: Message) -> None:
    assert codec().decode(codec().encode(message)) == message


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80))
def test_bytes_that_are_no_message_are_refused(body: bytes) -> None:
    try:
        codec().decode(body)
    except WireError:
        return
    assert body


@settings(max_examples=60, deadline=None)
@given(messages(), st.data())
def test_a_message_with_a_byte_changed_is_another_one_or_refused(
    message: Message, data: st.DataObject
) -> None:
    body = bytearray(codec().encode(message))
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        assert codec().encode(codec().decode(bytes(body)))
    except WireError:
        return


@given(st.lists(st.binary(max_size=50)), st.integers(1, 9))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    bodies: list[bytes], cut: int
) -> None:
    frames, stream, found = Frames(), b"".join(map(framed, bodies)), list[bytes]()
    frames.trusts = True
    for start in range(0, len(stream), cut):
        found += frames.feed(stream[start : start + cut])
    assert found == bodies


def test_a_stranger_gets_no_long_frame_taken() -> None:
    with pytest.raises(WireError, match=f"a frame of {MOST_OF_A_STRANGER + 1} bytes"):
        Frames().feed((MOST_OF_A_STRANGER + 1).to_bytes(4, "big"))


@pytest.mark.parametrize("address", ["nowhere", ":1", "a:0", "a:65536", "a:b"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(WireError, match="is no address"):
        split(address)


def shake(called: Called, calling: Calling) -> None:
    hello = calling.answer(called.opening())
    assert hello is not None
    assert calling.answer(called.answer(hello)) is None


def test_both_sides_must_know_the_secret() -> None:
    called, calling = Called(SECRET, "n1"), Calling(SECRET, "n2", "127.0.0.1:1")
    shake(called, calling)
    assert calling.node == "n1"
    assert called.hello is not None
    assert (called.hello.name, called.hello.address) == ("n2", "127.0.0.1:1")
    with pytest.raises(WireError, match="the caller does not know the secret"):
        shake(Called(SECRET, "n1"), Calling(b"another", "n2"))


def test_who_was_called_must_know_it_too() -> None:
    impostor, calling = Called(b"another", "n1"), Calling(SECRET, "n2")
    hello = calling.answer(impostor.opening())
    assert hello is not None
    welcome = Called(b"another", "n1")
    with pytest.raises(WireError):
        calling.answer(welcome.opening())


def test_a_proof_is_of_one_conversation() -> None:
    hello = Calling(SECRET, "n2").answer(Called(SECRET, "n1").opening())
    assert hello is not None
    with pytest.raises(WireError, match="does not know the secret"):
        Called(SECRET, "n1").answer(hello)


# -- sockets -----------------------------------------------------------------------------------------------


class Listener:
    """A node's side of sockets, without the node: it says back what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.begun = 0

    def accept(self) -> Accepted:
        return Accepted(codec(), SECRET, "n1", self._begun, self._heard, lambda _: None)

    def _begun(self, _: Accepted) -> None:
        self.begun += 1

    def _heard(self, connection: Accepted, message: Any) -> None:
        self.heard.append(message)
        connection.send(message)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4), st.booleans())
def test_strangers_bytes_get_a_refusal_and_never_a_crash(
    chunks: list[bytes], as_frames: bool
) -> None:
    async def speak() -> None:
        listener = Listener()
        failures: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        server = await loop.create_server(listener.accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for chunk in chunks:
            writer.write(framed(chunk) if as_frames else chunk)
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            said = await reader.read()
        writer.close()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0)
        assert said  # the challenge at least
        if as_frames:
            assert b"Refused" in said
        assert not listener.begun
        assert not listener.heard
        assert not failures

    asyncio.run(speak())


@settings(max_examples=10, deadline=None)
@given(st.lists(messages(), max_size=20))
def test_a_link_carries_messages_and_says_when_the_peer_is_gone(messages: list[Message]) -> None:
    async def talk() -> None:
        listener, heard = Listener(), list[Any]()
        seen: list[tuple[str, bool]] = []
        loop = asyncio.get_running_loop()
        server = await loop.create_server(listener.accept, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        link = Link(
            codec(),
            "n1",
            address,
            lambda: Calling(SECRET, "n2", "127.0.0.1:1"),
            lambda _, message: heard.append(message),
            lambda peer, up: seen.append((peer, up)),
        )
        for message in messages:
            link.send(message)  # before it is connected: these wait
        async with asyncio.timeout(PATIENCE):
            while len(heard) < len(messages):
                await asyncio.sleep(0.005)
            while not listener.begun:
                await asyncio.sleep(0.005)
        assert heard == messages
        assert seen == []
        server.close()
        for connection in [c for c in asyncio.all_tasks() if c.done()]:
            connection.cancel()
        link.close()

    asyncio.run(talk())


def test_a_link_to_nobody_says_that_the_peer_is_down() -> None:
    async def call() -> list[tuple[str, bool]]:
        seen: list[tuple[str, bool]] = []
        link = Link(
            codec(),
            "n1",
            "127.0.0.1:1",
            lambda: Calling(SECRET, "n2"),
            lambda *_: None,
            lambda peer, up: seen.append((peer, up)),
        )
        async with asyncio.timeout(PATIENCE):
            while not seen:
                await asyncio.sleep(0.01)
        link.close()
        return seen

    assert asyncio.run(call()) == [("n1", False)]


def test_a_node_that_shows_life_but_does_not_answer_is_not_waited_for_any_longer() -> None:
    async def live() -> None:
        connections: list[Accepted] = []

        def accepted() -> Accepted:
            return Accepted(codec(), SECRET, "n1", connections.append, lambda *_: None, print)

        server = await asyncio.get_running_loop().create_server(accepted, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        def ask() -> None:
            conversation = Conversation(f"127.0.0.1:{port}", SECRET)
            try:
                conversation.ask(StatusRequest(1), 0.3)
            finally:
                conversation.close()

        asking = asyncio.create_task(asyncio.to_thread(ask))
        while not asking.done():
            await asyncio.sleep(0.05)
            for connection in connections:
                connection.beat()
        with pytest.raises(TimeoutError):
            await asking
        server.close()

    asyncio.run(within(PATIENCE, live()))
