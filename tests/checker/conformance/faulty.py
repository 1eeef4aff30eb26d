"""Faults seeded into the hand-written tablet, each as it happens when a table is implemented by hand."""

from __future__ import annotations

from tests.checker.conformance.hand_written import (
    MOVING,
    Group0,
    HandWrittenTablet,
    Volatile,
)


class WrongTarget(HandWrittenTablet):
    """`use_new` leads to `end_migration`: the stage in which the leaving replica is cleaned up is left out."""

    def on_barrier_edge(self, event: str) -> None:
        super().on_barrier_edge(event)
        if event == "begin_cleanup":
            self.enter("end_migration")


class SkippedBarrier(HandWrittenTablet):
    """A migration ends without the barrier after its cleanup."""

    def on_finish(self) -> None:
        self.need(self.group0.stage == "end_migration")
        self.rest()


class SessionNotOpened(HandWrittenTablet):
    """The session is opened for intranode migration alone."""

    def on_barrier_edge(self, event: str) -> None:
        super().on_barrier_edge(event)
        self.group0.session = self.group0.session and self.group0.kind == "intranode_migration"


class SessionLeftOpen(HandWrittenTablet):
    """Giving up streaming leaves the session open, so that stale streaming is accepted."""

    def on_give_up_streaming(self) -> None:
        super().on_give_up_streaming()
        self.group0.session = True


class AcceptsSecondStart(HandWrittenTablet):
    """A repair may start at a tablet in the last stage of a migration, as if that were over."""

    def on_start_repair(self) -> None:
        self.need(self.group0.stage in ("none", "revert_migration"))
        self.group0 = Group0(kind="repair", session=True)
        self.enter("repair")


class RefusesDrainedRepair(HandWrittenTablet):
    """A repair that failed can only be retried: that a barrier has drained it does not help."""

    def on_end_repair(self) -> None:
        self.need(self.coordinator.rpc == "done")
        super().on_end_repair()


class MiscountsExcluded(HandWrittenTablet):
    """Whether to fall back is decided by the new replicas alone, though the old ones are gone as well."""

    def new_are_worse(self) -> bool:
        return "pending" in self.group0.excluded and self.group0.kind != "intranode_migration"


class LosesExclusion(HandWrittenTablet):
    """That a replica which stays is excluded is not stored."""

    def on_exclude(self, role: str) -> None:
        super().on_exclude(role)
        self.group0.excluded.discard("staying")


class ChangedByRefusal(HandWrittenTablet):
    """The cleanup of the pending replica is noted as running before it is refused for want of a barrier."""

    def on_start_operation(self) -> None:
        if self.group0.stage == "cleanup_target" and self.coordinator.rpc == "none":
            self.coordinator.rpc = "running"
            self.need(self.coordinator.barrier == "done")
            return
        super().on_start_operation()


class KnowledgeSurvives(HandWrittenTablet):
    """A new coordinator believes the answers that the old one got."""

    def on_fail_over(self) -> None:
        self.coordinator = Volatile(rpc=self.coordinator.rpc)


class KindNotCleared(HandWrittenTablet):
    """A reverted migration leaves its kind behind."""

    def on_finish_revert(self) -> None:
        kind = self.group0.kind
        super().on_finish_revert()
        self.group0.kind = kind


class OffByOne(HandWrittenTablet):
    """A kind is stored by number, and one of the numbers is off by one."""

    def on_start(self, kind: str) -> None:
        super().on_start(kind)
        if kind == "rebuild":
            self.group0.kind = MOVING[MOVING.index(kind) + 1]


class ForgetsToClear(HandWrittenTablet):
    """After a whole migration the next one of this tablet begins with a barrier that has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.migrations = 0

    def on_finish(self) -> None:
        super().on_finish()
        self.migrations += 1

    def on_start(self, kind: str) -> None:
        super().on_start(kind)
        if self.migrations:
            self.coordinator.barrier = "done"


class Crashes(HandWrittenTablet):
    """A replica that is excluded is looked up among those that answered: a barrier fails with an error."""

    def on_pass_barrier(self) -> None:
        answers = {"staying": True}
        if "staying" in self.group0.excluded:
            del answers["staying"]
        assert answers["staying"]
        super().on_pass_barrier()


FAULTS: tuple[type[HandWrittenTablet], ...] = (
    WrongTarget,
    SkippedBarrier,
    SessionNotOpened,
    SessionLeftOpen,
    AcceptsSecondStart,
    RefusesDrainedRepair,
    MiscountsExcluded,
    LosesExclusion,
    ChangedByRefusal,
    KnowledgeSurvives,
    KindNotCleared,
    OffByOne,
    ForgetsToClear,
    Crashes,
)
