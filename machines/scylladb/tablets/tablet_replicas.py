"""Changes of a tablet's replicas under quorum writes and reads: no acknowledged write is lost.

With a replication factor above one a write that a quorum acknowledged need not be on all replicas. Replicas are
added, removed (an `ALTER KEYSPACE` that changes the factor) and moved; a repair before the streaming
(`rebuild_v2`) makes sure that what is removed, or not streamed from, is not the last to have a write.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.tablets.tablet_replica_stages import BEFORE, Replicas, Stage
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
    NumberVar,
    OneVar,
    Record,
    SetOf,
    SetVar,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalent_value,
    equivalent_weakening,
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
    leads_to,
    liveness,
    number,
    one_of,
    per,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
CLIENT = Actor("client")
NETWORK = Actor("network")
LAST_VALUE = 2


class Node(Entity, scope=3):
    """A node that may have a replica of the tablet."""


class Client(Entity, scope=1):
    """A node that coordinates requests for the tablet, one at a time."""


class View(Record):
    """What a coordinator of requests has learned of the tablet."""

    stage = one_of(Stage, init=Stage.none)
    replicas = set_of(Node, init=ANY)
    next = set_of(Node, init=ANY)


class Write(Record):
    """A write on its way."""

    value = number(0, LAST_VALUE)  # 0: none
    stage = one_of(Stage, init=Stage.none)  # that it began under, as its version
    targets = set_of(Node)
    stored = set_of(Node)
    needed = number(0, 4)  # replicas that must store it before it is acknowledged


class TabletReplicas(Machine):
    """One tablet whose replicas change, one at a time, while quorums write and read."""

    writes = budget(1, doc="writes that clients send")
    removals = budget(2, doc="replicas that are removed")
    additions = budget(1, doc="replicas that are added")
    moves = budget(1, doc="replicas that are moved")
    failures = fault_budget(1, doc="transitions that are undone")

    exercised_at = scopes(
        {writes: 0, Node: 3},
        {writes: 3, removals: 0, additions: 0, moves: 0, failures: 0, Node: 2},
        {removals: 1, moves: 0, Node: 2},
        {removals: 0, additions: 0, Node: 2},
        {removals: 0, additions: 0, Client: 2, Node: 2},
        {writes: 2, removals: 0, additions: 0, failures: 0, Client: 2, Node: 2},
        {removals: 1, additions: 0, failures: 0},
        {removals: 0, additions: 0, failures: 0, Node: 4},
        {removals: 0, moves: 0, failures: 0, Node: 4},
        {additions: 0, moves: 0, failures: 0},
        {removals: 0, additions: 0, moves: 2, failures: 2, Client: 1, Node: 2},
    )

    # committed to group0
    stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    replicas: SetVar[Node] = set_of(Node, init=ANY)
    next: SetVar[Node] = set_of(Node, init=ANY)  # the same at rest
    # the topology coordinator
    operated: FlagVar = flag()  # the stage's action is done
    # the nodes
    view = per(Client, record(View))
    write = per(Client, record(Write))
    data = per(Node, number(0, LAST_VALUE))  # the newest value that a replica stores
    written: NumberVar = number(0, LAST_VALUE)
    acknowledged: NumberVar = number(0, LAST_VALUE)
    # for stage 4: the newest value that a pending replica is to have
    owed: NumberVar = history(number(0, LAST_VALUE))

    @initially
    def at_rest_and_known(self) -> Bool:
        """The tablet starts at rest; who coordinates requests knows its replicas."""
        known = every(
            (self.view[c].replicas == self.replicas) & (self.view[c].next == self.replicas)
            for c in Client
        )
        return (self.next == self.replicas) & ~self.replicas.is_empty() & known

    # -- changes ---------------------------------------------------------------------------------------

    @stage.step(Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR, spends=removals)
    def remove_replica(self, leaving: Term[Node]) -> None:
        """The replication factor falls by one."""
        require(self.replicas.has(leaving), "the node is a replica")
        require(self.replicas.size() > 1, "it is not the last one")
        self._barrier()
        self.next.discard(leaving)

    @stage.step(Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR, spends=additions)
    def add_replica(self, pending: Term[Node]) -> None:
        """The replication factor rises by one."""
        require(~self.replicas.has(pending), "the node is no replica")
        self._barrier()
        self.next.add(pending)

    @stage.step(Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR, spends=moves)
    def move_replica(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer moves a replica."""
        require(self.replicas.has(leaving), "the leaving node is a replica")
        require(~self.replicas.has(pending), "the pending node is no replica")
        self._barrier()
        for n in Node:
            self.next.put(n, (self.next.has(n) & (n != leaving)) | (n == pending))

    @stage.step(
        Stage.allow_write_both_read_old, Stage.write_both_read_old, by=COORDINATOR, fair=WEAK
    )
    def write_both(self) -> None:
        """Everybody knows of the transition: write to both sets."""
        self._barrier()

    @stage.step(Stage.write_both_read_old, Stage.rebuild_repair, by=COORDINATOR, fair=WEAK)
    def begin_rebuild_repair(self) -> None:
        """A replica is added or removed: those to be read from are repaired first."""
        require(self._repairs_first(), "the change repairs first")
        self._barrier()

    @stage.step(Stage.write_both_read_old, Stage.streaming, by=COORDINATOR, fair=WEAK)
    def begin_streaming(self) -> None:
        """A replica is moved: it is streamed as it is."""
        require(~self._repairs_first(), "the change does not repair first")
        self._barrier()
        self.owed = greatest((self.data[r] for r in self._leaving()), default=self.acknowledged)

    @stage.step(Stage.rebuild_repair, Stage.streaming, by=COORDINATOR, fair=WEAK)
    def stream_after_repair(self) -> None:
        """The replicas agree: stream, if there is a pending one."""
        require(self.operated, "repair done")
        self.operated = False
        self.owed = self.acknowledged

    @stage.step(Stage.streaming, Stage.write_both_read_new, by=COORDINATOR, fair=WEAK)
    def read_new(self) -> None:
        """The pending replica, if any, has what it needs: read from the new set."""
        require(self.operated | self._pending().is_empty(), "streaming done, or nothing to stream")
        self.operated = False

    @stage.step(Stage.write_both_read_new, Stage.use_new, by=COORDINATOR, fair=WEAK)
    def use_new(self) -> None:
        """No read uses the old set any more: write to the new one alone."""
        self._barrier()

    @stage.step(Stage.use_new, Stage.cleanup, by=COORDINATOR, fair=WEAK)
    def begin_cleanup(self) -> None:
        """No write reaches the leaving replica any more: clean it up."""
        self._barrier()

    @stage.step(Stage.cleanup, Stage.end_migration, by=COORDINATOR, fair=WEAK)
    def end(self) -> None:
        """The leaving replica, if any, is clean."""
        require(self.operated | self._leaving().is_empty(), "cleanup done, or nobody leaves")
        self.operated = False

    @stage.step(Stage.end_migration, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish(self) -> None:
        """The new replicas are the replicas."""
        self._barrier()
        self.replicas = self.next

    @stage.step(
        (Stage.rebuild_repair, Stage.streaming),
        Stage.cleanup_target,
        by=COORDINATOR,
        spends=failures,
    )
    def give_up_streaming(self) -> None:
        """The action failed for good: undo."""
        require(~self.operated, "the action is not done")

    @stage.step(Stage.cleanup_target, Stage.revert_migration, by=COORDINATOR, fair=WEAK)
    def revert(self) -> None:
        """The pending replica, if any, is clean."""
        require(self.operated | self._pending().is_empty(), "cleanup done, or nobody is pending")
        self._barrier()
        self.operated = False

    @stage.step(Stage.revert_migration, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish_revert(self) -> None:
        """The old replicas stay the replicas."""
        self._barrier()
        self.next = self.replicas

    # -- actions of the stages -------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def repair(self) -> None:
        """Each replica to be read from gets the newest value that one of them has."""
        require(self.stage == Stage.rebuild_repair, "stage is rebuild_repair")
        newest = greatest((self.data[r] for r in self.replicas), default=0)
        for n in Node:
            self.data[n] = choose(self.replicas.has(n), newest, self.data[n])
        self.operated = True

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], pending: Term[Node]) -> None:
        """The pending replica copies the leaving one; after a repair, any of them."""
        require(self.stage == Stage.streaming, "stage is streaming")
        require(self._pending().has(pending), "the node is pending")
        require(self.replicas.has(source), "the source is a replica")
        own_source = self._leaving().is_empty() | self._leaving().has(source)
        require(own_source, "a replica that is moved is its own source")
        self.data[pending] = greatest(self.data[pending], self._rows_to_stream(source))
        self.operated = True

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, n: Term[Node]) -> None:
        """The replica that leaves, or that is not to come, removes its rows."""
        leaves = (self.stage == Stage.cleanup) & self._leaving().has(n)
        reverts = (self.stage == Stage.cleanup_target) & self._pending().has(n)
        require(leaves | reverts, "the node's replica is to be cleaned up")
        require(~reverts | self._has_drained(), "barrier done before the target is cleaned up")
        self.data[n] = 0
        self.operated = True

    # -- requests --------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, c: Term[Client]) -> None:
        """A coordinator of requests learns what is committed."""
        require(self.view[c].stage != self.stage, "it is behind")
        self.view[c].stage = self.stage
        self.view[c].replicas = self.replicas
        self.view[c].next = self.next

    @action(by=CLIENT, spends=writes)
    def begin_write(self, c: Term[Client]) -> None:
        """A client writes: a quorum of the replicas must store it, and each pending replica adds one."""
        require(self.write[c].value == 0, "the coordinator is free")
        bounded(self.written < LAST_VALUE, "a value is left")
        view, write = self.view[c], self.write[c]
        targets = self._chosen(view, view.stage.column(lambda stage: stage.writes))
        write.stage = view.stage
        write.needed = self._needed(view, targets)
        write.value = self.written + 1
        write.targets = targets
        self.written = self.written + 1

    @action(fair=WEAK)
    def store(self, c: Term[Client], r: Term[Node]) -> None:
        """A replica stores the write."""
        write = self.write[c]
        require(write.targets.has(r), "the write is sent to the node")
        self.data[r] = choose(self.data[r] < write.value, write.value, self.data[r])
        write.stored.add(r)

    @action(fair=WEAK)
    def acknowledge(self, c: Term[Client]) -> None:
        """Enough replicas have stored the write: the client is told; to the others it is on its way still."""
        write = self.write[c]
        require(write.stored.size() >= write.needed, "enough replicas have stored it")
        require(self.acknowledged < write.value, "nothing newer is acknowledged")
        self.acknowledged = write.value

    @action(by=NETWORK, fair=WEAK)
    def forget_write(self, c: Term[Client]) -> None:
        """The coordinator waits no longer: all have answered, or the rest is lost."""
        write = self.write[c]
        require(write.value > 0, "a write is on its way")
        write.value = 0
        write.stage = Stage.none
        write.targets = frozenset()
        write.stored = frozenset()
        write.needed = 0

    # -- helpers ---------------------------------------------------------------------------------------

    def _rows_to_stream(self, source: Term[Node]) -> Number:
        return self.data[source]

    def _repairs_first(self) -> Bool:
        """`rebuild_v2`, where a replica is added or removed; a migration has both."""
        return self._leaving().is_empty() | self._pending().is_empty()

    def _barrier(self) -> None:
        require(self._has_drained(), "barrier done")

    def _has_drained(self) -> Bool:
        """Everybody has learned the stage, and nothing older is on its way."""
        return every(
            (self.view[c].stage == self.stage)
            & ((self.write[c].value == 0) | (self.write[c].stage == self.stage))
            for c in Client
        )

    def _leaving(self) -> SetOf[Node]:
        return self.replicas - self.next

    def _pending(self) -> SetOf[Node]:
        return self.next - self.replicas

    def _chosen(self, view: View, which: Term[Replicas]) -> SetOf[Node]:
        """The replica set that a column of the stage's table names."""
        both = choose(which == Replicas.both, view.replicas | view.next, view.next)
        return choose(which == Replicas.previous, view.replicas, both)

    def _needed(self, view: View, targets: SetOf[Node]) -> Number:
        """A quorum of the natural replicas, and one more for a pending one."""
        writes = view.stage.column(lambda stage: stage.writes)
        natural = choose(writes == Replicas.next, view.next, view.replicas)
        return self._quorum(natural) + (targets - natural).size()

    def _quorum(self, replicas: SetOf[Node]) -> Number:
        size = replicas.size()
        return choose(size <= 1, 1, choose(size <= 3, 2, 3))

    # -- promises --------------------------------------------------------------------------------------

    @accepts(begin_write)
    def clients_write_while_replicas_change(self, c: Term[Client]) -> Bool:
        """It takes writes, whatever happens to the replicas, and whatever a coordinator has learned of that."""
        return self.write[c].value == 0

    @accepts(move_replica)
    def replicas_are_moved_while_clients_write(
        self, leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """ScyllaDB's code: only what began under an older version is waited for: under load nothing would ever move else."""
        moves = self.replicas.has(leaving) & ~self.replicas.has(pending)
        return self._rests() & moves

    @accepts(remove_replica)
    def replicas_are_removed_while_clients_write(self, leaving: Term[Node]) -> Bool:
        """The same where the replication factor falls, down to one."""
        return self._rests() & self.replicas.has(leaving) & (self.replicas.size() > 1)

    @accepts(add_replica)
    def replicas_are_added_while_clients_write(self, pending: Term[Node]) -> Bool:
        """The same where it rises, as long as there is another node."""
        return self._rests() & ~self.replicas.has(pending)

    def _rests(self) -> Bool:
        """The tablet is at rest, which everybody knows; the requests on their way began under that."""
        return (self.stage == Stage.none) & every(
            (self.view[c].stage == Stage.none)
            & ((self.write[c].value == 0) | (self.write[c].stage == Stage.none))
            for c in Client
        )

    @accepts(stream)
    def replicas_stream_while_clients_write(self, pending: Term[Node]) -> Bool:
        """001, write_both_read_old: "Writes are going to both new and old replicas": streaming waits for none."""
        return (self.stage == Stage.streaming) & (self.next - self.replicas).has(pending)

    @accepts(repair)
    def replicas_are_repaired_while_clients_write(self) -> Bool:
        """The same where they are repaired first: "both new and old replicas" have what is written meanwhile."""
        return self.stage == Stage.rebuild_repair

    @accepts(clean_up)
    def replicas_are_cleaned_up_while_clients_write(self, n: Term[Node]) -> Bool:
        """001, stage 6: "No write request will reach" the replica that leaves: nobody waits for those to the others."""
        return (self.stage == Stage.cleanup) & self.replicas.has(n) & ~self.next.has(n)

    @sometimes(at={removals: 1, moves: 0, Node: 2})
    def stages_are_left_while_clients_write(self, after: Self, stage: Term[Stage]) -> Bool:
        """001, "Writes are going to both new and old replicas": each stage ends under writes that began in it: its barrier
        waits for those from before it, and no change for a pause.
        """
        leaves = (self.stage == stage) & (after.stage != stage)
        return leaves & some(
            (self.write[c].value > 0) & (self.write[c].stage == stage) for c in Client
        )

    @accepts(give_up_streaming)
    def what_cannot_be_done_is_undone(self) -> Bool:
        """ScyllaDB's code: a rebuild whose repair fails goes to `cleanup_target`, as does one whose streaming fails."""
        return self.stage.any_of(Stage.rebuild_repair, Stage.streaming) & ~self.operated

    @accepts(store)
    def writes_are_stored_while_replicas_change(self, c: Term[Client], r: Term[Node]) -> Bool:
        """001, write_both_read_old: writes go to old and new replicas, and each takes them, whatever happens to it; the last
        of them, too, wherever a write goes first.
        """
        missing = self.write[c].targets - self.write[c].stored
        return missing.has(r) & (missing.size() == 1)

    @accepts(acknowledge)
    def writes_succeed_while_replicas_change(self, c: Term[Client]) -> Bool:
        """001, stage 3, of "a successful request": a write that more of its replicas store than lack is one, in every stage;
        where a pending replica counts besides, at the latest when none lacks it.
        """
        write = self.write[c]
        both = write.stage.column(lambda stage: stage.writes is Replicas.both)
        missing = (write.targets - write.stored).size()
        majority = ~both & (missing < write.stored.size())
        enough = (write.value > 0) & (majority | (missing == 0))
        return enough & (self.acknowledged < write.value)

    @independent(
        learn, stream_after_repair, read_new, end, of=(write, written, acknowledged, Client)
    )
    def no_step_waits_for_clients(self) -> None:
        """001, stage 2, of replicas that "see the transition info": whoever coordinates a write learns of it meanwhile,
        and what is repaired, streamed or cleaned up is so while clients write: barriers wait for what began before
        them, nothing else.
        """

    @step_property
    def writes_go_on_while_replicas_change(self, after: Self, c: Term[Client]) -> Bool:
        """001: "make sure that no reads that started before this point exist", and so of writes: by waiting for them. No stage
        that is committed, or learned by whoever coordinates one, ends a write on its way.
        """
        learns = some(self.view[d] != after.view[d] for d in Client)
        changes = (self.stage != after.stage) | learns
        return changes.implies(self.write[c].value == after.write[c].value)

    @sometimes(at={removals: 0, additions: 0, moves: 0, failures: 0, Node: 2})
    def replicas_answer_that_they_stored(self, after: Self) -> Bool:
        """001, stage 3, "on behalf of a successful request": the answers of replicas are counted, and a client is told."""
        return self.acknowledged < after.acknowledged

    @sometimes(at={writes: 0, removals: 0, additions: 0, failures: 0, Node: 2})
    def replicas_are_moved(self, after: Self) -> Bool:
        """001: "replicas: the old replicas", and "new_replicas: the new replicas": of a migration they are as many, and another
        one is in the place of one.
        """
        ends = (self.stage == Stage.end_migration) & (after.stage == Stage.none)
        as_many = after.replicas.size() == self.replicas.size()
        return ends & as_many & (after.replicas != self.replicas)

    @invariant
    def replicas_store_what_was_written(self, n: Term[Node]) -> Bool:
        """No repair and no stream makes rows up, or newer than a client has written them: they would win over its next write."""
        return self.data[n] <= self.written

    @invariant
    def quorum_reads_see_acknowledged_writes(self, c: Term[Client]) -> Bool:
        """Whatever quorum a coordinator reads from, as its view names the replicas, one of them has every
        write that was acknowledged (SCYLLADB-1418): no majority lacks it.
        """
        view = self.view[c]
        read = self._chosen(view, view.stage.column(lambda stage: stage.reads))
        lacking = count(self.data[r] < self.acknowledged for r in read)
        return lacking * 2 <= read.size()

    @step_property
    def more_than_half_have_what_is_acknowledged(self, after: Self, c: Term[Client]) -> Bool:
        """A quorum is more than half, of the replicas or of those that there are to be."""
        write = self.write[c]
        answered = (write.value > self.acknowledged) & (after.acknowledged == write.value)
        old = (write.stored & self.replicas).size() * 2 > self.replicas.size()
        new = (write.stored & self.next).size() * 2 > self.next.size()
        return answered.implies(old | new)

    @invariant
    def acknowledged_writes_are_kept(self) -> Bool:
        """A write that was acknowledged is on a replica (SCYLLADB-1418: it "is never lost")."""
        kept = some(self.data[r] >= self.acknowledged for r in self.replicas | self.next)
        return (self.acknowledged > 0).implies(kept)

    @invariant
    def writes_reach_both_replica_sets(self, c: Term[Client]) -> Bool:
        """001, stage 3: "All writes that will be stored by any replica in the old or the new set, which are
        executed on behalf of a successful request, will reach CL in both".
        """
        both = (self.replicas | self.next) <= self.write[c].targets
        sent = self.write[c].value > 0
        return (self.stage == Stage.streaming).implies(sent.implies(both))

    @invariant
    def actions_belong_to_their_stage(self) -> Bool:
        """What the coordinator knows of an action is forgotten with the stage that it was for."""
        acts = self.stage.any_of(
            Stage.rebuild_repair, Stage.streaming, Stage.cleanup, Stage.cleanup_target
        )
        return self.operated.implies(acts)

    @step_property
    def what_is_done_stays_done(self, after: Self) -> Bool:
        """001, write_both_read_old: "Writes are going to both new and old replicas": none has the coordinator repair, stream
        or clean up once more, and while clients write a change ends. Nor is one undone whose action has been done.
        """
        undone = (self.stage != Stage.cleanup_target) & (after.stage == Stage.cleanup_target)
        again = ~after.operated & (self.stage == after.stage)
        return self.operated.implies(~again & ~undone)

    @invariant
    def new_replicas_are_complete(self, r: Term[Node]) -> Bool:
        """001, stage 4: "New tablet replicas contain all the writes which reached the matching leaving tablet
        replicas before step 3", acknowledged or not; where none leaves, all that had been acknowledged.
        """
        complete = self.data[r] >= self.owed
        return (self.stage == Stage.write_both_read_new).implies(
            self._pending().has(r).implies(complete)
        )

    @invariant
    def only_replicas_hold_data(self, n: Term[Node]) -> Bool:
        """001, when not in transition: storage "contains writes for keys which belong to the tablet only
        if that shard is one of the current tablet replicas".
        """
        holds = self.data[n] > 0
        return (self.stage == Stage.none).implies(holds.implies(self.replicas.has(n)))

    @invariant
    def nobody_is_behind_the_last_barrier(self, c: Term[Client]) -> Bool:
        """ScyllaDB's code: "skew at most one stage each way", in what a coordinator knows and in what it sent."""
        since = self.stage.column(lambda stage: frozenset({stage, *BEFORE[stage]}))
        sent = (self.write[c].value > 0).implies(since.has(self.write[c].stage))
        return since.has(self.view[c].stage) & sent

    @invariant
    def one_replica_changes_at_a_time(self) -> Bool:
        """A transition adds or removes a replica, or does both; at rest nothing is pending."""
        leaving, pending = self._leaving().size(), self._pending().size()
        changes = (leaving <= 1) & (pending <= 1) & (leaving + pending > 0)
        return choose(self.stage == Stage.none, leaving + pending == 0, changes)

    @step_property
    def what_was_acknowledged_stays_so(self, after: Self) -> Bool:
        """A client that was told of a newer value is not told of an older one later."""
        return self.acknowledged <= after.acknowledged

    @final
    def nothing_is_going_on(self) -> Bool:
        """A tablet at rest may stay as it is."""
        return (self.stage == Stage.none) & every(self.write[c].value == 0 for c in Client)

    @liveness
    def changes_end(self) -> LeadsTo:
        """Every change of the replicas ends."""
        return leads_to(self.stage != Stage.none, self.stage == Stage.none)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_step(
            stage,
            Stage.write_both_read_old,
            Stage.cleanup_target,
            because="a change may be undone before anything is streamed",
        ),
        equivalent_value(Stage.none, lambda stage: stage.writes, because="both sets are one"),
        equivalent_value(Stage.none, lambda stage: stage.reads, because="both sets are one"),
        equivalent_value(
            Stage.allow_write_both_read_old,
            lambda stage: stage.writes,
            Replicas.both,
            because="whether a pending replica is ready for writes is in the machine `tablet`",
        ),
        equivalent_drop(
            move_replica,
            "the leaving node is a replica",
            because="to move what is not there is to add a replica",
        ),
        equivalent_drop(
            begin_rebuild_repair,
            "the change repairs first",
            because="a move may repair first as well",
        ),
        equivalent_replacement(
            begin_streaming,
            "owed becomes: (least of",
            because="one replica leaves, and no other: what it has is the most and the least",
        ),
        equivalent_loss(begin_streaming, owed, because="where less is owed, less is promised"),
        equivalent_loss(stream_after_repair, owed, because="where less is owed, less is promised"),
        equivalent_drop(learn, "it is behind", because="learning again changes nothing"),
        equivalent_replacement(
            begin_write,
            "written becomes: 2 for 1",
            because="a value may be left out: the next one has to be newer, no more",
        ),
        equivalent_weakening(
            acknowledge, "nothing newer is acknowledged", because="to tell a client twice"
        ),
        equivalent_drop(
            forget_write, "a write is on its way", because="there is nothing to forget"
        ),
        equivalent_loss(
            forget_write,
            Write.stage,
            Write.needed,
            because="nobody looks at the rest of a write that is over",
        ),
        equivalent_replacement(
            forget_write,
            "write[c].stage becomes",
            because="nobody looks at the rest of a write that is over",
        ),
        equivalent_replacement(
            forget_write,
            "write[c].needed becomes",
            because="nobody looks at the rest of a write that is over",
        ),
    )
