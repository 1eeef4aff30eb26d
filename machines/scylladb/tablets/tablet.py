"""Tablet migration in a cluster: the topology coordinator's steps, joined with nodes, requests and data.

The control machine of `tablet_migration.py`, one for every tablet, inside of what can go wrong around it. A
node learns the committed stage late; requests that began under an older version are still on their way; nodes
crash. What the coordinator asked of replicas, to stream, to clean up and to repair, may still run, and answers
may still be on their way, when the stage has moved on or the coordinator is another.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node, Tablet, Track
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_records import LAST_VALUE, Chunk, Request, View
from stagewright.machines.scylladb.tablets.tablet_stages import (
    HARMLESS_BETWEEN_NODES,
    HARMLESS_IN_STAGES,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    Kind,
    Replicas,
    Role,
    Stage,
)
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    OneVar,
    SetOf,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    count,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalent_without,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    greatest,
    history,
    independent,
    initially,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    many,
    never_happens,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    record,
    require,
    restricted,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
    violated,
)

WEAK = Fairness.WEAK
IN_VAIN = "an action that is started in vain fails, and is tried again"
TRIED_AGAIN = "an action that is taken for failed is tried again, or undone"
ANSWERED = "an answer is forgotten when the next stage's action is asked for"
OVER = "a read has none of it; what was answered may be so again, until it is given up"
LESS = "where less is noted of what is to be streamed, less is promised"
NOBODY_SENDS = "a request that nobody sends, or that another one takes the place of"
NO_CRASH = "what a crash does not stop is as it would be without the crash"
LATER = "a replica that is down may crash later instead"
REBUILDS = "a replica is added where there are `rebuilds`"
REPAIRS = "a tablet is repaired where there are `repairs`"
CHANGES = "the topology changes where there are `topology_changes`"
COMPACTIONS = "compactions are of what is there, and change nothing of it"
BETWEEN_NODES = "here tablets move between nodes, so that a kind has its replicas"


class TabletCluster(Machine):
    """Tablets that migrate between nodes while clients write and read."""

    release = profiles(SEED, SCYLLA_2025_4, SCYLLA_2026_2)
    writes = budget(1, doc="writes that clients send")
    reads = budget(1, doc="reads that clients send")
    compactions = budget(0, doc="split compactions that replicas start")
    loads = budget(0, doc="loads of rows from a backup")
    migrations = budget(1, doc="migrations that the load balancer starts")
    rebuilds = budget(0, doc="replicas that are added to a tablet")
    repairs = budget(0, doc="tablet repairs that are requested")
    topology_changes = budget(0, doc="topology changes that are requested")
    crashes = fault_budget(1, doc="nodes that crash")
    coordinator_changes = fault_budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {writes: 0, reads: 0, crashes: 0, repairs: 1},
        {writes: 0, reads: 0, crashes: 0, coordinator_changes: 1, topology_changes: 1},
        {writes: 0, reads: 0, TabletMigration.failures: 0, repairs: 1},
        {
            reads: 0,
            crashes: 0,
            TabletMigration.failures: 0,
            rebuilds: 1,
            repairs: 1,
            topology_changes: 1,
            migrations: 0,
        },
        {reads: 0, crashes: 0, rebuilds: 1, migrations: 0},
        {writes: 0, reads: 0, crashes: 0, loads: 1},
        {writes: 0, reads: 0, TabletMigration.failures: 0, rebuilds: 1, coordinator_changes: 1},
        {crashes: 0, TabletMigration.failures: 0},
        {reads: 0, crashes: 0, migrations: 2},
        {reads: 0, crashes: 0, compactions: 1},
        {reads: 0, TabletMigration.failures: 0},
        {Tablet: 2, crashes: 0, TabletMigration.failures: 0, migrations: 0},
        {
            Tablet: 2,
            writes: 0,
            reads: 0,
            crashes: 0,
            TabletMigration.failures: 0,
            rebuilds: 1,
            coordinator_changes: 1,
        },
        {Node: 3, writes: 0, reads: 0, crashes: 0, TabletMigration.failures: 0},
        {Node: 3, reads: 0, crashes: 0, TabletMigration.failures: 0},
        {writes: 0, reads: 0, crashes: 2},
        {writes: 0, reads: 0, TabletMigration.failures: 0, topology_changes: 1},
        {
            writes: 2,
            reads: 0,
            crashes: 0,
            TabletMigration.failures: 0,
            migrations: 0,
            compactions: 1,
        },
        {writes: 0, reads: 0, crashes: 0, TabletMigration.failures: 0, topology_changes: 2},
        {Tablet: 2, reads: 0, crashes: 0, TabletMigration.failures: 0},
    )

    # committed to group0
    tablets = many(
        TabletMigration,
        over=Tablet,
        without=(TabletMigration.exclude, TabletMigration.fail_over),
        restricts=(
            restricted(
                TabletMigration.tablets_at_rest_can_be_moved,
                because="here replicas move between nodes that are up, and wait for a topology change",
            ),
            restricted(
                TabletMigration.tablets_at_rest_can_be_repaired,
                because="a repair waits for a topology change, too",
                at={writes: 0, reads: 0, crashes: 0, topology_changes: 1, repairs: 1},
            ),
        ),
    )
    replicas = per(Tablet, set_of(Node, init=ANY))
    next = per(Tablet, set_of(Node, init=ANY))  # the same at rest
    excluded = set_of(Node)  # down for good, says the operator; barriers ignore them
    track: OneVar[Track] = one_of(Track, init=Track.idle)
    request_pending: FlagVar = flag()  # a topology change was requested
    # the nodes
    view = per(Node, per(Tablet, record(View)))
    down = set_of(Node)
    storage = per(Tablet, set_of(Node, init=ANY))
    data = per(Tablet, per(Node, number(0, LAST_VALUE)))  # the newest value that a replica stores
    # clients
    request = per(Node, record(Request))
    written = per(Tablet, number(0, LAST_VALUE))
    acknowledged = per(Tablet, number(0, LAST_VALUE))
    stale_read: FlagVar = flag()
    # actions of a stage, at the replicas and on the wire
    streaming_at = per(Tablet, optional(Node))
    copied = per(Tablet, flag())
    chunk = per(Tablet, record(Chunk))
    cleanup_at = per(Tablet, optional(Node))
    cleaned = per(Tablet, flag())
    compacting = per(Tablet, per(Node, number(0, LAST_VALUE)))  # the newest value that it rewrites
    # for stage 4: the newest value that the leaving replica stored before it was streamed
    reached_leaving = history(per(Tablet, number(0, LAST_VALUE)))

    # == nodes, requests and data ========================================================================

    @initially
    def one_replica_everywhere(self, t: Term[Tablet]) -> Bool:
        """Each tablet starts at rest on one node, which has storage for it."""
        at_rest = (self.next[t] == self.replicas[t]) & (self.storage[t] == self.replicas[t])
        return at_rest & (self.replicas[t].size() == 1)

    # -- nodes learn -----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed; it allocates and drops storage as the stage says."""
        require(~self.down.has(n), "node is up")
        require(some(~self._current(n, t) for t in Tablet), "node is behind")
        for t in Tablet:
            view, stage = self.view[n][t], self.tablets[t].stage
            stores = self._keeps_storage(n, t)
            view.stage = stage
            view.session = self.tablets[t].session
            view.replicas = self.replicas[t]
            view.next = self.next[t]
            self.storage[t].put(n, stores)
            if self.release.sessions:
                self.chunk[t].closed = self.chunk[t].closed | self._learns_of_closing(n, t)
            aborted = (self.streaming_at[t] == n) & (stage != Stage.streaming)
            self.data[t][n] = choose(stores, self.data[t][n], 0)
            self.streaming_at[t] = choose(aborted, None, self.streaming_at[t])

    # -- clients ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def begin_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A client writes through node `n`, which sends the write to the replicas that its view names."""
        self._begin(n, t, self._targets_of_write(n, t))
        self._write_next_value(n, t)

    @action(by=CLIENT, spends=loads)
    def begin_load(self, n: Term[Node], t: Term[Tablet]) -> None:
        """Load-and-stream: node `n` sends rows of a backup to the replicas that its view names."""
        self._begin(n, t, self._targets_of_load(n, t))
        self._write_next_value(n, t)

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write that node `n` coordinates."""
        request = self.request[n]
        require((request.tablet == t) & request.write, "a write is on its way")
        require(request.targets.has(r) & ~request.reached.has(r), "it is sent to the replica")
        require(~self.down.has(r), "replica is up")
        require(self.storage[t].has(r), "replica has storage")
        newer = self.data[t][r] < request.value
        self.data[t][r] = choose(newer, request.value, self.data[t][r])
        request.reached.add(r)

    @action(fair=WEAK)
    def acknowledge_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """All replicas have answered: the client is told that its write succeeded."""
        request = self.request[n]
        waits = (request.tablet == t) & request.write & ~request.abandoned
        require(waits, "a write is on its way")
        require(request.targets <= request.reached, "every replica has stored it")
        newer = self.acknowledged[t] < request.value
        self.acknowledged[t] = choose(newer, request.value, self.acknowledged[t])
        self._forget(n)

    @action(by=CLIENT, spends=reads)
    def begin_read(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A client reads through node `n`, which asks the replicas that its view names."""
        view = self.view[n][t]
        reads = view.stage.column(lambda stage: stage.reads)
        self._begin(n, t, self._chosen(reads, view.replicas, view.next))
        self.request[n].value = self.acknowledged[t]

    @action(fair=WEAK)
    def answer_read(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` answers the read that node `n` coordinates."""
        request = self.request[n]
        require((request.tablet == t) & ~request.write, "a read is on its way")
        require(request.targets.has(r), "it is sent to the replica")
        require(~self.down.has(r), "replica is up")
        self.stale_read = self.stale_read | (self.data[t][r] < request.value)
        self._forget(n)

    @action(by=NETWORK, fair=WEAK)
    def time_out(self, n: Term[Node]) -> None:
        """A replica does not answer in time: the client is told so, but messages may still arrive."""
        request = self.request[n]
        require(request.tablet.is_some() & ~request.abandoned, "a request is on its way")
        self._abandon(n)

    @action(by=NETWORK, fair=WEAK)
    def lose_messages(self, n: Term[Node]) -> None:
        """What is left of an abandoned request is lost."""
        require(self.request[n].abandoned, "request is abandoned")
        self._forget(n)

    # -- faults ------------------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops: what it coordinated is abandoned, what it stored stays."""
        require(~self.down.has(n), "node is up")
        self.down.add(n)
        self._abandon(n)
        for t in Tablet:
            stops = self.streaming_at[t] == n
            self.streaming_at[t] = choose(stops, None, self.streaming_at[t])
            self.copied[t] = self.copied[t] & ~stops
            self.compacting[t][n] = 0

    @action(by=OPERATOR, fair=WEAK)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, with the view that it had; it allocates storage as the stage says."""
        require(self.down.has(n) & ~self.excluded.has(n), "node is down and not excluded")
        self.down.discard(n)
        for t in Tablet:
            self.storage[t].put(n, self.storage[t].has(n) | self._restores_storage(n, t))

    @action(by=OPERATOR)
    def exclude(self, n: Term[Node]) -> None:
        """The operator declares node `n` gone for good: barriers ignore it, and it never comes back."""
        require(self.down.has(n) & ~self.excluded.has(n), "node is down and not excluded")
        self.excluded.add(n)
        for t in Tablet:
            old, new = self.replicas[t].has(n), self.next[t].has(n)
            tablet = self.tablets[t]
            moving = tablet.stage != Stage.none
            leaving = tablet.excluded.has(Role.leaving) | (moving & old & ~new)
            pending = tablet.excluded.has(Role.pending) | (moving & new & ~old)
            staying = tablet.excluded.has(Role.staying) | (moving & old & new)
            tablet.excluded.put(Role.leaving, leaving)
            tablet.excluded.put(Role.pending, pending)
            tablet.excluded.put(Role.staying, staying)

    # -- helpers ---------------------------------------------------------------------------------------

    def _current(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Node `n` has learned all that is committed of a tablet."""
        view, tablet = self.view[n][t], self.tablets[t]
        same_sets = (view.replicas == self.replicas[t]) & (view.next == self.next[t])
        return same_sets & (view.stage == tablet.stage) & (view.session == tablet.session)

    def _learns_of_closing(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """The session of a chunk that is on its way to node `n` is closed, as the node learns now."""
        return (self.chunk[t].target == n) & ~self.tablets[t].session

    def _keeps_storage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Storage is allocated where the stage asks for it, and dropped in the stages that end a move."""
        stage = self.tablets[t].stage
        asked = self._stores(stage, self.replicas[t], self.next[t]).has(n)
        if not self.release.end_migration:
            return asked | self.storage[t].has(n)
        drops = stage.any_of(Stage.end_migration, Stage.revert_migration)
        return asked | (self.storage[t].has(n) & ~drops)

    def _restores_storage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """A node that starts allocates storage for what it knows to be its replicas in that stage."""
        view = self.view[n][t]
        return self._stores(view.stage, view.replicas, view.next).has(n)

    def _stores(self, stage: Term[Stage], replicas: SetOf[Node], new: SetOf[Node]) -> SetOf[Node]:
        return self._chosen(stage.column(lambda s: s.storage), replicas, new)

    def _chosen(
        self, which: Term[Replicas], replicas: SetOf[Node], new: SetOf[Node]
    ) -> SetOf[Node]:
        """The replica set that a column of the stage's table names."""
        both = choose(which == Replicas.both, replicas | new, new)
        return choose(which == Replicas.previous, replicas, both)

    def _targets_of_write(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        view = self.view[n][t]
        writes = view.stage.column(lambda stage: stage.writes)
        return self._chosen(writes, view.replicas, view.next)

    def _targets_of_load(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        return self._targets_of_write(n, t)

    def _begin(self, n: Term[Node], t: Term[Tablet], targets: SetOf[Node]) -> None:
        request = self.request[n]
        require(~self.down.has(n), "node is up")
        require(request.tablet.is_none(), "node is free")
        require(~targets.is_empty(), "node has learned of the tablet's replicas")
        request.tablet = t
        request.targets = targets
        request.stage = self.view[n][t].stage

    def _write_next_value(self, n: Term[Node], t: Term[Tablet]) -> None:
        self.request[n].write = True
        bounded(self.written[t] < LAST_VALUE, "a value is left")
        self.request[n].value = self.written[t] + 1
        self.written[t] = self.written[t] + 1

    def _abandon(self, n: Term[Node]) -> None:
        """The messages of a write may still arrive; those of a read have no effect any more."""
        request = self.request[n]
        request.tablet = choose(request.write, request.tablet, None)
        request.stage = choose(request.write, request.stage, Stage.none)
        request.targets = choose(request.write, request.targets, frozenset())
        request.value = choose(request.write, request.value, 0)
        request.abandoned = request.write

    def _forget(self, n: Term[Node], where: Bool | None = None) -> None:
        """Node `n` coordinates nothing any more (`where` that holds)."""
        request = self.request[n]
        if where is None:
            request.tablet = None
            request.write = False
            request.stage = Stage.none
            request.targets = frozenset()
            request.reached = frozenset()
            request.value = 0
            request.abandoned = False
            return
        request.tablet = choose(where, None, request.tablet)
        request.write = request.write & ~where
        request.stage = choose(where, Stage.none, request.stage)
        request.targets = choose(where, frozenset(), request.targets)
        request.reached = choose(where, frozenset(), request.reached)
        request.value = choose(where, 0, request.value)
        request.abandoned = request.abandoned & ~where

    # == what runs at the replicas =======================================================================

    @action(by=COORDINATOR, fair=WEAK)
    def ask_dead_node(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The coordinator starts the stage's action although a node that it needs is down."""
        require(self._needs(n, t) & self.down.has(n), "a node that the action needs is down")
        self.tablets[t].start_operation()
        self.copied[t] = False
        self.cleaned[t] = False

    @action(by=COORDINATOR, fair=WEAK)
    def fail_unanswered(self, t: Term[Tablet]) -> None:
        """The action fails because a node that it needs is down, or has been and knows nothing of it."""
        dead = some(self._needs(n, t) & self.down.has(n) for n in Node)
        require(dead | ~self._will_be_answered(t), "nobody can answer")
        self.tablets[t].fail_operation()

    @action(by=NETWORK, spends=TabletMigration.failures)
    def lose_answer(self, t: Term[Tablet]) -> None:
        """The answer of a running action is lost: the coordinator takes it for failed, but it goes on."""
        self.tablets[t].fail_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self, t: Term[Tablet], pending: Term[Node]) -> None:
        """The pending replica, having learned the stage, starts to stream, or joins what it started."""
        self.tablets[t].start_operation()
        require(self.tablets[t].stage == Stage.streaming, "stage is streaming")
        require(self._is_pending(pending, t), "the node is the pending replica")
        self._can_serve(pending, t)
        self.copied[t] = self.copied[t] & (self.streaming_at[t] == pending)
        self.streaming_at[t] = pending

    @action(fair=WEAK)
    def send_chunk(self, t: Term[Tablet], source: Term[Node], target: Term[Node]) -> None:
        """A replica reads its rows and sends them to the one that streams."""
        require(self.streaming_at[t] == target, "the target streams")
        require(
            self.replicas[t].has(source) & ~self.down.has(source), "the source is a live replica"
        )
        stays = self.next[t].has(source)
        has_leaving = self.tablets[t].kind == Kind.migration
        require(~(stays & has_leaving), "a migration streams from the leaving replica")
        require(self.chunk[t].target.is_none() & ~self.copied[t], "nothing is on the wire")
        self.chunk[t].target = target
        self.chunk[t].value = self._rows_to_stream(t, source)

    @action(fair=WEAK)
    def receive_chunk(self, t: Term[Tablet], target: Term[Node]) -> None:
        """The target stores a chunk of a session that is open as far as it has learned."""
        chunk = self.chunk[t]
        require(chunk.target == target, "a chunk is on its way to the node")
        ready = ~self.down.has(target) & self.storage[t].has(target)
        require(ready, "the node is up and has storage")
        if self.release.sessions:
            is_open = self.view[target][t].session & ~chunk.closed
            require(is_open, "its session is open, as far as the node has learned")
        newer = self.data[t][target] < chunk.value
        self.data[t][target] = choose(newer, chunk.value, self.data[t][target])
        self.copied[t] = self.streaming_at[t] == target
        self._take_off_the_wire(t)

    @action(by=NETWORK, fair=WEAK)
    def drop_chunk(self, t: Term[Tablet]) -> None:
        """A chunk whose stream is over is refused or lost in the end."""
        require(self.chunk[t].target.is_some(), "a chunk is on the wire")
        require(self.chunk[t].closed | self.streaming_at[t].is_none(), "its stream is over")
        self._take_off_the_wire(t)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """The pending replica answers that everything was copied."""
        require(self.copied[t], "all was copied")
        require(self.tablets[t].stage == Stage.streaming, "stage is streaming")
        self.tablets[t].finish_operation()
        self.streaming_at[t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica that is not to stay is asked to remove its rows."""
        require(self._to_be_cleaned(n, t), "the node's replica is to be cleaned up")
        require(~self.excluded.has(n), "the node is not excluded")
        self.tablets[t].start_operation()
        self.cleanup_at[t] = n
        self.cleaned[t] = False

    @action(fair=WEAK)
    def clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica, having learned the stage, checks that it is meant and removes its rows."""
        require(self.cleanup_at[t] == n, "cleanup was asked of the node")
        self._can_serve(n, t)
        require(self._to_be_cleaned(n, t), "the node's replica is to be cleaned up")
        self._waits_for_local_users(t, n)
        self._remove_rows(t, n)
        self.cleanup_at[t] = None
        self.cleaned[t] = True

    @action(fair=WEAK)
    def refuse_cleanup(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A stale request to clean up is refused: the stage has moved on."""
        require(self.cleanup_at[t] == n, "cleanup was asked of the node")
        require(~self._to_be_cleaned(n, t) | self.excluded.has(n), "it is stale")
        self.cleanup_at[t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def finish_cleanup(self, t: Term[Tablet]) -> None:
        """The replica answers that its rows are gone."""
        require(self.cleaned[t], "rows are gone")
        cleans = self.tablets[t].stage.any_of(Stage.cleanup, Stage.cleanup_target)
        require(cleans, "stage is a cleanup")
        self.cleaned[t] = False
        self.tablets[t].finish_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def run_repair(self, t: Term[Tablet]) -> None:
        """The replicas to read from are asked to repair; all are in step, as writes go to all of them."""
        repairs = self.tablets[t].stage.any_of(Stage.repair, Stage.rebuild_repair)
        require(repairs, "stage is a repair")
        self.tablets[t].start_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_repair_run(self, t: Term[Tablet]) -> None:
        """The replicas answer that they are repaired."""
        stage = self.tablets[t].stage
        require(stage.any_of(Stage.repair, Stage.rebuild_repair), "stage is a repair")
        silent = (stage == Stage.rebuild_repair) & (self.replicas[t] <= self.down)
        require(~silent, "a replica to stream from is up")
        self.tablets[t].finish_operation()

    # -- maintenance -----------------------------------------------------------------------------------

    @action(spends=compactions)
    def begin_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A node starts to rewrite what its replica stores, as to split the tablet."""
        require(~self.down.has(n), "node is up")
        stores = self.storage[t].has(n) & (self.data[t][n] > 0)
        require(stores, "its replica stores something")
        require(self.compacting[t][n] == 0, "it does not compact yet")
        self.compacting[t][n] = self.data[t][n]

    @action(fair=WEAK)
    def end_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """What was rewritten takes its place."""
        newer = self.data[t][n] < self.compacting[t][n]
        require(self.compacting[t][n] > 0, "the node compacts")
        self.data[t][n] = choose(newer, self.compacting[t][n], self.data[t][n])
        self.compacting[t][n] = 0

    # -- helpers ---------------------------------------------------------------------------------------

    def _rows_to_stream(self, t: Term[Tablet], source: Term[Node]) -> Number:
        return self.data[t][source]

    def _remove_rows(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica's rows go; its storage stays until the transition's last stage."""
        self.data[t][n] = 0

    def _waits_for_local_users(self, t: Term[Tablet], n: Term[Node]) -> None:
        require(self.compacting[t][n] == 0, "nothing on the node uses the replica")

    def _is_pending(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return self.next[t].has(n) & ~self.replicas[t].has(n)

    def _is_leaving(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return self.replicas[t].has(n) & ~self.next[t].has(n)

    def _to_be_cleaned(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        stage = self.tablets[t].stage
        leaves = (stage == Stage.cleanup) & self._is_leaving(n, t)
        return leaves | ((stage == Stage.cleanup_target) & self._is_pending(n, t))

    def _needs(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """The action of the tablet's stage cannot be done without node `n`."""
        tablet = self.tablets[t]
        streams = tablet.stage.any_of(Stage.streaming, Stage.rebuild_repair)
        source = choose(
            tablet.kind == Kind.migration, self._is_leaving(n, t), self.replicas[t].has(n)
        )
        return (streams & (source | self._is_pending(n, t))) | self._to_be_cleaned(n, t)

    def _will_be_answered(self, t: Term[Tablet]) -> Bool:
        stage = self.tablets[t].stage
        streams = (stage == Stage.streaming) & self.streaming_at[t].is_some()
        cleans = stage.any_of(Stage.cleanup, Stage.cleanup_target)
        cleans = cleans & (self.cleanup_at[t].is_some() | self.cleaned[t])
        return streams | cleans | stage.any_of(Stage.repair, Stage.rebuild_repair)

    def _can_serve(self, n: Term[Node], t: Term[Tablet]) -> None:
        require(~self.down.has(n), "node is up")
        require(self._current(n, t), "node has read what is committed")

    def _take_off_the_wire(self, t: Term[Tablet]) -> None:
        self.chunk[t].target = None
        self.chunk[t].value = 0
        self.chunk[t].closed = False

    # == the topology coordinator's steps ================================================================

    # -- the load balancer and the topology state machine ------------------------------------------------

    @action(by=COORDINATOR, spends=migrations)
    def start_migration(self, t: Term[Tablet], leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer moves a tablet from one node to another."""
        require(self.replicas[t].has(leaving), "the leaving node is a replica")
        self._plan(t, pending)
        self.tablets[t].start(Term.of(Kind.migration))
        for n in Node:
            self.next[t].put(n, (self.next[t].has(n) & (n != leaving)) | (n == pending))

    @action(by=COORDINATOR, spends=rebuilds)
    def start_rebuild(self, t: Term[Tablet], pending: Term[Node], kind: Term[Kind]) -> None:
        """The tablet gets one replica more."""
        only_when(self.release.repair)
        require(kind.any_of(Kind.rebuild, Kind.rebuild_v2), "kind is a rebuild")
        self._plan(t, pending)
        self.tablets[t].start(kind)
        self.next[t].add(pending)

    @action(by=OPERATOR, spends=repairs)
    def start_repair(self, t: Term[Tablet]) -> None:
        """The operator asks for a repair of the tablet."""
        self._may_start()
        self.tablets[t].start_repair()

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """No tablet is in transition: the topology state machine leaves the tablet migration track."""
        require(self.track == Track.tablet_migration, "in the tablet migration track")
        at_rest = every(self.tablets[t].stage == Stage.none for t in Tablet)
        require(at_rest, "no tablet is in transition")
        self.track = Track.idle

    @action(by=OPERATOR, spends=topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave; migrations drain first."""
        self.request_pending = True

    @action(by=COORDINATOR, fair=WEAK)
    def change_topology(self) -> None:
        """The pending topology change takes over the state machine."""
        require((self.track == Track.idle) & self.request_pending, "idle, and a request is pending")
        self.track = Track.topology_change
        self.request_pending = False

    @action(by=COORDINATOR, fair=WEAK)
    def end_topology_change(self) -> None:
        """The topology change is done."""
        require(self.track == Track.topology_change, "a topology change is going on")
        self.track = Track.idle

    # -- the coordinator's steps that touch more than the tablet's own state -------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has learned the stage and drained older requests; then the fence refuses the rest."""
        drained = every(self._acknowledges_barrier(n, t) for n in Node)
        require(
            drained,
            "every node that is not excluded has learned the stage and drained older requests",
        )
        self.tablets[t].pass_barrier()
        for n in Node:
            self._forget(n, where=self._is_older(n, t))

    @action(by=COORDINATOR)
    def fail_barrier(self, t: Term[Tablet]) -> None:
        """A node that is down, and not excluded, does not answer the barrier."""
        require(some(self.down.has(n) & ~self.excluded.has(n) for n in Node), "a node is down")
        self.tablets[t].fail_barrier()

    @action(by=NETWORK, spends=TabletMigration.failures)
    def lose_barrier(self, t: Term[Tablet]) -> None:
        """The barrier's messages are lost."""
        self.tablets[t].fail_barrier()

    @action(by=COORDINATOR, fair=WEAK)
    def begin_streaming(self, t: Term[Tablet]) -> None:
        """Every write reaches both replica sets from now on: stream what was there before."""
        self.tablets[t].begin_streaming()
        self.reached_leaving[t] = greatest(
            (self.data[t][n] for n in self.replicas[t] - self.next[t]), default=0
        )

    @action(by=COORDINATOR, fair=WEAK)
    def use_new(self, t: Term[Tablet]) -> None:
        """No read uses the old replicas any more: write to the new ones alone."""
        self.tablets[t].use_new()
        self.reached_leaving[t] = 0

    @action(by=COORDINATOR, fair=WEAK)
    def finish(self, t: Term[Tablet]) -> None:
        """The migration is done: the new replicas are the replicas."""
        self.tablets[t].finish()
        self._adopt(t)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_without_cleanup(self, t: Term[Tablet]) -> None:
        """The same where the cleanup stage has no action."""
        self.tablets[t].finish_without_cleanup()
        self._adopt(t)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_revert(self, t: Term[Tablet]) -> None:
        """The migration is undone: the old replicas stay."""
        self.tablets[t].finish_revert()
        self.next[t] = self.replicas[t]
        self.reached_leaving[t] = 0

    @action(by=COORDINATOR, fair=WEAK)
    def end(self, t: Term[Tablet]) -> None:
        """The leaving replica is cleaned up, or there is none, or it is gone."""
        self.tablets[t].end()

    @action(by=COORDINATOR, fair=WEAK)
    def fall_back(self, t: Term[Tablet]) -> None:
        """More of the new replicas than of the old ones are gone: read the old ones again."""
        self.tablets[t].fall_back()

    @action(by=COORDINATOR, fair=WEAK)
    def revert(self, t: Term[Tablet]) -> None:
        """The pending replica is cleaned up, or gone."""
        self.tablets[t].revert()

    @action(by=COORDINATOR, spends=coordinator_changes)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        for t in Tablet:
            self.tablets[t].fail_over()

    # -- helpers ---------------------------------------------------------------------------------------

    def _may_start(self) -> None:
        require(self.track != Track.topology_change, "no topology change is going on")
        require(~self.request_pending, "no topology change is waiting for migrations to drain")
        self.track = Track.tablet_migration

    def _plan(self, t: Term[Tablet], pending: Term[Node]) -> None:
        self._may_start()
        require(~self.replicas[t].has(pending), "the pending node is no replica yet")
        require(~self.down.has(pending), "the pending node is up")
        gone = some(self.excluded.has(r) for r in self.replicas[t])
        require(~gone, "no replica is excluded")

    def _is_older(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """The request of node `n` began under an older version of the tablet."""
        request = self.request[n]
        return (request.tablet == t) & (request.stage != self.tablets[t].stage)

    def _acknowledges_barrier(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        drained = ~self._is_older(n, t) | self.request[n].abandoned
        return self.excluded.has(n) | (~self.down.has(n) & self._current(n, t) & drained)

    def _adopt(self, t: Term[Tablet]) -> None:
        self.replicas[t] = self.next[t]

    # -- promises --------------------------------------------------------------------------------------

    @accepts(begin_write)
    def clients_write_while_tablets_move(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Through each node that is up, whatever the tablet's stage: migrations lock nobody out."""
        return self._is_free(n, t)

    @accepts(begin_read)
    def clients_read_while_tablets_move(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """The same for reads."""
        return self._is_free(n, t)

    @accepts(begin_load)
    def backups_are_loaded_while_tablets_move(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Rows of a backup are writes, too."""
        return self._is_free(n, t)

    def _is_free(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Node `n` is up, coordinates nothing, and has learned of the tablet."""
        free = ~self.down.has(n) & self.request[n].tablet.is_none()
        return free & ~self.view[n][t].replicas.is_empty()

    @accepts(begin_compaction)
    def rows_are_rewritten_while_tablets_move(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """001: a tablet's replicas are "old" or "new", and all of them store: whoever does rewrites what it has."""
        stores = self.storage[t].has(n) & (self.data[t][n] > 0)
        return stores & ~self.down.has(n) & (self.compacting[t][n] == 0)

    @sometimes(at={Tablet: 2, migrations: 2, writes: 0, reads: 0, crashes: 0})
    def two_tablets_stream_at_once(self) -> Bool:
        """001: "Tablets are migrated in parallel", also to one node, which need not be done with the first."""
        return some(count(self.streaming_at[t] == n for t in Tablet) >= 2 for n in Node)

    @accepts(start_migration)
    def tablets_are_migrated_independently(
        self, t: Term[Tablet], leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """001: "Tablets are migrated in parallel and independently": one at rest waits for no other's stage."""
        moves = self.replicas[t].has(leaving) & self._may_come_to(pending, t)
        return (self.tablets[t].stage == Stage.none) & moves

    @accepts(start_rebuild)
    def tablets_are_rebuilt_independently(
        self, t: Term[Tablet], pending: Term[Node], kind: Term[Kind]
    ) -> Bool:
        """The same for a tablet that gets one more replica, with or without a repair first."""
        only_when(self.release.repair)
        rebuild = (kind == Kind.rebuild) | (kind == Kind.rebuild_v2)
        return (self.tablets[t].stage == Stage.none) & rebuild & self._may_come_to(pending, t)

    @accepts(start_repair)
    def tablets_are_repaired_independently(self, t: Term[Tablet]) -> Bool:
        """The same for a tablet that is repaired, even if a node is down."""
        only_when(self.release.repair)
        silent = self.request_pending | (self.track == Track.topology_change)
        return (self.tablets[t].stage == Stage.none) & ~silent

    @accepts(exclude)
    def dead_nodes_are_given_up_at_any_time(self, n: Term[Node]) -> Bool:
        """001: "still alive owners": an operator says which nodes are gone for good, wherever their tablets are."""
        return self.down.has(n) & ~self.excluded.has(n)

    @accepts(fail_barrier)
    def barriers_fail_where_a_node_is_down(self, t: Term[Tablet]) -> Bool:
        """001: a stage is advanced when "expected invariants about cluster-wide state" hold: while a node that counts is
        down they do not, and the coordinator need not wait for it to come back before it does something else.
        """
        tablet = self.tablets[t]
        waits = tablet.stage.column(lambda stage: stage.barrier) & (tablet.stage != Stage.repair)
        silent = some(self.down.has(n) & ~self.excluded.has(n) for n in Node)
        return waits & (tablet.barrier == Progress.none) & silent

    def _may_come_to(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Nobody waits for a topology change, and no node is down that may come back: barriers would wait for it."""
        silent = self.request_pending | (self.track == Track.topology_change)
        up = every(~self.down.has(m) | self.excluded.has(m) for m in Node)
        alive = ~self.down.has(n) & every(~self.excluded.has(r) for r in self.replicas[t])
        return ~silent & up & alive & ~self.replicas[t].has(n)

    @accepts(pass_barrier)
    def barriers_wait_for_no_stream(self, t: Term[Tablet]) -> Bool:
        """001, "independently": what runs on behalf of one tablet holds up no other: a barrier passes once all nodes
        have learned what is committed and drained what was before it; nobody waits for what began since, or was given up.
        """
        tablet = self.tablets[t]
        waits = tablet.stage.column(lambda stage: stage.barrier) & (tablet.stage != Stage.repair)
        drained = every(self.excluded.has(n) | self._knows_and_has_drained(n) for n in Node)
        return waits & (tablet.barrier == Progress.none) & drained

    def _knows_and_has_drained(self, n: Term[Node]) -> Bool:
        """Node `n` is up, knows every tablet's stage, and what its client waits for began in that stage."""
        request = self.request[n]
        knows = every(self.view[n][t].stage == self.tablets[t].stage for t in Tablet)
        began_now = every(
            (request.tablet == t).implies(request.stage == self.tablets[t].stage) for t in Tablet
        )
        return ~self.down.has(n) & knows & (request.abandoned | began_now)

    @accepts(clean_up)
    def replicas_are_cleaned_up_independently(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """The same for rows that go: a node that has learned the stage waits for what uses this replica alone."""
        here = (self.cleanup_at[t] == n) & self._to_be_cleaned(n, t) & (self.compacting[t][n] == 0)
        return here & ~self.down.has(n) & self._current(n, t)

    @accepts(learn)
    def nodes_learn_while_clients_wait(self, n: Term[Node]) -> Bool:
        """001, stage 2: replicas "see the transition info … via local token metadata": no node that is up waits with
        it until what it coordinates is over, which goes on as it began.
        """
        behind = some(self.view[n][t].stage != self.tablets[t].stage for t in Tablet)
        return ~self.down.has(n) & behind

    @accepts(send_chunk)
    def rows_are_streamed_while_clients_write(
        self, t: Term[Tablet], source: Term[Node], target: Term[Node]
    ) -> Bool:
        """001, stage 3: "by the means of coordinator replication or by the means of streaming": both go on at once."""
        leaves = self._is_leaving(source, t) & ~self.down.has(source)
        free = self.chunk[t].target.is_none() & ~self.copied[t]
        return (self.streaming_at[t] == target) & leaves & free

    # fmt: off
    @independent(
        receive_chunk, drop_chunk, finish_streaming, fail_unanswered, refuse_cleanup, finish_cleanup, finish_repair_run,
        end_compaction, fail_barrier, use_new, finish, finish_revert, end, fall_back, revert, ask_to_clean_up, run_repair,
        of=Tablet,
    )
    def tablets_advance_independently(self) -> None:
        """001, "independently": a tablet moves on, and back, and comes to rest, wherever the others are."""

    @independent(
        restart, ask_dead_node, fail_unanswered, ask_to_stream, receive_chunk, drop_chunk, finish_streaming,
        refuse_cleanup, finish_cleanup, finish_repair_run, start_migration, start_rebuild, start_repair, leave_track,
        change_topology, end_topology_change, begin_streaming, use_new, finish, finish_revert, end, fall_back, revert,
        ask_to_clean_up, run_repair, of=(request, written, acknowledged, compacting),
    )
    def no_step_waits_for_clients(self) -> None:
        """001, "Writes are going to both": barriers wait for older ones; nothing else does, nor for what is rewritten."""
    # fmt: on

    @accepts(request_topology_change)
    def topology_changes_are_requested_at_any_time(self) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", also while tablets move."""
        return ~self.request_pending

    @sometimes(
        at={writes: 0, reads: 0, crashes: 0, TabletMigration.failures: 0, topology_changes: 1}
    )
    def requests_wait_until_migrations_have_drained(self, after: Self) -> Bool:
        """001: "will have to wait for tablet migration track to finish": a request is there when tablets rest."""
        leaves = (self.track == Track.tablet_migration) & (after.track == Track.idle)
        return leaves & self.request_pending & after.request_pending

    @step_property
    def requests_let_migrations_drain(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: it is silent "to allow for current migrations to drain": they go on, none is pointless for it."""
        asked = ~self.request_pending & after.request_pending
        before, now = self.tablets[t], after.tablets[t]
        same = (before.stage == now.stage) & (before.unwanted == now.unwanted)
        return asked.implies(same)

    @sometimes(at={writes: 0, reads: 0, TabletMigration.failures: 0})
    def migrations_are_undone_where_a_node_is_lost(self, after: Self, t: Term[Tablet]) -> Bool:
        """ScyllaDB's code: a barrier that fails since a replica is gone for good is not tried for ever."""
        only_when(self.release.rollback)
        before = (Stage.allow_write_both_read_old, Stage.write_both_read_old)
        undone = after.tablets[t].stage == Stage.cleanup_target
        return self.tablets[t].stage.any_of(*before) & undone

    @accepts(store_write)
    def writes_are_stored_while_tablets_move(
        self, n: Term[Node], r: Term[Node], t: Term[Tablet]
    ) -> Bool:
        """001, write_both_read_old: "writes" go to old and new replicas, and each takes them as soon as it is ready."""
        request = self.request[n]
        waits = (request.tablet == t) & request.write & ~request.abandoned
        sent = request.targets.has(r) & ~request.reached.has(r)
        return waits & sent & ~self.down.has(r) & self.storage[t].has(r)

    @accepts(acknowledge_write)
    def writes_succeed_while_tablets_move(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """001, stage 3: writes "which are executed on behalf of a successful request": they succeed in every stage."""
        request = self.request[n]
        waits = (request.tablet == t) & request.write & ~request.abandoned
        return waits & (request.targets <= request.reached)

    @sometimes(at={reads: 0, crashes: 0, TabletMigration.failures: 0, migrations: 0})
    def replicas_answer_that_they_stored(self, after: Self, t: Term[Tablet]) -> Bool:
        """001, stage 3, "on behalf of a successful request": the answer of another node is counted, and a client is told."""
        sent = some((self.request[n].tablet == t) & ~self.request[n].targets.has(n) for n in Node)
        return sent & (self.acknowledged[t] < after.acknowledged[t])

    @step_property
    def requests_end_as_they_began(self, after: Self, n: Term[Node]) -> Bool:
        """001, stage 3, of "a successful request": whatever other clients are told, a request stays what it was, and a write
        that nobody has given up ends when it has succeeded; what a client was told stays so.
        """
        request, now = self.request[n], after.request[n]
        goes_on = request.tablet.is_some() & (now.tablet == request.tablet)
        same = (now.value == request.value) & (now.targets == request.targets)
        same = same & (now.stage == request.stage) & (request.reached <= now.reached)
        ends = request.tablet.is_some() & now.tablet.is_none()
        waits = request.write & ~request.abandoned
        later = after.acknowledged
        told = some((request.tablet == t) & (later[t] >= request.value) for t in Tablet)
        kept = every(later[t] >= self.acknowledged[t] for t in Tablet)
        same = same & request.abandoned.implies(now.abandoned)
        return goes_on.implies(same) & (ends & waits).implies(told) & kept

    @invariant
    def nothing_is_remembered_of_a_request(self, n: Term[Node]) -> Bool:
        """A node that coordinates nothing starts its next request afresh: none that was given up before."""
        request = self.request[n]
        rest = request.write | request.abandoned | (request.value > 0)
        sent = ~request.targets.is_empty() | ~request.reached.is_empty()
        return request.tablet.is_none().implies(~rest & ~sent & (request.stage == Stage.none))

    @accepts(answer_read)
    def reads_succeed_while_tablets_move(
        self, n: Term[Node], r: Term[Node], t: Term[Tablet]
    ) -> Bool:
        """001, stage 5: "All read requests … which complete successfully": they do in every stage."""
        request = self.request[n]
        asked = (request.tablet == t) & ~request.write & request.targets.has(r)
        return asked & ~self.down.has(r)

    @invariant
    def one_pending_and_one_leaving_replica(self, t: Term[Tablet]) -> Bool:
        """A transition adds at most one replica and removes at most one: a migration does both, a rebuild adds one, and a
        repair changes none.
        """
        kind = self.tablets[t].kind
        pending = (self.next[t] - self.replicas[t]).size()
        leaving = (self.replicas[t] - self.next[t]).size()
        moves = kind == Kind.migration
        adds = (kind == Kind.rebuild) | (kind == Kind.rebuild_v2)
        return (leaving == choose(moves, 1, 0)) & (pending == choose(moves | adds, 1, 0))

    @invariant
    def transitions_happen_in_their_track(self, t: Term[Tablet]) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is guaranteed
        that there are no tablet transitions in the system."
        """
        return (self.track != Track.tablet_migration).implies(self.tablets[t].stage == Stage.none)

    @lemma
    def nothing_is_pending_at_rest(self, t: Term[Tablet]) -> Bool:
        """001: a tablet at rest has no new replicas. A lemma: it has no kind, and `one_pending_and_one_leaving_replica`."""
        at_rest = self.tablets[t].stage == Stage.none
        return at_rest.implies(self.next[t] == self.replicas[t])

    @step_property
    def topology_changes_are_not_interrupted(self, after: Self) -> Bool:
        """001: "The tablet migration track excludes with other topology changes"; each of them begins for its own request."""
        going_on = self.track == Track.topology_change
        begins = (after.track == Track.topology_change) & ~going_on
        taken_up = self.request_pending & ~after.request_pending
        alone = after.track != Track.tablet_migration
        in_turn = (begins == taken_up) & choose(begins, self.track == Track.idle, alone)
        return (going_on | begins | taken_up).implies(in_turn)

    @step_property
    def migrations_drain_before_a_topology_change(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: with a pending request the balancer is silent "to allow for current migrations to drain"."""
        starts = (self.tablets[t].stage == Stage.none) & (after.tablets[t].stage != Stage.none)
        return self.request_pending.implies(~starts)

    @step_property
    def barriers_pass_when_every_node_has_answered(
        self, after: Self, t: Term[Tablet], n: Term[Node]
    ) -> Bool:
        """ScyllaDB's code: a barrier waits "until token-metadata versions < current are released", and every node
        but the ignored ones must answer; the fence cuts off nobody that a client waits for.
        """
        tablet, request = self.tablets[t], self.request[n]
        passes = (after.tablets[t].barrier == Progress.done) & (tablet.barrier != Progress.done)
        waits = (request.tablet == t) & ~request.abandoned
        drained = waits.implies(request.stage == tablet.stage)
        answers = ~self.down.has(n) & (self.view[n][t].stage == tablet.stage) & drained
        return passes.implies(answers | self.excluded.has(n))

    @step_property
    def actions_are_done_when_replicas_say_so(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: the action is taken "before it can move to the next step": nobody takes it for done before a replica
        has answered so, nor a coordinator that finds it begun.
        """
        before, now = self.tablets[t], after.tablets[t]
        ends = (before.operation != Progress.done) & (now.operation == Progress.done)
        streams = before.stage == Stage.streaming
        cleans = before.stage.any_of(Stage.cleanup, Stage.cleanup_target)
        silent = (before.stage == Stage.rebuild_repair) & (self.replicas[t] <= self.down)
        return ends.implies((~streams | self.copied[t]) & (~cleans | self.cleaned[t]) & ~silent)

    @step_property
    def stages_cut_nobody_off(self, after: Self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: what began under an older version is waited for, until it is "released": a node that learns of
        the next stage goes on with what its clients wait for.
        """
        learns = some(self.view[n][t].stage != after.view[n][t].stage for t in Tablet)
        waits = self.request[n].tablet.is_some() & ~self.request[n].abandoned
        goes_on = after.request[n].tablet.is_some() & ~after.request[n].abandoned
        return (learns & waits).implies(goes_on)

    @step_property
    def who_is_down_does_nothing(self, after: Self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """A node that is down stores, learns and begins nothing; what it stored before stays."""
        stored = after.data[t][n] != self.data[t][n]
        learned = after.view[n][t].stage != self.view[n][t].stage
        begins = self.request[n].tablet.is_none() & after.request[n].tablet.is_some()
        return (self.down.has(n) & after.down.has(n)).implies(~stored & ~learned & ~begins)

    @step_property
    def streams_come_from_live_replicas(self, after: Self, t: Term[Tablet]) -> Bool:
        """A chunk is read at a replica that is up: while the leaving one is down, no migration streams. 001,
        "independently": a node that dies stops what is streamed to itself.
        """
        sent = self.chunk[t].target.is_none() & after.chunk[t].target.is_some()
        alive = some((self.streaming_at[t] == n) & ~after.down.has(n) for n in Node)
        cut_off = alive & (self.down != after.down) & after.streaming_at[t].is_none()
        return sent.implies(some(~self.down.has(r) for r in self.replicas[t])) & ~cut_off

    @invariant
    def replicas_are_ready_for_writes(self, t: Term[Tablet]) -> Bool:
        """001, stage 2: all old and new replicas "see the transition info" and "are prepared for
        receiving writes for the local tablet replica".
        """
        ready = every(
            self.excluded.has(r) | (self.storage[t].has(r) & (self.view[r][t].next == self.next[t]))
            for r in self.replicas[t] | self.next[t]
        )
        return (self.tablets[t].stage == Stage.write_both_read_old).implies(ready)

    @invariant
    def writes_reach_both_replica_sets(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """001, stage 3: "All writes that will be stored by any replica in the old or the new set, which
        are executed on behalf of a successful request, will reach CL in both".
        """
        request = self.request[n]
        successful = (
            (request.tablet == t) & request.write & ~request.abandoned & ~self.excluded.has(n)
        )
        both = (self.replicas[t] | self.next[t]) <= request.targets
        return (self.tablets[t].stage == Stage.streaming).implies(successful.implies(both))

    @invariant
    def new_replicas_are_complete(self, t: Term[Tablet], r: Term[Node]) -> Bool:
        """001, stage 4: "New tablet replicas contain all the writes which reached the matching leaving
        tablet replicas before step 3", acknowledged or not, and by coordinator replication those that
        were acknowledged since.
        """
        reached = self._is_pending(r, t).implies(self.data[t][r] >= self.reached_leaving[t])
        complete = (self.data[t][r] >= self.acknowledged[t]) & reached
        new = self.next[t].has(r) & ~self.excluded.has(r)
        return (self.tablets[t].stage == Stage.write_both_read_new).implies(new.implies(complete))

    @invariant
    def replicas_that_are_read_are_complete(self, t: Term[Tablet], r: Term[Node]) -> Bool:
        """001, stage 3: the replica set "will reflect all successful writes", the old one as long as it is read, and
        the new one from then on: no cleanup takes the rows of a replica that stays.
        """
        reads = self.tablets[t].stage.column(lambda stage: stage.reads)
        read = self._chosen(reads, self.replicas[t], self.next[t]).has(r) & ~self.excluded.has(r)
        return read.implies(self.data[t][r] >= self.acknowledged[t])

    @invariant
    def reads_use_the_new_replicas(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """001, stage 5: "All read requests started after this, and which complete successfully, use the
        new replica set."
        """
        view = self.view[n][t]
        used = self._chosen(view.stage.column(lambda stage: stage.reads), view.replicas, view.next)
        reads_new = self.excluded.has(n) | (used == self.next[t])
        return (self.tablets[t].stage == Stage.use_new).implies(reads_new)

    @invariant
    def writes_have_left_the_old_replicas(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """001, stage 6: "No write request will reach tablet replica in the database layer which does not
        belong to the new replica set."
        """
        request = self.request[n]
        writing = (request.tablet == t) & request.write
        cleans = self.tablets[t].stage == Stage.cleanup
        return (cleans & writing).implies(request.targets <= self.next[t])

    @invariant
    def only_replicas_hold_data(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """001, when not in transition: "The storage layer (database) on any node contains writes for keys
        which belong to the tablet only if that shard is one of the current tablet replicas."
        """
        holds = (self.data[t][n] > 0) & ~self.excluded.has(n)
        return (self.tablets[t].stage == Stage.none).implies(holds.implies(self.replicas[t].has(n)))

    @invariant
    def only_replicas_have_storage(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """The storage of a replica that left is gone when the transition ends (scylladb #23481)."""
        stores = (self.tablets[t].stage == Stage.none) & self.storage[t].has(n)
        return (stores & ~self.excluded.has(n)).implies(self.replicas[t].has(n))

    @invariant
    def compactions_have_storage(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """Storage is not dropped while something on the node uses it."""
        return (self.compacting[t][n] > 0).implies(self.storage[t].has(n))

    @invariant
    def reads_see_acknowledged_writes(self) -> Bool:
        """Read after write: a read returns what was acknowledged before it began, or something newer."""
        return ~self.stale_read

    @invariant
    def writes_find_storage(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> Bool:
        """No live write is sent to a replica without storage (scylladb #26512)."""
        request = self.request[n]
        sent = (
            (request.tablet == t) & request.write & request.targets.has(r) & ~request.reached.has(r)
        )
        return (sent & ~self.excluded.has(r)).implies(self.storage[t].has(r))

    @invariant
    def cleaned_up_replicas_stay_empty(self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """No side effect of an older session or request reaches a replica after its cleanup."""
        stage = self.tablets[t].stage
        cleaned = (stage == Stage.end_migration) & self._is_leaving(n, t)
        reverted = (stage == Stage.revert_migration) & self._is_pending(n, t)
        empty = (self.data[t][n] == 0) | self.excluded.has(n)
        return (cleaned | reverted).implies(empty)

    @final
    def all_at_rest(self) -> Bool:
        """A cluster whose tablets are at rest may stay as it is."""
        return every(self.tablets[t].stage == Stage.none for t in Tablet)

    @liveness
    def topology_changes_happen(self) -> LeadsTo:
        """001: it "will exit the tablet migration track and allow pending topology operation to start"."""
        return leads_to(self.request_pending, self.track == Track.topology_change)

    @liveness
    def topology_changes_end(self) -> LeadsTo:
        """A topology change gives the state machine back."""
        changing = self.track == Track.topology_change
        return leads_to(changing, ~changing)

    @liveness
    def migrations_end(self, t: Term[Tablet]) -> LeadsTo:
        """Every migration ends, done or reverted, if what can happen for ever happens."""
        return leads_to(self.tablets[t].stage != Stage.none, self.tablets[t].stage == Stage.none)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            only_replicas_hold_data,
            only_replicas_have_storage,
            under=SEED,
            because="nothing says how, or that, the cleanup stage removes the rows: a tablet comes to rest while the node "
            "that it left still stores them, and has storage for them",
        ),
        violated(
            migrations_end,
            TabletMigration.every_transition_ends,
            TabletMigration.can_come_to_rest,
            under=SEED,
            because="there is no way back: streaming is tried again for ever once the node that leaves is lost for good",
        ),
        violated(
            cleaned_up_replicas_stay_empty,
            writes_find_storage,
            under=SCYLLA_2025_4,
            because="the cleanup of a pending replica does not wait for coordinators that still write to it, so a late "
            "write is stored after it, or finds no storage (scylladb #26512)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(learn, "node is behind", because="it learns the same again"),
        equivalent_loss(
            learn,
            data,
            streaming_at,
            because="storage that is dropped is clean; a stream without session is refused",
        ),
        equivalent_replacement(
            learn,
            "streaming_at[t] becomes: write_both_read_new for streaming",
            because="a stream that ends too early is asked for again; one without session is refused",
        ),
        equivalent_weakening(
            store_write,
            "it is sent to the replica",
            because="a write that comes twice is stored once: the newest value stays",
        ),
        equivalent_drop(store_write, "replica has storage", because="writes find storage"),
        equivalent_weakening(
            acknowledge_write,
            "a write is on its way",
            because="no replica stores what is read, so that no read is acknowledged",
        ),
        equivalent_loss(begin_read, Request.value, because="a read may miss everything then"),
        equivalent_drop(answer_read, "replica is up", because=LATER),
        equivalent_replacement(answer_read, "replica is up: n for r", because=LATER),
        equivalent_loss(answer_read, stale_read, because="it notes what must not happen"),
        equivalent_loss(_forget, Request.write, Request.reached, Request.abandoned, because=OVER),
        equivalent_drop(time_out, "a request is on its way", because="nothing is abandoned"),
        equivalent_disabled(lose_messages, because="what its client gave up may be stored instead"),
        equivalent_drop(crash, "node is up", because=NO_CRASH),
        equivalent_loss(crash, streaming_at, copied, compacting, because=NO_CRASH),
        equivalent_weakening(
            restart, "node is down and not excluded", because="who starts twice has what it has"
        ),
        equivalent_loss(restart, storage, because="what the stage asks for is there already"),
        equivalent_weakening(
            exclude, "node is down and not excluded", because="to exclude twice is to exclude once"
        ),
        equivalent_replacement(
            exclude,
            "tablets.excluded[t][staying] becomes: leaving for staying",
            because="whether one that stays is excluded matters where no other one is",
        ),
        equivalent_drop(
            _begin,
            "node is up",
            "node is free",
            "node has learned of the tablet's replicas",
            because=NOBODY_SENDS,
        ),
        equivalent_loss(_begin, Request.targets, because=NOBODY_SENDS),
        equivalent_loss(
            _begin,
            Request.stage,
            because="a request that is taken for older than it is, is drained as well",
        ),
        equivalent_loss(_write_next_value, Request.value, written, because="nothing is written"),
        equivalent_replacement(
            _write_next_value,
            "request[n].value becomes: 2 for 1",
            "written[t] becomes: 2 for 1",
            because="a value may be left out: the next one has to be newer, no more",
        ),
        equivalent_replacement(
            _write_next_value,
            "written[t] becomes: 0 for 1",
            because="what a client writes again, and no newer, is there already",
        ),
        equivalent_replacement(
            begin_load, "request[n].value becomes: 0 for 1", because="a backup may be empty"
        ),
        equivalent_weakening(
            ask_dead_node, "a node that the action needs is down", because=IN_VAIN
        ),
        equivalent_replacement(
            ask_dead_node, "a node that the action needs is down", because=IN_VAIN
        ),
        equivalent_drop(ask_dead_node, "stage has an action", because="otherwise it needs no node"),
        equivalent_loss(
            ask_dead_node,
            copied,
            cleaned,
            because="a second migration, a crash and a lost answer tell: in the tests",
        ),
        equivalent_weakening(fail_unanswered, "nobody can answer", because=TRIED_AGAIN),
        equivalent_replacement(fail_unanswered, "nobody can answer", because=TRIED_AGAIN),
        equivalent_drop(
            ask_to_stream,
            "stage has an action",
            "barrier done before the target is cleaned up",
            because="the stage is streaming, which has an action and no barrier",
        ),
        equivalent_drop(
            ask_to_stream,
            "node is up",
            "node has read what is committed",
            because="what it streams before it knows the session is refused",
        ),
        equivalent_drop(
            send_chunk,
            "a migration streams from the leaving replica",
            because="where a tablet has one replica, that is the one that leaves",
        ),
        equivalent_drop(
            send_chunk, "nothing is on the wire", because="to send again loses what was sent before"
        ),
        equivalent_weakening(
            receive_chunk, "the node is up and has storage", because="who knows the session has it"
        ),
        equivalent_weakening(
            receive_chunk,
            "its session is open, as far as the node has learned",
            because="who was asked to stream has learned of the session",
        ),
        equivalent_drop(drop_chunk, "a chunk is on the wire", because="nothing is lost"),
        equivalent_loss(finish_streaming, streaming_at, because="what comes later is refused"),
        equivalent_weakening(
            ask_to_clean_up, "the node's replica is to be cleaned up", because="others refuse"
        ),
        equivalent_drop(ask_to_clean_up, "the node is not excluded", because="it does not answer"),
        equivalent_drop(
            ask_to_clean_up,
            "stage has an action",
            because="a stage in which a replica is to be cleaned up has an action",
        ),
        equivalent_drop(
            clean_up,
            "cleanup was asked of the node",
            because="a replica that is to be cleaned up may be so unasked",
        ),
        equivalent_drop(
            clean_up,
            "node has read what is committed",
            because="a node is one stage behind at most, as it has passed the last barrier",
        ),
        equivalent_drop(
            clean_up,
            "the node's replica is to be cleaned up",
            because="one request is on its way at a time, and its stage ends with its answer",
        ),
        equivalent_loss(clean_up, cleanup_at, because="to clean up what is clean changes nothing"),
        equivalent_disabled(refuse_cleanup, because="nobody waits for an answer that is stale"),
        equivalent_loss(refuse_cleanup, cleanup_at, because="it will be refused again"),
        equivalent_drop(finish_cleanup, "stage is a cleanup", because=ANSWERED),
        equivalent_loss(finish_cleanup, cleaned, because=ANSWERED),
        equivalent_replacement(finish_cleanup, "cleaned[t] becomes: yes for no", because=ANSWERED),
        equivalent_drop(
            run_repair,
            "stage has an action",
            "barrier done before the target is cleaned up",
            because="the stages of a repair have an action, and wait for no barrier",
        ),
        equivalent_drop(
            begin_compaction,
            "node is up",
            "its replica stores something",
            "it does not compact yet",
            because=COMPACTIONS,
        ),
        equivalent_loss(begin_compaction, compacting, because=COMPACTIONS),
        equivalent_drop(end_compaction, "the node compacts", because=COMPACTIONS),
        equivalent_loss(end_compaction, data, because=COMPACTIONS),
        equivalent_loss(
            _take_off_the_wire,
            Chunk.target,
            Chunk.value,
            Chunk.closed,
            because="what comes twice is stored twice; nobody looks at the rest",
        ),
        equivalent_replacement(
            _take_off_the_wire, "chunk[t].value becomes: 1 for 0", because="nobody looks at it"
        ),
        equivalent_replacement(
            receive_chunk, "closed becomes: yes for no", because="what is refused is sent again"
        ),
        equivalent_loss(begin_streaming, reached_leaving, because=LESS),
        equivalent_replacement(
            begin_streaming,
            "reached_leaving[t] becomes: (least of",
            because="one replica leaves, and no other: what it has is the most and the least",
        ),
        equivalent_replacement(
            begin_streaming, "reached_leaving[t] becomes: every n in Node", because=LESS
        ),
        equivalent_loss(use_new, reached_leaving, because="nobody asks for it after stage 4"),
        equivalent_loss(finish_revert, reached_leaving, because="the next stream notes it again"),
        *HARMLESS_IN_STAGES,
        *HARMLESS_BETWEEN_NODES,
        equivalent_without(
            TabletMigration.start_repair, because="what is not heard is what nobody asked for"
        ),
        equivalent_drop(
            leave_track, "in the tablet migration track", because="a change may end at any time"
        ),
        equivalent_weakening(
            pass_barrier,
            "every node that is not excluded has learned the stage and drained older requests",
            because="what a node learns of a tablet is of one version: its stage tells the rest",
        ),
        equivalent_replacement(
            fail_barrier, "stage has a barrier: none for failed", because="it is tried again"
        ),
        equivalent_weakening(end, "leaving replica is cleaned up or gone", because=BETWEEN_NODES),
        equivalent_weakening(
            fall_back, "more new than old replicas are excluded", because=BETWEEN_NODES
        ),
        equivalent_weakening(
            revert, "pending replica is cleaned up or gone", because=BETWEEN_NODES
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            TabletMigration.begin_rebuild_repair,
            TabletMigration.stream_after_repair,
            because=REBUILDS,
        ),
        vacuous(TabletMigration.only_rebuild_v2_repairs, because=REBUILDS),
        never_happens(
            TabletMigration.end_repair,
            TabletMigration.finish_repair,
            run_repair,
            finish_repair_run,
            because=REPAIRS,
        ),
        vacuous(TabletMigration.a_failed_repair_is_drained_after_it_failed, because=REPAIRS),
        never_happens(end_compaction, because="compactions begin where there are `compactions`"),
        vacuous(compactions_have_storage, because="there are none without `compactions`"),
        never_happens(change_topology, end_topology_change, because=CHANGES),
        vacuous(
            requests_let_migrations_drain,
            topology_changes_are_not_interrupted,
            migrations_drain_before_a_topology_change,
            topology_changes_happen,
            topology_changes_end,
            because=CHANGES,
        ),
    )
