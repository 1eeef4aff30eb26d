"""Mistakes put back into `SharedFence`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.cluster import CLIENT, Node
from stagewright.machines.scylladb.topology.shared_fence import (
    COORDINATOR,
    LAST_VERSION,
    Kind,
    SharedFence,
    Stage,
)
from stagewright.spec import Bool, Fairness, Term, action, choose, every, number, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

SHARED = "design document 001: one infrastructure for fencing"
SUCCESS = "design document 001, stage 3: writes are executed on behalf of successful requests"
WEAK = Fairness.WEAK
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug("001-302", SUCCESS, breaks=SharedFence.a_write_succeeds_while_its_replicas_change)
class AnswersOfReplicasAreDropped(SharedFence):
    """An answer counted only if nothing had ever changed: of a write that began under a later version all replicas stored
    the row, and the client was told that it had timed out.
    """

    @action(fair=WEAK)
    def store(self, r: Term[Node], k: Term[Kind]) -> None:
        """A replica stores the row; its answer counts as long as nothing has changed."""
        request = self.request
        require(request.targets.has(r) & (request.kind == k), "it is sent to the replica")
        require(~request.reached.has(r), "the replica has not stored it yet")
        require(self._passes_the_fence(r), "it is not below the replica's fence")
        self.stored[k].add(r)
        request.reached.put(r, request.version == 1)


@known_bug(
    "001-393",
    INDEPENDENTLY,
    breaks=SharedFence.barriers_end_by_passing,
    budgets={SharedFence.failures: 0},
)
class CommitsStopTheBarrier(SharedFence):
    """A barrier that ran was begun anew with each commit, so that it was for the newest version: as long as tablets changed
    their stages, no node joined.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def advance(self, k: Term[Kind]) -> None:
        """The next stage is committed; the barrier of the moment is out of date."""
        super().advance(k)
        self.barrier = 0


@known_bug(
    "F01",
    SHARED,
    breaks=SharedFence.reads_see_acknowledged_writes,
    budgets={SharedFence.failures: 0},
)
class StagesOfTabletsHaveNoVersion(SharedFence):
    """Only a change of the ring committed a version: the stage of a tablet was taken for known as soon as it was
    committed.
    """

    def _commit(self, k: Term[Kind]) -> None:
        committed = choose(k == Kind.tablets, self.version, self.version + 1)
        self.since[k] = committed
        self.version = committed


@known_bug("F02", SHARED, breaks=SharedFence.reads_see_acknowledged_writes)
class TwoFences(SharedFence):
    """Requests of tablets had a fence of their own. A barrier that fell back on the fence moved that of the last
    change, and the other change went on while replicas stored what was older.
    """

    of_tablets = number(0, LAST_VERSION)

    def _pass(self) -> None:
        last = self.since[Kind.tablets] == self.barrier
        self.of_tablets = choose(last, self.barrier, self.of_tablets)
        super()._pass()

    def _passes_the_fence(self, r: Term[cluster.Node]) -> Bool:
        of_vnodes = (self.request.kind == Kind.vnodes) & super()._passes_the_fence(r)
        return of_vnodes | (
            (self.request.kind == Kind.tablets) & (self.request.version >= self.of_tablets)
        )


@known_bug(
    "001-506",
    'design document 001: "The tablet migration track excludes with other topology changes"',
    breaks=SharedFence.tracks_exclude_each_other,
    profile="seed",
    budgets={SharedFence.failures: 0},
)
class TheTrackIsLeftWithTheCommit(SharedFence):
    """A change gave its track up with the commit of its last stage: the other kind began while nodes had not learned
    of it yet, and still wrote to the old replicas.
    """

    def _is_going_on(self, k: Term[Kind] | Kind) -> Bool:
        return (self.stage[k] != Stage.none) & (self.stage[k] != Stage.use_new)


@known_bug(
    "001-718",
    SHARED,
    breaks=SharedFence.the_fence_moves_with_the_barrier,
    budgets={SharedFence.failures: 0},
)
class BarriersBeginWithTheFence(SharedFence):
    """A barrier moved the fence when it began, so that it need not wait: at each stage of either kind of change writes failed
    that would have been stored a moment later.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def begin_barrier(self) -> None:
        """The barrier is sent to every node, and with it the fence."""
        super().begin_barrier()
        self.fence = self.version


@known_bug(
    "001-724",
    'design document 001: "make sure that no reads that started before this point exist"',
    breaks=SharedFence.requests_go_on_while_both_change,
    budgets={SharedFence.failures: 0},
)
class WhoLearnsDropsItsRequest(SharedFence):
    """A node that learned of a version dropped what it coordinated, to either table: no barrier had anything to wait for."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed, and begins anew."""
        super().learn(n)
        self._forget()


@known_bug(
    "001-725",
    "design document 001: both kinds of change are one state machine's, \"so that they don't interfere\"",
    breaks=SharedFence.what_one_has_streamed_the_other_leaves,
    profile="scylla-master",
    budgets={SharedFence.writes: 0},
)
class EachStageForgetsWhatWasStreamed(SharedFence):
    """The coordinator forgot what it knew with each stage that it committed, of either kind: as long as tablets moved, a node
    streamed its ranges again and again.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def advance(self, k: Term[Kind]) -> None:
        """The next stage is committed, and what is known is of the last one."""
        super().advance(k)
        self.streamed = frozenset[Kind]()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-22",
    "design document 001: we want to share the infrastructure for fencing",
    breaks=SharedFence.clients_write_while_both_change,
)
class WritesWaitForTheOtherTrack(SharedFence):
    """A table takes no writes while data of the other kind is streamed."""

    @action(by=CLIENT, spends=SharedFence.writes)
    def begin_write(self, n: Term[Node], k: Term[Kind]) -> None:
        """A client writes while nothing is streamed."""
        super().begin_write(n, k)
        require(every(self.stage[o] != Stage.write_both_read_old for o in Kind), "nothing streams")


@known_bug("001-85", SUCCESS, breaks=SharedFence.writes_are_stored_while_both_change)
class WhoIsAheadRefuses(SharedFence):
    """A replica refused whatever began before its own version, fenced or not: every change, of either kind, failed the
    writes of those who learned of it later.
    """

    def _passes_the_fence(self, r: Term[Node]) -> Bool:
        return self.request.version >= self.known_version[r]


@known_bug("001-86", SUCCESS, breaks=SharedFence.writes_succeed_while_both_change)
class WritesAreAcknowledgedWhenNothingChanges(SharedFence):
    """A write that all replicas had stored was acknowledged when no change, of either kind, went on any more."""

    @action(fair=WEAK)
    def acknowledge(self, k: Term[Kind]) -> None:
        """All replicas have stored it, and nothing moves."""
        super().acknowledge(k)
        moves = (Stage.write_both_read_old, Stage.write_both_read_new)
        require(every(~self.stage[m].any_of(*moves) for m in Kind), "nothing moves")


@known_bug(
    "001-394",
    INDEPENDENTLY,
    breaks=SharedFence.barriers_wait_for_no_stream,
    budgets={SharedFence.failures: 0, SharedFence.writes: 0},
)
class BarriersWaitForStreams(SharedFence):
    """A barrier was begun when nothing streamed, of either kind: while a node was streamed to, no tablet came to its next
    stage.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def begin_barrier(self) -> None:
        """`barrier_and_drain` goes to every node, when whatever may stream has streamed."""
        quiet = every(
            (self.stage[k] != Stage.write_both_read_old)
            | self.streamed.has(k)
            | (self.passed < self.since[k])
            for k in Kind
        )
        require(quiet, "nothing streams")
        super().begin_barrier()


@known_bug(
    "001-504",
    INDEPENDENTLY,
    breaks=SharedFence.changes_advance_independently,
    budgets={SharedFence.failures: 0},
)
class TheTracksExcludeEachOtherForEver(SharedFence):
    """The release in which tablets move while a node bootstraps took one kind of change at a time, as those before
    it.
    """

    def _has_the_track(self, k: Term[Kind]) -> None:
        others = every((k == m) | ~self._is_going_on(m) for m in Kind)
        require(others, "no change of the other kind goes on")


@known_bug(
    "001-505",
    INDEPENDENTLY,
    breaks=SharedFence.changes_advance_independently,
    budgets={SharedFence.failures: 0},
)
class StagesWaitForBothKinds(SharedFence):
    """The next stage of a change waited for a barrier after whatever had been committed, for the other kind as well."""

    @action(by=COORDINATOR, fair=WEAK)
    def advance(self, k: Term[Kind]) -> None:
        """The next stage, once the last one of either kind is learned."""
        super().advance(k)
        require(every(self.passed >= self.since[m] for m in Kind), "a barrier passed since both")


@known_bug(
    "001-507",
    'design document 001: "After the entire cluster learns about it"',
    breaks=SharedFence.barriers_wait_for_what_was_before_them,
    budgets={SharedFence.failures: 0},
)
class BarriersWaitForWhatCameLater(SharedFence):
    """A barrier asked nodes for the newest version, and not for its own: with each commit of the other kind it had to
    wait anew.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """Every node has learned the newest version."""
        super().pass_barrier()
        newest = every(self.known_version[n] >= self.version for n in Node)
        require(newest, "every node has learned the newest version")


@known_bug(
    "001-508",
    INDEPENDENTLY,
    breaks=SharedFence.rows_are_streamed_independently,
    budgets={SharedFence.failures: 0},
)
class OneStreamsWhileTheOtherDoesNotFence(SharedFence):
    """What one kind of change has to stream waited while the other was in its last barrier but one."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, k: Term[Kind]) -> None:
        """The rows are streamed, unless reads of the other kind move."""
        super().stream(k)
        moves = some((k != m) & (self.stage[m] == Stage.write_both_read_new) for m in Kind)
        require(~moves, "no reads of the other kind move")


@known_bug(
    "001-550",
    'design document 001: "After the entire cluster learns about it"',
    breaks=SharedFence.only_barriers_wait_for_clients,
    budgets={SharedFence.failures: 0},
)
class WhoCoordinatesDoesNotLearn(SharedFence):
    """A node applied what was committed, of either kind, between two requests: one that always had one to coordinate
    held up both changes.
    """

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node that coordinates nothing applies what is committed."""
        super().learn(n)
        require(self.request.coordinator != n, "no request is under way")


@known_bug(
    "001-604",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=SharedFence.requests_are_given_up_at_any_time,
    budgets={SharedFence.failures: 0},
)
class NothingTimesOutWhileRowsAreStreamed(SharedFence):
    """While rows of either kind were streamed, a client whose replica did not answer was not told that its time was up."""

    @action(by=cluster.NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """The write is refused or lost, where nothing streams."""
        streams = some(self._streams(k) for k in Kind)
        require(~streams, "nothing is streamed")
        super().time_out()

    def _streams(self, k: Kind) -> Bool:
        learned = self.passed >= self.since[k]
        return (self.stage[k] == Stage.write_both_read_old) & learned & ~self.streamed.has(k)


BUGS = known_bugs_in(globals())
