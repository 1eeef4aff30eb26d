"""The tablet load balancer: plans made incrementally, persisted as one command, limited by what streams.

Source: design document 001 (topology-over-raft), "Load balancing", and the change that it came with: active
migrations count as done, and the streaming load of both sides of a migration is bounded. What a migration
does in its stages is in `tablet.py`; three of them matter here: until a tablet has streamed, once it has, and
while a migration that failed is undone.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.cluster import Track
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    OneVar,
    SetVar,
    Term,
    accepts,
    action,
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
    initially,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
BALANCER = Actor("load balancer")
OPERATOR = Actor("operator")
MOST_READS, MOST_WRITES = 1, 1  # migrations that stream from a shard, and to it


class Node(Entity, scope=2):
    """A node; the shards of the cluster are spread over the nodes."""


class Shard(Entity, scope=3):
    """A shard of some node, which stores replicas of tablets."""


class Tablet(Entity, scope=3):
    """A tablet."""


class LoadBalancer(Machine):
    """Tablet replicas on shards, and plans to move them."""

    disturbances = fault_budget(
        1,
        doc="topology changes, nodes that drain, migrations that fail, changes of the coordinator",
    )

    exercised_at = scopes(
        {Tablet: 2, disturbances: 2},
        {disturbances: 0},
        {Node: 3, Tablet: 2, disturbances: 2},
    )

    node = constant(per(Shard, one_of(Node)))
    # committed to group0
    track: OneVar[Track] = one_of(Track, init=Track.idle)
    request_pending: FlagVar = flag()
    draining: SetVar[Node] = set_of(Node)
    replicas = per(Tablet, set_of(Shard, init=ANY))
    stage = per(Tablet, one_of(Stage, init=Stage.none))
    leaving = per(Tablet, optional(Shard))
    pending = per(Tablet, optional(Shard))
    # the load balancer, in the memory of the topology coordinator
    invoked: FlagVar = flag(init=True)
    plan_leaving = per(Tablet, optional(Shard))
    plan_pending = per(Tablet, optional(Shard))
    outdated: FlagVar = flag()  # something was committed after the plan was begun

    @initially
    def every_tablet_has_its_replicas(self) -> Bool:
        """Each tablet has one replica, or each has two, on different nodes."""
        one = every(self.replicas[t].size() == 1 for t in Tablet)
        two = every(self.replicas[t].size() == 2 for t in Tablet)
        return one | two

    @initially
    def replicas_start_on_different_nodes(self, t: Term[Tablet], r: Term[Shard]) -> Bool:
        """Two replicas of a tablet never share a node."""
        apart = every((s == r) | (self.node[s] != self.node[r]) for s in self.replicas[t])
        return self.replicas[t].has(r).implies(apart)

    # -- the load balancer -------------------------------------------------------------------------------------

    @action(by=BALANCER, fair=WEAK)
    def plan_migration(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> None:
        """The load balancer, invoked, adds a migration to its plan."""
        require(self.invoked, "it is invoked")
        require(~self.outdated, "nothing was committed since the plan was begun")
        require(self._may_plan(), "no topology change is pending or goes on")
        require(
            self._can_move(t, leaving, pending),
            "the tablet is at rest, and the replica may go there",
        )
        require(self._improves(leaving, pending), "the migration improves the balance")
        require(self._has_room(leaving, pending), "neither shard streams as much as it may")
        self.plan_leaving[t] = leaving
        self.plan_pending[t] = pending

    @action(by=BALANCER, fair=WEAK)
    def find_nothing(self) -> None:
        """The plan is empty: the load balancer is not invoked again before something changes."""
        require(self.invoked, "it is invoked")
        require(self._plan_is_empty(), "nothing is planned")
        require(~self._is_of_use(), "no migration improves the balance")
        self.invoked = False

    @action(by=COORDINATOR, fair=WEAK)
    def persist_plan(self) -> None:
        """All migrations of the plan start, in one command to group0, which enters their track."""
        require(~self._plan_is_empty(), "something is planned")
        require(~self.outdated, "nothing was committed since the plan was begun")
        self._start_what_is_planned()
        self._forget_plan()

    @action(by=COORDINATOR, fair=WEAK)
    def retry(self) -> None:
        """Something else was committed first: the plan is made again."""
        require(self.outdated, "the command is refused")
        self._forget_plan()
        self.outdated = False

    # -- migrations --------------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """A stage edge: the tablet has streamed, and the load balancer is invoked."""
        require(self.stage[t] == Stage.streaming, "the tablet streams")
        self.stage[t] = Stage.write_both_read_new
        self._commit()
        self.invoked = True

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self, t: Term[Tablet]) -> None:
        """The last stage edge: the pending replica has taken the place of the leaving one."""
        require(self.stage[t] == Stage.write_both_read_new, "the tablet has streamed")
        for s in Shard:
            stays = self.replicas[t].has(s) & (self.leaving[t] != s)
            self.replicas[t].put(s, stays | (self.pending[t] == s))
        self._end(t)

    @action(by=COORDINATOR, spends=disturbances)
    def fail_streaming(self, t: Term[Tablet]) -> None:
        """A stage edge: the tablet could not be streamed, and its migration is undone."""
        require(self.stage[t] == Stage.streaming, "the tablet streams")
        self.stage[t] = Stage.cleanup_target
        self._commit()
        self.invoked = True

    @action(by=COORDINATOR, fair=WEAK)
    def revert_migration(self, t: Term[Tablet]) -> None:
        """The last stage edge of the way back: the replicas are what they were, and counted so again."""
        require(self.stage[t] == Stage.cleanup_target, "the migration is undone")
        self._end(t)

    @action(by=COORDINATOR, spends=disturbances)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator. It knows what is committed, and invokes the balancer."""
        self._forget_plan()
        self.outdated = False
        self.invoked = True

    # -- the topology state machine ----------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """Nothing migrates, and nothing is to: the topology state machine leaves the track."""
        require(self.track == Track.tablet_migration, "in the tablet migration track")
        at_rest = every(self.stage[t] == Stage.none for t in Tablet)
        require(at_rest, "no tablet is in transition")
        done = ~self.invoked | self.request_pending
        require(done, "no plan is being made, or none is allowed")
        self.track = Track.idle
        self._commit()

    @action(by=OPERATOR, spends=disturbances)
    def request_topology_change(self) -> None:
        """A topology change is requested: the load balancer is silent until it is done."""
        self.request_pending = True
        self._commit()

    @action(by=COORDINATOR, fair=WEAK)
    def begin_topology_change(self) -> None:
        """The topology change takes over the state machine."""
        require(self.request_pending, "one is pending")
        require(self.track == Track.idle, "migrations have drained")
        self.track = Track.topology_change
        self.request_pending = False
        self._commit()

    @action(by=COORDINATOR, fair=WEAK)
    def end_topology_change(self) -> None:
        """The topology change is done; the load balancer looks at what has become of the cluster."""
        require(self.track == Track.topology_change, "a topology change is going on")
        self.track = Track.idle
        self._commit()
        self.invoked = True

    @action(by=OPERATOR, spends=disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave: its tablets move to the others."""
        self._may_leave(n)
        self.draining.add(n)
        self._commit()
        self.invoked = True

    # -- which migrations are useful ---------------------------------------------------------------------------

    def _may_plan(self) -> Bool:
        """001: "If there is a pending topology change request, the load balancer will not be invoked"."""
        return ~self.request_pending & (self.track != Track.topology_change)

    def _can_move(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        """A replica can go there: the tablet is at rest, and no other replica of it is on that node."""
        at_rest = (self.stage[t] == Stage.none) & self.plan_pending[t].is_none()
        taken = some(
            (r != leaving) & (self.node[r] == self.node[pending]) for r in self.replicas[t]
        )
        return at_rest & self.replicas[t].has(leaving) & ~taken & ~self._drains(pending)

    def _improves(self, leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        """From a node that drains, or to a shard that has fewer replicas even afterwards."""
        return self._drains(leaving) | (self._load(pending) + 1 < self._load(leaving))

    def _has_room(self, leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        """The concurrency limits of both shards allow for one migration more."""
        reads = self._reads(leaving) + count(self.plan_leaving[t] == leaving for t in Tablet)
        writes = self._writes(pending) + count(self.plan_pending[t] == pending for t in Tablet)
        return (reads < MOST_READS) & (writes < MOST_WRITES)

    def _load(self, s: Term[Shard]) -> Number:
        """The replicas of a shard once all migrations, active and planned, are done."""
        return count(self._will_have(t, s) for t in Tablet)

    def _will_have(self, t: Term[Tablet], s: Term[Shard]) -> Bool:
        goes = (self.leaving[t] == s) | (self.plan_leaving[t] == s)
        comes = (self.pending[t] == s) | (self.plan_pending[t] == s)
        return comes | (self.replicas[t].has(s) & ~goes)

    def _reads(self, s: Term[Shard]) -> Number:
        """The active migrations that stream from a shard."""
        return count((self.stage[t] == Stage.streaming) & (self.leaving[t] == s) for t in Tablet)

    def _writes(self, s: Term[Shard]) -> Number:
        """The active migrations that stream to a shard."""
        return count((self.stage[t] == Stage.streaming) & (self.pending[t] == s) for t in Tablet)

    # -- helpers -----------------------------------------------------------------------------------------------

    def _drains(self, s: Term[Shard]) -> Bool:
        return some((self.node[s] == n) for n in self.draining)

    def _may_leave(self, n: Term[Node]) -> None:
        """However many nodes drain already: with this one, too, those that stay are enough for each tablet."""
        stay = count(
            (n != m) & ~self.draining.has(m) & some(self.node[s] == m for s in Shard) for m in Node
        )
        fit = every(self.replicas[t].size() <= stay for t in Tablet)
        require(fit, "each replica of a tablet has a node among those that stay")

    def _is_of_use(self) -> Bool:
        return (
            ~self.outdated
            & self._may_plan()
            & some(
                self._can_move(t, leaving, pending)
                & self._improves(leaving, pending)
                & self._has_room(leaving, pending)
                for t in Tablet
                for leaving in Shard
                for pending in Shard
            )
        )

    def _plan_is_empty(self) -> Bool:
        return every(self.plan_pending[t].is_none() for t in Tablet)

    def _start_what_is_planned(self) -> None:
        self.track = Track.tablet_migration
        for t in Tablet:
            starts = self.plan_pending[t].is_some()
            self.stage[t] = choose(starts, Stage.streaming, self.stage[t])
            self.leaving[t] = choose(starts, self.plan_leaving[t], self.leaving[t])
            self.pending[t] = choose(starts, self.plan_pending[t], self.pending[t])

    def _end(self, t: Term[Tablet]) -> None:
        self.stage[t] = Stage.none
        self.leaving[t] = None
        self.pending[t] = None
        self._commit()
        self.invoked = True

    def _forget_plan(self) -> None:
        for t in Tablet:
            self.plan_leaving[t] = None
            self.plan_pending[t] = None

    def _commit(self) -> None:
        """A command to group0: whoever prepared another one has to start again."""
        self.outdated = ~self._plan_is_empty()

    # -- what is promised: in terms of what is committed, not of how the balancer counts ------------------------

    def _streams(self, t: Term[Tablet]) -> Bool:
        return self.stage[t] == Stage.streaming

    def _outcome(self, s: Term[Shard]) -> Number:
        """The replicas of a shard when all that goes on, and is planned, has ended well."""
        return count(
            (self.pending[t] == s)
            | (self.plan_pending[t] == s)
            | (self.replicas[t].has(s) & (self.leaving[t] != s) & (self.plan_leaving[t] != s))
            for t in Tablet
        )

    def _helps(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        """To move this replica empties a node that drains, or brings two shards closer to each other."""
        drains = some(self.node[leaving] == n for n in self.draining)
        full = some(self.node[pending] == n for n in self.draining)
        apart = every(
            (r == leaving) | (self.node[r] != self.node[pending]) for r in self.replicas[t]
        )
        place = self.replicas[t].has(leaving) & ~self.replicas[t].has(pending) & apart & ~full
        return place & (drains | (self._outcome(pending) + 1 < self._outcome(leaving)))

    def _is_free(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        """The tablet is at rest, and nothing is streamed from the one shard, or to the other one."""
        at_rest = (self.stage[t] == Stage.none) & self.plan_pending[t].is_none()
        reads = count(
            (self._streams(o) & (self.leaving[o] == leaving)) | (self.plan_leaving[o] == leaving)
            for o in Tablet
        )
        writes = count(
            (self._streams(o) & (self.pending[o] == pending)) | (self.plan_pending[o] == pending)
            for o in Tablet
        )
        return at_rest & (reads < MOST_READS) & (writes < MOST_WRITES)

    def _is_silent(self) -> Bool:
        return self.request_pending | (self.track == Track.topology_change)

    @sometimes(at={Tablet: 3, disturbances: 1})
    def one_starts_while_another_streams(self, after: Self) -> Bool:
        """001's change: "Allow load balancing to happen concurrently with tablet migrations"; 001: "Tablets are migrated in
        parallel and independently".
        """
        goes_on = some(self._streams(t) & after._streams(t) for t in Tablet)
        return goes_on & some(~self._streams(t) & after._streams(t) for t in Tablet)

    @sometimes(at={Tablet: 3, disturbances: 1})
    def one_starts_while_another_is_undone(self, after: Self) -> Bool:
        """A migration that failed counts as done, like every active one, until its replica is back."""
        undone = some(self.stage[t] == Stage.cleanup_target for t in Tablet)
        return undone & some(~self._streams(t) & after._streams(t) for t in Tablet)

    @sometimes(at={Tablet: 3, disturbances: 1})
    def a_shard_streams_again_before_a_migration_ends(self, after: Self, s: Term[Shard]) -> Bool:
        """001's change: "This allows new migrations to be started as soon as tablets finish streaming", also from the
        shard that one of them leaves, which it does only in the end. Which of those that help the balancer takes first is
        its own affair: its plans are incremental.
        """
        has_streamed = some(
            (self.stage[t] == Stage.write_both_read_new) & (self.leaving[t] == s) for t in Tablet
        )
        return has_streamed & some(
            ~self._streams(t) & after._streams(t) & (after.leaving[t] == s) for t in Tablet
        )

    @accepts(plan_migration)
    def plans_count_what_is_on_its_way_as_done(self) -> Bool:
        """001's change: active migrations are treated "as if they were already completed": where nothing streams, and
        something helps then, from a shard that none of them leaves, it is planned, or something else; also to a shard that one
        of them leaves. A plan may be of one migration: "A single make_plan() call is still not saturating".
        """
        counts = self.invoked & ~self.outdated & ~self._is_silent() & self._plan_is_empty()
        quiet = every(~self._streams(o) for o in Tablet)
        helps = some(
            self._helps(t, leaving, pending)
            & self._is_free(t, leaving, pending)
            & every(self.leaving[o] != leaving for o in Tablet)
            for t in Tablet
            for leaving in Shard
            for pending in Shard
        )
        return counts & quiet & helps

    @independent(
        finish_streaming,
        finish_migration,
        revert_migration,
        of=(Tablet, invoked, plan_leaving, plan_pending, outdated, draining, request_pending),
    )
    def tablets_advance_independently(self) -> None:
        """001: "Tablets are migrated in parallel and independently": one that has streamed, or could not be, is held in
        no stage by others, nor by what is planned; 001's change: new ones start "as soon as tablets finish streaming".
        """

    @independent(
        begin_topology_change,
        end_topology_change,
        of=(Tablet, invoked, plan_leaving, plan_pending, outdated, draining),
    )
    def topology_changes_wait_for_no_plan(self) -> None:
        """001: with a pending request "the load balancer will not be invoked", which is to "allow pending topology
        operation to start": once the track is left, it waits for nothing that the balancer does, or has still to
        look for.
        """

    @independent(persist_plan, retry, of=(stage, leaving, pending, replicas, draining, track))
    def plans_wait_for_no_migration(self) -> None:
        """001: the balancer is invoked "on transition of tablet stages, and also continuously as long as it generates new
        migrations": a plan begins, or is made again, whatever still streams, or is being cleaned up.
        """

    @invariant
    def the_cluster_is_saturated(
        self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]
    ) -> Bool:
        """001: the track "starts new migrations to keep the cluster saturated with streaming"; the load
        balancer is invoked "continuously as long as it generates new migrations". Where it has stopped
        looking, every migration that helps would overload a shard.
        """
        wanted = self._helps(t, leaving, pending) & self._is_free(t, leaving, pending)
        return self.invoked | self._is_silent() | ~wanted

    @invariant
    def transitions_happen_in_their_track(self, t: Term[Tablet]) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is guaranteed
        that there are no tablet transitions in the system."
        """
        return (self.stage[t] != Stage.none).implies(self.track == Track.tablet_migration)

    @invariant
    def shards_are_not_overloaded(self, s: Term[Shard]) -> Bool:
        """001's change: the algorithm "tracks streaming concurrency on both source and target shards of
        active migrations and takes concurrency limit into account when producing new migrations".
        """
        reads = count(self._streams(t) & (self.leaving[t] == s) for t in Tablet)
        writes = count(self._streams(t) & (self.pending[t] == s) for t in Tablet)
        return (reads <= MOST_READS) & (writes <= MOST_WRITES)

    @invariant
    def replicas_are_on_different_nodes(self, r: Term[Shard], s: Term[Shard]) -> Bool:
        """Two replicas of a tablet are never on one node, neither before nor after its migration."""
        apart = (r == s) | (self.node[r] != self.node[s])
        together = some(
            (self.replicas[t].has(r) & self.replicas[t].has(s))
            | (self.replicas[t].has(r) & (self.leaving[t] != r) & (self.pending[t] == s))
            for t in Tablet
        )
        return together.implies(apart)

    @invariant
    def a_migration_has_two_shards(self, t: Term[Tablet]) -> Bool:
        """A tablet in transition has a replica that leaves and one that is pending; one at rest has none."""
        moves = self.stage[t] != Stage.none
        return (self.leaving[t].is_some() == moves) & (self.pending[t].is_some() == moves)

    @step_property
    def a_tablet_has_one_transition_at_a_time(self, after: Self, t: Term[Tablet]) -> Bool:
        """A migration goes on to its end; no other one of its tablet starts before. 001, stage 4: whether the new replicas
        have what they need is known when the tablet has streamed, and no coordinator finds it otherwise later.
        """
        moves = (self.stage[t] != Stage.none) & (after.stage[t] != Stage.none)
        same = (after.leaving[t] == self.leaving[t]) & (after.pending[t] == self.pending[t])
        decided = self._streams(t) | (self.stage[t] == after.stage[t])
        return moves.implies(same & decided)

    @step_property
    def a_migration_moves_one_replica(self, after: Self, t: Term[Tablet], s: Term[Shard]) -> Bool:
        """A tablet has as many replicas as before: where its migration ends, and is not undone, the pending
        one in the place of the leaving one.
        """
        changed = self.replicas[t].has(s) != after.replicas[t].has(s)
        moved = (self.stage[t] == Stage.write_both_read_new) & (after.stage[t] == Stage.none)
        of_it = (self.leaving[t] == s) | (self.pending[t] == s)
        as_many = self.replicas[t].size() == after.replicas[t].size()
        return as_many & changed.implies(moved & of_it)

    @step_property
    def nothing_starts_while_a_request_is_pending(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: with a pending request the load balancer is silent, "to allow for current migrations to
        drain, after which ... pending topology operation [is allowed] to start".
        """
        starts = (self.stage[t] == Stage.none) & (after.stage[t] != Stage.none)
        return starts.implies(~self.request_pending & (self.track != Track.topology_change))

    @step_property
    def migrations_are_undone_for_themselves(
        self, after: Self, t: Term[Tablet], other: Term[Tablet]
    ) -> Bool:
        """001: "Tablets are migrated in parallel and independently", and a request is to "allow for current migrations to
        drain": one is undone when it has failed itself, and not for a request, for another coordinator, or with others.
        """
        undone = self._streams(t) & (after.stage[t] == Stage.cleanup_target)
        others = (t == other) | (self.stage[other] == after.stage[other])
        asked = (self.request_pending != after.request_pending) | (self.draining != after.draining)
        return undone.implies(others & ~asked & (self.track == after.track))

    @step_property
    def requests_are_pending_until_they_are_taken_up(self, after: Self) -> Bool:
        """001: a pending operation is "to start" when migrations have drained: no request goes in another way, nor
        with the change before it.
        """
        begins = (self.track != Track.topology_change) & (after.track == Track.topology_change)
        return (self.request_pending & ~after.request_pending).implies(begins)

    @sometimes(at={Tablet: 2, disturbances: 2})
    def requests_wait_for_the_change_before_them(self) -> Bool:
        """001: "a pending topology change request" is pending while another change goes on, too, which is not its own."""
        return self.request_pending & (self.track == Track.topology_change)

    @accepts(request_topology_change)
    def topology_changes_are_requested_while_tablets_move(self) -> Bool:
        """001: node operations "will have to wait for tablet migration track to finish": they are there meanwhile, for it is
        "a pending topology change request" that lets migrations drain.
        """
        return ~self.request_pending & (self.track != Track.topology_change)

    @accepts(drain)
    def nodes_are_drained_while_tablets_move(self, n: Term[Node]) -> Bool:
        """001: "Tablets are migrated in parallel and independently": those of a node that is to leave wait for none that
        moves already. (Here they have one replica each, so that any other node will do.)
        """
        moves = some(self.stage[t] != Stage.none for t in Tablet)
        single = every(self.replicas[t].size() == 1 for t in Tablet)
        stays = some((self.node[s] != n) & ~self._is_to_leave(s) for s in Shard)
        return moves & single & stays & ~self.request_pending

    def _is_to_leave(self, s: Term[Shard]) -> Bool:
        return some(self.draining.has(m) & (self.node[s] == m) for m in Node)

    @step_property
    def topology_changes_are_not_overtaken(self, after: Self) -> Bool:
        """001: the tablet migration track "excludes with other topology changes"."""
        goes_on = after.track.any_of(Track.topology_change, Track.idle)
        return (self.track == Track.topology_change).implies(goes_on)

    @step_property
    def migrations_do_not_overshoot(
        self, after: Self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]
    ) -> Bool:
        """001's change: active migrations are treated "as if they were already completed": a plan does not
        leave the shard that it takes from with less than the one that it gives to.
        """
        starts = (self.stage[t] == Stage.none) & (after.stage[t] != Stage.none)
        moved = starts & (after.leaving[t] == leaving) & (after.pending[t] == pending)
        drains = some(self.node[leaving] == n for n in self.draining)
        return moved.implies(drains | (after._outcome(pending) <= after._outcome(leaving)))

    @step_property
    def nodes_that_are_to_leave_do_not_stay(self, after: Self) -> Bool:
        """001: from `decommissioning` a node goes to `left`: neither another coordinator, nor a change of the topology, nor that
        it is empty makes it one that gets tablets again.
        """
        return self.draining <= after.draining

    @step_property
    def nodes_that_are_to_leave_get_no_tablets(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: the plans "when executed with active migrations will produce the desired result": none takes to a node what has
        to leave it again, nor one that was made before that node was to leave.
        """
        starts = (self.stage[t] == Stage.none) & (after.stage[t] != Stage.none)
        there = some((after.pending[t] == s) & self._is_to_leave(s) for s in Shard)
        return starts.implies(~there)

    @lemma
    def a_plan_is_of_tablets_at_rest(self, t: Term[Tablet], s: Term[Shard]) -> Bool:
        """What moves, or is to, goes from a shard that has it to one that has not."""
        planned = self.plan_pending[t].is_some()
        both = (self.plan_leaving[t].is_some() == planned) & (
            planned.implies(self.stage[t] == Stage.none)
        )
        goes = (self.leaving[t] == s) | (self.plan_leaving[t] == s)
        comes = (self.pending[t] == s) | (self.plan_pending[t] == s)
        there = goes.implies(self.replicas[t].has(s)) & comes.implies(~self.replicas[t].has(s))
        return both & there

    @lemma
    def a_plan_leaves_room(self, s: Term[Shard]) -> Bool:
        """With what is planned the limits hold, too."""
        reads = self._reads(s) + count(self.plan_leaving[t] == s for t in Tablet)
        writes = self._writes(s) + count(self.plan_pending[t] == s for t in Tablet)
        return (reads <= MOST_READS) & (writes <= MOST_WRITES)

    @lemma
    def a_plan_that_counts_is_allowed(self) -> Bool:
        """Nobody plans who is not invoked, and no plan outlives what was committed after it."""
        empty = self._plan_is_empty()
        changes = self.request_pending | (self.track == Track.topology_change)
        only_invoked = (self.invoked | empty) & ~(empty & self.outdated)
        return only_invoked & (empty | self.outdated | ~changes)

    @lemma
    def a_plan_does_not_overshoot(self, t: Term[Tablet], r: Term[Shard], s: Term[Shard]) -> Bool:
        """Each migration of a plan that counts improves the balance, all taken together."""
        planned = (self.plan_leaving[t] == r) & (self.plan_pending[t] == s) & ~self.outdated
        return planned.implies(self._drains(r) | (self._outcome(s) <= self._outcome(r)))

    @liveness
    def balance_is_reached(self) -> LeadsTo:
        """001's change: the plans "when executed with active migrations will produce the desired result". Also
        when one of them is undone: then no migration is left that would help.
        """
        at_rest = every(self.stage[t] == Stage.none for t in Tablet) & self._plan_is_empty()
        helps = some(
            self._helps(t, leaving, pending)
            for t in Tablet
            for leaving in Shard
            for pending in Shard
        )
        return leads_to(~at_rest | helps, at_rest & ~helps)

    @liveness
    def draining_nodes_become_empty(self, n: Term[Node]) -> LeadsTo:
        """All tablets of a node that is to leave have moved before it does."""
        stores = some(
            (self.node[s] == n) & some(self.replicas[t].has(s) for t in Tablet) for s in Shard
        )
        return leads_to(self.draining.has(n), ~stores)

    @liveness
    def topology_changes_happen(self) -> LeadsTo:
        """001: node operations "have to wait for tablet migration track to finish", not for ever; then they
        "take over the state machine".
        """
        return leads_to(self.request_pending, self.track == Track.topology_change)

    @liveness
    def tracks_are_left(self) -> LeadsTo:
        """001: the state machine "will exit the tablet migration track"; a topology change ends too."""
        return leads_to(self.track != Track.idle, self.track == Track.idle)

    @final
    def balanced(self) -> Bool:
        """A cluster in balance may stay as it is."""
        return (self.track == Track.idle) & ~self.invoked & ~self.request_pending

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(
            _may_leave,
            "each replica of a tablet has a node among those that stay",
            because="all tablets of a table have as many replicas",
        ),
        equivalent_drop(
            plan_migration,
            "it is invoked",
            because="where it is not invoked there is nothing to plan",
        ),
        equivalent_drop(
            plan_migration,
            "nothing was committed since the plan was begun",
            because="a plan that has been overtaken is refused",
        ),
        equivalent_weakening(
            plan_migration,
            "the tablet is at rest, and the replica may go there",
            because="where the plan has a tablet already, to move it again brings nothing",
        ),
        equivalent_drop(find_nothing, "it is invoked", because="otherwise nothing happens"),
        equivalent_replacement(
            find_nothing,
            "no migration improves the balance: 2 for 1",
            because="the balancer goes on looking, in vain, until a shard has streamed what it may",
        ),
        equivalent_drop(
            leave_track,
            "no plan is being made, or none is allowed",
            because="the track is entered again if there is something to do",
        ),
        equivalent_loss(
            fail_over, invoked, because="where its predecessor found nothing, there is nothing"
        ),
        equivalent_loss(
            _commit,
            outdated,
            because="what neither asks for something nor is undone makes no plan wrong",
        ),
    )
