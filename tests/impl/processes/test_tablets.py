"""Tables in real processes: their tablets move with their rows as nodes come, go and are killed, until they are dropped."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.impl.cdc.rows import log_of
from stagewright.impl.endurance.writers import all_is_there, kills, writing
from stagewright.impl.node.messages import CreateTable, Level, Message, OperatorReply, TabletsReply
from stagewright.impl.node.messages.operators import NameRequest
from stagewright.impl.node.messages.tables import DropTable
from stagewright.impl.processes.asking import Conversation
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.supervisor import Supervisor
from stagewright.impl.storage.rocks import RocksRows

T = "ks.t"


def created(supervisor: Supervisor, tablets: int, replicas: int) -> None:
    session = supervisor.session(T)
    session.create(T, replicas, tablets)
    session.close()


def at_rest(supervisor: Supervisor, moves: int = 0) -> TabletsReply:
    """The tablets, once none of them moves and so many moves began at least."""
    until, said = time.monotonic() + PATIENCE, None
    while time.monotonic() < until:
        said = supervisor.tablets()
        if said and len(said.moves) >= moves and not any(t.stage or t.asked for t in said.tablets):
            return said
        time.sleep(0.1)
    raise AssertionError(f"tablets do not come to rest: {said}")


def replicas_of(said: TabletsReply) -> Counter[str]:
    return Counter(host for t in said.tablets for host, _ in t.replicas)


@pytest.mark.long
def test_a_new_node_gets_its_part_of_tablets_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        created(supervisor, 4, 2)
        created(supervisor, 4, 2)  # which is the same table
        session = supervisor.session(T)
        with pytest.raises(ClusterError, match=r"there is a table ks\.t with 4 tablets"):
            session.create(T, 2, 8)
        with pytest.raises(ClusterError, match="tablets can be on 3 nodes"):
            session.create("ks.wide", 4, 2)
        writers = writing(supervisor, 2, T)
        assert supervisor.add() == "n4"
        said = at_rest(supervisor, moves=2)
        assert replicas_of(said) == dict.fromkeys(("n1", "n2", "n3", "n4"), 2)
        assert all("the shard has" in move for move in said.moves)
        supervisor.kill("n1")
        assert supervisor.add(replaces="n1") == "n5"
        assert "n1" not in replicas_of(at_rest(supervisor))
        supervisor.decommission("n2")
        said = at_rest(supervisor)
        assert set(replicas_of(said)) <= {"n3", "n4", "n5"}
        assert sum(replicas_of(said).values()) == 8
        assert any("n1 is excluded" in move for move in said.moves)
        assert any("n2 is leaving" in move for move in said.moves)
        all_is_there(supervisor, writers)
        session.level = Level.all
        session.put(b"last", b"1")
        supervisor.stop()
        supervisor.start()
        assert session.get(b"last") == b"1"
        session.close()
        all_is_there(supervisor, writers)
        assert at_rest(supervisor).tablets == said.tablets


@pytest.mark.long
def test_a_node_has_all_rows_that_it_missed_after_a_repair_and_a_change_of_replicas(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        created(supervisor, 4, 3)
        supervisor.kill("n3")
        session = supervisor.session(T)
        for i in range(20):
            session.put(f"k{i}".encode(), b"1")
        supervisor.start()
        session.repair(T)
        at_rest(supervisor)
        with pytest.raises(ClusterError, match=r"there is no table ks\.u"):
            session.repair("ks.u")
        with pytest.raises(ClusterError, match="tablets can be on 3 nodes"):
            session.alter(T, 4)
        session.alter(T, 2)
        assert sum(replicas_of(at_rest(supervisor)).values()) == 8
        session.alter(T, 3)
        at_rest(supervisor)
        session.balance(False)
        shard = dict(at_rest(supervisor).tablets[0].replicas)["n2"]
        session.move(T, 0, ("n2", -1), ("n2", 1 - shard))
        with pytest.raises(ClusterError, match=r"something is done to|has no replica on n9"):
            session.move(T, 0, ("n9", -1), ("n2", -1))
        assert dict(at_rest(supervisor).tablets[0].replicas)["n2"] == 1 - shard
        supervisor.kill("n1")
        supervisor.kill("n2")
        session.level = Level.one
        assert [session.get(f"k{i}".encode()) for i in range(20)] == [b"1"] * 20
        session.close()


@pytest.mark.thorough
def test_no_row_is_lost_by_two_hundred_kills_while_tablets_move(tmp_path: Path) -> None:
    """Nodes come and go all the time, so that kills strike tablets in each stage."""
    with cluster(tmp_path / "c", 4) as supervisor:
        created(supervisor, 8, 3)
        writers = writing(supervisor, 2, T)
        chance, written = Random(15), 0
        for _ in range(20):
            kills(supervisor, chance, 5)
            assert supervisor.add()
            kills(supervisor, chance, 5)  # while the balancer moves tablets to it
            names = [n for n in supervisor.layout.names() if not supervisor.layout.stopped(n)]
            supervisor.decommission(names[0])
            before, written = written, sum(w.count for w in writers)
            assert written > before  # clients find the nodes that are there now
        all_is_there(supervisor, writers)
        said = at_rest(supervisor)
        assert {len({h for h, _ in t.replicas}) for t in said.tablets} == {3}
        assert supervisor.status().is_well


@pytest.mark.thorough
def test_a_cluster_with_tablets_grows_to_seven_and_shrinks_to_two(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        created(supervisor, 8, 2)
        writers = writing(supervisor, 2, T)
        for _ in range(4):
            supervisor.add()
        assert len(replicas_of(at_rest(supervisor))) == 7
        for name in ("n1", "n4", "n2", "n6", "n3"):
            supervisor.decommission(name)
        all_is_there(supervisor, writers)
        assert replicas_of(at_rest(supervisor)) == {"n5": 8, "n7": 8}
        assert supervisor.status().is_well


# -- dropped ---------------------------------------------------------------------------------------------------


def filled(supervisor: Supervisor, tablets: int, *, cdc: bool = False) -> Session:
    session = supervisor.session(T)
    session.create(T, 3, tablets, cdc=cdc)
    for i in range(30):
        session.put(b"k%d" % i, b"%d" % i)
    return session


def families_on(supervisor: Supervisor, name: str) -> list[str]:
    """The tables and logs of T that a node, which does not run, has rows of."""
    rows = RocksRows(supervisor.layout.node(name) / "rows")
    snapshot = rows.snapshot()
    known = [T, log_of(T), f"{T}#2", log_of(f"{T}#2")]
    found = [f for f in known if next(snapshot.versions(f, b"", None), None) is not None]
    snapshot.close()
    rows.close()
    return found


@pytest.mark.long
@pytest.mark.parametrize("tablets", [4, 0])
def test_a_node_that_was_down_has_no_row_of_a_dropped_table_nor_has_the_next_one(
    tmp_path: Path, tablets: int
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session = filled(supervisor, tablets, cdc=True)
        supervisor.kill("n3")
        assert families_on(supervisor, "n3") == [T, log_of(T)]
        session.drop_table(T)
        session.drop_table(T)  # which is done
        began = time.monotonic()
        for refused in (
            lambda: session.get(b"k1"),
            lambda: session.put(b"k1", b"x"),
            session.generations,
        ):
            with pytest.raises(ClusterError, match=r"there is no table ks\.t"):
                refused()
        assert time.monotonic() - began < PATIENCE
        supervisor.start()
        session.create(T, 2, 2, cdc=True)
        assert list(session.scan()) == []
        session.put(b"new", b"1")
        assert dict(session.scan()) == {b"new": b"1"}
        assert session.tables() == {"ks.rows": 3, T: 2, log_of(T): 2}
        session.close()
        supervisor.stop()
        for name in ("n1", "n2", "n3"):
            assert not {T, log_of(T)} & {*families_on(supervisor, name)}


@pytest.mark.parametrize("tablets", [4, 0])
def test_a_truncated_table_is_empty_on_every_disk_and_takes_new_rows(
    tmp_path: Path, tablets: int
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session = filled(supervisor, tablets)
        session.truncate(T)
        assert list(session.scan()) == []
        session.put(b"new", b"1")
        supervisor.kill("n2")
        with pytest.raises(ClusterError, match="n2 is down, whose rows would stay"):
            session.truncate(T)
        supervisor.start()
        session.truncate(T)
        session.put(b"newer", b"2")
        assert dict(session.scan()) == {b"newer": b"2"}
        session.close()
        supervisor.stop()
        for name in ("n1", "n2", "n3"):
            rows = RocksRows(supervisor.layout.node(name) / "rows")
            snapshot = rows.snapshot()
            assert {v.key[8:] for v in snapshot.versions(T, b"", None)} <= {b"newer"}
            snapshot.close()
            rows.close()


@pytest.mark.long
def test_the_default_table_may_be_dropped_and_nodes_still_come_and_start(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 2) as supervisor:
        session = supervisor.session("ks.rows")
        session.put(b"a", b"1")
        session.drop_table("ks.rows")
        assert supervisor.add() == "n3"
        assert session.tables() == {}
        supervisor.kill("n1")
        supervisor.start(2)
        assert session.get(b"a") is None  # it is made anew
        session.close()


# -- a statement that lay at a stopped process until it was done through another node ----------------------------------


@contextmanager
def stopped(supervisor: Supervisor, name: str, message: Message) -> Iterator[Future[OperatorReply]]:
    """A node's process stands still, with a message that it has not read; then it goes on."""
    process = supervisor.running(name)
    assert process is not None
    layout = supervisor.layout
    address = layout.node_file(name).identity.host.address
    with (
        closing(Conversation(address, layout.secret(), PATIENCE)) as to,
        ThreadPoolExecutor(1) as sender,
    ):
        os.kill(process, signal.SIGSTOP)
        try:
            yield sender.submit(to.ask, message, PATIENCE)
        finally:
            os.kill(process, signal.SIGCONT)


@pytest.mark.long
def test_a_late_drop_spares_the_next_table(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor, closing(supervisor.session(T)) as session:
        session.create(T, 3, 2)
        with stopped(supervisor, "n3", DropTable(1, T)) as late:
            session.drop_table(T)
            session.create(T, 3, 2)
            session.put(b"a", b"1")
        assert late.result(PATIENCE).accepted  # as it was done
        assert session.get(b"a") == b"1"
        session.drop_table(T)


@pytest.mark.long
@pytest.mark.parametrize("wrong", ["", "statements_act_on_names"])
def test_so_does_one_that_arrives_when_the_node_knows_of_that(tmp_path: Path, wrong: str) -> None:
    with (
        cluster(tmp_path / "c", 3, wrong=wrong) as supervisor,
        closing(supervisor.session(T)) as session,
    ):
        session.create(T, 3, 2)
        session.drop_table(T)
        session.create(T, 3, 2)
        session.put(b"a", b"1")
        address = supervisor.layout.node_file("n3").identity.host.address
        with closing(Conversation(address, supervisor.layout.secret(), PATIENCE)) as late:
            late.ask(NameRequest(2, T), PATIENCE)  # which the node answers once it has learned
            assert late.ask(DropTable(1, T), PATIENCE).accepted
        until = time.monotonic() + PATIENCE
        while wrong and T in session.tables() and time.monotonic() < until:
            time.sleep(0.05)  # the node that is asked may have to learn of it
        assert (T in session.tables()) is not bool(wrong)
        if not wrong:
            assert session.get(b"a") == b"1"


@pytest.mark.long
def test_a_late_create_makes_no_table_again(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor, closing(supervisor.session(T)) as session:
        with stopped(supervisor, "n3", CreateTable(1, T, 3, 2)) as late:
            session.create(T, 3, 2)
            session.drop_table(T)
            with pytest.raises(ClusterError, match=r"there is no table ks\.t"):
                session.repair(T)
        late.result(PATIENCE)  # it is refused, or was done before the drop
        time.sleep(0.5)
        assert T not in session.tables()
        with pytest.raises(ClusterError, match=r"there is no table ks\.never"):
            session.drop_table("ks.never")
        session.drop_table(T)  # which is done
        session.drop_view("ks.v")
