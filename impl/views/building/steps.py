"""Steps of view building's machines for a command of group0, and the rows that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Command, Mutation, steps_of
from stagewright.impl.runtime import Instance, Record, Taken, command
from stagewright.impl.topology.planning import step_of
from stagewright.impl.views.building.tasks import BUILT, LOCAL, PROCESSING, STATUS
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus

_TEXTS = {
    "choose_base": "Selected new base table to process: {}",
    "leave_base": "Finished processing base table {}",
    "start_view": "View {} is started",
    "mark_view_built": "View {} is built",
}


class Steps:
    """What was taken, in its order."""

    def __init__(self) -> None:
        self.taken: list[Taken] = []

    def take(self, instance: Instance, action: str, **arguments: Any) -> Taken:
        """Take a step.

        Raises:
            RefusedError: it is not enabled.
        """
        command(instance.call(step_of(action, **arguments)), log=self._took)
        return self.taken[-1]

    def _took(self, record: Record) -> None:
        self.taken += record.steps

    def command(self, description: str, rows: Iterable[Mutation]) -> Command:
        """All of it."""
        return Command(description, steps_of(Record(tuple(self.taken))), tuple(rows))


def described(taken: Taken) -> str:
    """What the history of group0 says of a choice, in the words of upstream's log."""
    return _TEXTS[taken.step.action].format(*(a.name for a in taken.step.arguments.values()))  # type: ignore[union-attr]


def rows_of_choice(taken: Taken, view: View) -> Iterator[Mutation]:
    """The rows that a choice of the coordinator changes: the base table that is processed, the status of views.

    The status is that of all nodes that are normal.
    """
    nodes = [m.name for m in view.nodes.values() if m.state is NodeState.normal]
    for place, value in taken.mutations.items():
        if place.column == "processed":
            name = None if value is None else value.name  # type: ignore[union-attr]
            yield Mutation(LOCAL, PROCESSING, {"value": name})
        elif place.column == "status" and isinstance(value, ViewStatus):
            status = {ViewStatus.started: "STARTED", ViewStatus.success: "SUCCESS"}[value]
            for node in nodes:
                yield Mutation(STATUS, (place.key.name, node), {"status": status})
            if value is ViewStatus.success:
                yield Mutation(BUILT, (place.key.name,), {"status": status})
