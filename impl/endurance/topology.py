"""A cluster under writes whose nodes are killed at random, join and leave; etcd's leader is killed, too, where there is an etcd."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random

from stagewright.impl.endurance.broken import PATIENCE, refuse
from stagewright.impl.endurance.writers import (
    add_node,
    all_is_there,
    decommission_oldest,
    kills,
    writing,
)
from stagewright.impl.group0.etcd_process import EtcdCluster
from stagewright.impl.processes.layout import Layout, Settings
from stagewright.impl.processes.supervisor import Supervisor

TABLE = "ks.t"
_TABLETS = 16
_JOINS, _LEAVES = 5, 8  # of ten kills, after which a node joins, and one leaves
_OF_ETCD = 4  # kills of nodes to each of etcd's leader


def kill_the_leader(etcd: EtcdCluster, chance: Random) -> bool:
    """Kill the member of etcd that leads, and start it again; whether there was one."""
    leader = etcd.leader()
    if leader is None:
        return False
    etcd.kill(leader)
    time.sleep(chance.random())
    etcd.start(leader)
    etcd.wait_until_ready(leader)
    return True


def endure(
    directory: Path,
    nodes: int,
    wanted: int,
    members: int,
    seed: int,
    done: Counter[str],
    seconds: float = float("inf"),
    report: Callable[[Counter[str]], None] = lambda _: None,
) -> None:
    """So many kills, as long as there is time, in a cluster whose commands are in etcd, if `members` is not 0.

    Every ten kills a node joins and another one leaves. What was done is counted in `done`.

    Raises:
        BrokenError: something was lost or wrong; the cluster is left in `directory`.
        Group0Error: there is no etcd, or none that can be trusted.
    """
    etcd = EtcdCluster(directory / "etcd", members) if members else None
    with etcd or nullcontext():
        settings = Settings() if etcd is None else Settings(etcd=etcd.endpoints)
        supervisor = Supervisor(Layout(directory / "c"), patience=PATIENCE)
        supervisor.create(nodes, settings)
        try:
            supervisor.start()
            session = supervisor.session(TABLE)
            session.create(TABLE, min(3, nodes), _TABLETS)
            session.close()
            writers, end = writing(supervisor, 2, TABLE), time.monotonic() + seconds
            _kill(supervisor, etcd, wanted, Random(seed), done, end, report)
            done["writes acknowledged"] += sum(w.count for w in writers)
            all_is_there(supervisor, writers)
            supervisor.stop()
            supervisor.start()
            all_is_there(supervisor, writers)
            refuse(_unwell(supervisor, min(3, nodes)))
        finally:
            supervisor.stop()


def _kill(
    supervisor: Supervisor,
    etcd: EtcdCluster | None,
    wanted: int,
    chance: Random,
    done: Counter[str],
    end: float,
    report: Callable[[Counter[str]], None],
) -> None:
    while done["kills"] < wanted and time.monotonic() < end:
        kills(supervisor, chance, 1)
        done["kills"] += 1
        if etcd is not None and done["kills"] % _OF_ETCD == 0:
            done["kills of etcd's leader"] += kill_the_leader(etcd, chance)
        if done["kills"] % 10 == _JOINS:
            done["asked again"] += add_node(supervisor)
            done["nodes joined"] += 1
        if done["kills"] % 10 == _LEAVES:
            done["asked again"] += decommission_oldest(supervisor)
            done["nodes left"] += 1
        report(done)


def _unwell(supervisor: Supervisor, replicas: int) -> list[str]:
    """What is wrong with the cluster at its end."""
    found = [] if supervisor.status().is_well else ["the cluster is not well at its end"]
    said = supervisor.tablets()
    tablets = said.tablets if said is not None else ()
    few = [t for t in tablets if len({*t.replicas}) != replicas]
    return found + [f"a tablet has the replicas {sorted(map(str, t.replicas))}" for t in few]
