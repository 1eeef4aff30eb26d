"""An index is built on a table whose tablet moves and whose writes go to a CDC log: three machines as one.

No document and no database has all three, so it is no shipped machine: it tests how machines of different
documents are put together.

Index permissions and backfill (002), the migration of the base table's tablet (001) and the commit of CDC
generations (003, 001) meet in every write: it goes to the replicas that the tablet's stage names, to the index
as the server's permission says, and to the log with a stream of the generation that operates. The promises of
this file are those that none of the three could make alone. Which replicas get the log write is in `cdc_log.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cdc.cdc_publication import CdcPublication, Generation, Transition
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Replicas, Stage
from stagewright.machines.systems.sound_migration import RESTRICTED
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_life import IndexLife, Job
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Profile,
    SetOf,
    SetVar,
    Term,
    action,
    budget,
    checked_alone,
    choose,
    every,
    fault_budget,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    optional,
    part,
    per,
    profiles,
    require,
    restricted,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

CLIENT = Actor("client")
MASTER = Actor("master")
COORDINATOR = Actor("topology coordinator")
TIME = Actor("time")
WEAK = Fairness.WEAK


class Row(Enum):
    """The rows that are followed."""

    old = auto()  # written before there was an index
    new = auto()


@dataclass(frozen=True)
class TableRelease(Profile):
    """The versions of the parts that go together: the newest of each."""


NEWEST = TableRelease("newest")


class IndexedTable(Machine):
    """A table of one tablet, with an index that is built or dropped, and a CDC log."""

    release = profiles(NEWEST)
    writes = budget(1, doc="rows that are inserted or deleted")
    migrations = budget(1, doc="migrations of the tablet")
    generations = budget(1, doc="topology changes that make a new CDC generation")
    drops = budget(0, doc="drops of the index, and backfills that fail")
    failures = fault_budget(0, doc="barriers, streams and actions that fail")
    failovers = fault_budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {generations: 0},
        {migrations: 0, writes: 2},
        {Server: 1, generations: 2, migrations: 0},
        {Server: 1, generations: 0, drops: 1},
        {Server: 1, generations: 0, failures: 1, failovers: 1},
        {Server: 1, writes: 0},
        {Server: 1, writes: 2, generations: 0},
    )

    index = part(
        IndexLife,
        without=(IndexLife.drop_index, IndexLife.fail_backfill),
    )
    tablet = part(
        TabletMigration,
        restricts=RESTRICTED,
        without=(
            TabletMigration.start_repair,
            TabletMigration.exclude,
            TabletMigration.give_up_before_streaming,
        ),
    )
    cdc = part(
        CdcPublication,
        without=(
            CdcPublication.lose_tables,
            CdcPublication.upgrade,
            CdcPublication.clients_see_a_generation_while_its_node_joins,
        ),
        restricts=(
            restricted(
                CdcPublication.topology_changes_do_not_wait_for_clients,
                because="a tablet is in transition: the topology changes one thing at a time",
            ),
        ),
    )

    each_alone = checked_alone(index, tablet, cdc)

    # the base table: one tablet, with the rows that each replica stores
    replicas: SetVar[Node] = set_of(Node, init=ANY)
    next: SetVar[Node] = set_of(Node, init=ANY)  # the same at rest
    base = per(Row, set_of(Node, init=ANY))
    written: SetVar[Row] = set_of(Row, init={Row.old})  # acknowledged, and not deleted since
    # the index table; a marker of a deletion hides what is written with an older time
    entries: SetVar[Row] = set_of(Row)
    markers: SetVar[Row] = set_of(Row)
    # the backfill's only chunk
    snapshot: SetVar[Row] = set_of(Row)  # what was live at t_read
    scanned: FlagVar = flag()
    found: SetVar[Row] = set_of(Row)
    # the log
    # their time has come
    operating: SetVar[Generation] = set_of(Generation, init={Generation.first})
    logged = per(Row, optional(Generation))  # the generation of the last write's stream

    @initially
    def one_replica_with_the_old_row(self) -> Bool:
        """The tablet is at rest on one node, with a row from before."""
        at_rest = (self.next == self.replicas) & (self.base[Row.old] == self.replicas)
        one = self.replicas.size() == 1
        return at_rest & one & self.base[Row.new].is_empty() & self.cdc.in_group0

    # -- clients -----------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def insert(self, s: Term[Server]) -> None:
        """A row is inserted through a server, which goes by the permission that it has learned."""
        require(~self.written.has(Row.new), "it is not there yet")
        self.written.add(Row.new)
        for n in Node:
            self.base[Row.new].put(n, self._writes_to().has(n))
        maintains = self.index.learned[s].column(lambda p: p.write)
        self.entries.put(Row.new, self.entries.has(Row.new) | maintains)
        self._log(Row.new)

    @action(by=CLIENT, spends=writes)
    def delete(self, s: Term[Server], row: Term[Row]) -> None:
        """A row is deleted; the server leaves a marker in the index, if it maintains it."""
        require(self.written.has(row), "it is there")
        self.written.discard(row)
        self.base[row] = frozenset()
        maintains = self.index.learned[s].column(lambda p: p.delete)
        self.entries.put(row, self.entries.has(row) & ~maintains)
        self.markers.put(row, self.markers.has(row) | maintains)
        self._log(row)

    @action(by=CLIENT, spends=drops)
    def drop_index(self) -> None:
        """DROP INDEX, at any time."""
        self.index.drop_index()

    def _writes_to(self) -> SetOf[Node]:
        """The replicas that the stage's write selector names."""
        return self._selected(self.tablet.stage.column(lambda stage: stage.writes))

    def _selected(self, which: Term[Replicas]) -> SetOf[Node]:
        both = choose(which == Replicas.both, self.replicas | self.next, self.next)
        return choose(which == Replicas.previous, self.replicas, both)

    def _log(self, row: Row | Term[Row]) -> None:
        """The log entry goes to a stream of the generation that operates now."""
        self.logged[row] = self._generation_of_now()

    def _generation_of_now(self) -> Term[Generation]:
        newest = Term.of(Generation.first)
        for g in list(Generation)[1:]:
            newest = choose(self.operating.has(g), g, newest)
        return newest

    # -- the backfill ------------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def launch_backfill(self) -> None:
        """The job begins: t_read is chosen, and what is live then is to be in the index."""
        self.index.launch_backfill()
        self.snapshot = self.written

    @action(fair=WEAK)
    def scan_chunk(self, n: Term[Node]) -> None:
        """The tablet is scanned as of t_read, on a replica that serves reads."""
        require(self.index.job == Job.running, "the job is running")
        require(~self.scanned, "it was not scanned")
        require(self._serves_reads(n), "the replica serves reads")
        self.scanned = True
        for row in Row:
            # What was deleted since is still seen at t_read, where its replica was not removed.
            seen = self.base[row].has(n) | ~self.written.has(row)
            self.found.put(row, self.snapshot.has(row) & seen)

    def _serves_reads(self, n: Term[Node]) -> Bool:
        return self._selected(self.tablet.stage.column(lambda stage: stage.reads)).has(n)

    @action(fair=WEAK)
    def write_chunk(self) -> None:
        """The entries are written with the time t_read, so that every later write is newer."""
        require(~self.found.is_empty(), "rows were found")
        self.entries = self.entries | self._visible()
        self.found = frozenset()

    def _visible(self) -> SetOf[Row]:
        """What no newer marker hides."""
        return self.found - self.markers

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """Every chunk of every tablet is done."""
        require(self.scanned & self.found.is_empty(), "the tablet's rows are written")
        self.index.finish_backfill()

    @action(by=MASTER, spends=drops)
    def fail_backfill(self) -> None:
        """A chunk was tried too often: the index is to be removed."""
        self.index.fail_backfill()

    # -- the tablet --------------------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=migrations)
    def start_migration(self, pending: Term[Node]) -> None:
        """The tablet moves; one state machine drives tablets and topology, so nothing else is going on."""
        self._has_the_track()
        require(~self.replicas.has(pending), "the pending node is no replica yet")
        self.tablet.start(Term.of(Kind.migration))
        for n in Node:
            self.next.put(n, n == pending)

    def _has_the_track(self) -> None:
        require(self.cdc.transition == Transition.none, "no topology change is going on")

    @action(fair=WEAK)
    def stream(self) -> None:
        """The pending replica gets what the leaving one has; a stream that failed may still arrive."""
        require(self.tablet.stage == Stage.streaming, "stage is streaming")
        require(~self._is_streamed(), "something is missing")
        require(self.tablet.operation != Progress.none, "a stream was started")
        for row in Row:
            has = some(self.base[row].has(n) for n in self.replicas)
            for n in Node:
                self.base[row].put(n, self.base[row].has(n) | (has & self.next.has(n)))

    @action(by=COORDINATOR, fair=WEAK)
    def finish_operation(self) -> None:
        """The replica answers that it is done, which is true of its stream."""
        streams = self.tablet.stage == Stage.streaming
        require(streams.implies(self._is_streamed()), "what is streamed has arrived")
        self.tablet.finish_operation()

    def _is_streamed(self) -> Bool:
        return every(
            self.written.has(row).implies(every(self.base[row].has(n) for n in self.next))
            for row in Row
        )

    @action(by=COORDINATOR, fair=WEAK)
    def end(self) -> None:
        """The leaving replica has removed its rows."""
        self.tablet.end()
        self._keep(self.next)

    @action(by=COORDINATOR, fair=WEAK)
    def finish(self) -> None:
        """The new replica is the replica."""
        self.tablet.finish()
        self.replicas = self.next

    @action(by=COORDINATOR, fair=WEAK)
    def revert(self) -> None:
        """The pending replica has removed its rows."""
        self.tablet.revert()
        self._keep(self.replicas)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_revert(self) -> None:
        """The tablet stays where it was."""
        self.tablet.finish_revert()
        self.next = self.replicas

    def _keep(self, nodes: SetOf[Node]) -> None:
        for row in Row:
            for n in Node:
                self.base[row].put(n, self.base[row].has(n) & nodes.has(n))

    # -- generations -------------------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=generations)
    def begin_generation(self, g: Term[Generation], join: Bool) -> None:
        """A topology change, or a user, makes a new CDC generation; no tablet is in transition."""
        require(self.tablet.stage == Stage.none, "no tablet is in transition")
        self.cdc.begin(g, join)

    @action(by=TIME, fair=WEAK)
    def begin_to_operate(self, g: Term[Generation]) -> None:
        """003: "a minute or two" after its commit a generation starts to operate, in the order of timestamps."""
        require(self.cdc.committed.has(g), "it is committed")
        number = g.number_column(lambda generation: generation.number)
        require(number == self.operating.size(), "it is the next one")
        self.operating.add(g)

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        self.tablet.fail_over()
        self.cdc.fail_over()

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def a_published_index_is_complete(self, row: Term[Row]) -> Bool:
        """002: an index that is built agrees with its table, though the tablet moved while it was scanned."""
        published = self.index.permission == Permission.read_write_and_delete
        return (published & self.written.has(row)).implies(self.entries.has(row))

    @invariant
    def a_published_index_has_no_orphans(self, row: Term[Row]) -> Bool:
        """The same the other way round: no entry without its row."""
        published = self.index.permission == Permission.read_write_and_delete
        return (published & self.entries.has(row)).implies(self.written.has(row))

    @invariant
    def rows_are_where_they_are_read(self, row: Term[Row]) -> Bool:
        """001: whatever the stage, an acknowledged row is on every replica that serves reads."""
        reads = self._selected(self.tablet.stage.column(lambda stage: stage.reads))
        return self.written.has(row).implies(every(self.base[row].has(n) for n in reads))

    @step_property
    def rows_are_streamed_when_asked_for(self, after: Self, row: Term[Row], n: Term[Node]) -> Bool:
        """001, stage streaming: what no client writes comes by a stream that the coordinator started."""
        written = self.written != after.written
        comes = ~self.base[row].has(n) & after.base[row].has(n) & ~written
        asked = (self.tablet.stage == Stage.streaming) & (self.tablet.operation != Progress.none)
        return comes.implies(asked)

    @invariant
    def only_replicas_hold_rows_at_rest(self, row: Term[Row]) -> Bool:
        """001: at rest, rows of the tablet are on its replicas only."""
        return (self.tablet.stage == Stage.none).implies(self.base[row] <= self.replicas)

    @invariant
    def deleted_rows_are_gone(self, row: Term[Row]) -> Bool:
        """What is deleted, no migration brings back."""
        return (~self.written.has(row)).implies(self.base[row].is_empty())

    @invariant
    def a_transition_has_a_pending_replica(self) -> Bool:
        """001: "new_replicas: the new replicas of a tablet", which differ while it is in transition."""
        return (self.tablet.stage == Stage.none) == (self.next == self.replicas)

    @step_property
    def every_write_is_logged(self, after: Self, row: Term[Row]) -> Bool:
        """003: the log write's stream is "from the generation operating at this timestamp"."""
        changed = self.written.has(row) != after.written.has(row)
        later = every(
            ((after.logged[row] == g) & self.operating.has(h)).implies(h.number <= g.number)
            for g in Generation
            for h in Generation
        )
        operating = self.operating & self.cdc.committed
        logged = some((after.logged[row] == g) & operating.has(g) for g in Generation)
        return changed.implies(logged & later)

    @sometimes(at={Server: 1, migrations: 0})
    def a_later_generation_takes_writes(self, row: Term[Row]) -> Bool:
        """003: a write goes to another generation once that operates."""
        return self.logged[row] == Generation.second

    @step_property
    def a_backfill_is_not_logged(self, after: Self, row: Term[Row]) -> Bool:
        """003: the log has what clients write to the base table; what the backfill writes is none of it."""
        backfills = self.index.job == Job.running
        client = (self.written != after.written) | (self.base[row] != after.base[row])
        changes = self.logged[row] != after.logged[row]
        return (backfills & changes).implies(client)

    @invariant
    def tablets_and_topology_take_turns(self) -> Bool:
        """001: "The tablet migration track excludes with other topology changes"."""
        moving = self.tablet.stage != Stage.none
        return moving.implies(self.cdc.transition == Transition.none)

    @final
    def at_rest(self) -> Bool:
        """Final where the parts are."""
        return self.index.job != Job.running

    @liveness
    def builds_end(self) -> LeadsTo:
        """002: neither a migration nor a new generation holds up the build of an index."""
        building = self.index.permission.any_of(Permission.delete_only, Permission.do_backfill)
        return leads_to(building, ~building)
