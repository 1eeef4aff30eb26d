"""Tablets and their rows as the logs of a cluster's nodes tell of them: stages by the coordinator's lines, work by each node's.

Clocks of nodes differ: each machine is of the lines of one node, in their order. The words are ScyllaDB's: `Will set tablet
… stage to …`, `cleanup for tablet … resolved`, `Streaming for tablet migration of … finished`, `Cleaned up tablet …`.
"""

from __future__ import annotations

from stagewright.spec import Actor, Bool, FlagVar, Machine, action, flag, invariant, require

COORDINATOR = Actor("topology coordinator")
NODE = Actor("node")


class LoggedStage(Machine):
    """The stages of one tablet in one tenure of a topology coordinator.

    001: a stage whose replicas differ from those before is left after a barrier: who writes to fewer is gone by then.
    """

    passed: FlagVar = flag()  # a barrier that began in the stage has passed
    cleaned: FlagVar = flag()  # the replica that leaves has cleaned up, or nobody has to
    hasty: FlagVar = flag()  # a stage was left too early

    @action(by=COORDINATOR)
    def enter(self) -> None:
        """The commit of "Will set tablet … stage to …"."""
        self.passed = False
        self.cleaned = False

    @action(by=COORDINATOR)
    def pass_barrier(self) -> None:
        """barrier_and_drain was executed since then, and the fence has advanced; or "barrier" was executed."""
        self.passed = True

    @action(by=COORDINATOR)
    def clean(self) -> None:
        """The log says "cleanup for tablet … resolved", and did not say that it failed."""
        self.cleaned = True

    @action(by=COORDINATOR)
    def leave(self) -> None:
        """The log says that a stage will be set, or that all migrations are over, which needs a barrier before."""
        require(self.passed, "the barrier of the stage has passed")
        self.hasty = self.hasty | ~self.passed

    @action(by=COORDINATOR)
    def leave_cleanup(self) -> None:
        """The log says that `end_migration` will be set."""
        require(self.cleaned, "the replica that leaves has cleaned up, or is gone")
        self.hasty = self.hasty | ~self.cleaned

    @invariant
    def no_stage_is_left_too_early(self) -> Bool:
        """What a stage is for has happened when the next one is entered."""
        return ~self.hasty


class LoggedWork(Machine):
    """What one node does about one tablet for the coordinator, in one life: it says what it has done, then that it succeeded."""

    streamed: FlagVar = flag()
    repaired: FlagVar = flag()
    cleaned: FlagVar = flag()
    partial: FlagVar = flag()  # the repair that goes on leaves a replica out
    idle: FlagVar = flag()  # something succeeded that was not done

    @action(by=NODE)
    def stream(self) -> None:
        """The log says "Streaming for tablet migration of … finished", "Finished intra-node streaming of tablet …"."""
        self.streamed = True

    @action(by=NODE)
    def leave_out_a_replica(self) -> None:
        """The peers of "Repair … out of … ranges" lack a replica that no filter has taken out."""
        self.partial = True

    @action(by=NODE)
    def repair(self) -> None:
        """The log says "Finished tablet repair for …", or that it was skipped."""
        require(~self.partial, "every replica took part that is there")
        self.repaired = True

    @action(by=NODE)
    def clean(self) -> None:
        """The log says "Cleaned up tablet …", or that there is no storage of it."""
        self.cleaned = True

    @action(by=NODE)
    def end_streaming(self) -> None:
        """The log says "Streaming for tablet migration of … successful"."""
        require(self.streamed, "the rows were streamed")
        self.idle = self.idle | ~self.streamed
        self.streamed = False

    @action(by=NODE)
    def end_repair(self) -> None:
        """The log says "Repair for tablet migration of … successful"."""
        require(self.repaired, "the tablet was repaired")
        self.idle = self.idle | ~self.repaired
        self.repaired = False

    @action(by=NODE)
    def end_cleanup(self) -> None:
        """The log says "Cleanup for tablet migration of … successful"."""
        require(self.cleaned, "the tablet was cleaned up")
        self.idle = self.idle | ~self.cleaned
        self.cleaned = False

    @invariant
    def what_succeeds_was_done(self) -> Bool:
        """A node that answers the coordinator has done what it was asked for."""
        return ~self.idle


class LoggedJoin(Machine):
    """How a node comes to the rows of its token ranges, by its log from its first start on."""

    began: FlagVar = flag()  # "entering BOOTSTRAP mode": the coordinator has it stream
    short: FlagVar = flag()  # a range is not fetched from who loses it, nor from enough others
    streamed: FlagVar = flag()
    serves: FlagVar = flag()

    @action(by=NODE)
    def begin(self) -> None:
        """The log says "entering BOOTSTRAP mode"."""
        self.began = True

    @action(by=NODE)
    def leave_out_sources(self) -> None:
        """The neighbors of a range lack its old replica that is none any more, and no quorum has one of them for sure."""
        self.short = True

    @action(by=NODE)
    def stream(self) -> None:
        """The log says "bootstrap_with_repair: finished with keyspaces=", of a replace alike; "Bootstrap succeeded, took"."""
        require(~self.short, "each range came from who loses it, or from enough replicas")
        self.streamed = True

    @action(by=NODE)
    def serve(self) -> None:
        """The log says "entering NORMAL mode"."""
        require(~self.began | self.streamed, "the rows of its ranges were streamed")
        self.serves = True

    @invariant
    def who_serves_has_its_rows(self) -> Bool:
        """A node that has joined has streamed its ranges."""
        return (self.serves & self.began).implies(self.streamed)
