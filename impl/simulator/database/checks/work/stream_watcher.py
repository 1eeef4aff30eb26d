"""Watches nodes that stream: whom they ask for rows, who gives them and knowing what, and what of them is on disks."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import PullRows, RowChunk
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.simulator.database.hosts import Host, life_of


class StreamWatcher:
    """`take` records an action of an entity; `pulls`: what nodes have asked for last, by transfer."""

    def __init__(self, take: Callable[..., None], now: Callable[[], int]) -> None:
        self._take = take
        self._now = now
        self.pulls: dict[int, PullRows] = {}
        self._known_at: dict[tuple[int, bytes], int] = {}  # where who asks for rows is in group0
        self._began_at: dict[tuple[str, str], int] = {}  # sessions, by life
        # where in the log of a disk the last rows of a session stand, by life
        self._streamed: dict[tuple[str, str], int] = {}

    def asks(self, host: Host, node: DatabaseNode, source: str, pull: PullRows) -> None:
        """A node asks for rows; whom it asks it has chosen as it began the session."""
        life, view = life_of(host), node.context.view
        if self._began_at.setdefault((life, pull.session), self._now()) == self._now():
            shunned = view.ignored if pull.table in view.vnode_tables else view.given_up
            present = source not in shunned
            self._take("lives", life, node.name, "begin_to_fetch", present=present)
        self.pulls[pull.transfer] = pull
        # It is asked for again until it comes: what answers the first has to know no more than that.
        self._known_at.setdefault((pull.transfer, pull.start), pull.position)

    def gives(self, host: Host, node: DatabaseNode, chunk: RowChunk) -> None:
        """A node sends rows that were asked for."""
        pull, life = self.pulls.get(chunk.transfer), life_of(host)
        if pull is None or pull.start != chunk.start or chunk.refused:
            return
        # What is there no more, as a hint that has arrived meanwhile, may be sent all the same.
        whole = _keys_between(host, pull, chunk.following) <= {key for key, _, _ in chunk.cells}
        self._take("sessions", f"{pull.session}@{life}", node.name, "send", whole=whole)
        known = self._known_at[chunk.transfer, chunk.start]
        current = node.context.member.head.position >= known
        self._take("lives", life, node.name, "give_rows", current=current)

    def stored(self, host: Host, node: DatabaseNode, pull: PullRows) -> None:
        """Rows that came are written."""
        life = life_of(host)
        self._streamed[life, pull.session] = len(host.disk.log)
        self._take("sessions", f"{pull.session}@{life}", node.name, "store")

    def is_durable(self, host: Host, session: str) -> bool:
        """Whether what was written of a session is on the disk."""
        return host.disk.synced >= self._streamed.get((life_of(host), session), 0)


def _keys_between(host: Host, pull: PullRows, following: bytes | None) -> set[bytes]:
    """The rows that a source has from where a chunk starts to where the next one does."""
    snapshot, found = host.rows.snapshot(), set[bytes]()
    for low, high in pull.ranges:
        first, end = bounds(low, high)
        if end is None or end > pull.start:
            rows = snapshot.versions(pull.table, max(first, pull.start), end)
            found |= {v.key for v in rows if following is None or v.key < following}
    snapshot.close()
    return found
