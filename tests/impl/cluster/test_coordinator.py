"""The topology coordinator takes the steps that the definition enables, and no others."""

from pathlib import Path

import pytest

from stagewright.impl.cluster.barriers import Closed
from stagewright.impl.cluster.coordinator import TopologyCoordinator
from stagewright.impl.cluster.group0 import Group0
from stagewright.impl.cluster.messages import (
    BarrierAck,
    BarrierRequest,
    Effect,
    Phase,
    RunOperation,
    Send,
)
from stagewright.impl.cluster.settings import Settings
from stagewright.impl.simulator.simulation import program
from stagewright.impl.store import ControlStore, StoreError
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import RefusedError
from stagewright.spec.scope import without_budgets
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

NODES = ("node0", "node1", "node2")
TABLET = "tablet0"


class Log:
    """Remembers what the coordinator reports."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.refusals: list[tuple[str, ...]] = []

    def stepped(self, tablet: str, step: Step, before: State, after: State, term: int) -> None:
        self.steps.append(step.label)

    def refused(self, tablet: str, step: str, error: RefusedError) -> None:
        self.refusals.append((step, *error.requirements))

    def barrier_ended(self, ended: Closed, term: int) -> None:
        self.steps.append(f"barrier: {ended.passed}")


@pytest.fixture
def group0(tmp_path: Path) -> Group0:
    rules = program("scylla-2026.2")
    store = ControlStore(
        tmp_path / "group0.sqlite",
        rules.definition,
        without_budgets(rules.definition),
        synchronous=False,
    )
    group0 = Group0(store, rules)
    group0.place(TABLET, ("node0", "node1"))
    return group0


def elected(group0: Group0) -> tuple[TopologyCoordinator, Log]:
    group0.store.new_term()
    log = Log()
    return TopologyCoordinator(group0, NODES, Settings((TABLET,)), log), log


def asked(effects: list[Effect]) -> list[BarrierRequest]:
    return [
        e.message for e in effects if isinstance(e, Send) and isinstance(e.message, BarrierRequest)
    ]


def all_acknowledge(
    coordinator: TopologyCoordinator, requests: list[BarrierRequest]
) -> list[Effect]:
    effects: list[Effect] = []
    for request, node in zip(requests, NODES, strict=True):
        effects += coordinator.handle(BarrierAck(request.round, request.phase, node))
    return effects


def test_illegal_step_is_refused_by_name(group0: Group0) -> None:
    coordinator, _ = elected(group0)
    coordinator.begin(TABLET, Kind.migration, ("node1", "node2"))
    before = group0.view
    with pytest.raises(RefusedError) as caught:
        coordinator.begin(TABLET, Kind.migration, ("node0", "node2"))
    assert caught.value.requirements == ("stage is none",)
    assert group0.view == before


def test_unwanted_migration_is_refused_before_it_streams(group0: Group0) -> None:
    coordinator, log = elected(group0)
    coordinator.begin(TABLET, Kind.migration, ("node1", "node2"))
    assert not coordinator.make_unwanted(TABLET)
    assert log.refusals == [("make_unwanted", "stage is streaming")]


def test_barrier_passes_when_all_have_drained_and_then_all_know_the_fence(group0: Group0) -> None:
    coordinator, log = elected(group0)
    drains = asked(coordinator.begin(TABLET, Kind.migration, ("node1", "node2")))
    assert [r.phase for r in drains] == [Phase.drain] * 3
    fences = asked(all_acknowledge(coordinator, drains))
    assert [r.phase for r in fences] == [Phase.fence] * 3
    assert group0.view.fence == group0.view.tablets[TABLET].version
    assert log.steps == ["start(migration)"]
    assert asked(all_acknowledge(coordinator, fences)), "the next stage has a barrier, too"
    assert log.steps == ["start(migration)", "barrier: True", "pass_barrier", "write_both"]
    assert group0.view.tablets[TABLET].session is not None


def test_barrier_without_answers_fails_and_is_tried_again(group0: Group0) -> None:
    coordinator, log = elected(group0)
    (request, *_) = asked(coordinator.begin(TABLET, Kind.migration, ("node1", "node2")))
    for attempts in range(1, 10):
        coordinator.wake(("barrier", request.round, attempts))
    assert log.steps[-2:] == ["barrier: False", "fail_barrier"]
    entered = group0.view.tablets[TABLET].entered
    again = asked(coordinator.wake(("retry", TABLET, entered)))
    assert log.steps[-1] == "retry_barrier"
    assert again[0].round == request.round + 1


def test_new_coordinator_goes_on_and_the_old_one_can_do_nothing(group0: Group0) -> None:
    old, _ = elected(group0)
    drains = asked(old.begin(TABLET, Kind.migration, ("node1", "node2")))
    new, log = elected(group0)
    new.take_over()
    assert log.steps == ["fail_over"]
    with pytest.raises(StoreError, match="deposed"):
        all_acknowledge(old, drains)
    assert group0.view.tablets[TABLET].stage is Stage.allow_write_both_read_old


def test_excluded_node_is_not_waited_for(group0: Group0) -> None:
    coordinator, log = elected(group0)
    drains = asked(coordinator.begin(TABLET, Kind.migration, ("node1", "node2")))
    for request, node in zip(drains[:2], NODES, strict=False):
        coordinator.handle(BarrierAck(request.round, request.phase, node))
    effects = coordinator.exclude("node2")
    assert "exclude(pending)" in log.steps
    assert [r.phase for r in asked(effects)] == [Phase.fence] * 2


def test_streaming_is_asked_of_the_pending_replica_within_the_session(group0: Group0) -> None:
    coordinator, _ = elected(group0)
    requests = asked(coordinator.begin(TABLET, Kind.migration, ("node1", "node2")))
    for _ in range(3):
        requests = asked(all_acknowledge(coordinator, requests))
    effects = all_acknowledge(coordinator, requests)
    orders = [e for e in effects if isinstance(e, Send) and isinstance(e.message, RunOperation)]
    assert [o.to for o in orders] == ["node2"]
    assert isinstance(orders[0].message, RunOperation)
    assert orders[0].message.session == group0.view.tablets[TABLET].session is not None
