"""Builds of indexes whose processes are killed at random, while clients write and tablets split.

It is wrong where an index is not its table at some time from its scan on, a constraint was missed or invented, a row that was
committed is lost, a step of a master is none of the definitions, or the logs of the processes report what no run explains.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from stagewright.impl.endurance.broken import PATIENCE, BrokenError, refuse
from stagewright.impl.endurance.index_rows import Held
from stagewright.impl.endurance.index_writers import Writer, ended
from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.processes.client import IndexClient
from stagewright.impl.indexes.processes.layout import MASTER, REAL, IndexLayout
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.processes.errors import ClusterError
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec.errors import InputError

KINDS = ("plain", "unique", "deferred")
KEPT = {key: {"v": key, "w": key % 10} for key in range(240)}  # rows that nobody writes again
SLOW = replace(REAL, batch=4, chunk_rows=8, rows_per_second=40)
BUILDERS = replace(SLOW, batch=8, rows_per_second=0, bulk=1)  # processes of their own read the rows
CheckLogs = Callable[[Sequence[Path]], str]
_AT_ONCE = 9  # builds in one cluster
_MOST_TABLETS = 12


# -- a cluster under writes ------------------------------------------------------------------------------------------


def filled(supervisor: IndexSupervisor) -> Writer:
    """A client that writes no more, for the oracle: it has committed what is there from the beginning."""
    first, client = Writer(supervisor.client(PATIENCE), 0), supervisor.client(PATIENCE)
    found = client.write(KEPT)
    client.close()
    if found.time is None:
        raise BrokenError(f"the first rows are not committed: {found.refused}")
    first.committed[found.time] = KEPT
    return first


def writing(supervisor: IndexSupervisor, numbers: range) -> list[Writer]:
    """So many clients that go on until they are stopped."""
    writers = [Writer(supervisor.client(PATIENCE), n) for n in numbers]
    for writer in writers:
        writer.start()
    return writers


def look(
    supervisor: IndexSupervisor, first: Writer, writers: list[Writer], check_logs: CheckLogs
) -> None:
    """Stop, and look at what is stored.

    Raises:
        BrokenError: something is lost or wrong.
    """
    ended(writers)
    supervisor.stop()
    logs = check_logs([supervisor.layout.node(name) / "log" for name in supervisor.names])
    held = Held(supervisor.layout)
    refuse([*filter(None, [logs]), *held.breaches(), *held.refused()])
    refuse(held.lost([first, *writers]))


def until(client: IndexClient, name: str, wanted: Callable[[Build], bool]) -> Build:
    """Wait until a build is so; what it is like then.

    Raises:
        BrokenError: it never is.
    """
    end = time.monotonic() + PATIENCE
    found: Build | None = None
    while time.monotonic() < end:
        try:
            found = next(b for b in client.builds() if b.name == name)
        except ClusterError:
            continue  # what would answer has just been killed
        if wanted(found):
            return found
        time.sleep(0.05)
    raise BrokenError(f"the build of {name} does not end: {found}")


def is_over(build: Build) -> bool:
    """Built, or failed and gone."""
    return build.status is Status.success or build.gone


# -- kills -------------------------------------------------------------------------------------------------------------


def leader(supervisor: IndexSupervisor, place: str) -> str:
    """The process that leads a tablet, or all as the master.

    Raises:
        BrokenError: none does.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for name in supervisor.names:
            if place in (supervisor.leads(name) or ()):
                return name
        time.sleep(0.05)
    raise BrokenError(f"nobody leads {place}")


def children_of(process: int) -> list[int]:
    """Processes that it has started and that live."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = path.read_text("ascii", "replace").rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                found.append(int(path.parent.name))
    return found


def kill_builders(supervisor: IndexSupervisor) -> int:
    """Kill the builders that there are; how many."""
    killed = 0
    for name in supervisor.layout.file().servers:
        process = supervisor.running(name)
        for builder in [] if process is None else children_of(process):
            with suppress(ProcessLookupError):
                os.kill(builder, signal.SIGKILL)
                killed += 1
    return killed


def kill(supervisor: IndexSupervisor, name: str, chance: Random) -> None:
    """Kill a process, and start it again some time later."""
    supervisor.kill(name)
    time.sleep(chance.random())
    supervisor.start()


def kill_one(supervisor: IndexSupervisor, chance: Random) -> str:
    """Kill a process at random, the master leader as often as any other, and start it again some time later."""
    name = chance.choice([leader(supervisor, MASTER), *supervisor.layout.file().servers])
    kill(supervisor, name, chance)
    return name


# -- builds ------------------------------------------------------------------------------------------------------------


def split_one(
    supervisor: IndexSupervisor, client: IndexClient, chance: Random, index: str = ""
) -> str:
    """Have a tablet of the table, or of an index, split, and maybe kill the process that does it; what became of it."""
    what = "splits of indexes" if index else "splits"
    # An index whose build has failed is removed meanwhile, and has no tablets then.
    with suppress(ClusterError, InputError) if index else suppress(ClusterError):
        tablets = client.tablets(index)
        if len(tablets.numbers) >= _MOST_TABLETS:
            return f"{what} not asked for"
        tablet = chance.choice(tablets.numbers)
        place = tablets.place(tablet)
        name = next((n for n in supervisor.names if place in (supervisor.leads(n) or ())), None)
        client.split(tablet, index)
        if name is not None and chance.random() < 0.5:
            kill(supervisor, name, chance)
            return f"{what} with a kill"
        return what
    return f"{what} refused or not answered"


def begin(client: IndexClient, name: str, kind: str, chance: Random) -> None:
    """An index of a kind; values of `w` are shared by rows, so that one of them cannot be unique."""
    column = chance.choice("vvvw")
    client.create(name, column, unique=kind == "unique", deferred=kind == "deferred")
    if kind == "deferred":
        time.sleep(0.3 * chance.random())
        client.backfill()


def build_one(
    supervisor: IndexSupervisor, client: IndexClient, name: str, kind: str, chance: Random
) -> Counter[str]:
    """Build one index, with kills and maybe a split; what was done."""
    done = Counter[str]()
    if chance.random() < 0.4:
        done[split_one(supervisor, client, chance)] += 1
    begin(client, name, kind, chance)
    for _ in range(chance.randint(1, 2)):
        time.sleep(chance.random())
        kill_one(supervisor, chance)
        done["kills"] += 1
        if chance.random() < 0.5:
            done["kills of builders"] += kill_builders(supervisor)
        if chance.random() < 0.5:
            done[split_one(supervisor, client, chance, chance.choice(("", name)))] += 1
    dropped = chance.random() < 0.15
    if dropped:
        with suppress(InputError):  # its build has failed, and it is gone
            client.drop(name)
    found = until(client, name, (lambda b: b.gone) if dropped else is_over)
    end = "dropped" if dropped else "" if found.status is None else found.status.name.upper()
    done[f"{kind}: {end}"] += 1
    return done


def endure(
    directory: Path,
    builds: int,
    seed: int,
    done: Counter[str],
    seconds: float,
    check_logs: CheckLogs,
    report: Callable[[Counter[str]], None] = lambda _: None,
) -> None:
    """So many builds of each kind, in one cluster after the other, as long as there is time; counted in `done`.

    Raises:
        BrokenError: something was lost or wrong; the cluster is left in `directory`.
    """
    chance, end = Random(seed), time.monotonic() + seconds
    wanted = [(n, kind) for n in range(builds) for kind in KINDS]
    for number, begun in enumerate(range(0, len(wanted), _AT_ONCE)):
        if time.monotonic() > end:
            break
        layout = IndexLayout(directory / f"c{number}")
        supervisor = IndexSupervisor(layout, patience=PATIENCE)
        supervisor.create(3, BUILDERS if number % 2 else SLOW)
        try:
            supervisor.start()
            first, client = filled(supervisor), supervisor.client(PATIENCE)
            writers = writing(supervisor, range(1, 3))
            for n, kind in wanted[begun : begun + _AT_ONCE]:
                done.update(build_one(supervisor, client, f"{kind}{n}", kind, chance))
                report(done)
            done["tablets split"] += len(client.tablets().splits)
            client.close()
            look(supervisor, first, writers, check_logs)
            done["transactions"] += sum(len(w.committed) for w in writers)
        finally:
            supervisor.stop()
