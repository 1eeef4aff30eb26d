"""Tablet migration in a cluster: the topology coordinator's steps, joined with nodes, requests and data.

The control machine of `tablet_migration.py`, one for every tablet, inside of what can go wrong around it
(`tablet_nodes.py`, `tablet_actions.py`), and the promises of the design document.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.tablets.tablet_actions import TabletActions
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_migration_promises import Progress
from stagewright.machines.scylladb.tablets.tablet_nodes import (
    NETWORK,
    Node,
    Tablet,
    TabletNodes,
    Track,
)
from stagewright.machines.scylladb.tablets.tablet_stages import (
    HARMLESS_IN_STAGES,
    Kind,
    Stage,
)
from stagewright.spec import (
    Bool,
    Fairness,
    LeadsTo,
    Term,
    action,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalent_value,
    equivalent_without,
    equivalents,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    only_when,
    require,
    scopes,
    some,
    step_property,
)

WEAK = Fairness.WEAK
BETWEEN_NODES = "here tablets move between nodes, so that a kind has its replicas"


class TabletCluster(TabletActions):
    """Tablets that migrate between nodes while clients write and read.

    Under `scylla-2026.2` every promise holds.

    Under `seed` the text leaves three things open, and the check shows a run for each.
    `only_replicas_hold_data` fails: nothing says how, or that, the cleanup stage removes the rows, so a
    tablet comes to rest while the node that it left still stores them, and has storage for them
    (`only_replicas_have_storage`). `migrations_end` fails, and with it
    `tablets.every_transition_ends`: there is no way back, so streaming is tried again for ever once the
    node that leaves is lost for good. `tablets.can_come_to_rest` fails for the same reason.

    Under `scylla-2025.4` a bug of that time is found: the cleanup of a pending replica does not wait for
    coordinators that still write to it, so a late write is stored after it
    (`cleaned_up_replicas_stay_empty`) or finds no storage (`writes_find_storage`; scylladb #26512).
    """

    migrations = budget(1, doc="migrations that the load balancer starts")
    rebuilds = budget(0, doc="replicas that are added to a tablet")
    coordinator_changes = budget(0, doc="changes of the topology coordinator")
    repairs = budget(0, doc="tablet repairs that are requested")
    topology_changes = budget(0, doc="topology changes that are requested")

    exercised_at = scopes(
        {TabletNodes.writes: 0, TabletNodes.reads: 0, TabletNodes.crashes: 0, repairs: 1},
        {
            TabletNodes.writes: 0,
            TabletNodes.reads: 0,
            TabletNodes.crashes: 0,
            coordinator_changes: 1,
            topology_changes: 1,
        },
        {TabletNodes.writes: 0, TabletNodes.reads: 0, TabletMigration.failures: 0, repairs: 1},
        {
            TabletNodes.reads: 0,
            TabletNodes.crashes: 0,
            TabletMigration.failures: 0,
            rebuilds: 1,
            repairs: 1,
            topology_changes: 1,
            migrations: 0,
        },
        {TabletNodes.reads: 0, TabletNodes.crashes: 0, rebuilds: 1, migrations: 0},
        {TabletNodes.writes: 0, TabletNodes.reads: 0, TabletNodes.crashes: 0, TabletNodes.loads: 1},
        {TabletNodes.writes: 0, TabletNodes.reads: 0, TabletMigration.failures: 0, rebuilds: 1},
        {TabletNodes.crashes: 0, TabletMigration.failures: 0},
        {TabletNodes.reads: 0, TabletNodes.crashes: 0, migrations: 2},
        {TabletNodes.reads: 0, TabletNodes.crashes: 0, TabletNodes.compactions: 1},
        {TabletNodes.reads: 0, TabletMigration.failures: 0},
        {Tablet: 2, TabletNodes.crashes: 0, TabletMigration.failures: 0, migrations: 0},
        {
            Node: 3,
            TabletNodes.writes: 0,
            TabletNodes.reads: 0,
            TabletNodes.crashes: 0,
            TabletMigration.failures: 0,
        },
        {TabletNodes.writes: 0, TabletNodes.reads: 0, TabletNodes.crashes: 2},
    )

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
        require(
            every(self.tablets[t].stage == Stage.none for t in Tablet), "no tablet is in transition"
        )
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

    # -- what recurs -----------------------------------------------------------------------------------

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

    @invariant
    def one_pending_and_one_leaving_replica(self, t: Term[Tablet]) -> Bool:
        """A transition adds at most one replica and removes at most one."""
        pending = (self.next[t] - self.replicas[t]).size()
        return (pending <= 1) & ((self.replicas[t] - self.next[t]).size() <= 1)

    @invariant
    def transitions_happen_in_their_track(self, t: Term[Tablet]) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is guaranteed
        that there are no tablet transitions in the system."
        """
        return (self.track != Track.tablet_migration).implies(self.tablets[t].stage == Stage.none)

    @invariant
    def nothing_is_pending_at_rest(self, t: Term[Tablet]) -> Bool:
        """001: a tablet that is not in transition has no new replicas."""
        at_rest = self.tablets[t].stage == Stage.none
        return at_rest.implies(self.next[t] == self.replicas[t])

    @step_property
    def topology_changes_are_not_interrupted(self, after: Self) -> Bool:
        """001: "The tablet migration track excludes with other topology changes"."""
        going_on = self.track == Track.topology_change
        begins = (after.track == Track.topology_change) & ~going_on
        return going_on.implies(after.track != Track.tablet_migration) & begins.implies(
            (self.track == Track.idle) & self.request_pending & ~after.request_pending
        )

    @step_property
    def migrations_drain_before_a_topology_change(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: "If there is a pending topology change request, the load balancer will not be invoked to allow
        for current migrations to drain".
        """
        starts = (self.tablets[t].stage == Stage.none) & (after.tablets[t].stage != Stage.none)
        return self.request_pending.implies(~starts)

    @step_property
    def barriers_pass_when_every_node_has_answered(
        self, after: Self, t: Term[Tablet], n: Term[Node]
    ) -> Bool:
        """Facts, 1a: a barrier waits "until token-metadata versions < current are released", and every node
        but the ignored ones must answer; the fence cuts off nobody that a client waits for.
        """
        tablet, request = self.tablets[t], self.request[n]
        passes = (after.tablets[t].barrier == Progress.done) & (tablet.barrier != Progress.done)
        waits = (request.tablet == t) & ~request.abandoned
        drained = waits.implies(request.stage == tablet.stage)
        answers = ~self.down.has(n) & (self.view[n][t].stage == tablet.stage) & drained
        return passes.implies(answers | self.excluded.has(n))

    @step_property
    def who_is_down_does_nothing(self, after: Self, t: Term[Tablet], n: Term[Node]) -> Bool:
        """A node that is down stores, learns and begins nothing; what it stored before stays."""
        stored = after.data[t][n] != self.data[t][n]
        learned = after.view[n][t].stage != self.view[n][t].stage
        begins = self.request[n].tablet.is_none() & after.request[n].tablet.is_some()
        return (self.down.has(n) & after.down.has(n)).implies(~stored & ~learned & ~begins)

    @step_property
    def streams_come_from_live_replicas(self, after: Self, t: Term[Tablet]) -> Bool:
        """A chunk is read at a replica that is up: while the leaving one is down, no migration streams."""
        sent = self.chunk[t].target.is_none() & after.chunk[t].target.is_some()
        return sent.implies(some(~self.down.has(r) for r in self.replicas[t]))

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
        tablet replicas before step 3", and by coordinator replication those since.
        """
        complete = self.data[t][r] >= self.acknowledged[t]
        new = self.next[t].has(r) & ~self.excluded.has(r)
        return (self.tablets[t].stage == Stage.write_both_read_new).implies(new.implies(complete))

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
        return (self.tablets[t].stage == Stage.cleanup).implies(
            writing.implies(request.targets <= self.next[t])
        )

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
        stores = self.storage[t].has(n) & ~self.excluded.has(n)
        return (self.tablets[t].stage == Stage.none).implies(
            stores.implies(self.replicas[t].has(n))
        )

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
        """001: the state machine "will exit the tablet migration track and allow pending topology operation
        to start".
        """
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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        *HARMLESS_IN_STAGES,
        equivalent_value(
            (Kind.intranode_migration, Kind.repair),
            lambda kind: kind.leaving,
            because="no replica leaves its node here",
        ),
        equivalent_value(
            (Kind.intranode_migration, Kind.repair),
            lambda kind: kind.pending,
            because="no replica comes to a node here",
        ),
        equivalent_without(
            TabletMigration.start_repair,
            because="a request that is not heard is one that nobody made",
        ),
        equivalent_drop(
            leave_track,
            "in the tablet migration track",
            because="a topology change may end at any time",
        ),
        equivalent_loss(
            request_topology_change,
            TabletActions.request_pending,
            because="a request that is not heard is one that nobody made",
        ),
        equivalent_drop(
            pass_barrier,
            "every node that is not excluded has learned the stage and drained older requests",
            because="what a node learns of a tablet is of one version: its stage tells the rest",
        ),
        equivalent_drop(
            end, "stage is cleanup", "leaving replica is cleaned up or gone", because=BETWEEN_NODES
        ),
        equivalent_loss(end, TabletMigration.stage, because=BETWEEN_NODES),
        equivalent_drop(
            fall_back,
            "barrier failed",
            "more new than old replicas are excluded",
            because=BETWEEN_NODES,
        ),
        equivalent_drop(
            revert,
            "stage is cleanup_target",
            "pending replica is cleaned up or gone",
            "barrier done",
            because=BETWEEN_NODES,
        ),
        equivalent_loss(revert, TabletMigration.stage, because=BETWEEN_NODES),
    )
