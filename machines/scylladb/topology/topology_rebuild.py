"""A node that has lost its volume is rebuilt: it streams the rows of its ranges from other replicas.

001: "rebuilding - the node is being rebuild and is streaming data from other replicas"; `rebuild_option` "contains
datacenter name that is used as a rebuild source". Which replicas that are: `nodetool rebuild [--force] <source-dc>`
takes the named datacenter "when safe to do so. Otherwise, an alternative datacenter that lost no nodes will be
considered, and if none exist, all datacenters". One row is followed, and every node is a replica of it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    choose,
    constant,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    liveness,
    observed,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    volatile,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")


class Datacenter(Enum):
    """Where a node stands."""

    dc1 = auto()
    dc2 = auto()


class Write(Enum):
    """How far the client's write of the row is."""

    none = auto()
    sent = auto()
    acknowledged = auto()
    timed_out = auto()


class TopologyRebuild(Machine):
    """Rebuilds of nodes whose rows are gone, one at a time, while the other replicas serve and may die."""

    losses = fault_budget(1, doc="volumes that nodes lose")
    crashes = fault_budget(1, doc="nodes that crash")
    failovers = fault_budget(1, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {},
        {losses: 2, failovers: 0},
        {losses: 2, crashes: 0},
        {Node: 1},
        {Node: 3, losses: 2, crashes: 0},
        {Node: 3, failovers: 0},
        {crashes: 2, failovers: 2, Node: 1},
    )

    datacenter = constant(per(Node, one_of(Datacenter)))
    # a row for every node
    waits = set_of(Node)  # `topology_request` is rebuild
    rebuild_option = per(Node, optional(Datacenter))  # the source that the operator names
    failed = set_of(Node)  # its last rebuild ended with an error
    # static columns
    rebuilding: OptionalVar[Node] = optional(Node)
    session: FlagVar = flag()  # an open session: what is streamed in it is stored
    # what only the present coordinator knows
    # the replicas to stream from, once it streams
    sources: SetVar[Node] = volatile(set_of(Node), of=COORDINATOR)
    # those of them that have sent all their rows
    streamed: SetVar[Node] = volatile(set_of(Node), of=COORDINATOR)
    broken: FlagVar = volatile(flag(), of=COORDINATOR)  # a source went away and came back empty
    # nodes, as the failure detector sees them
    down = observed(set_of(Node), of=NETWORK)
    # the row
    write: OneVar[Write] = one_of(Write, init=Write.none)
    stored = set_of(Node)
    owed: FlagVar = flag()  # it was acknowledged before the rebuild began

    # -- the client ------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def send(self) -> None:
        """A client writes the row, with consistency level EACH_QUORUM; it is sent to every replica."""
        require(self.write == Write.none, "the row is not written yet")
        self.write = Write.sent

    @action(fair=WEAK)
    def store(self, n: Term[Node]) -> None:
        """A replica stores it; also one that is, or waits to be, rebuilt. Some may never get it."""
        require(self.write == Write.sent, "the write is on its way")
        require(~self.stored.has(n), "the replica does not store it yet")
        require(~self.down.has(n), "the replica is up")
        self.stored.add(n)

    @action(fair=WEAK)
    def acknowledge(self) -> None:
        """A quorum of each datacenter has stored it."""
        require(self.write == Write.sent, "the client waits")
        require(every(self._has_quorum(dc) for dc in Datacenter), "a quorum of each stores it")
        self.write = Write.acknowledged

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """The write ends: of a replica that did not answer nobody knows whether it stores the row."""
        require(self.write == Write.sent, "the client waits")
        self.write = Write.timed_out

    def _has_quorum(self, dc: Datacenter) -> Bool:
        storing = count(self._stands_in(n, dc) & self.stored.has(n) for n in Node)
        missing = count(self._stands_in(n, dc) & ~self.stored.has(n) for n in Node)
        return (missing < storing) | ~some(self._stands_in(n, dc) for n in Node)

    def _stands_in(self, n: Term[Node], dc: Datacenter | Term[Datacenter]) -> Bool:
        return self.datacenter[n] == dc

    # -- requests --------------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=losses)
    def lose_volume(self, n: Term[Node]) -> None:
        """A node comes back with an empty volume, and the operator wants it rebuilt."""
        self._lose_rows(n)

    @action(by=OPERATOR, spends=losses)
    def lose_volume_naming(self, n: Term[Node], source: Term[Datacenter]) -> None:
        """The same; the operator names the datacenter to stream from."""
        self._lose_rows(n)
        self.rebuild_option[n] = source

    def _lose_rows(self, n: Term[Node]) -> None:
        """A write takes seconds: those that were on their way are over when the node is back."""
        require(~self._is_lost(n) & ~self.down.has(n), "the node is normal and up")
        require(self.write != Write.sent, "no write is on its way")
        self.stored.discard(n)
        self.waits.add(n)
        self.broken = self.broken | self.sources.has(n)

    @action(by=OPERATOR)
    def ask_again(self, n: Term[Node]) -> None:
        """The rebuild has failed: the operator asks for another one, and names no datacenter."""
        require(self.failed.has(n) & ~self.down.has(n), "the rebuild has failed, the node is up")
        self.failed.discard(n)
        self.waits.add(n)
        self.rebuild_option[n] = None

    @action(by=COORDINATOR, fair=WEAK)
    def cancel(self, n: Term[Node]) -> None:
        """A node is dead: the request cannot proceed."""
        require(self.waits.has(n), "its request is pending")
        require(self.rebuilding.is_none(), "the topology is at rest")
        require(~self.down.is_empty(), "a node is down")
        self.waits.discard(n)
        self.failed.add(n)

    # -- the rebuild -----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The request is taken up, and a session opened; the topology as a whole does not transition."""
        require(self.waits.has(n), "its request is pending")
        require(self.rebuilding.is_none(), "the topology is at rest")
        require(self.down.is_empty(), "no node is down")
        self.waits.discard(n)
        self.rebuilding = n
        self._open_session()
        self.owed = self.write == Write.acknowledged

    def _open_session(self) -> None:
        self.session = True

    @action(by=COORDINATOR, fair=WEAK)
    def begin_streaming(self, n: Term[Node]) -> None:
        """The node is asked to stream its ranges: it looks for sources."""
        require(self.rebuilding == n, "the node is rebuilt")
        require(self.sources.is_empty(), "it does not stream yet")
        for m in Node:
            self.sources.put(m, self._is_source(m, n))

    @action(fair=WEAK)
    def stream(self, n: Term[Node], source: Term[Node]) -> None:
        """A source sends its rows; what comes outside of an open session is refused."""
        require(self.rebuilding == n, "the node is rebuilt")
        require(self.sources.has(source), "it is streamed from")
        require(~self.streamed.has(source), "it has not sent its rows yet")
        require(~self.down.has(source), "the source is up")
        require(~self.down.has(n), "the node is up")
        received = self.stored.has(source) & self.session
        self.stored.put(n, self.stored.has(n) | received)
        self.streamed.add(source)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_rebuild(self, n: Term[Node]) -> None:
        """Every source has sent its rows: the node is normal again."""
        require(self.rebuilding == n, "the node is rebuilt")
        require(~self.down.has(n), "the node is up")
        require(~self.broken, "no stream broke off")
        self._all_have_sent()
        self._end()

    def _all_have_sent(self) -> None:
        require(~self.streamed.is_empty(), "a source has sent its rows")
        require(self.sources <= self.streamed, "every source has")

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_rebuild(self, n: Term[Node]) -> None:
        """A node has died, or there is no source: the request ends with an error."""
        require(self.rebuilding == n, "the node is rebuilt")
        alone = ~some((m != n) for m in Node)
        fails = ~self.down.is_empty() | self.broken | alone
        require(fails, "a node is down, a stream broke off, or there is no source")
        self.failed.add(n)
        self._end()

    def _end(self) -> None:
        self._forget_the_source()
        self.rebuilding = None
        self.session = False
        self._stop_streaming()

    def _forget_the_source(self) -> None:
        """What the operator has named was for this rebuild."""
        for n in Node:
            named = self.rebuild_option[n]
            self.rebuild_option[n] = choose(self.rebuilding == n, None, named)

    def _stop_streaming(self) -> None:
        self.sources = frozenset()
        self.streamed = frozenset()
        self.broken = False

    # -- the sources -----------------------------------------------------------------------------------

    def _is_source(self, m: Term[Node], n: Term[Node]) -> Bool:
        """Where a datacenter is named, it if that is safe, else another that is; else all datacenters."""
        named = some(self._stands_in(m, dc) for dc in self.rebuild_option[n])
        named_is_safe = some(self._is_safe(dc) for dc in self.rebuild_option[n])
        other_is_safe = some(
            self._is_safe(dc) & (self.rebuild_option[n] != dc) for dc in Datacenter
        )
        anywhere = self.rebuild_option[n].is_none() | (~named_is_safe & ~other_is_safe)
        return (m != n) & (anywhere | (named == named_is_safe))

    def _is_safe(self, dc: Datacenter | Term[Datacenter]) -> Bool:
        """It has nodes, and none of them has lost its rows."""
        whole = every(self._stands_in(m, dc).implies(~self._is_lost(m)) for m in Node)
        return whole & some(self._stands_in(m, dc) for m in Node)

    def _is_lost(self, m: Term[Node]) -> Bool:
        """It is being rebuilt, waits for it, or its rebuild has failed: its rows are not all there."""
        return self.waits.has(m) | self.failed.has(m) | (self.rebuilding == m)

    # -- faults ----------------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self, n: Term[Node]) -> None:
        """A node stops; what it stored stays."""
        require(~self.down.has(n), "the node is up")
        self.down.add(n)

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """And comes back."""
        require(self.down.has(n), "the node is down")
        self.down.discard(n)

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: it has everything streamed again."""
        self._stop_streaming()

    # -- promises --------------------------------------------------------------------------------------

    @independent(
        send,
        store,
        acknowledge,
        restart,
        of=(waits, rebuild_option, failed, rebuilding, session, sources, streamed, broken),
    )
    def nobody_waits_for_a_rebuild(self) -> None:
        """001: rebuilding "does not change the topology": clients write, replicas store, also those that are rebuilt, and
        a node that was dead comes back, whoever is rebuilt.
        """

    @accepts(acknowledge)
    def writes_succeed_while_nodes_are_rebuilt(self) -> Bool:
        """001, stage 3, of "a successful request": a quorum of each datacenter is enough, more than half of its nodes,
        whoever is rebuilt; of one that has no nodes there is nobody to wait for.
        """

        def is_enough(dc: Datacenter) -> Bool:
            nodes = count(self.datacenter[n] == dc for n in Node)
            storing = count((self.datacenter[n] == dc) & self.stored.has(n) for n in Node)
            return (nodes == 0) | (storing * 2 > nodes)

        return (self.write == Write.sent) & every(is_enough(dc) for dc in Datacenter)

    @step_property
    def acknowledged_rows_are_in_each_datacenter(self, after: Self, dc: Term[Datacenter]) -> Bool:
        """001, stage 3: writes of a successful request "will reach CL": when the client is told, the level is reached, and
        no datacenter that has nodes is without the row.
        """
        told = (self.write != Write.acknowledged) & (after.write == Write.acknowledged)
        has_nodes = some(self.datacenter[n] == dc for n in Node)
        return (told & has_nodes).implies(
            some((self.datacenter[n] == dc) & self.stored.has(n) for n in Node)
        )

    @step_property
    def writes_go_on_while_nodes_are_rebuilt(self, after: Self) -> Bool:
        """001: rebuilding "does not change the topology": a client that waits goes on waiting when a rebuild begins, streams
        or ends, and is told nothing by that.
        """
        rebuilds = (self.rebuilding != after.rebuilding) | (self.sources != after.sources)
        changes = rebuilds | (self.streamed != after.streamed) | (self.waits != after.waits)
        return changes.implies(self.write == after.write)

    @sometimes
    def a_write_succeeds_while_a_node_is_rebuilt(self, after: Self) -> Bool:
        """001: rebuilding "does not change the topology": a client is told meanwhile that its row is written."""
        told = (self.write != Write.acknowledged) & (after.write == Write.acknowledged)
        return told & self.rebuilding.is_some()

    @accepts(ask_again)
    def rebuilds_are_asked_for_at_any_time(self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", also while another node is rebuilt."""
        return self.failed.has(n) & ~self.down.has(n)

    @accepts(lose_volume)
    def nodes_are_to_be_rebuilt_while_others_are(self, n: Term[Node]) -> Bool:
        """The same for the first request: "the entry is added to the map", and waits there for its turn."""
        return self._has_lost_its_volume_meanwhile(n)

    @accepts(lose_volume_naming)
    def sources_are_named_while_others_are_rebuilt(
        self, n: Term[Node], source: Term[Datacenter]
    ) -> Bool:
        """The same where the operator names a datacenter, whichever the rebuild that goes on streams from."""
        return self._has_lost_its_volume_meanwhile(n)

    def _has_lost_its_volume_meanwhile(self, n: Term[Node]) -> Bool:
        lost = self.waits.has(n) | self.failed.has(n) | (self.rebuilding == n)
        return self.rebuilding.is_some() & ~lost & ~self.down.has(n) & (self.write != Write.sent)

    @accepts(stream)
    def replicas_send_their_rows_each_for_itself(self, n: Term[Node], source: Term[Node]) -> Bool:
        """001, "streaming data from other replicas": one that is asked, and up, sends its rows whatever clients
        write, and whoever else is dead.
        """
        asked = (self.rebuilding == n) & self.sources.has(source) & ~self.streamed.has(source)
        return asked & ~self.down.has(source) & ~self.down.has(n)

    @independent(
        cancel,
        start_rebuild,
        begin_streaming,
        stream,
        finish_rebuild,
        fail_to_rebuild,
        of=(write, stored, owed),
    )
    def no_step_waits_for_clients(self) -> None:
        """001: rebuilding "does not change the topology": a rebuild begins, streams and ends, well or not, and a
        request is cancelled, whatever clients write.
        """

    @accepts(time_out)
    def clients_need_not_wait_for_rebuilds(self) -> Bool:
        """001: rebuilding "does not change the topology": a client whose time is up is told so, whoever is rebuilt."""
        return self.write == Write.sent

    @step_property
    def acknowledged_rows_survive_a_loss(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """What a quorum is for: in a datacenter of two nodes or more, none of which waits to be rebuilt, the volume that
        is lost next is never the only one with a row of which a client was told.
        """
        two = (n != m) & (self.datacenter[n] == self.datacenter[m])
        whole = ~some(self._is_lost(x) for x in Node)
        there = (self.write == Write.acknowledged) & ~self.stored.is_empty()
        return (two & whole & there).implies(~after.stored.is_empty())

    @step_property
    def nodes_are_rebuilt_on_request(self, after: Self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map": it gets there by nothing else: not because
        the node was dead and is back, with all its rows, nor because its last rebuild has failed.
        """
        asked = ~self.waits.has(n) & after.waits.has(n)
        return asked.implies((self.down == after.down) & (self.rebuilding == after.rebuilding))

    @step_property
    def a_rebuilt_node_has_every_row(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node that is rebuilt "is streaming data from other replicas": when it is done, it has what was
        acknowledged before it began, unless no replica has it any more.
        """
        there = self.owed & some((m != n) & self.stored.has(m) for m in Node)
        return (self._ends_well(after, n) & there).implies(self.stored.has(n))

    @step_property
    def a_rebuild_has_a_source(self, after: Self, n: Term[Node]) -> Bool:
        """001: the node "is streaming data from other replicas": where there is none, or it died meanwhile, the
        request fails.
        """
        other = some((m != n) & self.streamed.has(m) for m in Node)
        return self._ends_well(after, n).implies(other & ~self.down.has(n))

    @step_property
    def rebuilds_fail_for_a_reason(self, after: Self, n: Term[Node]) -> Bool:
        """001: a rebuild streams "from other replicas": as long as there are some, all nodes are up, and none of those that
        are streamed from has lost its rows meanwhile, it does not fail.
        """
        fails = (self.rebuilding == n) & (after.rebuilding != n) & after.failed.has(n)
        alone = every(m == n for m in Node)
        broken = some(self.sources.has(m) & self.waits.has(m) for m in Node)
        return fails.implies(alone | ~self.down.is_empty() | broken)

    @step_property
    def the_named_datacenter_is_the_source(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """001: `rebuild_option` is "used as a rebuild source", as long as none of its nodes has lost its rows; and if one has,
        "an alternative datacenter that lost no nodes", if there is one (`nodetool rebuild`).
        """
        asked = ~self.sources.has(m) & after.sources.has(m) & (self.rebuilding == n)

        def has_all(dc: Datacenter | Term[Datacenter]) -> Bool:
            nodes = count(self.datacenter[x] == dc for x in Node)
            lost = some((self.datacenter[x] == dc) & self._is_lost(x) for x in Node)
            return (nodes > 0) & ~lost

        elsewhere = some(has_all(dc) & (self.datacenter[m] != dc) for dc in self.rebuild_option[n])
        lost = some(~has_all(dc) for dc in self.rebuild_option[n])
        better = some(has_all(dc) & (self.datacenter[m] != dc) for dc in Datacenter)
        return asked.implies(~elsewhere & ~(lost & better))

    @step_property
    def each_node_has_its_own_source(self, after: Self, n: Term[Node]) -> Bool:
        """001, the row of each node: `rebuild_option`, "if the node is being rebuild contains datacenter name that is used as
        a rebuild source": what is named for another node, or what another is asked, does not change it.
        """
        changed = self.rebuild_option[n] != after.rebuild_option[n]
        asks = ~self.waits.has(n) & after.waits.has(n)
        ends = (self.rebuilding == n) & (after.rebuilding != n)
        return changed.implies(asks | ends)

    @invariant
    def sources_are_named_for_one_rebuild(self, n: Term[Node]) -> Bool:
        """001: `rebuild_option`, "if the node is being rebuild": what an operator has named is gone when the rebuild has ended,
        and the next one streams from where its own request says.
        """
        lost = self.waits.has(n) | self.failed.has(n) | (self.rebuilding == n)
        return self.rebuild_option[n].is_some().implies(lost)

    @invariant
    def quorum_reads_see_the_row(self, dc: Term[Datacenter]) -> Bool:
        """What a client sees: where no node is left to be rebuilt, no quorum of a datacenter lacks a row that was
        acknowledged, unless every replica has lost it.
        """
        acknowledged = (self.write == Write.acknowledged) & ~self.stored.is_empty()
        whole = ~some(self._is_lost(n) for n in Node)
        storing = count(self._stands_in(n, dc) & self.stored.has(n) for n in Node)
        missing = count(self._stands_in(n, dc) & ~self.stored.has(n) for n in Node)
        return (acknowledged & whole).implies(missing <= storing)

    def _ends_well(self, after: Self, n: Term[Node]) -> Bool:
        return (self.rebuilding == n) & (after.rebuilding != n) & ~after.failed.has(n)

    @step_property
    def rows_stay_where_they_are(self, after: Self, n: Term[Node]) -> Bool:
        """A rebuild adds rows, and takes none from anybody: only a volume that is lost does."""
        lost = ~self._is_lost(n) & after.waits.has(n)
        return (self.stored.has(n) & ~after.stored.has(n)).implies(lost)

    @step_property
    def nodes_that_are_down_do_nothing(self, after: Self, n: Term[Node]) -> Bool:
        """001: data is streamed by nodes that are alive, and to nodes that are."""
        same = self.stored.has(n) == after.stored.has(n)
        silent = self.streamed.has(n) | ~after.streamed.has(n)
        receives = (self.rebuilding == n) & (self.streamed != after.streamed)
        grows = receives & (self.streamed <= after.streamed)
        return self.down.has(n).implies(same & silent & ~grows)

    @invariant
    def what_streams_has_an_open_session(self) -> Bool:
        """A session is open as long as a node is rebuilt, and no longer (scylladb #16741)."""
        return self.session == self.rebuilding.is_some()

    @step_property
    def requests_are_cancelled_for_dead_nodes(self, after: Self, n: Term[Node]) -> Bool:
        """A request that was not taken up fails where nodes are dead ("Canceled. Dead nodes"), and nothing goes on."""
        cancelled = self.waits.has(n) & after.failed.has(n)
        return cancelled.implies(self.rebuilding.is_none() & ~self.down.is_empty())

    @final
    def nobody_waits(self) -> Bool:
        """Nothing is asked for and nothing goes on; a rebuild that failed may be left at that."""
        return self.waits.is_empty() & self.rebuilding.is_none() & (self.write != Write.sent)

    @liveness
    def every_request_ends(self, n: Term[Node]) -> LeadsTo:
        """A request to rebuild is done, or ends with an error."""
        open_ = self.waits.has(n) | (self.rebuilding == n)
        return leads_to(open_, ~open_)

    @always_reachable
    def rebuilds_can_succeed(self) -> Bool:
        """Whatever failed, every node can be rebuilt that has other replicas."""
        alone = every(m == n for m in Node for n in Node)
        return alone | ~some(self._is_lost(n) for n in Node)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            fail_to_rebuild,
            rebuild_option,
            because="who asks again says anew what is to be streamed from",
        ),
        equivalent_drop(
            acknowledge, "the client waits", because="it may wait longer, and what is stored counts"
        ),
        equivalent_drop(
            store, "the replica does not store it yet", because="it is stored once, or twice"
        ),
        equivalent_drop(time_out, "the client waits", because="what is not promised is not kept"),
        equivalent_loss(time_out, write, because="a write may take for ever"),
        equivalent_replacement(
            time_out, "none for timed_out", because="a client may write the row again"
        ),
        equivalent_drop(
            _lose_rows,
            "no write is on its way",
            because="it is acknowledged by what is stored then",
        ),
        equivalent_loss(_lose_rows, stored, because="a volume that is whole may be rebuilt, too"),
        equivalent_loss(
            lose_volume_naming, rebuild_option, because="the operator need not name a source"
        ),
        equivalent_weakening(
            ask_again,
            "the rebuild has failed, the node is up",
            because="a request is cancelled where the node is down",
        ),
        equivalent_loss(ask_again, rebuild_option, because="the operator may name it once more"),
        equivalent_drop(
            cancel, "its request is pending", because="who asked for nothing may be rebuilt, too"
        ),
        equivalent_loss(start_rebuild, owed, because="a row that is owed to nobody"),
        equivalent_drop(
            begin_streaming, "it does not stream yet", because="it looks for sources once more"
        ),
        equivalent_drop(
            stream, "it has not sent its rows yet", because="rows may be sent more than once"
        ),
        equivalent_replacement(
            stream,
            "it has not sent its rows yet: n for source",
            because="rows may be sent more than once",
        ),
        equivalent_loss(
            finish_rebuild, broken, because="a rebuild is not finished where a stream broke off"
        ),
        equivalent_drop(crash, "the node is up", because="what does not run cannot crash"),
        equivalent_loss(crash, down, because="a node need not crash"),
        equivalent_drop(restart, "the node is down", because="what runs needs no restart"),
    )
