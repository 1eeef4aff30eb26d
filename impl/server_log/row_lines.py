"""The lines of a node whose rows are streamed, repaired or cleaned up because the topology coordinator has asked for it.

The words are those of ScyllaDB's source as of 2026-08, with node operations that are based on repair, and tablets that
are streamed row by row. A table whose name has no keyspace is of `ks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import NAMESPACE_URL, uuid5

from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.messages import Order, OrderDone, Work
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import RowWork
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.server_log.lines import (
    REPAIR,
    STORAGE,
    TABLE,
    TOPOLOGY,
    Level,
    ids,
    keyspace_of,
    qualified,
    tablet_id,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind
from stagewright.machines.scylladb.topology.topology_states import JOINING, NodeState

Say = Callable[[str, str, Level, int], None]
"""Write a line of a logger: its words, how much it matters, the shard."""

_OF_TABLETS = {
    Work.stream_tablet: "Streaming",
    Work.repair_tablet: "Repair",
    Work.clean_tablet: "Cleanup",
}
_BY_REPAIR = {
    NodeState.bootstrapping: "bootstrap_with_repair",
    NodeState.replacing: "replace_with_repair",
    NodeState.rebuilding: "rebuild_with_repair",
    NodeState.normal: "removenode_with_repair",
}


class RowLines:
    """The lines of one life of a node."""

    def __init__(self, say: Say, node: DatabaseNode) -> None:
        self._say = say
        self._node = node
        self._orders: dict[tuple[int, int], Order] = {}
        self._answered: set[tuple[str, Work]] = set()  # sessions of tablets that were streamed
        self._left_out: dict[str, frozenset[str]] = {}  # whom repairs do without, by their names
        self._streams = ""  # what a node does that streams ranges
        self._keyspaces: tuple[str, ...] = ()
        self._mode = ""
        self._enter("STARTING")
        self._enter("JOINING")

    def look(self) -> None:
        """What has changed since the last look."""
        context = self._node.context
        own = context.view.nodes.get(context.name)
        if context.ready and own is not None and own.state is NodeState.normal:
            self._enter("NORMAL")

    def _enter(self, mode: str) -> None:
        if mode != self._mode:
            self._mode = mode
            self._say(STORAGE, f"entering {mode} mode", Level.INFO, 0)

    @property
    def _view(self) -> View:
        return self._node.context.view

    # -- what the node is asked ----------------------------------------------------------------------------

    def heard(self, order: Order) -> None:
        """The coordinator wants work done."""
        self._orders[order.term, order.number] = order
        if (order.session, order.work) in self._answered:
            name, tablet = _OF_TABLETS[order.work], tablet_id(order.table, order.tablet)
            text = f"{name} retry joining with existing session for tablet {tablet}"
            self._say(TOPOLOGY, text, Level.DEBUG, 0)

    def answers(self, done: OrderDone) -> None:
        """The node says what has become of it."""
        order = self._orders.get((done.term, done.number))
        if order is None:
            return
        own = self._view.nodes.get(self._node.name)
        if order.work is Work.stream and own is not None and own.state in JOINING:
            self._enter("BOOTSTRAP")
        name = _OF_TABLETS.get(order.work)
        if name is None or (order.session, order.work) in self._answered:
            return
        of = f"{name} for tablet migration of {tablet_id(order.table, order.tablet)}"
        if not done.succeeded:
            self._say(TOPOLOGY, f"{of} failed: {done.reason}", Level.WARN, 0)
            return
        self._say(TOPOLOGY, f"{of} successful", Level.DEBUG, 0)
        if order.work is not Work.clean_tablet:
            self._answered.add((order.session, order.work))

    # -- what it does --------------------------------------------------------------------------------------

    def log(self, work: RowWork) -> None:
        """The node begins work, or has done it."""
        row = work.row
        if row is None:
            self._stream_ranges(work)
        elif work.work is Work.clean_tablet:
            text = f"Cleaned up tablet {row.number} of table {qualified(row.table)} successfully."
            self._say(TABLE, text, Level.INFO, 0)
        elif work.work is Work.repair_tablet:
            self._repair(work, row)
        elif row.kind is Kind.intranode_migration:
            leaving, pending = _shards(row)
            what = "Starting" if work.begins else "Finished"
            text = f"{what} intra-node streaming of tablet {_id(row)} from shard {leaving} to {pending}"
            self._say(TOPOLOGY, text, Level.INFO, 0)
        else:
            what, level = ("started", Level.DEBUG) if work.begins else ("finished", Level.INFO)
            text = f"Streaming for tablet migration of {_id(row)} {what} {_where(row)}"
            self._say(STORAGE, text, level, 0)

    def _repair(self, work: RowWork, row: TabletRow) -> None:
        repair = f"repair[{uuid5(NAMESPACE_URL, f'{row.session}/{self._node.name}')}]"
        if not work.begins:
            gone = self._view.given_up | self._left_out.pop(repair, frozenset())
            there = [r for r in row.tablet.replicas if r.host not in gone]
            text = f"{repair}: Finished tablet repair for {_where(row)} duration=0s replicas={_set(there)} "
            self._say(REPAIR, f"{text}global_tablet_id={_id(row)} flush_time=0", Level.INFO, 0)
            return
        self._left_out[repair] = self._view.given_up
        begins = f"{repair}: Starting tablet repair global_tablet_id={_id(row)}"
        self._say(REPAIR, begins, Level.DEBUG, 0)
        keyspace, table = qualified(row.table).split(".", 1)
        peers = _list(source for family, _, source in work.fetched if family == row.table)
        text = f"{repair}: Repair 1 out of 1 ranges, keyspace={keyspace}, table={table}, range={_range(row.range)}"
        self._say(REPAIR, f"{text}, peers={peers}, live_peers={peers}", Level.DEBUG, 0)

    def _stream_ranges(self, work: RowWork) -> None:
        """A node that leaves streams by itself in ScyllaDB: those that take its ranges write none of these lines."""
        view = self._view
        state = view.nodes[self._node.name].state
        leaver = next((m for m in view.nodes.values() if m.state is NodeState.removing), None)
        if state not in _BY_REPAIR or (state is NodeState.normal and leaver is None):
            return
        if state in JOINING:
            self._enter("BOOTSTRAP")
        about = "" if leaver is None else f", leaving_node={host_id_of(leaver.name)}"
        if work.begins:
            self._streams = _BY_REPAIR[state]
            self._keyspaces = tuple(sorted({keyspace_of(t) for t in view.vnode_tables}))
            self._begin_to_stream(work, about)
            return
        for keyspace in self._keyspaces:
            self._of_stream(f"finished with keyspace={keyspace}{about}", Level.INFO)
        self._of_stream(f"finished with keyspaces={_texts(self._keyspaces)}{about}", Level.INFO)

    def _begin_to_stream(self, work: RowWork, about: str) -> None:
        view, name = self._view, self._node.name
        self._of_stream(f"started with keyspaces={_texts(self._keyspaces)}{about}", Level.INFO)
        joins = self._streams == _BY_REPAIR[NodeState.bootstrapping]
        others = [n for n in view.participants if n not in view.given_up | {name}]
        for keyspace in self._keyspaces:
            with_whom = f", sync_nodes={ids(others)}, ignore_nodes={ids(view.ignored)}"
            begins = f"started with keyspace={keyspace}{about}"
            self._of_stream(begins + ("" if joins or about else with_whom), Level.INFO)
            if about:
                continue
            sources: dict[tuple[int, int], dict[str, None]] = {}
            for table, fetched, source in work.fetched:
                if keyspace_of(table) == keyspace:
                    sources.setdefault(fetched, {})[source] = None
            factor = next(n for t, n in view.vnode_tables.items() if keyspace_of(t) == keyspace)
            for fetched, found in sources.items():
                chosen = view.chosen(fetched[1], factor)
                old = [n for n in chosen.writes if n not in chosen.pending]
                of = f"keyspace={keyspace}, range={_range(fetched)}"
                if joins:
                    new = view.replicas_after(fetched[1], factor)
                    ends = f"old_endpoints={_list(old)}, new_endpoints={ids(new)}"
                    self._of_stream(f"{of}, {ends}", Level.DEBUG)
                    sync = f"neighbors={_list(found)}, mandatory_neighbors=[]"
                else:
                    natural = [name, *(n for n in old if n in others)]
                    sync = f"natural_enpoints={ids(natural)}, neighbors={_list(found)}"  # as it is spelled
                self._of_stream(f"{of}, {sync}", Level.DEBUG)

    def _of_stream(self, text: str, level: Level) -> None:
        self._say(REPAIR, f"{self._streams}: {text}", level, 0)


def _id(row: TabletRow) -> str:
    return tablet_id(row.table, row.number)


def _where(row: TabletRow) -> str:
    return f"table={qualified(row.table)} range={_range(row.range)}"


def _range(found: tuple[int, int]) -> str:
    return f"({found[0]}, {found[1]}]"


def _shards(row: TabletRow) -> tuple[int, int]:
    """The shards of a tablet that moves within a node."""
    after = row.tablet.next or ()
    (leaving,) = (r for r in row.tablet.replicas if r not in after)
    (pending,) = (r for r in after if r not in row.tablet.replicas)
    return leaving.shard, pending.shard


def _list(hosts: Iterable[str]) -> str:
    return f"[{', '.join(map(host_id_of, hosts))}]"


def _set(replicas: Iterable[TabletReplica]) -> str:
    return f"[{', '.join(f'{host_id_of(r.host)}:{r.shard}' for r in replicas)}]"


def _texts(texts: Iterable[str]) -> str:
    quoted = (f'"{text}"' for text in texts)
    return f"[{', '.join(quoted)}]"
