"""Prints the changes of a running cluster's rows as JSON lines, from the last position on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewright.impl.cdc.consumer import Position
    from stagewright.impl.cdc.rows import Change
    from stagewright.impl.node.port import Timing
    from stagewright.impl.processes.client import Session
    from stagewright.live.position_file import PositionFile

CLOCKS = 1_000  # milliseconds by which clocks may differ
NOT_BEFORE = "until then an earlier one may follow"
_PAUSE = 0.5


def tail(
    session: Session,
    timing: Timing,
    kept: Path | None,
    report: Callable[[str], None],
    *,
    until_now: bool,
) -> None:
    """Print each change once it is old enough that no earlier one can follow; for ever, or up to now.

    The position is written after the lines: a tail that is killed between may print the last ones again.
    `report` is called with what it waits for.

    Raises:
        InputError: there is no log, or the file has no position of this cluster, or another tail uses it.
        ClusterError: the log cannot be read.
    """
    from stagewright.live.position_file import position_file

    with_a_log(session)
    if kept is None:
        _tail(session, timing, None, report, until_now=until_now)
        return
    with position_file(kept) as file:
        _tail(session, timing, file, report, until_now=until_now)


def _tail(
    session: Session,
    timing: Timing,
    file: PositionFile | None,
    report: Callable[[str], None],
    *,
    until_now: bool,
) -> None:
    from stagewright.impl.cdc.consumer import Consumer

    position = None if file is None else file.load()
    confidence = confidence_in(timing)
    report(f"a change is printed when it is {age_in(timing)} old: {NOT_BEFORE}")
    begun, silent = time.time_ns() // 1000, False
    if position is not None and position.read > begun:
        seconds = (position.read - begun) / 1e6
        report(f"the position is {seconds:.0f} s ahead of the clock: until then nothing is printed")
    consumer = Consumer(session, lambda: time.time_ns() // 1000, confidence, position)
    while True:
        before = consumer.position
        for change in consumer.poll():
            print(json.dumps(as_json(change)), flush=True)
        after = consumer.position
        if after is None and not silent:
            silent = True
            report(
                "no generation of streams can be read yet: the coordinator publishes the first one"
            )
        if file is not None and after is not None and after != before:
            file.store(after)
        if until_now and after is not None and after.read >= begun - confidence:
            return
        if after is None or after.read >= time.time_ns() // 1000 - confidence - 1_000_000:
            time.sleep(_PAUSE)


def changes_up_to(
    session: Session, timing: Timing, position: Position | None, until: int
) -> Iterator[tuple[Position | None, list[Change]]]:
    """Changes with the position after them, until all from before a time (microseconds) are read.

    That takes as long as an earlier change may follow: some seconds.

    Raises:
        ClusterError: the log cannot be read.
    """
    from stagewright.impl.cdc.consumer import Consumer

    confidence = confidence_in(timing)
    consumer = Consumer(session, lambda: time.time_ns() // 1000, confidence, position)
    while consumer.position is None or consumer.position.read < until:
        found = consumer.poll()
        yield consumer.position, found
        if not found:
            time.sleep(_PAUSE / 5)


def confidence_in(timing: Timing) -> int:
    """Microseconds after which no write with an older timestamp can happen any more."""
    return 1000 * (timing.horizon + timing.request + CLOCKS)


def age_in(timing: Timing) -> str:
    """The same, in words."""
    return f"{confidence_in(timing) / 1e6:g} s"


def with_a_log(session: Session) -> Session:
    """The session, if its table keeps a log.

    Raises:
        InputError: it does not, or is not there.
        ClusterError: no node answers.
    """
    from stagewright.impl.cdc.rows import log_of
    from stagewright.spec.errors import InputError

    tables = session.tables()
    if session.table not in tables:
        known = ", ".join(sorted(t for t in tables if log_of(t) in tables)) or "none"
        raise InputError(
            f"there is no table {session.table}", help=f"with a log of changes: {known}"
        )
    if log_of(session.table) not in tables:
        raise InputError(
            f"{session.table} has no log of changes",
            help="begin a cluster with `stagewright cluster start --cdc`, or make a table with "
            "`create table t tablets 8 rf 3 cdc` in `stagewright shell`",
        )
    return session


def as_json(change: Change) -> dict[str, object]:
    """A change as `cluster tail` prints it; with the row before it, if the log has that."""
    found: dict[str, object] = {
        "timestamp": change.timestamp,
        "stream": change.stream.hex(),
        "key": _text(change.key),
        "value": _text(change.value),
    }
    if change.before is not None and change.before.known:
        found["before"] = _text(change.before.value)
    return found


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")
