"""An implementation of tablet migration by hand, from the release's transition table, as a database has it.

It shares nothing with the definition but the names of events and leaves: stages are strings, a
transition is a row of `ADVANCES`, volatile knowledge lies in an object that a new coordinator does not have.
Every edge of the table of ScyllaDB 2026.2 is here (without `restore`, which came later).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stagewright.checker.conformance import RefusedEvent
from stagewright.spec.values import State, show
from stagewright.spec.verdict import Step

MOVING = ("migration", "intranode_migration", "rebuild", "rebuild_v2")
LEAVING = ("migration", "intranode_migration")

# event: (from, to) where the barrier of the stage must have passed, and nothing else
AFTER_BARRIER = {
    "write_both": ("allow_write_both_read_old", "write_both_read_old"),
    "use_new": ("write_both_read_new", "use_new"),
    "begin_cleanup": ("use_new", "cleanup"),
    "give_up_after_fall_back": ("write_both_read_old_fallback_cleanup", "cleanup_target"),
}

HAS_BARRIER = {
    "allow_write_both_read_old",
    "write_both_read_old",
    "write_both_read_new",
    "use_new",
    "end_migration",
    "write_both_read_old_fallback_cleanup",
    "cleanup_target",
    "revert_migration",
    "end_repair",
}

RUNS = {"rebuild_repair", "streaming", "cleanup", "cleanup_target", "repair"}


@dataclass
class Group0:
    """What is stored of one tablet's transition."""

    stage: str = "none"
    kind: str = "none"
    session: bool = False
    excluded: set[str] = field(default_factory=set)
    unwanted: bool = False


@dataclass
class Volatile:
    """What only the acting topology coordinator knows: `none`, `running`, `done` or `failed`."""

    barrier: str = "none"
    rpc: str = "none"


class HandWrittenTablet:
    """The tablet, and the adapter of it: events come in by name."""

    def __init__(self) -> None:
        self.group0 = Group0()
        self.coordinator = Volatile()

    # -- the adapter ---------------------------------------------------------------------------------

    def reset(self, initial: State) -> None:
        assert show(initial["stage"]) == "none", "a tablet starts at rest"
        self.group0 = Group0()
        self.coordinator = Volatile()

    def do(self, step: Step) -> None:
        handle: Callable[..., None] = getattr(self, f"on_{step.action}", self.on_barrier_edge)
        values = [show(value) for value in step.arguments.values()]
        if step.action in AFTER_BARRIER:
            values = [step.action]
        handle(*values)

    def observe(self) -> dict[str, object]:
        row = self.group0
        return {
            "stage": row.stage,
            "kind": None if row.kind == "none" else row.kind,
            "session": row.session,
            "excluded": sorted(row.excluded),
            "unwanted": row.unwanted,
            "barrier": self.coordinator.barrier,
            "operation": self.coordinator.rpc,
        }

    # -- edges ---------------------------------------------------------------------------------------

    def on_start(self, kind: str) -> None:
        self.need(self.group0.stage == "none" and kind in MOVING)
        self.group0.kind = kind
        self.enter("allow_write_both_read_old")

    def on_start_repair(self) -> None:
        self.need(self.group0.stage == "none")
        self.group0.kind = "repair"
        self.group0.session = True
        self.enter("repair")

    def on_barrier_edge(self, event: str) -> None:
        source, target = AFTER_BARRIER[event]
        self.need(self.group0.stage == source and self.coordinator.barrier == "done")
        if target == "write_both_read_old":
            self.group0.session = True
        self.enter(target)

    def on_begin_streaming(self) -> None:
        self.need(self.group0.stage == "write_both_read_old" and self.coordinator.barrier == "done")
        self.need(self.group0.kind != "rebuild_v2")
        self.enter("streaming")

    def on_begin_rebuild_repair(self) -> None:
        self.need(self.group0.stage == "write_both_read_old" and self.coordinator.barrier == "done")
        self.need(self.group0.kind == "rebuild_v2")
        self.enter("rebuild_repair")

    def on_stream_after_repair(self) -> None:
        self.need(self.group0.stage == "rebuild_repair" and self.coordinator.rpc == "done")
        self.enter("streaming")

    def on_read_new(self) -> None:
        self.need(self.group0.stage == "streaming" and self.coordinator.rpc == "done")
        self.group0.session = False
        self.enter("write_both_read_new")

    def on_end(self) -> None:
        nobody = self.group0.kind not in LEAVING or "leaving" in self.group0.excluded
        self.need(self.group0.stage == "cleanup" and (self.coordinator.rpc == "done" or nobody))
        self.enter("end_migration")

    def on_finish(self) -> None:
        self.need(self.group0.stage == "end_migration" and self.coordinator.barrier == "done")
        self.rest()

    def on_give_up_before_streaming(self) -> None:
        self.need(self.group0.stage in ("allow_write_both_read_old", "write_both_read_old"))
        self.need(self.coordinator.barrier == "failed" and bool(self.group0.excluded))
        self.enter("cleanup_target")

    def on_give_up_streaming(self) -> None:
        self.need(self.group0.stage in ("rebuild_repair", "streaming"))
        self.need(self.coordinator.rpc == "failed" and self.streaming_is_over())
        self.group0.session = False
        self.enter("cleanup_target")

    def on_fall_back(self) -> None:
        self.need(
            self.group0.stage == "write_both_read_new" and self.coordinator.barrier == "failed"
        )
        self.need(self.new_are_worse())
        self.enter("write_both_read_old_fallback_cleanup")

    def on_revert(self) -> None:
        # The barrier comes first, then the cleanup of the pending replica.
        self.need(self.group0.stage == "cleanup_target" and self.coordinator.barrier == "done")
        self.need(self.coordinator.rpc == "done" or "pending" in self.group0.excluded)
        self.enter("revert_migration")

    def on_finish_revert(self) -> None:
        self.need(self.group0.stage == "revert_migration" and self.coordinator.barrier == "done")
        self.rest()

    def on_end_repair(self) -> None:
        drained = self.coordinator.rpc == "failed" and self.coordinator.barrier == "done"
        self.need(self.group0.stage == "repair" and (self.coordinator.rpc == "done" or drained))
        self.group0.session = False
        self.enter("end_repair")

    def on_finish_repair(self) -> None:
        self.need(self.group0.stage == "end_repair" and self.coordinator.barrier == "done")
        self.rest()

    # -- barriers and calls of a stage ---------------------------------------------------------------

    def may_run_barrier(self) -> bool:
        if self.group0.stage == "repair":
            return self.coordinator.rpc == "failed"
        return self.group0.stage in HAS_BARRIER

    def on_pass_barrier(self) -> None:
        self.need(self.may_run_barrier() and self.coordinator.barrier == "none")
        self.coordinator.barrier = "done"

    def on_fail_barrier(self) -> None:
        self.need(self.may_run_barrier() and self.coordinator.barrier == "none")
        self.coordinator.barrier = "failed"

    def on_retry_barrier(self) -> None:
        # Retried for ever, unless there is reason to roll back.
        early = self.group0.stage in ("allow_write_both_read_old", "write_both_read_old")
        late = self.group0.stage == "write_both_read_new"
        rolls_back = (early and bool(self.group0.excluded)) or (late and self.new_are_worse())
        self.need(self.coordinator.barrier == "failed" and not rolls_back)
        self.coordinator.barrier = "none"

    def on_start_operation(self) -> None:
        self.need(self.group0.stage in RUNS and self.coordinator.rpc == "none")
        self.need(self.group0.stage != "cleanup_target" or self.coordinator.barrier == "done")
        self.coordinator.rpc = "running"

    def on_finish_operation(self) -> None:
        self.need(self.coordinator.rpc == "running")
        self.coordinator.rpc = "done"

    def on_fail_operation(self) -> None:
        self.need(self.coordinator.rpc == "running")
        self.coordinator.rpc = "failed"

    def on_retry_operation(self) -> None:
        rolls_back = (
            self.group0.stage in ("rebuild_repair", "streaming") and self.streaming_is_over()
        )
        self.need(self.coordinator.rpc == "failed" and not rolls_back)
        self.coordinator.rpc = "none"

    # -- around it -----------------------------------------------------------------------------------

    def on_fail_over(self) -> None:
        self.coordinator = Volatile()

    def on_exclude(self, role: str) -> None:
        self.need(self.group0.stage != "none" and role not in self.group0.excluded)
        self.need(role != "leaving" or self.group0.kind in LEAVING)
        self.need(role != "pending" or self.group0.kind in MOVING)
        self.group0.excluded.add(role)

    def on_make_unwanted(self) -> None:
        self.need(self.group0.stage == "streaming" and not self.group0.unwanted)
        self.group0.unwanted = True

    # -- helpers -------------------------------------------------------------------------------------

    def streaming_is_over(self) -> bool:
        unwanted = self.group0.unwanted and self.group0.stage == "streaming"
        return bool(self.group0.excluded) or unwanted

    def new_are_worse(self) -> bool:
        excluded_new = "pending" in self.group0.excluded
        excluded_old = "leaving" in self.group0.excluded
        return excluded_new > excluded_old and self.group0.kind != "intranode_migration"

    def need(self, holds: bool) -> None:
        if not holds:
            raise RefusedEvent(f"not in {self.group0.stage}")

    def enter(self, stage: str) -> None:
        self.group0.stage = stage
        self.coordinator = Volatile()

    def rest(self) -> None:
        """The transition is deleted."""
        self.group0 = Group0()
        self.coordinator = Volatile()
