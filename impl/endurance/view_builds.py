"""Builds of views whose nodes are killed at random, while a client writes and nodes come and go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from stagewright.impl.endurance.broken import PATIENCE, BrokenError, refuse
from stagewright.impl.endurance.writers import (
    Writer,
    add_node,
    all_is_there,
    decommission_oldest,
    kills,
)
from stagewright.impl.node.messages import Level
from stagewright.impl.processes.builds import Build
from stagewright.impl.processes.client import Session, ViewRow
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor

T, V = "ks.t", "ks.v"
MODULUS = 7
KEPT = {b"kept%d" % i: b"%d" % (7 * i) for i in range(60)}  # rows that nobody writes again


def filled(supervisor: Supervisor, tablets: int) -> Session:
    """A client of a table with the rows that are kept."""
    session = supervisor.session(T, waits=True)
    session.create(T, 3, tablets)
    for key, value in KEPT.items():
        session.put(key, value)
    return session


def built(session: Session, view: str = V) -> Build:
    """Wait until it is.

    Raises:
        BrokenError: it never is.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            found = next(b for b in session.builds() if b.name == view)
        except ClusterError:
            continue  # a node has just been killed
        if found.status == "SUCCESS":
            return found
        time.sleep(0.1)
    raise BrokenError(f"{view} is not built: {session.builds()}")


def rows_of(session: Session, view: str = V, level: Level = Level.quorum) -> list[ViewRow]:
    """All that a view holds, read at a level."""
    table, before = session.table, session.level
    session.table, session.level = view, level
    found = list(session.scan_view())
    session.table, session.level = table, before
    return found


def expected(session: Session, modulus: int = MODULUS) -> list[ViewRow]:
    """What its base says that a view holds."""
    rows = [ViewRow(b"%d" % (int(v) % modulus), k, v) for k, v in session.scan() if v.isdigit()]
    return sorted(rows)


def is_its_base(session: Session, writers: list[Writer]) -> None:
    """When replicas agree and updates have arrived, a view has what its base table says, and nothing else.

    A replica that was down has missed writes: what it builds from is old until a read has mended it.

    Raises:
        BrokenError: it never has.
    """
    until, session.level = time.monotonic() + PATIENCE, Level.all
    for key in (*KEPT, *(k for w in writers for k in w.acknowledged)):
        session.get(key)
    while (there := sorted(rows_of(session, level=Level.all))) != (wanted := expected(session)):
        if time.monotonic() > until:
            raise BrokenError(f"the view and its base differ: {sorted({*there} ^ {*wanted})[:5]}")
        time.sleep(0.2)


def at_once(session: Session, writers: list[Writer]) -> None:
    """A view that is built has every row that was there before it, as it was if nobody writes it.

    Raises:
        BrokenError: one is missing, or there is one that nobody has written.
    """
    there = {row.base_key: row for row in rows_of(session)}
    rows = {k: ViewRow(b"%d" % (int(v) % MODULUS), k, v) for k, v in KEPT.items()}
    refuse(
        f"SUCCESS, and {there.get(k)} is there, not {row}"
        for k, row in rows.items()
        if there.get(k) != row
    )
    unknown = there.keys() - KEPT.keys() - {k for w in writers for k in w.acknowledged}
    refuse(f"nobody has written {k!r}" for k in sorted(unknown))


def build_one(
    supervisor: Supervisor, session: Session, number: int, chance: Random, writers: list[Writer]
) -> Counter[str]:
    """Build the view with kills, look at it, and drop it; what was done."""
    done = Counter[str]()
    writer = Writer(supervisor.session(T, waits=True), f"w{number}")
    writers.append(writer)
    writer.start()
    session.create_view(V, T, MODULUS)
    moves = number % 3 == 0
    if moves:
        done["asked again"] += add_node(supervisor)
    done["kills"] += 1 + chance.randrange(3)
    kills(supervisor, chance, done["kills"])
    if moves:
        done["asked again"] += decommission_oldest(supervisor)
        done["nodes replaced"] += 1
    built(session)
    at_once(session, writers)
    all_is_there(supervisor, [writer])
    is_its_base(session, writers)
    session.level = Level.quorum
    session.drop_view(V)
    done["views: SUCCESS"] += 1
    return done


def endure(
    directory: Path,
    builds: int,
    seed: int,
    done: Counter[str],
    seconds: float = float("inf"),
    report: Callable[[Counter[str]], None] = lambda _: None,
) -> None:
    """So many builds in one cluster, as long as there is time; what was done is counted in `done`.

    Every third time another node takes the place of one, so that tasks move with their tablets.

    Raises:
        BrokenError: something was lost or wrong; the cluster is left in `directory`.
    """
    supervisor = Supervisor(Layout(directory / "c"), patience=PATIENCE)
    end = time.monotonic() + seconds
    supervisor.create(4)
    try:
        supervisor.start()
        session, chance, writers = filled(supervisor, 4), Random(seed), list[Writer]()
        for number in range(builds):
            if time.monotonic() > end:
                break
            done.update(build_one(supervisor, session, number, chance, writers))
            report(done)
        refuse([] if supervisor.status().is_well else ["the cluster is not well at its end"])
        session.close()
        done["writes"] = sum(w.count for w in writers)
    finally:
        supervisor.stop()
