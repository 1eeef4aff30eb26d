"""The topology coordinator: drives the transitions of tablets, each by the machine that defines it.

It cannot take a step which the definition does not enable: every step is fired on the tablet's instance,
and committed before it counts. What it does besides is to find out whether barriers pass and actions end.
"""

from __future__ import annotations

from typing import Protocol

from stagewright.impl.cluster.barriers import Barriers, Closed
from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.group0 import Group0
from stagewright.impl.cluster.messages import (
    COORDINATOR,
    BarrierAck,
    Effect,
    Message,
    OperationReply,
    RunOperation,
    Send,
    Wake,
)
from stagewright.impl.cluster.settings import Settings
from stagewright.impl.cluster.view import TabletView
from stagewright.impl.runtime import Instance
from stagewright.impl.runtime.instance import ActionRef
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Run, Stage
from stagewright.spec import RefusedError
from stagewright.spec.values import FrozenMap, State, Value
from stagewright.spec.verdict import Step

OPERATIONS_A_TERM = 1_000_000

# Built with one of these defects, the coordinator does not wait for the barrier of a stage.
_NOT_AWAITED = {
    Defect.streaming_does_not_wait: Stage.write_both_read_old,
    Defect.old_reads_are_not_awaited: Stage.write_both_read_new,
    Defect.cleanup_does_not_wait: Stage.use_new,
}


class Observer(Protocol):
    """Who is told of every step and of every refusal."""

    def stepped(self, tablet: str, step: Step, before: State, after: State, term: int) -> None:
        """A step was taken, and counts."""
        ...

    def refused(self, tablet: str, step: str, error: RefusedError) -> None:
        """A step was attempted that the definition does not enable."""
        ...

    def barrier_ended(self, ended: Closed, term: int) -> None:
        """A barrier has passed, or failed."""
        ...


class TopologyCoordinator:
    """The coordinator of one term, from its election until another one deposes it.

    Raises:
        StoreError: (any method) it was deposed; it must not be called again.
    """

    def __init__(
        self, group0: Group0, nodes: tuple[str, ...], settings: Settings, observer: Observer
    ) -> None:
        self.group0 = group0
        self.term = group0.store.term
        self.address = f"{COORDINATOR}/{self.term}"
        self._settings = settings
        self._observer = observer
        self._barriers = Barriers(self.address, self.term, group0, nodes, settings)
        self._instances: dict[str, Instance] = {
            t: group0.instance(t) for t in sorted(group0.view.tablets)
        }
        self._moving = {
            e.action
            for e in group0.program.edges
            if e.source is not Stage.none and e.target not in (None, e.source)
        }
        self._operations: dict[int, tuple[str, int]] = {}  # tablet, and the version of its stage
        self._operation = self.term * OPERATIONS_A_TERM

    # -- what comes in -------------------------------------------------------------------------------

    def take_over(self) -> list[Effect]:
        """Go on where the coordinator before left off; what only it knew is lost."""
        effects: list[Effect] = []
        for tablet, instance in self._instances.items():
            if instance.control is not Stage.none:
                self._fire(tablet, TabletMigration.fail_over)
                self._exclude_known(tablet)
                effects += self.advance(tablet)
        return effects

    def begin(self, tablet: str, kind: Kind, replicas: tuple[str, ...]) -> list[Effect]:
        """Start a transition of a tablet at rest to other replicas, or a repair of those it has.

        Raises:
            RefusedError: the tablet is in transition, or the profile has no transition of that kind.
        """
        if kind is Kind.repair:
            self._fire(tablet, TabletMigration.start_repair)
        else:
            self.group0.plan(tablet, replicas)
            self._fire(tablet, TabletMigration.start, kind=kind)
        self._exclude_known(tablet)
        return self.advance(tablet)

    def exclude(self, node: str) -> list[Effect]:
        """The operator declares a node gone for good."""
        self.group0.ignore(node, self.term)
        effects = self._closed(self._barriers.ignored())
        for tablet, instance in self._instances.items():
            if instance.control is not Stage.none:
                self._exclude_known(tablet)
                effects += self.advance(tablet)
        return effects

    def make_unwanted(self, tablet: str) -> bool:
        """The tablet's migration is not wanted any more; False if the definition refuses that now."""
        return self._try(tablet, TabletMigration.make_unwanted)

    def lose_operation(self, tablet: str) -> list[Effect]:
        """The call that started a tablet's action breaks; what it started may go on."""
        return [
            e
            for o, (t, _) in list(self._operations.items())
            if t == tablet
            for e in self._end_operation(o, False)
        ]

    def handle(self, message: Message) -> list[Effect]:
        """What a message causes."""
        match message:
            case BarrierAck():
                return self._closed(self._barriers.acknowledged(message))
            case OperationReply(operation, _, succeeded):
                return self._end_operation(operation, succeeded)
            case _:
                raise AssertionError(f"the coordinator does not take {message}")

    def wake(self, reason: tuple[str | int, ...]) -> list[Effect]:
        """What the passing of time causes."""
        match reason:
            case ("barrier", int(number), int(attempts)):
                return self._closed(self._barriers.again(number, attempts))
            case ("operation", int(operation)):
                return self._end_operation(operation, False)
            case ("retry", str(tablet), int(version)) if self._version(tablet) == version:
                for action in (TabletMigration.retry_barrier, TabletMigration.retry_operation):
                    if self._instances[tablet].can(action):
                        self._fire(tablet, action)
                return self.advance(tablet)
            case ("retry", *_):
                return []
            case _:
                raise AssertionError(f"the coordinator is not woken for {reason}")

    # -- what goes on --------------------------------------------------------------------------------

    def advance(self, tablet: str) -> list[Effect]:
        """Take every stage step that is enabled, then see to the barrier and the action of the stage."""
        instance = self._instances[tablet]
        while (step := self._next_move(tablet)) is not None:
            self._fire(tablet, step)
        effects: list[Effect] = []
        if instance.can(TabletMigration.pass_barrier):
            if self._skips_barrier(instance):
                self._fire(tablet, TabletMigration.pass_barrier)
                return self.advance(tablet)
            effects += self._closed(self._barriers.want(tablet, self._version(tablet)))
        elif instance.can(TabletMigration.retry_barrier) or instance.can(
            TabletMigration.retry_operation
        ):
            again = ("retry", tablet, self._version(tablet))
            effects.append(Wake(self._settings.retry_ms, again))
        if instance.can(TabletMigration.start_operation):
            self._fire(tablet, TabletMigration.start_operation)
            effects += self._begin_operation(tablet)
        return effects

    def _next_move(self, tablet: str) -> Step | None:
        enabled = self._instances[tablet].enabled()
        move = next((s for s in enabled if s.action in self._moving), None)
        if move is None and self._settings.has(Defect.end_is_not_awaited):
            self._force_end(tablet)
        return move

    def _skips_barrier(self, instance: Instance) -> bool:
        return any(
            self._settings.has(defect) and instance.control is stage
            for defect, stage in _NOT_AWAITED.items()
        )

    def _closed(self, closed: tuple[list[Effect], Closed | None]) -> list[Effect]:
        """Tell the tablets that waited for a barrier how it ended."""
        effects, ended = closed
        effects = list(effects)
        if ended is None:
            return effects
        self._observer.barrier_ended(ended, self.term)
        result = TabletMigration.pass_barrier if ended.passed else TabletMigration.fail_barrier
        for tablet, version in ended.tablets.items():
            # The stage for which it was asked must be the one that the tablet is still in.
            if self._version(tablet) == version and self._try(tablet, result):
                effects += self.advance(tablet)
        return [*effects, *self._closed(self._barriers.next_round())]

    def _begin_operation(self, tablet: str) -> list[Effect]:
        """Ask a replica to stream, clean up or repair; it may well be gone."""
        self._operation += 1
        view = self.group0.view.tablets[tablet]
        self._operations[self._operation] = tablet, view.entered
        node = self._operator(view)
        if node is None or node in self.group0.view.ignored:
            return [Wake(1, ("operation", self._operation))]
        order = RunOperation(self.address, self._operation, tablet, view.stage.action, view.session)
        limit = Wake(self._settings.operation_ms, ("operation", self._operation))
        return [Send(node, order), limit]

    def _operator(self, tablet: TabletView) -> str | None:
        """The node that runs the action of a tablet's stage."""
        match tablet.stage.action:
            case Run.streaming:
                candidates = tablet.pending
            case Run.cleanup:
                kept = tablet.chosen(tablet.stage.writes)
                candidates = tuple(n for n in (*tablet.replicas, *tablet.next) if n not in kept)
            case _:
                ignored = self.group0.view.ignored
                candidates = tuple(n for n in tablet.replicas if n not in ignored)
        return candidates[self._operation % len(candidates)] if candidates else None

    def _end_operation(self, operation: int, succeeded: bool) -> list[Effect]:
        tablet, version = self._operations.pop(operation, ("", 0))
        if not tablet or self._version(tablet) != version:
            return []  # late: its stage is over
        ended = TabletMigration.finish_operation if succeeded else TabletMigration.fail_operation
        return self.advance(tablet) if self._try(tablet, ended) else []

    def _exclude_known(self, tablet: str) -> None:
        """Tell a tablet's machine which of its replicas the operator has given up."""
        view, ignored = self.group0.view.tablets[tablet], self.group0.view.ignored
        roles = {Role.leaving: view.leaving, Role.pending: view.pending, Role.staying: view.staying}
        for role, nodes in roles.items():
            instance = self._instances[tablet]
            if ignored.intersection(nodes) and instance.can(TabletMigration.exclude, role=role):
                self._fire(tablet, TabletMigration.exclude, role=role)

    # -- steps ---------------------------------------------------------------------------------------

    def _version(self, tablet: str) -> int:
        """The version of the tablet's stage: steps that leave it where it is do not count."""
        return self.group0.view.tablets[tablet].entered

    def _try(self, tablet: str, action: ActionRef, **arguments: Value) -> bool:
        try:
            self._fire(tablet, action, **arguments)
        except RefusedError as error:
            self._observer.refused(tablet, _name(action), error)
            return False
        return True

    def _fire(self, tablet: str, action: ActionRef, **arguments: Value) -> None:
        instance = self._instances[tablet]
        before = instance.state
        step = action if isinstance(action, Step) else Step(_name(action), FrozenMap(arguments))
        if self._settings.has(Defect.commit_is_forgotten) and step.action == "use_new":
            instance.log = None
        instance.fire(step)
        self._observer.stepped(tablet, step, before, instance.state, self.term)

    def _force_end(self, tablet: str) -> None:
        """Built wrongly: write the end of a migration without asking its machine."""
        instance = self._instances[tablet]
        if instance.control is not Stage.end_migration:
            return
        before = instance.state
        stepping = Instance(self.group0.program, FrozenMap({**before, "barrier": Progress.done}))
        stepping.log = instance.log
        step = Step("finish")
        stepping.fire(step)
        after = stepping.state
        self._instances[tablet] = self.group0.instance(tablet)
        self._observer.stepped(tablet, step, before, after, self.term)


def _name(action: ActionRef) -> str:
    return action if isinstance(action, str) else getattr(action, "__name__", str(action))
