"""Mistakes put back into `IntranodeMigration`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.intranode_migration import (
    CLIENT,
    COORDINATOR,
    LEAVING,
    PENDING,
    IntranodeMigration,
    Shard,
    Stage,
)
from stagewright.spec import Fairness, Term, action, choose, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NOBODY_WAITS = (
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"'
)
WEAK = Fairness.WEAK


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-247",
    'design document 001, stage 5: read requests "which complete successfully, use the new replica set"',
    breaks=IntranodeMigration.reads_succeed_at_the_pending_shard,
    budgets={IntranodeMigration.writes: 1},
)
class ReadsOfAnotherShardAreDropped(IntranodeMigration):
    """A node dropped each read for a shard that the tablet map did not name yet: clients saw timeouts until it did."""

    @action(by=CLIENT, spends=IntranodeMigration.reads)
    def begin_read(self) -> None:
        """A read reaches the node, which knows its shard by the tablet map."""
        require(~self.reading, "no read is under way")
        mapped = self.known.column(lambda stage: stage.reads) == LEAVING
        self.reading = mapped
        self.read_stage = choose(mapped, self.known, Stage.none)
        self.expected = choose(mapped, self.acknowledged, 0)


@known_bug(
    "001-344",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=IntranodeMigration.what_is_done_stays_done,
    budgets={IntranodeMigration.writes: 1, IntranodeMigration.reads: 0},
)
class WritesAreStreamedAgain(IntranodeMigration):
    """A write that came after the rows had been streamed had them streamed again, though it goes to both shards: as long as
    clients wrote, the tablet did not move.
    """

    @action(by=CLIENT, spends=IntranodeMigration.writes)
    def begin_write(self) -> None:
        """A write reaches the node: what was streamed is out of date."""
        super().begin_write()
        self.operated = self.operated & (self.stage != Stage.streaming)


@known_bug(
    "001-714",
    NOBODY_WAITS,
    breaks=IntranodeMigration.requests_go_on_while_stages_change,
    budgets={IntranodeMigration.failures: 0, IntranodeMigration.reads: 0},
)
class WhoLearnsDropsItsWrite(IntranodeMigration):
    """A node that learned of a stage dropped the write that it had under way, of which a shard had stored a part."""

    @action(fair=WEAK)
    def learn(self) -> None:
        """The node learns the stage, and begins anew."""
        super().learn()
        self.write = 0
        self.write_stage = Stage.none
        self.stored = frozenset[Shard]()


@known_bug(
    "001-715",
    "design document 001: reads that started before are waited for",
    breaks=IntranodeMigration.requests_go_on_while_stages_change,
    budgets={IntranodeMigration.failures: 0, IntranodeMigration.writes: 0},
)
class WhoLearnsDropsItsRead(IntranodeMigration):
    """The same of a read: its client saw a timeout at each stage of a migration."""

    @action(fair=WEAK)
    def learn(self) -> None:
        """The node learns the stage, and begins anew."""
        super().learn()
        self.reading = False
        self.read_stage = Stage.none
        self.expected = 0


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "001-246",
    "design document 001, in the releases: the last stage of the way back deletes the transition",
    breaks=IntranodeMigration.what_is_undone_stays_where_it_was,
    budgets={IntranodeMigration.writes: 0, IntranodeMigration.reads: 0},
)
class WhatIsUndoneBeginsAgain(IntranodeMigration):
    """A migration that had been undone was begun again, to the same shard: the balancer was not asked whether it should."""

    @IntranodeMigration.stage.step(
        Stage.revert_migration, Stage.allow_write_both_read_old, by=COORDINATOR, fair=WEAK
    )
    def finish_revert(self) -> None:
        """The pending shard is clean: try again."""
        self._barrier()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-23",
    "design document 001: write_both_read_old",
    breaks=IntranodeMigration.writes_are_taken_in_every_stage,
)
class WritesWaitForTheOtherShard(IntranodeMigration):
    """A node takes no writes of a tablet that moves between its shards."""

    @action(by=CLIENT, spends=IntranodeMigration.writes)
    def begin_write(self) -> None:
        """A write reaches the node of a tablet that does not move."""
        super().begin_write()
        require(self.known == Stage.none, "the tablet is at rest")


@known_bug(
    "001-180",
    NOBODY_WAITS,
    breaks=IntranodeMigration.no_step_waits_for_clients,
)
class ShardsStreamInSilence(IntranodeMigration):
    """One shard streamed to another when no write was on its way."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self) -> None:
        """The pending shard gets what the leaving one has, while nobody writes."""
        super().stream()
        require(self.write == 0, "nobody writes")


@known_bug(
    "001-181",
    "design document 001: the load balancer is invoked where there is no other work",
    breaks=IntranodeMigration.tablets_are_moved_while_clients_write,
)
class ShardsMoveInSilence(IntranodeMigration):
    """A tablet went to another shard of its node when nobody read or wrote it."""

    @IntranodeMigration.stage.step(Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR)
    def start(self) -> None:
        """The load balancer moves a tablet that nobody uses."""
        require((self.write == 0) & ~self.reading, "nobody uses it")


@known_bug(
    "001-182",
    "design document 001, in the releases: streaming, if it fails, is followed by cleanup_target",
    breaks=IntranodeMigration.what_cannot_be_streamed_is_undone,
)
class WhatHasBegunIsNotUndone(IntranodeMigration):
    """A migration was undone only as long as the pending shard had got nothing."""

    @IntranodeMigration.stage.step(
        Stage.streaming,
        Stage.cleanup_target,
        by=COORDINATOR,
        spends=IntranodeMigration.failures,
    )
    def give_up_streaming(self) -> None:
        """Streaming failed for good, and nothing has come: undo."""
        require(~self.operated, "it is not done")
        require(self.data[PENDING] == 0, "nothing has come")


@known_bug(
    "001-365",
    'design document 001, stage 2: replicas "see the transition info"',
    breaks=IntranodeMigration.stages_are_learned_while_clients_write,
    budgets={IntranodeMigration.failures: 0},
)
class StagesAreLearnedBetweenRequests(IntranodeMigration):
    """A node took the next stage when no request was under way, which under load is never."""

    @action(fair=WEAK)
    def learn(self) -> None:
        """The node learns the stage, between two requests."""
        super().learn()
        require((self.write == 0) & ~self.reading, "no request is under way")


@known_bug(
    "001-390",
    'design document 001, cleanup: "No write request will reach tablet replica in the database layer"',
    breaks=IntranodeMigration.rows_are_removed_while_clients_read,
    budgets={IntranodeMigration.failures: 0, IntranodeMigration.writes: 0},
)
class CleanupsWaitForReads(IntranodeMigration):
    """A shard was cleaned up when nothing was read: of a tablet that is read all the time the rows stayed on both shards."""

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, shard: Term[Shard]) -> None:
        """The shard that is not to keep the tablet removes its rows, unless somebody reads."""
        quiet = ~self.reading | (self.stage != Stage.cleanup)
        require(quiet, "no read is under way")
        super().clean_up(shard)


@known_bug(
    "001-546",
    NOBODY_WAITS,
    breaks=IntranodeMigration.no_step_waits_for_clients,
)
class ReadsMoveBetweenReads(IntranodeMigration):
    """Reads were to move to the pending shard when none was under way: on a busy shard, never."""

    @IntranodeMigration.stage.step(
        Stage.streaming, Stage.write_both_read_new, by=COORDINATOR, fair=WEAK
    )
    def read_new(self) -> None:
        """The pending shard contains all writes, and nobody reads."""
        require(~self.reading, "no read is under way")
        self._operation_done()


@known_bug(
    "001-683",
    NOBODY_WAITS,
    breaks=IntranodeMigration.writes_are_stored_in_every_stage,
    budgets={IntranodeMigration.writes: 1, IntranodeMigration.reads: 0},
)
class ThePendingShardTakesNoWrites(IntranodeMigration):
    """The pending shard took no writes before it had streamed: clients waited until it had."""

    @action(fair=WEAK)
    def store(self, shard: Term[Shard]) -> None:
        """A shard stores the write; the pending one once it has streamed."""
        super().store(shard)
        before = self.known.any_of(Stage.write_both_read_old, Stage.streaming)
        require((shard == LEAVING) | ~before, "the shard has streamed")


@known_bug(
    "001-684",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=IntranodeMigration.writes_succeed_in_every_stage,
    budgets={IntranodeMigration.writes: 1, IntranodeMigration.reads: 0},
)
class WritesSucceedWhenItHasStreamed(IntranodeMigration):
    """No write of a tablet was acknowledged while it streamed from one shard to the other."""

    @action(fair=WEAK)
    def acknowledge(self) -> None:
        """All shards have stored the write, and nothing streams."""
        require(self.known != Stage.streaming, "the tablet does not stream")
        super().acknowledge()


@known_bug(
    "001-685",
    'design document 001, stage 5: read requests "which complete successfully"',
    breaks=IntranodeMigration.reads_succeed_in_every_stage,
    budgets={IntranodeMigration.writes: 1},
)
class ASourceAnswersNoReads(IntranodeMigration):
    """A shard answered no read while it sent its rows to the other one."""

    @action(fair=WEAK)
    def answer_read(self, shard: Term[Shard]) -> None:
        """The shard answers, if it sends no rows."""
        super().answer_read(shard)
        require((self.known != Stage.streaming) | (shard == PENDING), "the shard does not stream")


@known_bug(
    "001-686",
    NOBODY_WAITS,
    breaks=IntranodeMigration.stages_are_left_while_clients_write_and_read,
    budgets={IntranodeMigration.writes: 1},
)
class CleanupsBeginInSilence(IntranodeMigration):
    """The barrier before the cleanup waited until nothing was under way, also on the new shard alone: on a busy node, never."""

    @action(by=COORDINATOR, fair=WEAK)
    def begin_cleanup(self) -> None:
        """No write reaches the leaving shard any more, nor the other one."""
        require((self.write == 0) & ~self.reading, "no request is under way")
        super().begin_cleanup()


@known_bug(
    "001-687",
    'design document 001, cleanup: "No write request will reach tablet replica in the database layer"',
    breaks=IntranodeMigration.rows_are_removed_while_clients_read,
    budgets={IntranodeMigration.writes: 1},
)
class WhatIsUndoneWaitsForSilence(IntranodeMigration):
    """Where a migration was undone, the pending shard was cleaned up when no request was under way, of whichever stage."""

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, shard: Term[Shard]) -> None:
        """The shard that is not to keep the tablet removes its rows; the pending one in silence."""
        silent = (self.write == 0) & ~self.reading
        require((shard == LEAVING) | silent, "no request is under way")
        super().clean_up(shard)


@known_bug(
    "001-709",
    "design document 001, in the releases: a transition is undone when its action has failed, and for a reason",
    breaks=IntranodeMigration.what_is_done_stays_done,
    budgets={IntranodeMigration.writes: 0, IntranodeMigration.reads: 0},
)
class WhatHasStreamedIsUndone(IntranodeMigration):
    """The same between shards: a failure that was heard of late undid what had been streamed."""

    @IntranodeMigration.stage.step(
        Stage.streaming, Stage.cleanup_target, by=COORDINATOR, spends=IntranodeMigration.failures
    )
    def give_up_streaming(self) -> None:
        """Streaming failed, or had failed before: undo the migration."""
        self.operated = False


BUGS = known_bugs_in(globals())
