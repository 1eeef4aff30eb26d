"""Real processes: they start light, keep what they acknowledged when they are killed, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from hypothesis import given, settings
from tests.impl.group0.ports import NO_ETCD
from tests.impl.processes.clusters import cluster
from tests.impl.processes.messages import messages
from tests.impl.processes.strangers import besiege
from tests.patience import PATIENCE
from tests.traces.databases.scylladb.scylla_evaluated import read, violations

from stagewright.impl.endurance.writers import (
    all_is_there,
    decommission_oldest,
    kills,
    writing,
)
from stagewright.impl.group0.etcd_process import EtcdCluster, find_etcd
from stagewright.impl.node.messages import (
    ClientRead,
    ClientScan,
    ClientWrite,
    Message,
    StatusReply,
    StatusRequest,
)
from stagewright.impl.processes.asking import Conversation
from stagewright.impl.processes.children import environment
from stagewright.impl.processes.errors import ClusterError, OperationFailedError, WireError
from stagewright.impl.processes.layout import Layout, Settings
from stagewright.impl.processes.supervisor import (
    TABLE,
    Supervisor,
)

HEAVY = ("numpy", "pandas", "numba", "llvmlite", "pyspark", "pyarrow", "z3", "hypothesis", "rich")


def test_a_node_imports_nothing_heavy() -> None:
    code = (
        "import sys, json, pathlib\n"
        "import stagewright.impl.processes.node, stagewright.impl.group0.sqlite, msgspec, rocksdict\n"
        "from stagewright.impl.topology.release import release\n"
        "release()\n"
        f"heavy = sorted({set(HEAVY)!r} & set(sys.modules))\n"
        "status = pathlib.Path('/proc/self/status').read_text().split()\n"
        "print(json.dumps([heavy, int(status[status.index('VmHWM:') + 1]) / 1024]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        env=environment(),
    )
    heavy, mebibytes = json.loads(ran.stdout)
    assert heavy == []
    assert mebibytes < 64


@pytest.mark.long
def test_what_is_acknowledged_survives_kills_and_restarts(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        writers = writing(supervisor, 2)
        kills(supervisor, Random(1), 2)
        all_is_there(supervisor, writers)
        assert all(w.count for w in writers)
        assert sorted(supervisor.stop()) == ["n1", "n2", "n3"]
        assert supervisor.start() == ["n1", "n2", "n3"]
        all_is_there(supervisor, writers)
        assert supervisor.status().is_well


@pytest.mark.long
@pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD)
def test_the_log_of_commands_may_lie_in_etcd_members_of_which_are_killed(tmp_path: Path) -> None:
    with (
        EtcdCluster(tmp_path / "etcd", 3) as etcd,
        cluster(tmp_path / "c", 2, Settings(etcd=etcd.endpoints)) as supervisor,
    ):
        writers = writing(supervisor, 1)
        etcd.kill(0)
        assert supervisor.add() == "n3"
        etcd.start(0)
        etcd.kill(1)
        supervisor.decommission("n1")
        all_is_there(supervisor, writers)
        assert not (supervisor.layout.directory / "group0.sqlite").exists()


@pytest.mark.thorough
def test_so_it_does_for_a_hundred_kills(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        writers = writing(supervisor, 2)
        kills(supervisor, Random(2), 100)
        all_is_there(supervisor, writers)


@pytest.mark.long
def test_a_node_that_seemed_down_is_asked_to_leave_again(tmp_path: Path) -> None:
    """`endure` ended at its 13th view, when a node that had just been killed was asked to leave too early."""
    with cluster(tmp_path / "c", 4) as supervisor:
        process = supervisor.running("n1")
        assert process is not None
        os.kill(process, signal.SIGSTOP)
        wakes = Timer(6, os.kill, (process, signal.SIGCONT))
        wakes.start()
        decommission_oldest(supervisor)
        wakes.join()
        status = supervisor.status()
        assert [n.name for n in status.nodes if n.said and n.said.state == "normal"] == [
            "n2",
            "n3",
            "n4",
        ]


def _lags(patch: pytest.MonkeyPatch, stale: StatusReply, answers: int) -> None:
    """Whoever is asked how the cluster is gives an old answer first, so many times."""
    late, ask = [stale] * answers, Conversation.ask

    def answered(self: Conversation, message: Any, seconds: float = 5.0) -> Any:
        if isinstance(message, StatusRequest) and late:
            return late.pop()
        return ask(self, message, seconds)

    patch.setattr(Conversation, "ask", answered)


def test_a_node_gets_the_tokens_that_it_asks_for_unless_another_one_owns_them(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path / "c", 2) as supervisor:
        assert supervisor.add(tokens=(-5, 17)) == "n3"
        with pytest.raises(OperationFailedError, match="the token 17 is owned by n3: ask for"):
            supervisor.add(tokens=(17, 18))
        supervisor.decommission("n3")
        assert supervisor.add(tokens=(17, 18)) == "n5"
        said = supervisor.said()
        assert said is not None
        owned = {n.name: n.tokens for n in said.nodes}
        assert (owned["n3"], owned["n4"], owned["n5"]) == (0, 0, 2)


def test_nodes_come_and_go_while_clients_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        writers = writing(supervisor, 2)
        with pytest.raises(OperationFailedError, match="n4 has ended: it may not join: Feature"):
            supervisor.add(lacks="TABLETS")
        with monkeypatch.context() as patch:  # as if n4 were added at the same time
            patch.setattr(supervisor, "_names", lambda: ["n1", "n2", "n3"])
            assert supervisor.add() == "n5"
        supervisor.kill("n1")
        with pytest.raises(OperationFailedError, match="n1 is down"):
            supervisor.decommission("n2")
        refused = supervisor.said()
        assert refused is not None
        assert supervisor.add(replaces="n1") == "n6"
        _lags(monkeypatch, refused, 3)
        supervisor.decommission("n2")
        supervisor.kill("n3")
        lost = supervisor.layout.node("n3").rename(tmp_path / "n3")
        assert [n.name for n in supervisor.status().nodes if n.lost] == ["n3"]
        with pytest.raises(ClusterError, match="n3 does not run"):
            supervisor.kill("n3")
        supervisor.remove("n3")
        assert supervisor.start() == []  # who has left is not started again
        for ask in (
            supervisor.remove,
            supervisor.decommission,
            supervisor.rebuild,
            supervisor.abort,
        ):
            with pytest.raises(ClusterError, match="n3 is no longer a member of the cluster"):
                ask("n3")
        with pytest.raises(ClusterError, match=r"n1 is no longer a member.*n6 has replaced it"):
            supervisor.add(replaces="n1")
        all_is_there(supervisor, writers)
        report = supervisor.status()
        assert report.is_well
        assert [n.name for n in report.nodes if n.process is not None] == ["n5", "n6"]
        layout = supervisor.layout
    found, tally = read(lost / "log", *(layout.node(n) / "log" for n in layout.names()))
    assert tally.unparsed == 0
    assert violations(found) == []
    assert {e.machine for _, e in found.events} >= {"LoggedBarrier", "LoggedFence", "LoggedTenure"}


@pytest.mark.thorough
def test_a_cluster_grows_to_seven_and_shrinks_to_two(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        writers = writing(supervisor, 2)
        for _ in range(4):
            supervisor.add()
        for name in ("n1", "n4", "n2", "n6", "n3"):
            supervisor.decommission(name)
        all_is_there(supervisor, writers)
        report = supervisor.status()
        assert report.is_well
        assert [n.name for n in report.nodes if n.process is not None] == ["n5", "n7"]


@pytest.mark.thorough
def test_twenty_four_nodes_live_on_one_machine(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 24) as supervisor:
        writers = writing(supervisor, 2)
        time.sleep(20)
        supervisor.kill("n5")
        assert supervisor.start() == ["n5"]
        all_is_there(supervisor, writers)
        assert supervisor.status().is_well


def says_anything(address: str, secret: bytes) -> None:
    """A client that knows the secret, and says whatever there is to say."""

    @settings(max_examples=200, deadline=None, database=None)
    @given(messages())
    def say(message: Message) -> None:
        if isinstance(message, ClientWrite | ClientRead | ClientScan):
            message = replace(message, table=TABLE)
        conversation = Conversation(address, secret)
        try:
            conversation.ask(message, 0.02)
        except (OSError, WireError, AttributeError):
            pass  # no answer, none that fits, or a message without a number
        finally:
            conversation.close()

    say()


def test_strangers_and_mistakes_are_refused_and_the_node_goes_on(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 1) as supervisor:
        address = supervisor.layout.node_file("n1").identity.host.address
        assert address.startswith("127.0.0.1:")
        chance = Random(3)
        for _ in range(30):
            with socket.create_connection(address.split(":"), 5) as stranger:  # type: ignore[arg-type]
                stranger.sendall(chance.randbytes(chance.randrange(1, 3000)))
        with pytest.raises(WireError, match="refused"):
            Conversation(address, b"not the secret")
        says_anything(address, supervisor.layout.secret())
        session = supervisor.session()
        with pytest.raises(WireError, match=r"a value of 65537 bytes\s+help: at most 65536"):
            session.put(b"k", bytes(65537))
        session.put(b"k", bytes(65536))
        assert session.get(b"k") == bytes(65536)
        session.close()
        with pytest.raises(ClusterError, match="n1 is running"):
            supervisor.remove("n1")
        with pytest.raises(ClusterError, match="there is no node n9"):
            supervisor.kill("n9")
        assert supervisor.start() == []
        assert supervisor.serves("n1")
        assert (supervisor.layout.directory / "secret").stat().st_mode & 0o77 == 0
        assert supervisor.stop() == ["n1"]
        with pytest.raises(OperationFailedError, match="no node runs any longer"):
            supervisor._settled("n1", {"left"})  # somebody has stopped all while it leaves
        host, _, port = address.rpartition(":")
        with socket.create_server((host, int(port))):
            taken = f"n1 has ended: .*n1 cannot listen at {address}: .*address already in use"
            with pytest.raises(OperationFailedError, match=taken):
                supervisor.start()
        assert supervisor.start() == ["n1"]
        process = supervisor.running("n1")
        assert process is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.long
def test_who_has_the_only_replicas_is_neither_removed_nor_replaced_and_both_say_why(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session = supervisor.session()
        session.create("ks.z", 1)
        session.close()
        supervisor.kill("n1")
        for ask in (supervisor.remove, supervisor.add):
            with pytest.raises(OperationFailedError, match="too few replicas of ks") as refused:
                ask("n1")
            assert refused.value.help.startswith("start the nodes that are down")
        assert supervisor.start() == ["n1"]


def test_a_directory_of_something_else_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x", "utf-8")
    with pytest.raises(ClusterError, match="is not empty"):
        Supervisor(Layout(tmp_path)).create(1)
    with pytest.raises(ClusterError, match="there is no cluster"):
        Layout(tmp_path / "none").settings()


@pytest.mark.thorough
def test_no_stranger_at_any_door_ends_a_process(tmp_path: Path) -> None:
    assert besiege(tmp_path, seconds=20, seed=4)["answered"] > 100
