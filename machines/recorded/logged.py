"""Barriers and fences as the logs of a cluster's nodes tell of them: each node by the order of its own lines.

Clocks of nodes differ. What is checked here is in one node's log, or does not depend on the order of lines.
The words are ScyllaDB's: `Got raft_topology_cmd::barrier_and_drain, version 5, current version 5, stale versions
(version: use_count): {}`, `raft_topology_cmd::barrier_and_drain version 5: done`, `update_fence_version: new
fence_version 5 is set, prev fence_version 4`, `executing global topology command barrier_and_drain`.
"""

from __future__ import annotations

from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    Machine,
    action,
    flag,
    invariant,
    require,
)

COORDINATOR = Actor("topology coordinator")
NODE = Actor("node")


class LoggedBarrier(Machine):
    """The barrier of one version at one shard of a node."""

    learned: FlagVar = flag()  # the node knows the version
    acknowledged: FlagVar = flag()  # "done": whatever began under an older version is over
    fenced: FlagVar = flag()  # the node has learned that older versions are fenced

    @action(by=NODE)
    def learn(self) -> None:
        """The node begins to drain, and its current version is the barrier's, or a later one."""
        self.learned = True

    @action(by=NODE)
    def acknowledge(self) -> None:
        """The node is done."""
        require(self.learned, "the node has learned the version")
        self.acknowledged = True

    @action(by=NODE)
    def find_older_request(self) -> None:
        """Something that began under an older version goes on."""
        require(~self.acknowledged, "the node has not acknowledged that it drained")

    @action(by=NODE)
    def learn_fence(self) -> None:
        """The coordinator has fenced what is older, and has left no node out."""
        require(self.acknowledged, "the node has acknowledged that it drained")
        self.fenced = True

    @invariant
    def a_fence_follows_its_barrier(self) -> Bool:
        """Where a version is fenced, the node had learned it and had drained what is older."""
        return self.fenced.implies(self.learned & self.acknowledged)


class LoggedFence(Machine):
    """The fence, as a shard of a node learns it."""

    learned: FlagVar = flag()  # some fence
    fell: FlagVar = flag()

    @action(by=NODE)
    def learn(self) -> None:
        """The fence moves to a later version."""
        self.learned = True

    @action(by=NODE)
    def learn_earlier(self) -> None:
        """The fence moves to a version that is not later than the one before."""
        require(~self.learned, "no fence of that version, or of a later one, was learned before")
        self.fell = True

    @invariant
    def it_never_falls(self) -> Bool:
        """What was refused once is refused for ever."""
        return self.fell.implies(~self.learned)


class LoggedTenure(Machine):
    """One tenure of a topology coordinator, from `start topology coordinator fiber` on."""

    asked: FlagVar = flag()  # barrier_and_drain was executed since the last change
    fenced: FlagVar = flag()  # and the fence has advanced after it
    failed: FlagVar = flag()  # or the barrier has failed, and the log says so
    deposed: FlagVar = flag()  # it has lost the leadership of group0
    elsewhere: FlagVar = flag()  # the state that was entered last is one in which no tablet moves

    @action(by=COORDINATOR)
    def execute_barrier(self) -> None:
        """The log says "executing global topology command barrier_and_drain"."""
        self._leads()
        self.asked = True

    @action(by=COORDINATOR)
    def advance_fence(self) -> None:
        """The log says "advance fence version to"."""
        self._leads()
        require(self.asked, "a barrier was executed since the last change of the topology")
        self.fenced = True

    @action(by=COORDINATOR)
    def fail_barrier(self) -> None:
        """The log says "global_token_metadata_barrier failed"."""
        self.failed = True

    @action(by=COORDINATOR)
    def leave_state(self) -> None:
        """The log says "streaming completed", "read fence completed"."""
        self._leads()
        require(self.fenced | self.failed, "the barrier of the state has passed, or has failed")
        self._changes()

    @action(by=COORDINATOR)
    def change(self) -> None:
        """Any other change of the topology is committed."""
        self._leads()
        self._changes()

    @action(by=COORDINATOR)
    def lose_leadership(self) -> None:
        """The log says "losing leadership"."""
        self.deposed = True

    @action(by=COORDINATOR)
    def enter_tablet_track(self) -> None:
        """The log says "entered `tablet migration` transition state", or "tablet draining" before 2026.2."""
        self.elsewhere = False

    @action(by=COORDINATOR)
    def enter_another_state(self) -> None:
        """The log says "entered `…` transition state" of another one."""
        self.elsewhere = True

    @action(by=COORDINATOR)
    def move_tablet(self) -> None:
        """The log says "Will set tablet … stage to", or "Initiating tablet streaming", cleanup or repair."""
        require(~self.elsewhere, "the topology is in the tablet migration track")

    def _leads(self) -> None:
        require(~self.deposed, "the coordinator was not deposed")

    def _changes(self) -> None:
        self.asked = False
        self.fenced = False
        self.failed = False

    @invariant
    def a_fence_needs_a_barrier(self) -> Bool:
        """The fence advances after a barrier only."""
        return self.fenced.implies(self.asked)


class LoggedReadTime(Machine):
    """The time of the scan of one backfill job of YugabyteDB, as masters and tablet servers tell it.

    "Completed fetching SafeTime for the table … will be using { physical: N }", "Begin BackfillIndexesForYsql at
    { physical: N }". A time that was chosen and not recorded when its master was gone may have a successor.
    """

    chosen: FlagVar = flag()
    scanned: FlagVar = flag()
    astray: FlagVar = flag()  # a chunk was read at a time that nobody chose

    @action(by=COORDINATOR)
    def choose(self) -> None:
        """A master leader has the time."""
        self.chosen = True

    @action(by=NODE)
    def scan(self) -> None:
        """A tablet server reads a chunk at that time."""
        require(self.chosen, "a time is chosen")
        self.scanned = True

    @action(by=NODE)
    def scan_at_another_time(self) -> None:
        """A tablet server reads a chunk at a time that no master leader has chosen for the job."""
        require(~self.chosen, "no other time is chosen for the job")
        self.astray = True

    @invariant
    def chunks_are_read_at_the_time_of_the_job(self) -> Bool:
        """002: the read time "is picked by the YB-Master and sent to all the tablets"."""
        return self.scanned.implies(self.chosen)
