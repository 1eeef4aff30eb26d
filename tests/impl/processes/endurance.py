"""A cluster under writes for as long as one likes, whose processes are killed at random.

`python -m tests.impl.processes.endurance --nodes 24 --minutes 10`; with `--etcd 3` the log of commands lies in so
many members of etcd, whose leader is killed, too. It ends with 1 if a write that was acknowledged is lost.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.impl.processes.clusters import cluster

from stagewright.impl.endurance.writers import (
    all_is_there,
    decommission_oldest,
    kills,
    writing,
)
from stagewright.impl.group0.etcd_process import EtcdCluster
from stagewright.impl.processes.layout import Settings
from stagewright.impl.processes.supervisor import Supervisor

TABLE = "ks.t"


def kill_the_leader(etcd: EtcdCluster, chance: Random) -> bool:
    """Kill the member of etcd that leads, and start it again."""
    leader = etcd.leader()
    if leader is None:
        return False
    etcd.kill(leader)
    time.sleep(chance.random())
    etcd.start(leader)
    etcd.wait_until_ready(leader)
    return True


def endure(
    supervisor: Supervisor, etcd: EtcdCluster | None, wanted: argparse.Namespace
) -> Counter[str]:
    """Kill until there were so many kills and so many minutes are over; what was done."""
    chance, done = Random(wanted.seed), Counter[str]()
    until = time.monotonic() + 60 * wanted.minutes
    while done["kills"] < wanted.kills or time.monotonic() < until:
        if wanted.pause:
            time.sleep(wanted.pause * chance.random())
        kills(supervisor, chance, 1)
        done["kills"] += 1
        if done["kills"] % 20 == 0:
            print(dict(done), file=sys.stderr, flush=True)
        if etcd is not None and done["kills"] % 4 == 0:
            done["kills of etcd's leader"] += kill_the_leader(etcd, chance)
        if wanted.changes and done["kills"] % 10 == 0:
            supervisor.add()
            done["joined"] += 1
        if wanted.changes and done["kills"] % 10 == 5 and done["joined"]:
            decommission_oldest(supervisor)
            done["left"] += 1
    return done


def main(words: list[str] | None = None) -> None:
    """Endure, and look for every row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--tablets", type=int, default=16)
    parser.add_argument("--kills", type=int, default=0, help="at least so many")
    parser.add_argument("--minutes", type=float, default=0.0, help="at least so long")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between kills, at most")
    parser.add_argument("--changes", action="store_true", help="nodes join and leave, too")
    parser.add_argument("--etcd", type=int, default=0, metavar="MEMBERS")
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # nodes end with it, too
    began = time.monotonic()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="endurance-")))
        etcd = stack.enter_context(EtcdCluster(root / "etcd", wanted.etcd)) if wanted.etcd else None
        settings = Settings() if etcd is None else Settings(etcd=etcd.endpoints)
        supervisor = stack.enter_context(cluster(root / "c", wanted.nodes, settings))
        session = supervisor.session(TABLE)
        session.create(TABLE, 3, wanted.tablets)
        session.close()
        writers = writing(supervisor, 2, TABLE)
        done = endure(supervisor, etcd, wanted)
        all_is_there(supervisor, writers)
        supervisor.stop()
        supervisor.start()
        all_is_there(supervisor, writers)
        well, said = supervisor.status().is_well, supervisor.tablets()
        replicas = {len({*t.replicas}) for t in said.tablets} if said is not None else set[int]()
    done["writes acknowledged"] = sum(w.count for w in writers)
    print(json.dumps({**done, "well": well, "replicas": sorted(replicas)}))
    print(f"nothing was lost in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
