"""Mistakes by which what was asked of a tablet, or begun with it, is taken for done, and nothing comes of it."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.intranode_migration import (
    CLIENT,
    COORDINATOR,
    LEAVING,
    IntranodeMigration,
    Stage,
)
from stagewright.machines.scylladb.tablets.resize_guards import (
    COORDINATOR as RESIZER,
    Node as GuardNode,
    ResizeGuards,
)
from stagewright.machines.scylladb.tablets.resize_layout import Layout
from stagewright.machines.scylladb.tablets.stream_session import MASTER, Message, StreamSession
from stagewright.spec import Fairness, action, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK


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
    "001-248",
    'design document 001: migrations go on "to keep the cluster saturated with streaming"',
    breaks=StreamSession.failures_are_heard_at_once,
)
class MastersHearOfNoFailure(StreamSession):
    """A master took the failure of its follower for the end of the stream's messages, and waited until it timed out."""

    @action(by=MASTER, fair=WEAK)
    def receive_failure(self) -> None:
        """The follower says that its session has failed: nothing more will come."""
        self._arrives(Message.failed)
        self._take_off_the_wire()


@known_bug(
    "001-249",
    "design document 001: requests use the replicas that the stage names",
    breaks=ResizeGuards.tablets_change_under_requests,
    budgets={ResizeGuards.migrations: 0},
)
class ResizesAreGivenUpUnderRequests(ResizeGuards):
    """A split that found a guard in use was given up without a word: of a busy table no tablet was ever split."""

    @action(by=RESIZER, spends=ResizeGuards.resizes)
    def split(self) -> None:
        """The table gets two tablets, if no request runs."""
        require(self.layout == Layout.one_tablet, "the table has one tablet")
        self._resize()
        busy = some(self.guard[n].key.is_some() for n in GuardNode)
        self.layout = choose(busy, Layout.one_tablet, Layout.two_tablets)


BUGS = known_bugs_in(globals())
