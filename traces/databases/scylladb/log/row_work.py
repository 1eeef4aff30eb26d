"""Follows what each node does with rows for the coordinator: tablets, the ranges of one that joins, base tables of views.

Each node is followed by its own lines, so that no clock matters. What a release may not write is asked of none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import row_work, tablets, topology, views
from stagewright.traces.databases.scylladb.log.order import Placed

_KNOWN = (2026, 2)  # the first release of which the lines are known
_MIGRATIONS = {"migration", "intranode_migration"}  # a rebuild may have nobody to stream from
_ENDS = {"Streaming": "end_streaming", "Repair": "end_repair", "Cleanup": "end_cleanup"}


@dataclass
class _Life:
    """What a node has said since it started."""

    number: int
    cleaned: Counter[str] = field(default_factory=Counter[str])  # by the number of the tablet
    peers: dict[str, set[str]] = field(default_factory=dict[str, set[str]])  # by repair
    filtered: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    old: dict[str, tuple[set[str], set[str]]] = field(
        default_factory=dict[str, tuple[set[str], set[str]]]
    )  # by range: the replicas before and after the node joins
    sync: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    batches: bool = False  # the worker writes at DEBUG
    leads: bool = False  # it has been the topology coordinator


class RowWork:
    """The entities of work on tablets, of nodes that join, of scans of base tables."""

    def __init__(self, book: Book, placed: Sequence[Placed], releases: Sequence[str]) -> None:
        self._book = book
        known = [v for v in map(versions.version_of, releases) if v is not None]
        self._is_known = bool(known) and min(known) >= _KNOWN
        self._written = frozenset() if known else frozenset(p.record.says for p in placed)
        self._kinds = _kinds(placed)
        self._lives: dict[str, _Life] = {}  # of nodes that have started
        self._known: set[tuple[str, str]] = set()

    def see(self, one: Placed, source: Source) -> None:
        """The next line."""
        record, node = one.record, one.record.node
        if record.says == versions.STARTS:
            last = self._lives.get(node)
            self._lives[node] = _Life(1 if last is None else last.number + 1)
            return
        life = self._lives.get(node)  # None: the log begins in the middle
        if life is None:
            return
        words = record.words
        match record.says:
            case row_work.STREAMED:
                self._work(node, life, words["tablet"], "stream", source)
            case row_work.REPAIRED:
                self._repaired(node, life, one, source)
            case row_work.PEERS:
                life.peers[words["repair"]] = row_work.hosts_in(words["peers"])
            case row_work.SKIPPED:
                life.filtered.setdefault(words["repair"], set()).add(words["peers"])
            case row_work.CLEANED:
                life.cleaned[words["number"]] += 1
            case row_work.SUCCEEDED:
                self._succeeded(node, life, one, source)
            case topology.LEADER:
                life.leads = True
            case row_work.FLUSHED:
                self._scan(node, life, words["base"], "flush", source)
            case views.BATCH_STARTS:
                life.batches = True
            case row_work.READS if life.batches and self._says(row_work.FLUSHED):
                self._scan(node, life, words["base"], "read", source)
            case _:
                self._join(node, life, one, source)

    def _says(self, what: str) -> bool:
        """Whether the releases that wrote the logs have such lines."""
        return self._is_known or what in self._written

    def _add(self, machine: str, key: str, action: str, source: Source) -> None:
        if (machine, key) not in self._known:
            self._known.add((machine, key))
            self._book.add(Effect(machine, key, {}, source))
        self._book.add(Effect(machine, key, {}, source, action))

    # -- tablets -------------------------------------------------------------------------------------------

    def _work(self, node: str, life: _Life, tablet: str, action: str, source: Source) -> None:
        self._add(row_work.WORK, f"{tablet} at {node}, life {life.number}", action, source)

    def _repaired(self, node: str, life: _Life, one: Placed, source: Source) -> None:
        """All replicas took part but those that a filter has taken out: one of them is the node itself."""
        words = one.record.words
        repair, replicas = words["repair"], row_work.hosts_in(words["replicas"])
        if repair in life.peers:
            asked = life.peers.pop(repair) | life.filtered.get(repair, set())
            if len(replicas - asked) > 1:
                self._work(node, life, words["tablet"], "leave_out_a_replica", source)
        self._work(node, life, words["tablet"], "repair", source)

    def _succeeded(self, node: str, life: _Life, one: Placed, source: Source) -> None:
        what, tablet = one.record.words["what"], one.record.words["tablet"]
        match what:
            case "Streaming":
                kinds = self._kinds.get(tablet, set())
                if not kinds or not kinds <= _MIGRATIONS or not self._says(row_work.STREAMED):
                    return
            case "Repair":
                if not self._says(row_work.REPAIRED):
                    return
            case _:
                if not self._says(row_work.CLEANED):
                    return
                number = tablet.rpartition(":")[2]
                if life.cleaned[number]:  # the line does not say by its id of which table
                    life.cleaned[number] -= 1
                    self._work(node, life, tablet, "clean", source)
        self._work(node, life, tablet, _ENDS[what], source)

    # -- nodes that join -----------------------------------------------------------------------------------

    def _join(self, node: str, life: _Life, one: Placed, source: Source) -> None:
        words = one.record.words
        match one.record.says:
            case row_work.BOOTSTRAPS if not life.leads and self._says(row_work.RANGES_STREAMED):
                self._add(row_work.JOIN, node, "begin", source)
            case row_work.ENDPOINTS:
                old, new = (row_work.hosts_in(words[name]) for name in ("old", "new"))
                life.old[words["range"]] = old, new
            case row_work.NEIGHBORS if words["range"] in life.old:
                neighbors = row_work.hosts_in(words["neighbors"])
                if row_work.too_few(*life.old.pop(words["range"]), neighbors):
                    self._add(row_work.JOIN, node, "leave_out_sources", source)
            case row_work.SYNC_NODES:
                life.sync[words["of"] + words["keyspace"]] = row_work.hosts_in(words["sync"])
            case row_work.NATURAL if sync := life.sync.get(words["of"] + words["keyspace"]):
                wanted = row_work.hosts_in(words["natural"]) & sync
                if wanted - row_work.hosts_in(words["neighbors"]):
                    self._add(row_work.JOIN, node, "leave_out_sources", source)
            case row_work.RANGES_STREAMED:
                self._add(row_work.JOIN, node, "stream", source)
            case row_work.SERVES:
                self._add(row_work.JOIN, node, "serve", source)
            case _:
                pass

    # -- base tables of views --------------------------------------------------------------------------------

    def _scan(self, node: str, life: _Life, base: str, action: str, source: Source) -> None:
        self._add(row_work.SCAN, f"{base} at {node}, life {life.number}", action, source)


def _kinds(placed: Sequence[Placed]) -> dict[str, set[str]]:
    """As which kinds of transitions coordinators say that each tablet is streamed."""
    kinds: dict[str, set[str]] = {}
    for one in placed:
        words = one.record.words
        if one.record.says == tablets.IS_IN and "kind" in words:
            kinds.setdefault(f"{words['table']}:{words['tablet']}", set()).add(words["kind"])
    return kinds
