"""What a quorum promises, on the rows of replicas: it reads no definition, and waits for no client that reads.

What clients know to be written is seen by every quorum of the replicas that are read: so few of them lack it that no
quorum is among those. That is looked at when a client learns of a row, when other replicas are read than before, and
before reads at the end repair what they find.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.simulator.database.checks.oracle import Oracle, Seen
from stagewright.impl.simulator.database.hosts import Host
from stagewright.impl.simulator.database.tables import table_of
from stagewright.impl.storage.memory import MemoryRows


class QuorumOracle:
    """Follows a run, by what is committed. Says of a key once that a quorum lacks its row."""

    def __init__(self, hosts: Mapping[str, Host], catalog: Catalog, oracle: Oracle) -> None:
        self._hosts = hosts
        self._catalog = catalog
        self._oracle = oracle
        self._down: dict[str, tuple[int, MemoryRows]] = {}  # with the life that has ended
        self._said: set[bytes] = set()
        oracle.listeners.append(self._know)

    def _know(self, key: bytes, seen: Seen) -> None:
        self._check(self._catalog.view, key, seen)

    def committed(self, before: View, after: View) -> None:
        """Something was committed: of some rows other replicas may be read now."""
        if before.transition_state is after.transition_state and before.tablets == after.tablets:
            return
        for key, seen in self._oracle.newest.items():
            table, token = table_of(key), token_in(stored_key(key))
            if table not in before.tables or table not in after.tables:
                continue
            if before.replicas(table, token).reads != after.replicas(table, token).reads:
                self._check(after, key, seen)

    def look(self) -> None:
        """Look at all keys."""
        for key, seen in self._oracle.newest.items():
            self._check(self._catalog.view, key, seen)

    def _check(self, view: View, key: bytes, seen: Seen) -> None:
        table, stored = table_of(key), stored_key(key)
        if table not in view.tables or key in self._said:
            return
        chosen = view.replicas(table, token_in(stored))
        quorum = view.factor(table, chosen, writes=False) // 2 + 1
        lack = [n for n in chosen.reads if not self.has(n, table, stored, seen[0])]
        if len(lack) >= quorum or (chosen.reads and len(lack) == len(chosen.reads)):
            self._said.add(key)
            text = (
                f"{key!r} at {seen} is not on {', '.join(lack)}, a quorum of {list(chosen.reads)}"
            )
            self._oracle.broken(text)

    def has(self, name: str, table: str, stored: bytes, time: int) -> bool:
        """Whether a node has a row, up or down, of that timestamp or a later one, unless it was truncated."""
        if self._oracle.may_be_gone(table, time):
            return True
        host = self._hosts[name]
        rows = host.rows
        if host.node is None:
            life, rows = self._down.get(name, (-1, rows))
            if life != host.life:
                rows = MemoryRows(host.disk)
                self._down[name] = host.life, rows
        found = rows.get(table, stored)
        return found is not None and found.time >= time
