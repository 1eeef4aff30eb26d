"""A level that cannot be reached, as nodes are down: the answer comes at once, and says what was and was not done."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.commands import run_command_line
from stagewright.impl.node.messages import Level
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError, ReplicasUnavailableError
from stagewright.impl.processes.supervisor import Supervisor

T = "ks.t"
AT_ONCE = 10.0  # seconds on a machine with other work to do; whoever waits does so for 15


def refused(do: Callable[[], object]) -> ReplicasUnavailableError:
    """How it is refused once it is: until nodes have noticed who is down, they wait for it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            do()
        except ReplicasUnavailableError as error:
            return error
        except ClusterError:
            pass
    raise AssertionError("it is not refused")


def done(do: Callable[[], object]) -> None:
    """Do it, as soon as nodes have noticed who is back."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            do()
        except ClusterError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def filled(supervisor: Supervisor) -> Session:
    session = supervisor.session(T)
    session.create(T, 3, 2)
    session.create_view("ks.v", T, 7)
    session.put(b"a", b"1")
    return session


def test_who_asks_for_more_replicas_than_are_alive_hears_it_at_once_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session = filled(supervisor)
        supervisor.kill("n3")
        session.level = Level.all
        refused(lambda: session.get(b"a"))
        view = supervisor.session("ks.v")
        view.level = Level.all
        for ask in (
            lambda: session.put(b"a", b"2"),
            lambda: session.put(b"a", None),
            lambda: session.get(b"a"),
            lambda: [*session.scan()],
            lambda: [*view.scan_view()],
            lambda: [*view.get_view(b"1")],
        ):
            began = time.monotonic()
            with pytest.raises(ReplicasUnavailableError, match="level all needs 3 replicas, and 2"):
                ask()
            assert time.monotonic() - began < AT_ONCE
        words = ["shell", "--dir", str(supervisor.layout.directory), "--consistency", "all"]
        assert run_command_line([*words, "-c", "use t; put a 3"]) == 1
        told = capsys.readouterr().err
        assert "are alive: n3 is down; nothing was written" in told
        assert "start who is down (`stagewright cluster start`)" in told
        assert "a lower level (`consistency`: quorum or one)" in told
        session.level = Level.quorum
        assert session.get(b"a") == b"1"  # what was refused has not happened
        session.put(b"a", b"4")
        assert supervisor.start() == ["n3"]
        session.level = Level.all
        done(lambda: session.get(b"a"))
        assert session.get(b"a") == b"4"
        session.close()
        view.close()


@pytest.mark.long
def test_who_is_suspended_counts_as_down_and_is_asked_again_once_it_goes_on(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session, patient = filled(supervisor), supervisor.session(T, waits=True)
        session.level = patient.level = Level.all
        process = supervisor.running("n3")
        assert process is not None
        os.kill(process, signal.SIGSTOP)
        try:
            short = refused(lambda: session.get(b"a")).short
            assert (short.needed, short.alive, short.down) == (3, 2, ("n3",))
            with pytest.raises(ClusterError, match="not answered within 15 s at level all"):
                patient.put(b"a", b"2")
        finally:
            os.kill(process, signal.SIGCONT)
        done(lambda: session.put(b"a", b"3"))
        assert session.get(b"a") == b"3"
        session.close()
        patient.close()
