"""Looks at disks: on each replica a row and its log row are both there or have been, or neither is.

It reads what lies on disks alone, no definition and no table of the cluster. Where nothing else than clients' writes
puts rows on disks (no read that repairs, no stream, no repair) this holds at every moment, so at every crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stagewright.impl.catalog.view import View
from stagewright.impl.cdc.rows import Change, change_of, log_of
from stagewright.impl.node.keys import stored_key
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.hosts import Host
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.tables import table_of
from stagewright.impl.storage.memory import MemoryRows, Superseded

ONLY_WRITES = frozenset({"table", "write", "wait", "kill", "restart"})
MARGIN = 500_000  # microseconds by which clocks of nodes are off, and more
Written = tuple[bytes, int]
"""A stored key and a timestamp."""


class PairOracle:
    """The logged tables of a run whose rows and log rows have the same replicas."""

    def __init__(self, oracle: Oracle, script: tuple[Operation, ...], reads: float) -> None:
        self.applies = reads == 0 and all(o.verb in ONLY_WRITES for o in script)
        self.crashes = 0
        self._oracle = oracle
        self._altered = {o.node for o in script if o.verb == "alter"}  # in how many replicas

    def crashed(self, host: Host, tables: Mapping[str, int]) -> None:
        """A node has crashed: what its disk has, it starts from."""
        if self.applies:
            self.crashes += 1
            self.look(host.identity.name, MemoryRows(host.disk), tables)

    def look(self, name: str, rows: MemoryRows, tables: Mapping[str, int]) -> None:
        """Compare the rows of a node with its log rows."""
        for table in tables:
            if log_of(table) in tables:
                self._compare(name, table, rows)

    def quorums(self, disks: Mapping[str, MemoryRows], view: View, now: int) -> None:
        """At rest, each acknowledged change is on a quorum of the replicas of its stream, unless it has expired.

        A table that has lost replicas may have it on fewer, as long as a quorum that is read has one that knows it.
        """
        have: dict[Written, list[tuple[str, bytes]]] = {}
        for log in view.logs.values():
            for name, rows in disks.items():
                for change in _changes(rows, log):
                    have.setdefault((change.key, change.timestamp), []).append(
                        (name, change.stream)
                    )
        for key, time in sorted(self._oracle.acknowledged):
            kept = view.kept.get(table_of(key), 0)
            if kept and time < now - 1000 * kept + MARGIN:
                continue
            table = table_of(key)
            log, fewer = view.logs.get(table, ""), table.removeprefix("ks.") in self._altered
            found = have.get((key, time), [])
            if log and not any(_is_kept(view, log, stream, found, fewer) for _, stream in found):
                where = [name for name, _ in found]
                self._oracle.broken(f"the change of {key!r} at {time} is on {where} only")

    def expired(self, name: str, rows: MemoryRows, view: View, now: int) -> None:
        """Rows that are older than they are kept, and then some, lie nowhere."""
        for table, kept in view.kept.items():
            oldest = min((c.timestamp for c in _changes(rows, view.logs[table])), default=now)
            if oldest < now - 1000 * (kept + kept // 2) - MARGIN:
                self._oracle.broken(
                    f"{name} has a change of {table} at {oldest}, which has expired"
                )

    def _compare(self, name: str, table: str, rows: MemoryRows) -> None:
        snapshot = rows.snapshot()
        base = {(v.key, v.time) for v in snapshot.versions(table, b"", None)}
        snapshot.close()
        for record in rows.disk.log:  # what was replaced may be gone, its log row is not
            if isinstance(record, Superseded) and record.family == table:
                base |= record.versions
        log = {(stored_key(c.key), c.timestamp) for c in _changes(rows, log_of(table))}
        for what, alone in (("row", base - log), ("log row", log - base)):
            for key, time in sorted(alone)[:1]:
                self._oracle.broken(f"{name} has the {what} of {key!r} at {time} alone")


def _changes(rows: MemoryRows, log: str) -> Iterator[Change]:
    snapshot = rows.snapshot()
    for version in snapshot.versions(log, b"", None):
        yield change_of(version.key, version.value or b"")
    snapshot.close()


def _is_kept(
    view: View, log: str, stream: bytes, found: list[tuple[str, bytes]], fewer: bool
) -> bool:
    token = int.from_bytes(stream[:8], "big", signed=True)
    replicas = view.replicas(log, token).reads
    quorum = len(replicas) // 2 + 1
    there = sum((name, stream) in found for name in replicas)
    return there > len(replicas) - quorum if fewer else there >= quorum
