"""Mistakes put back into `ViewRange`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_range import WEAK, Token, ViewRange
from stagewright.machines.scylladb.views.view_task import WORKER
from stagewright.spec import FlagVar, Term, action, choose, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "000-97",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.built_views_stay_built,
)
class ReshardingScansBuiltViews(ViewRange):
    """A node that started with another number of shards scanned for views that were built."""

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The shard's scan begins anew, at its own token, and the view is not built yet."""
        super().reshard(t)
        self.built = False


@known_bug(
    "000-133",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.progress_is_saved_on_the_way,
)
class ProgressIsSavedWhenTheRingEnds(ViewRange):
    """Progress was saved once, when a scan had passed the end of the ring: a restart before that cost all of it."""

    @action(by=WORKER, fair=WEAK)
    def save_progress(self) -> None:
        """The scan has passed the end of the ring: that is written to the system table."""
        super().save_progress()
        require(self.scan.wrapped, "the scan has passed the end of the ring")


@known_bug(
    "000-184",
    "design document 000: vnode-based views are built by node-local view builder",
    breaks=ViewRange.saved_progress_is_taken_up,
    budgets={ViewRange.reshardings: 0},
)
class RestartsBeginTheRoundAnew(ViewRange):
    """A node that restarted before its scan had passed the end of the ring read all of it again: one that restarted each night
    built no large view.
    """

    @action(by=WORKER, spends=ViewRange.restarts)
    def restart(self) -> None:
        """The node restarts: the scan goes on from where it began, or from the beginning of the ring."""
        self.scan.next = choose(self.saved.wrapped, self.saved.next, self.first)
        self.scan.wrapped = self.saved.wrapped


@known_bug(
    "000-211",
    "design document 000: vnode-based views are built by node-local view builder",
    breaks=ViewRange.progress_is_saved_on_the_way,
)
class ProgressIsSavedUntilTheRingEnds(ViewRange):
    """Progress was saved up to the end of the ring: a restart after that cost all that had been read since."""

    @action(by=WORKER, fair=WEAK)
    def save_progress(self) -> None:
        """Before the end of the ring, or when it is passed, the progress is written."""
        require(~self.saved.wrapped, "the end was not passed by then")
        require(~self.scan.wrapped | (self.scan.next == 0), "nothing was read since")
        super().save_progress()


@known_bug(
    "000-237",
    "design document 000: node-local view builder",
    breaks=(ViewRange.built_views_are_complete, ViewRange.progress_is_true),
    budgets={ViewRange.reshardings: 2},
)
class TheSecondReshardingKeepsItsFirstToken(ViewRange):
    """Where a scan began was written when it began anew for the first time: after another change of the shards the scan was
    through when it came to the old token.
    """

    resharded: FlagVar = flag()

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The shard's scan begins anew, at its own token."""
        self.first = choose(self.resharded, self.first, self._number(t))
        self.resharded = True
        for progress in (self.scan, self.saved):
            progress.next = self._number(t)
            progress.wrapped = False


@known_bug(
    "V17",
    "scylladb #26523",
    breaks=ViewRange.built_views_are_complete,
    budgets={ViewRange.restarts: 0},
)
class EmptyBatchMeansBuilt(ViewRange):
    """After a reshard the reader returns no partitions up to the end of the ring, which is taken for the
    end of the scan: the view is marked as built although it has not come round.
    """

    def _whole_range_is_scanned(self) -> None:
        require(~some(self._is_ahead(t) for t in self.rows), "no partition is returned")


@known_bug(
    "000-340",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.progress_is_saved_on_the_way,
)
class ProgressIsSavedUnderTheOldShard(ViewRange):
    """Progress was saved under the number that the shard had when the view was created: once the node had another number of
    shards each restart cost all that had been read since.
    """

    moved: FlagVar = flag()

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The shard's scan begins anew, and the shard is another one."""
        super().reshard(t)
        self.moved = True

    @action(by=WORKER, fair=WEAK)
    def save_progress(self) -> None:
        """The progress of a shard that is as it was is written."""
        super().save_progress()
        require(~self.moved, "the shard is the one that began")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-134",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.shards_are_added_at_any_time,
)
class ShardsStayWhileAViewIsBuilt(ViewRange):
    """A node with saved progress started with the number of shards of which that was, and with no other one."""

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The node, which has no saved progress, restarts with another number of shards."""
        none = (self.saved.next == self.first) & ~self.saved.wrapped
        require(self.built | none, "no progress is saved")
        super().reshard(t)


BUGS = known_bugs_in(globals())
