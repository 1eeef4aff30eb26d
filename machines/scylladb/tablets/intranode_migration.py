"""Intranode migration: a tablet moves between two shards of one node, whose sharder writes to both of them.

To coordinators the replica stays where it is: there is no pending replica, and the node itself
stores each write on the shards that its view of the stage selects. Until it ends, a request on the
node holds the stage under which it began; the barrier of a stage waits for requests of earlier
stages.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    SetVar,
    States,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    per,
    require,
    scopes,
    set_of,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
CLIENT = Actor("client")
LAST_VALUE = 2


class Shard(Enum):
    """The two shards: the one that the tablet leaves, and the one that it moves to."""

    leaving = auto()
    pending = auto()


LEAVING, PENDING = Shard.leaving, Shard.pending


class Stage(States):
    """The stages of the migration, and the shards that the node's sharder chooses in each."""

    # fmt: off
    #                           writes              reads
    none                      = {LEAVING},          LEAVING
    allow_write_both_read_old = {LEAVING},          LEAVING
    write_both_read_old       = {LEAVING, PENDING}, LEAVING
    streaming                 = {LEAVING, PENDING}, LEAVING
    write_both_read_new       = {LEAVING, PENDING}, PENDING
    use_new                   = {PENDING},          PENDING
    cleanup                   = {PENDING},          PENDING
    end_migration             = {PENDING},          PENDING
    moved                     = {PENDING},          PENDING
    cleanup_target            = {LEAVING},          LEAVING
    revert_migration          = {LEAVING},          LEAVING
    # fmt: on

    def __init__(self, writes: set[Shard], reads: Shard) -> None:
        self.writes = writes
        self.reads = reads


BEFORE = {
    Stage.none: {Stage.revert_migration},
    Stage.allow_write_both_read_old: {Stage.none, Stage.revert_migration},
    Stage.write_both_read_old: {Stage.allow_write_both_read_old},
    Stage.streaming: {Stage.write_both_read_old},
    Stage.write_both_read_new: {Stage.write_both_read_old, Stage.streaming},
    Stage.use_new: {Stage.write_both_read_new},
    Stage.cleanup: {Stage.use_new},
    Stage.end_migration: {Stage.use_new, Stage.cleanup},
    Stage.moved: {Stage.end_migration},
    Stage.cleanup_target: {
        Stage.allow_write_both_read_old,
        Stage.write_both_read_old,
        Stage.streaming,
    },
    Stage.revert_migration: {Stage.cleanup_target},
}
"""The stages in which the node may still be when one is committed: those since the last barrier."""


class IntranodeMigration(Machine):
    """One replica on a node, its two shards, and at most one write and one read under way."""

    writes = budget(2, doc="writes that reach the node")
    reads = budget(1, doc="reads that reach the node")
    failures = fault_budget(1, doc="migrations that are undone")

    exercised_at = scopes({reads: 0}, {writes: 1}, {}, {writes: 1, failures: 2})

    stage: OneVar[Stage] = one_of(Stage, init=Stage.none)  # committed to group0
    operated: FlagVar = flag()  # the action of the stage is done
    known: OneVar[Stage] = one_of(Stage, init=Stage.none)  # what the node has learned
    data = per(Shard, number(0, LAST_VALUE))  # the newest value on a shard
    written: NumberVar = number(0, LAST_VALUE)
    acknowledged: NumberVar = number(0, LAST_VALUE)
    # what is under way on the node
    write: NumberVar = number(0, LAST_VALUE)  # the value; 0: no write
    write_stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    stored: SetVar[Shard] = set_of(Shard)  # shards that have it
    reading: FlagVar = flag()
    read_stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    expected: NumberVar = number(
        0, LAST_VALUE
    )  # by the read: the newest value acknowledged before it
    stale_read: FlagVar = flag()

    # -- the topology coordinator ------------------------------------------------------------------------

    @stage.step(
        Stage.none,
        Stage.allow_write_both_read_old,
        by=COORDINATOR,
    )
    def start(self) -> None:
        """The load balancer moves the tablet to another shard."""

    @stage.step(
        Stage.allow_write_both_read_old, Stage.write_both_read_old, by=COORDINATOR, fair=WEAK
    )
    def write_both(self) -> None:
        """The node has learned of the transition: its sharder is to write to both shards."""
        self._barrier()

    @stage.step(Stage.write_both_read_old, Stage.streaming, by=COORDINATOR, fair=WEAK)
    def begin_streaming(self) -> None:
        """Every write reaches both shards from now on: stream what was there before."""
        self._barrier()

    @stage.step(Stage.streaming, Stage.write_both_read_new, by=COORDINATOR, fair=WEAK)
    def read_new(self) -> None:
        """The pending shard contains all writes: read from it, still write to both."""
        self._operation_done()

    @stage.step(Stage.write_both_read_new, Stage.use_new, by=COORDINATOR, fair=WEAK)
    def use_new(self) -> None:
        """No read uses the leaving shard any more: write to the pending one alone."""
        self._barrier()

    @stage.step(Stage.use_new, Stage.cleanup, by=COORDINATOR, fair=WEAK)
    def begin_cleanup(self) -> None:
        """No write reaches the leaving shard any more: clean it up."""
        self._barrier()

    @stage.step(Stage.cleanup, Stage.end_migration, by=COORDINATOR, fair=WEAK)
    def end(self) -> None:
        """The leaving shard is cleaned up."""
        self._operation_done()

    @stage.step(Stage.end_migration, Stage.moved, by=COORDINATOR, fair=WEAK)
    def finish(self) -> None:
        """The pending shard is now the replica; the transition is deleted."""
        self._barrier()

    @stage.step(
        Stage.streaming,
        Stage.cleanup_target,
        by=COORDINATOR,
        spends=failures,
    )
    def give_up_streaming(self) -> None:
        """Streaming failed for good: undo the migration."""
        require(~self.operated, "it is not done")

    @stage.step(Stage.cleanup_target, Stage.revert_migration, by=COORDINATOR, fair=WEAK)
    def revert(self) -> None:
        """The pending shard is cleaned up."""
        self._operation_done()

    @stage.step(Stage.revert_migration, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish_revert(self) -> None:
        """The leaving shard stays the replica; the transition is deleted."""
        self._barrier()

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self) -> None:
        """The pending shard gets the rows of the leaving one."""
        require(self.stage == Stage.streaming, "stage is streaming")
        newer = self.data[PENDING] < self.data[LEAVING]
        self.data[PENDING] = choose(newer, self.data[LEAVING], self.data[PENDING])
        self.operated = True

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, shard: Term[Shard]) -> None:
        """The shard that does not keep the tablet removes its rows."""
        leaves = (self.stage == Stage.cleanup) & (shard == LEAVING)
        reverts = (self.stage == Stage.cleanup_target) & (shard == PENDING)
        require(leaves | reverts, "the shard is to be cleaned up")
        drained = ~reverts | self._has_drained()
        require(drained, "barrier done before the target is cleaned up")
        self.data[shard] = 0
        self.operated = True

    # -- the node ----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self) -> None:
        """The node learns the stage, on all of its shards at once."""
        require(self.known != self.stage, "the node is behind")
        self.known = self.stage

    @action(by=CLIENT, spends=writes)
    def begin_write(self) -> None:
        """A write reaches the node, and holds the stage that the node knows."""
        require(self.write == 0, "no write is under way")
        bounded(self.written < LAST_VALUE, "a value is left")
        self.write = self.written + 1
        self.written = self.written + 1
        self.write_stage = self.known

    @action(fair=WEAK)
    def store(self, shard: Term[Shard]) -> None:
        """A shard that the sharder selects stores the write."""
        targets = self.write_stage.column(lambda stage: stage.writes)
        require(self.write > 0, "a write is under way")
        require(targets.has(shard), "the sharder names the shard")
        newer = self.data[shard] < self.write
        self.data[shard] = choose(newer, self.write, self.data[shard])
        self.stored.add(shard)

    @action(fair=WEAK)
    def acknowledge(self) -> None:
        """All shards that the sharder selects have stored the write: the node answers."""
        require(self.write > 0, "a write is under way")
        missing = self.write_stage.column(lambda stage: stage.writes) - self.stored
        require(missing.is_empty(), "every shard has stored it")
        self.acknowledged = self.write
        self.write = 0
        self.stored = frozenset()
        self.write_stage = Stage.none

    @action(by=CLIENT, spends=reads)
    def begin_read(self) -> None:
        """A read reaches the node, and holds the stage that the node knows."""
        require(~self.reading, "no read is under way")
        self.reading = True
        self.read_stage = self.known
        self.expected = self.acknowledged

    @action(fair=WEAK)
    def answer_read(self, shard: Term[Shard]) -> None:
        """The shard that the sharder selects answers."""
        require(self.reading, "a read is under way")
        named = self.read_stage.column(lambda stage: stage.reads)
        require(named == shard, "the sharder names the shard")
        self.stale_read = self.stale_read | (self.data[shard] < self.expected)
        self.reading = False
        self.read_stage = Stage.none
        self.expected = 0

    # -- helpers -----------------------------------------------------------------------------------------

    def _barrier(self) -> None:
        require(self._has_drained(), "barrier done")

    def _has_drained(self) -> Bool:
        """The node has learned the stage, and no request that began under an earlier one is under way."""
        write = (self.write == 0) | (self.write_stage == self.stage)
        read = ~self.reading | (self.read_stage == self.stage)
        return (self.known == self.stage) & write & read

    def _operation_done(self) -> None:
        require(self.operated, "action done")
        self.operated = False

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(begin_write)
    def writes_are_taken_in_every_stage(self) -> Bool:
        """A migration between two shards locks out no writes."""
        return self.write == 0

    @accepts(begin_read)
    def reads_are_taken_in_every_stage(self) -> Bool:
        """Nor does it lock out reads."""
        return ~self.reading

    @accepts(store)
    def writes_are_stored_in_every_stage(self, shard: Term[Shard]) -> Bool:
        """001, write_both_read_old: "Writes are going to both new and old replicas", also while rows are streamed there. (Which
        shard has them first is the node's own affair.)
        """
        missing = self.write_stage.column(lambda stage: stage.writes) - self.stored
        return (self.write > 0) & missing.has(shard) & (missing.size() == 1)

    @accepts(acknowledge)
    def writes_succeed_in_every_stage(self) -> Bool:
        """001, stage 3, of "a successful request": it is one once each of its shards has stored it."""
        missing = self.write_stage.column(lambda stage: stage.writes) - self.stored
        return (self.write > 0) & missing.is_empty()

    @accepts(answer_read)
    def reads_succeed_in_every_stage(self, shard: Term[Shard]) -> Bool:
        """001, stage 5, of reads "which complete successfully": they do, whatever else their shard is doing. (One whose
        stage is over may be answered by either.)
        """
        named = self.read_stage.column(lambda stage: stage.reads) == shard
        return self.reading & named & (self.read_stage == self.known)

    @sometimes(at={writes: 1})
    def stages_are_left_while_clients_write_and_read(self, after: Self, stage: Term[Stage]) -> Bool:
        """001, "Writes are going to both new and old replicas": each stage ends under requests that began in it: its barrier
        waits for those from before it, and no tablet for a pause. (One that has moved stays where it is.)
        """
        leaves = (self.stage == stage) & (after.stage != stage)
        write = (self.write > 0) & (self.write_stage == stage)
        busy = write & self.reading & (self.read_stage == stage)
        return busy & (leaves | (stage == Stage.moved))

    @accepts(learn)
    def stages_are_learned_while_clients_write(self) -> Bool:
        """001, stage 2: replicas "see the transition info", whatever is under way: requests hold their own stage."""
        return self.known != self.stage

    @accepts(start)
    def tablets_are_moved_while_clients_write(self) -> Bool:
        """001: the load balancer considers tablets in transition and topology requests, not requests of clients."""
        return self.stage == Stage.none

    @accepts(clean_up)
    def rows_are_removed_while_clients_read(self, shard: Term[Shard]) -> Bool:
        """001, stage 6: its precondition is only about requests that reach a replica "which does
        not belong to the new replica set"; those that use the other shard are waited for by the
        barrier of the next stage. Where the migration is undone, only what began before that is waited for.
        """
        moved = (self.stage == Stage.cleanup) & (shard == LEAVING)
        undone = (self.stage == Stage.cleanup_target) & (shard == PENDING)
        write = (self.write == 0) | (self.write_stage == Stage.cleanup_target)
        read = ~self.reading | (self.read_stage == Stage.cleanup_target)
        return moved | (undone & (self.known == self.stage) & write & read)

    @accepts(give_up_streaming)
    def what_cannot_be_streamed_is_undone(self) -> Bool:
        """ScyllaDB's code: a migration whose streaming fails is undone, whatever has reached the
        pending shard by then.
        """
        return (self.stage == Stage.streaming) & ~self.operated

    @independent(
        start,
        read_new,
        end,
        revert,
        give_up_streaming,
        stream,
        learn,
        of=(write, write_stage, stored, written, acknowledged, reading, read_stage, expected),
    )
    def no_step_waits_for_clients(self) -> None:
        """001, write_both_read_old: "Writes are going to both new and old replicas": barriers wait for what began under
        an earlier stage; tablets begin to move, are streamed and are undone, and the node learns of it, whatever is
        under way.
        """

    @step_property
    def requests_go_on_while_stages_change(self, after: Self) -> Bool:
        """001: "make sure that no reads that started before this point exist": by waiting for them. No stage that is committed,
        or learned by the node, ends a request whose client has not been answered.
        """
        changes = (self.stage != after.stage) | (self.known != after.known)
        same = (self.write == after.write) & (self.reading == after.reading)
        return changes.implies(same)

    @lemma
    def writes_reach_both_shards(self) -> Bool:
        """001, stage 3: "All writes that will be stored by any replica in the old or the new set
        ... will reach CL in both"; here they reach both shards of the replica. A lemma:
        `nothing_is_behind_the_last_barrier`, and the stage before writes to both as well.
        """
        both = every(
            self.write_stage.column(lambda stage: stage.writes).has(s) for s in (LEAVING, PENDING)
        )
        return ((self.stage == Stage.streaming) & (self.write > 0)).implies(both)

    @invariant
    def reads_use_the_pending_shard(self) -> Bool:
        """001, stage 5: "All read requests started after this, and which complete successfully, use
        the new replica set".
        """
        used = self.known.column(lambda stage: stage.reads)
        return (self.stage == Stage.use_new).implies(used == PENDING)

    @sometimes(at={writes: 1, failures: 0})
    def reads_succeed_at_the_pending_shard(self, after: Self) -> Bool:
        """001, stage 5: "read requests ... which complete successfully" exist: one finds on the
        pending shard what was written to the leaving one.
        """
        answered = self.reading & ~after.reading & (self.read_stage == Stage.use_new)
        return answered & (self.expected > 0) & (self.data[LEAVING] == self.expected)

    @invariant
    def nothing_is_behind_the_last_barrier(self) -> Bool:
        """ScyllaDB's code: "skew at most one stage each way", both in what the node knows and in what is under way."""
        since = self.stage.column(lambda stage: frozenset({stage, *BEFORE[stage]}))
        write = (self.write > 0).implies(since.has(self.write_stage))
        return since.has(self.known) & write & self.reading.implies(since.has(self.read_stage))

    @invariant
    def the_pending_shard_is_complete(self) -> Bool:
        """001, stage 4: "New tablet replicas contain all the writes which reached the matching
        leaving tablet replicas before step 3".
        """
        complete = self.data[PENDING] >= self.acknowledged
        reads_new = self.stage.any_of(
            Stage.write_both_read_new, Stage.use_new, Stage.cleanup, Stage.end_migration
        )
        return reads_new.implies(complete)

    @lemma
    def nothing_uses_the_leaving_shard_at_last(self) -> Bool:
        """001, stage 6: "No write request will reach tablet replica in the database layer which
        does not belong to the new replica set"; nor does an earlier read still use a shard that is
        cleaned up. A lemma: the stage before uses the new shard alone, and
        `nothing_is_behind_the_last_barrier`.
        """
        write = self.write_stage.column(lambda stage: stage.writes).has(LEAVING)
        read = self.read_stage.column(lambda stage: stage.reads) == LEAVING
        used = ((self.write > 0) & write) | (self.reading & read)
        return self.stage.any_of(Stage.cleanup, Stage.end_migration, Stage.moved).implies(~used)

    @invariant
    def one_shard_holds_the_tablet_at_rest(self) -> Bool:
        """001, when not in transition: the storage layer contains writes of the tablet "only if
        that shard is one of the current tablet replicas".
        """
        ends = self.stage.any_of(Stage.end_migration, Stage.moved)
        reverts = self.stage.any_of(Stage.revert_migration, Stage.none)
        left = ends.implies(self.data[LEAVING] == 0)
        return left & reverts.implies(self.data[PENDING] == 0)

    @invariant
    def reads_see_acknowledged_writes(self) -> Bool:
        """A read returns what was acknowledged before it began, or something newer."""
        return ~self.stale_read

    @invariant
    def actions_belong_to_their_stage(self) -> Bool:
        """The coordinator forgets an action together with the stage that it was for."""
        acts = self.stage.any_of(Stage.streaming, Stage.cleanup, Stage.cleanup_target)
        return self.operated.implies(acts)

    @step_property
    def what_is_done_stays_done(self, after: Self) -> Bool:
        """001, write_both_read_old: "Writes are going to both new and old replicas": what was
        streamed need not be streamed again. The coordinator forgets that an action is done when the
        next stage begins, and not before; and nothing is undone that has been done.
        """
        undone = (self.stage != Stage.cleanup_target) & (after.stage == Stage.cleanup_target)
        again = ~after.operated & (self.stage == after.stage)
        return self.operated.implies(~again & ~undone)

    @lemma
    def the_write_under_way_is_the_newest(self) -> Bool:
        """Writes come one after the other, and a shard keeps the one under way once it has stored it."""
        targets = self.write_stage.column(lambda stage: stage.writes)
        kept = every(
            self.stored.has(s).implies(targets.has(s) & (self.data[s] >= self.write))
            for s in (LEAVING, PENDING)
        )
        newest = (self.write == self.written) & (self.write > self.acknowledged)
        none = self.stored.is_empty() & (self.acknowledged <= self.written)
        return choose(self.write > 0, kept & newest, none)

    @lemma
    def shards_that_are_read_are_complete(self) -> Bool:
        """The shard that is read has every acknowledged write; so does the pending one after streaming."""
        left = self.stage.any_of(Stage.use_new, Stage.cleanup, Stage.end_migration, Stage.moved)
        switched = left | (self.stage == Stage.write_both_read_new)
        streamed = (self.stage == Stage.streaming) & self.operated
        leaving = left | (self.data[LEAVING] >= self.acknowledged)
        pending = (switched | streamed).implies(self.data[PENDING] >= self.acknowledged)
        return leaving & pending & (self.expected <= self.acknowledged)

    @lemma
    def what_was_cleaned_up_stays_clean(self) -> Bool:
        """Nothing is written to a shard that was cleaned up."""
        moved = self.operated & (self.stage == Stage.cleanup)
        reverted = self.operated & (self.stage == Stage.cleanup_target)
        clean = reverted.implies((self.data[PENDING] == 0) & self._has_drained())
        return moved.implies(self.data[LEAVING] == 0) & clean

    @final
    def at_rest(self) -> Bool:
        """A tablet on one shard may stay there."""
        return self.stage.any_of(Stage.none, Stage.moved) & (self.write == 0) & ~self.reading

    @liveness
    def the_migration_ends(self) -> LeadsTo:
        """The migration ends, completed or undone."""
        over = self.stage.any_of(Stage.none, Stage.moved)
        return leads_to(~over, over)

    @liveness
    def what_is_undone_stays_where_it_was(self) -> LeadsTo:
        """ScyllaDB's code: once the pending shard is cleaned up the transition is deleted; only the
        load balancer may try again.
        """
        undone = self.stage.any_of(Stage.cleanup_target, Stage.revert_migration)
        return leads_to(undone, self.stage == Stage.none)

    @liveness
    def writes_are_acknowledged(self) -> LeadsTo:
        """Every write that reaches the node is acknowledged: no shard that it needs is left out."""
        return leads_to(self.write > 0, self.write == 0)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_step(
            stage,
            Stage.write_both_read_old,
            Stage.cleanup_target,
            because="a migration may be undone before anything is streamed",
        ),
        equivalent_drop(learn, "the node is behind", because="learning again changes nothing"),
        equivalent_loss(store, data, because="writes reach the node one after the other"),
        equivalent_drop(acknowledge, "a write is under way", because="there is nothing to answer"),
        equivalent_loss(
            acknowledge, write_stage, because="nobody looks at the stage of a write that is over"
        ),
        equivalent_replacement(
            acknowledge,
            "write_stage becomes",
            because="nobody looks at the stage of a write that is over",
        ),
        equivalent_drop(
            begin_read,
            "no read is under way",
            because="a read that begins again replaces the one before",
        ),
        equivalent_drop(
            answer_read, "a read is under way", because="without a read there is nothing to answer"
        ),
        equivalent_loss(answer_read, stale_read, because="it only records what must not happen"),
        equivalent_loss(
            answer_read, read_stage, expected, because="nobody looks at a read that is over"
        ),
        equivalent_replacement(
            answer_read, "read_stage becomes", because="nobody looks at a read that is over"
        ),
    )
