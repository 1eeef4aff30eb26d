"""Builds of indexes whose processes are killed at random, for as many builds as one likes.

`python -m tests.impl.indexes.processes.endurance --builds 100`; ends with 1 where an index is not its table at some time
from its scan on, a constraint was missed or invented, a row that was committed is lost, a step of a master is none of
the definitions, or the logs of the processes tell what no run explains.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.impl.indexes.processes.clusters import cluster, is_over, kill_builders, kill_one, until
from tests.impl.indexes.processes.stored import Held
from tests.impl.indexes.processes.writers import Writer, ended

from stagewright.commands.campaigning.logs import YUGABYTE, check_logs
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor

KEPT = {key: {"v": key, "w": key % 10} for key in range(240)}  # rows that nobody writes again


def filled(supervisor: IndexSupervisor) -> Writer:
    """A client that writes no more, for the oracle: it has committed what is there from the beginning."""
    first = Writer(supervisor.client(120), 0)
    found = supervisor.client(120).write(KEPT)
    assert found.time is not None, found
    first.committed[found.time] = KEPT
    return first


def writing(supervisor: IndexSupervisor, numbers: range) -> list[Writer]:
    """So many clients that go on until they are stopped."""
    writers = [Writer(supervisor.client(120), n) for n in numbers]
    for writer in writers:
        writer.start()
    return writers


def all_is_well(supervisor: IndexSupervisor, first: Writer, writers: list[Writer]) -> None:
    """Stop, and look at what is stored."""
    ended(writers)
    supervisor.stop()
    logs = [supervisor.layout.node(name) / "log" for name in supervisor.names]
    assert check_logs(logs, YUGABYTE)[1] == ""
    held = Held(supervisor.layout)
    assert held.breaches() == []
    assert held.refused() == []
    assert held.lost([first, *writers]) == []


AT_ONCE = 10  # builds in one cluster


def endure(directory: Path, builds: int, seed: int, first_one: int = 0) -> Counter[str]:
    """Build and kill, in one cluster after the other; what was done."""
    chance, done = Random(seed), Counter[str]()
    for begin in range(first_one, builds, AT_ONCE):
        with_builders = {"rows_per_second": 0, "batch": 8, "bulk": 1}
        is_odd = begin // AT_ONCE % 2
        with cluster(
            directory / f"c{begin}", "", **(with_builders if is_odd else {})
        ) as supervisor:
            first, client = filled(supervisor), supervisor.client(120)
            writers = writing(supervisor, range(1, 3))
            for number in range(begin, min(begin + AT_ONCE, builds)):
                name, unique = f"i{number}", chance.random() < 0.6
                client.create(name, chance.choice("vvvw"), unique=unique)
                for _ in range(chance.randint(1, 2)):
                    time.sleep(chance.random())
                    kill_one(supervisor, chance)
                    done["kills"] += 1
                    if chance.random() < 0.5:
                        done["builders killed"] += kill_builders(supervisor)
                dropped = chance.random() < 0.2
                if dropped:
                    client.drop(name)
                    done["dropped"] += 1
                until(client, name, (lambda b: b.gone) if dropped else is_over)
            for build in client.builds():
                done["" if build.status is None else build.status.name.upper()] += 1
            client.close()
            all_is_well(supervisor, first, writers)
            done["transactions"] += sum(len(w.committed) for w in writers)
    return done


def main(words: list[str] | None = None) -> None:
    """Endure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--builds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="build to begin with")
    wanted = parser.parse_args(words)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="indexes-") as scratch:
        done = endure(Path(scratch), wanted.builds, wanted.seed, wanted.first)
    print(json.dumps(done))
    print(f"nothing was lost or wrong in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
