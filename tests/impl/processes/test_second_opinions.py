"""What a client does with a node's word that too few replicas are alive: it asks one other node, and tells what is known."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("msgspec")

from stagewright.impl.node.messages import ClientReply, Level, ScanReply, Unavailable
from stagewright.impl.processes import asking
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError, ReplicasUnavailableError

SHORT = Unavailable(Level.quorum, 2, 1, ("n2", "n3"))
REFUSED = ClientReply(0, False, reason=str(SHORT), unavailable=SHORT)
DONE = ClientReply(0, True, b"1", 5)
TIMED_OUT = ClientReply(0, False, reason="timed out")


def a_session(
    monkeypatch: pytest.MonkeyPatch, *answers: Any, waits: bool = False
) -> tuple[Session, list[str]]:
    """A client to which nodes give these answers, and the addresses that it has asked."""
    asked, left = list[str](), list(answers)

    class Scripted:
        def __init__(self, address: str, *_: object) -> None:
            self.address = address
            if left[0] == "refused":
                left.pop(0)
                raise ConnectionRefusedError(address)

        def ask(self, _message: Any, _seconds: float) -> Any:
            asked.append(self.address)
            answer = left.pop(0)
            if answer == "silent":
                raise TimeoutError("no answer")
            return answer

        def close(self) -> None:
            pass

    monkeypatch.setattr(asking, "Conversation", Scripted)
    return Session(lambda: ["a", "b", "c"], b"", "ks.t", 1.0, waits=waits), asked


def test_what_one_node_refuses_another_one_may_do(monkeypatch: pytest.MonkeyPatch) -> None:
    session, asked = a_session(monkeypatch, REFUSED, DONE)
    assert session.get(b"k") == b"1"
    assert len({*asked}) == 2


def test_what_two_nodes_refuse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session, asked = a_session(monkeypatch, REFUSED, REFUSED)
    with pytest.raises(ReplicasUnavailableError, match="nothing was written") as error:
        session.put(b"k", b"v")
    assert (error.value.short, error.value.in_doubt, len(asked)) == (SHORT, False, 2)


def test_what_the_first_one_says_stands_if_no_second_one_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, asked = a_session(monkeypatch, REFUSED, "refused")
    with pytest.raises(ReplicasUnavailableError, match="n2, n3 are down"):
        session.get(b"k")
    assert len(asked) == 1


@pytest.mark.parametrize("before", [TIMED_OUT, "silent"])
def test_a_write_that_was_sent_before_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch, before: Any
) -> None:
    session, _ = a_session(monkeypatch, before, REFUSED, REFUSED)
    with pytest.raises(ReplicasUnavailableError, match="an earlier attempt may have") as error:
        session.put(b"k", b"v")
    assert error.value.in_doubt
    session, _ = a_session(monkeypatch, before, REFUSED, REFUSED)
    with pytest.raises(ReplicasUnavailableError, match="n3 are down") as error:
        session.get(b"k")
    assert not error.value.in_doubt


def test_what_was_refused_before_says_nothing_of_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scan = ScanReply(0, False, reason=str(SHORT), unavailable=SHORT)
    session, _ = a_session(monkeypatch, TIMED_OUT, REFUSED, REFUSED, scan, scan, REFUSED, REFUSED)
    with pytest.raises(ReplicasUnavailableError):
        session.put(b"k", b"v")
    with pytest.raises(ReplicasUnavailableError):
        list(session.scan())
    with pytest.raises(ReplicasUnavailableError, match="nothing was written"):
        session.put(b"k", b"v")


def test_who_waits_for_nodes_asks_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    session, asked = a_session(monkeypatch, REFUSED, REFUSED, REFUSED, DONE, waits=True)
    assert session.get(b"k") == b"1"
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("short", "help"),
    [
        (SHORT, "start who is down (`stagewright cluster start`), or ask for a lower level"),
        (Unavailable(Level.one, 1, 0, ("n1",)), "start who is down (`stagewright cluster start`)"),
        (Unavailable(Level.quorum, 2, 1), "let nodes join (`stagewright cluster add`), or ask for"),
    ],
)
def test_what_helps_is_said(short: Unavailable, help: str) -> None:
    assert ReplicasUnavailableError(short, writes=False).help.startswith(help)


@pytest.mark.parametrize(
    ("said", "why"),
    [((TIMED_OUT, "silent"), "timed out"), (("silent",), "no answer")],
)
def test_what_a_node_has_said_is_reported_and_not_that_others_were_silent(
    monkeypatch: pytest.MonkeyPatch, said: tuple[Any, ...], why: str
) -> None:
    session, asked = a_session(monkeypatch, *said, *["silent"] * 20)
    with pytest.raises(ClusterError, match=f"not answered within 1 s at level quorum: {why}"):
        session.get(b"k")
    assert len(asked) > len(said)
