"""Writes to the sys catalog by threads of masters: the leader's term, and the version that a thread has seen.

A thread looks at the catalog, works for a while, and writes. Meanwhile another thread may have written, or
another master may have become the leader: a write is refused if the term is over, or if the table's version is
not the one that was seen.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    progress_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    Record,
    Term,
    accepts,
    action,
    always_reachable,
    bounded,
    budget,
    equivalent_drop,
    equivalent_helper,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    fault_budget,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    per,
    record,
    require,
    scopes,
    some,
    step_property,
)

TABLET = Actor("tablet leader")
ROWS = 2  # of the one tablet; a chunk is one row
TERMS = 2  # as many changes of the leader
VERSIONS = 7  # as many writes of a permission
REMOVING = Permission.write_and_delete_while_removing


class Thread(Entity, scope=2):
    """A thread of a master, started by a tablet's report or by an answer to a chunk."""


class Intent(Enum):
    """What a thread is going to write."""

    none = auto()
    next_permission = auto()  # the tablet has reported the table's version
    checkpoint = auto()  # the tablet has answered a chunk
    publish = auto()  # the tablet is done
    failure = auto()  # the tablet has not answered, however often it was asked


class Work(Record):
    """What a thread has seen when it began, and what it is going to write."""

    intent = one_of(Intent, init=Intent.none)
    term = number(0, TERMS)
    version = number(0, VERSIONS)
    row = number(0, ROWS)


class BackfillLeaders(Machine):
    """One index of one tablet, and threads of the masters that see it through its permissions."""

    failovers = fault_budget(TERMS, doc="changes of the master leader")
    drops = budget(1, doc="DROP INDEX")
    failures = fault_budget(1, doc="tablets that do not answer")

    exercised_at = scopes({}, {drops: 0, failures: 2})

    # in the sys catalog
    term: NumberVar = number(0, TERMS)  # of the leader; Raft refuses writes of earlier ones
    version: NumberVar = number(0, VERSIONS)
    permission: OneVar[Permission] = one_of(Permission, init=Permission.delete_only)
    checkpoint: NumberVar = number(0, ROWS)  # `backfilled_until`
    # the masters and the tablet
    work = per(Thread, record(Work))
    known: OneVar[Permission] = one_of(Permission, init=Permission.absent)
    unanswered: FlagVar = flag()  # the tablet does not answer the leader
    # what befell the index
    dropped: FlagVar = flag()
    failed: FlagVar = flag()

    # -- what happens around -------------------------------------------------------------------------------------

    @action(by=TABLET, fair=WEAK)
    def apply_version(self) -> None:
        """The tablet applies the version of the table."""
        require(self.known != self.permission, "tablet is behind")
        self.known = self.permission

    @action(by=CLIENT, spends=drops)
    def drop_index(self) -> None:
        """DROP INDEX takes effect at once, whatever the threads are about to write."""
        require(~self._is_removed(), "index is not being removed yet")
        self.dropped = True
        self.permission = REMOVING
        self.version = self.version + 1

    @action(spends=failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader; the threads of the old one do not know it yet."""
        bounded(self.term < TERMS, "a term is left")
        self.term = self.term + 1
        self.unanswered = False

    @action(by=TABLET, spends=failures)
    def stop_answering(self) -> None:
        """The tablet no longer answers its leader's requests."""
        require(self.permission == Permission.do_backfill, "index is being backfilled")
        self.unanswered = True

    # -- threads begin -------------------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def hear_report(self, th: Term[Thread]) -> None:
        """A tablet reports its version of the table; several reports may be handled at a time."""
        moves = ~self.permission.any_of(
            Permission.do_backfill, Permission.read_write_and_delete, Permission.absent
        )
        require(moves, "a report moves the index on")
        require(self.known == self.permission, "every tablet has the version")
        self._begin(th, Intent.next_permission)

    @action(by=MASTER, fair=WEAK)
    def hear_answer(self, th: Term[Thread]) -> None:
        """The tablet has answered a chunk, which began at the checkpoint."""
        require(self.permission == Permission.do_backfill, "index is being backfilled")
        require(self.known == Permission.do_backfill, "tablet is ready")
        require(~self.unanswered, "tablet answers")
        require(self.checkpoint < ROWS, "tablet is not done")
        self._no_answer_is_heard()
        self._begin(th, Intent.checkpoint)
        self.work[th].row = self.checkpoint + 1

    @action(by=MASTER, fair=WEAK)
    def find_done(self, th: Term[Thread]) -> None:
        """J4: the tablet is done."""
        require(self.permission == Permission.do_backfill, "index is being backfilled")
        require(self.checkpoint == ROWS, "tablet is done")
        self._begin(th, Intent.publish)

    @action(by=MASTER, fair=WEAK)
    def find_failed(self, th: Term[Thread]) -> None:
        """The tablet was asked as often as is allowed, and has not answered."""
        require(self.permission == Permission.do_backfill, "index is being backfilled")
        require(self.unanswered, "tablet does not answer")
        self._may_give_up()
        self._begin(th, Intent.failure)

    # -- threads write -------------------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self, th: Term[Thread]) -> None:
        """LaunchNextTableInfoVersionIfNecessary: unless "somebody launched the next version before"."""
        require(self.work[th].intent == Intent.next_permission, "thread has heard a report")
        self._leads(th)
        self._has_seen_the_version(th)
        self.permission = self.permission.column(lambda p: p.following)
        self.version = self.version + 1
        self._end(th)

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, th: Term[Thread]) -> None:
        """J3: the tablet's checkpoint is stored, whatever the table's version is."""
        require(self.work[th].intent == Intent.checkpoint, "thread has heard an answer")
        self._leads(th)
        self.checkpoint = self.work[th].row
        self._end(th)

    @action(by=MASTER, fair=WEAK)
    def publish(self, th: Term[Thread]) -> None:
        """J6: the index is built."""
        require(self.work[th].intent == Intent.publish, "thread has found the tablet done")
        self._leads(th)
        self._has_seen_the_version(th)
        self.permission = Permission.read_write_and_delete
        self.version = self.version + 1
        self._end(th)

    @action(by=MASTER, fair=WEAK)
    def record_failure(self, th: Term[Thread]) -> None:
        """J6: the index has failed."""
        require(self.work[th].intent == Intent.failure, "thread has given up")
        self._leads(th)
        self._has_seen_the_version(th)
        self.permission = REMOVING
        self.version = self.version + 1
        self.failed = True
        self._end(th)

    @action(by=MASTER, fair=WEAK)
    def be_refused(self, th: Term[Thread]) -> None:
        """The term is over, or the version has changed: the thread ends, and the present leader looks again."""
        require(self.work[th].intent != Intent.none, "thread is going to write")
        versioned = self.work[th].intent != Intent.checkpoint
        other = (self.work[th].version != self.version) & versioned
        require((self.work[th].term != self.term) | other, "its write is refused")
        self._end(th)

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _begin(self, th: Term[Thread], intent: Intent) -> None:
        require(self.work[th].intent == Intent.none, "thread is free")
        self.work[th].intent = intent
        self.work[th].term = self.term
        if intent is not Intent.checkpoint:
            self.work[th].version = self.version

    def _no_answer_is_heard(self) -> None:
        busy = some(
            (self.work[other].intent == Intent.checkpoint) & (self.work[other].term == self.term)
            for other in Thread
        )
        require(~busy, "the leader asks for one chunk at a time")

    def _may_give_up(self) -> None:
        """A chunk is asked for, and nobody is about to write how far the one before came."""
        require(self.checkpoint < ROWS, "tablet is not done")
        self._no_answer_is_heard()

    def _leads(self, th: Term[Thread]) -> None:
        require(self.work[th].term == self.term, "the thread's master is the leader")

    def _has_seen_the_version(self, th: Term[Thread]) -> None:
        require(self.work[th].version == self.version, "the table's version is the expected one")

    def _end(self, th: Term[Thread]) -> None:
        self.work[th].intent = Intent.none
        self.work[th].term = 0
        self.work[th].version = 0
        self.work[th].row = 0

    def _is_removed(self) -> Bool:
        later = [REMOVING, Permission.delete_only_while_removing, Permission.index_unused]
        return self.permission.any_of(*later, Permission.absent)

    # -- promises ----------------------------------------------------------------------------------------------------

    @accepts(find_done)
    def threads_of_earlier_leaders_hold_up_nobody(self, th: Term[Thread]) -> Bool:
        """002, "Finalize the index": "Once the index build is successfully completed" a thread that is free sees to it, whatever
        others are about to write.
        """
        completed = (self.permission == Permission.do_backfill) & (self.checkpoint == ROWS)
        return completed & (self.work[th].intent == Intent.none)

    @accepts(hear_report)
    def reports_are_heard_at_any_time(self, th: Term[Thread]) -> Bool:
        """002, "Create the index table": "Once all the schema changes are propagated", a thread that is free hears so, whatever
        others are about to write.
        """
        moves = self.permission.any_of(
            Permission.delete_only,
            Permission.write_and_delete,
            REMOVING,
            Permission.delete_only_while_removing,
            Permission.index_unused,
        )
        return moves & (self.known == self.permission) & (self.work[th].intent == Intent.none)

    @accepts(hear_answer)
    def answers_are_heard_at_any_time(self, th: Term[Thread]) -> Bool:
        """002, "Checkpointing": the master "issues futher RPCs as necessary": for those of an earlier leader nobody waits."""
        builds = (self.permission == Permission.do_backfill) & (self.known == self.permission)
        heard = some(
            (self.work[o].intent == Intent.checkpoint) & (self.work[o].term == self.term)
            for o in Thread
        )
        left = (self.checkpoint < ROWS) & ~self.unanswered & ~heard
        return builds & left & (self.work[th].intent == Intent.none)

    @accepts(publish)
    def threads_publish_beside_others(self, th: Term[Thread]) -> Bool:
        """002, "Finalize the index": "Once the index build is successfully completed" the thread that has found it so writes
        that, whatever threads of an earlier leader are about to write, who may hang.
        """
        present = (self.work[th].term == self.term) & (self.work[th].version == self.version)
        return (self.work[th].intent == Intent.publish) & present

    @accepts(launch_next_version)
    def versions_are_launched_beside_others(self, th: Term[Thread]) -> Bool:
        """002, "Create the index table": "Once all the schema changes are propagated to all the nodes, the index state is updated" by
        the thread that has heard so, also while one of an earlier leader hangs.
        """
        present = (self.work[th].term == self.term) & (self.work[th].version == self.version)
        return (self.work[th].intent == Intent.next_permission) & present

    @accepts(record_failure)
    def failures_are_recorded_beside_others(self, th: Term[Thread]) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table", the command "should abort and result in a failure":
        whatever threads of an earlier leader are about to write.
        """
        present = (self.work[th].term == self.term) & (self.work[th].version == self.version)
        return (self.work[th].intent == Intent.failure) & present

    @accepts(find_failed)
    def failures_are_found_beside_others(self, th: Term[Thread]) -> Bool:
        """002, Design Goals: the same of the thread that finds the problem, as long as nobody has an answer to write."""
        builds = (self.permission == Permission.do_backfill) & (self.checkpoint < ROWS)
        heard = some(
            (self.work[o].intent == Intent.checkpoint) & (self.work[o].term == self.term)
            for o in Thread
        )
        return builds & self.unanswered & ~heard & (self.work[th].intent == Intent.none)

    @accepts(apply_version)
    def tablets_apply_versions_at_any_time(self) -> Bool:
        """002, "Create the index table": "The HandleAlterTable() RPC call initiates a schema change on all the nodes": whatever
        threads of masters are about to write.
        """
        return self.known != self.permission

    @accepts(record_checkpoint)
    def checkpoints_are_recorded_beside_others(self, th: Term[Thread]) -> Bool:
        """002, "Checkpointing": the master "persists the checkpointing info": also while a thread of an earlier leader hangs."""
        return (self.work[th].intent == Intent.checkpoint) & (self.work[th].term == self.term)

    @accepts(drop_index)
    def indexes_are_dropped_at_any_time(self) -> Bool:
        """DROP INDEX does not wait for the threads that build the index."""
        return ~self._is_removed()

    @invariant
    def tablets_are_one_version_behind(self) -> Bool:
        """002: "Once all the schema changes are propagated to all the nodes, the index state is updated": two
        reports do not move it on by two. (A drop does not wait.)
        """
        following = self.known.column(lambda p: p.following)
        adjacent = (self.permission == self.known) | (self.permission == following)
        return adjacent | (self.permission == REMOVING)

    @step_property
    def permissions_never_go_back(self, after: Self) -> Bool:
        """The write of a thread that has not seen a drop does not undo it (yugabyte-db #4930: it is refused)."""
        gone = after.permission == Permission.absent
        return gone | (progress_of(after.permission) >= progress_of(self.permission))

    @step_property
    def checkpoints_only_advance(self, after: Self) -> Bool:
        """002: "The entire build process should not need to restart": an old leader does not set it back."""
        return after.checkpoint >= self.checkpoint

    @invariant
    def published_indexes_are_done(self) -> Bool:
        """002: "the YB-Master needs to wait for the backfill to complete on all the tablets"."""
        published = self.permission == Permission.read_write_and_delete
        return published.implies(self.checkpoint == ROWS)

    @step_property
    def only_the_leader_gives_up(self, after: Self) -> Bool:
        """002: "The backfill process itself does not require that the job be restarted if there is a leadership
        change": what the old leader missed does not fail the job of the new one.
        """
        return (after.failed & ~self.failed).implies(self.unanswered)

    @step_property
    def tablets_answer_new_leaders(self, after: Self) -> Bool:
        """002, "Handling node restarts and leadership changes": the job need not "be restarted if there is a leadership
        change": no tablet counts as silent that has answered until then, and that the new leader has yet to ask.
        """
        elected = after.term != self.term
        return elected.implies(self.unanswered | ~after.unanswered)

    @step_property
    def completed_builds_are_published(self, after: Self) -> Bool:
        """002, Finalize the index: "Once the index build is successfully completed on all the tablets of the table, the table
        state is updated to READ_WRITE_AND_DELETE": a tablet that is done has nothing left to answer.
        """
        return (after.failed & ~self.failed).implies(self.checkpoint < ROWS)

    @invariant
    def only_what_failed_is_removed(self) -> Bool:
        """002: "An aborted index will be cleaned up and deleted", and one that is dropped; no other."""
        return self._is_removed().implies(self.dropped | self.failed)

    @final
    def nothing_is_left_to_do(self) -> Bool:
        """A usable or deleted index may stay as it is."""
        return self._is_settled() & ~some(self.work[th].intent != Intent.none for th in Thread)

    @always_reachable
    def the_index_can_be_usable_or_gone(self) -> Bool:
        """Whoever leads, the index can be built, or removed."""
        return self._is_settled()

    @liveness
    def the_index_becomes_usable_or_is_deleted(self) -> LeadsTo:
        """A write that is refused is not the end: the leader looks again (yugabyte-db #4930)."""
        return leads_to(~self._is_settled(), self._is_settled())

    @liveness
    def dropped_indexes_are_deleted(self) -> LeadsTo:
        """DROP INDEX takes effect, whatever threads were going to write."""
        return leads_to(self.dropped, self.permission == Permission.absent)

    def _is_settled(self) -> Bool:
        return self.permission.any_of(Permission.read_write_and_delete, Permission.absent)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            fail_over, "2 for 1", because="terms need not follow each other in number"
        ),
        equivalent_drop(apply_version, "tablet is behind", because="there is nothing to apply"),
        equivalent_weakening(
            drop_index, "index is not being removed yet", because="dropping twice is dropping once"
        ),
        equivalent_helper(
            _is_removed,
            "permission is write_and_delete_while_removing",
            because="dropping twice is dropping once",
        ),
        equivalent_loss(
            fail_over, unanswered, because="the tablet may as well not answer the new leader"
        ),
        equivalent_drop(
            stop_answering,
            "index is being backfilled",
            because="a fault: it may strike at any time, or not at all",
        ),
        equivalent_loss(
            stop_answering, unanswered, because="a fault: it may strike at any time, or not at all"
        ),
        equivalent_drop(
            hear_answer,
            "index is being backfilled",
            because="a checkpoint of an index that is dropped is wasted, not wrong",
        ),
        equivalent_loss(
            publish,
            version,
            because="nothing moves it from here but a drop, which is a version of its own",
        ),
        equivalent_drop(
            be_refused,
            "thread is going to write",
            because="an answer that is dropped is asked for again",
        ),
        equivalent_drop(
            _begin,
            "thread is free",
            because="a thread that begins anew drops what it was going to write",
        ),
        equivalent_loss(
            record_failure,
            version,
            because="a thread that has seen the version before can only fail the index, too, as its tablet is not done",
        ),
        equivalent_drop(
            launch_next_version,
            "the thread's master is the leader",
            because="the next permission of the expected version is right, whoever writes it",
        ),
        equivalent_drop(
            publish,
            "the thread's master is the leader",
            because="a tablet that is done is so for every leader",
        ),
        equivalent_loss(
            _end, Work.intent, because="a thread that writes once more finds another version"
        ),
        equivalent_loss(
            _end, Work.term, Work.version, Work.row, because="the next thread has its own"
        ),
        equivalent_replacement(
            drop_index,
            "index is not being removed yet",
            because="dropping twice is dropping once",
        ),
        equivalent_replacement(
            hear_answer, "row becomes: 2 for 1", because="a chunk may have more than one row"
        ),
        equivalent_replacement(
            publish,
            "version becomes",
            because="nothing moves it from here but a drop, which is a version of its own",
        ),
        equivalent_replacement(
            record_failure,
            "version becomes",
            because="a thread that has seen the version before can only fail the index, too, as its tablet is not done",
        ),
        equivalent_replacement(
            _end,
            "intent becomes",
            because="a thread that writes once more finds another version",
        ),
        equivalent_replacement(
            _end,
            "term becomes",
            "version becomes: 1 for 0",
            "row becomes",
            because="the next thread has its own",
        ),
    )
