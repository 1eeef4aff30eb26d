"""Commands of the topology state machine: steps taken on an instance of the definition, and the rows they change.

An instance is made from the tables for each plan, so it is never older than what the node has learned. The
failure detector's view is part of the machine (`down`): where whoever acts sees a node otherwise than the
tables say, a `crash` or `restart` is the first step of the command. A command thus names all steps since the
one before it, those that only the coordinator's memory knew included: the log is a complete trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import Details, mutations_of
from stagewright.impl.group0 import Command, Mutation, steps_of
from stagewright.impl.ring.tablets import TabletMap
from stagewright.impl.runtime import Instance, Program, Record, Taken, command
from stagewright.machines.scylladb.cluster import Node
from stagewright.spec.definition import Kept
from stagewright.spec.errors import RefusedError
from stagewright.spec.verdict import Step

INSTANCE = "topology"
_NOT_KEPT = {
    "crash": {"node is up"},
    "restart": {
        "node is down",
        "it is not being removed or replaced",
        "it is not told to shut down, or banned",
    },
}
"""Of whom the machine does not keep whether it is down: who is not there yet or any more, or stays down for good."""


class Board:
    """The topology state machine at what a node has learned, and the steps that were taken on it since."""

    def __init__(
        self,
        rules: Program,
        catalog: Catalog,
        volatile: Mapping[str, Any] | None = None,
        newcomer: str = "",
    ) -> None:
        state = {**catalog.state(), **(volatile or {})}
        entities = [Node(newcomer)] if newcomer else []
        self.instance = Instance(rules, state, entities=entities, name=INSTANCE)
        self._begin()

    def _begin(self) -> None:
        self.taken: list[Taken] = []
        self._choices: dict[str, list[Step]] = {}  # after so many steps:
        self._asked_at = 0

    def copy(self) -> Board:
        """Another board like this one, on which nothing was taken yet."""
        assert not self.taken, "what was taken belongs to one board"
        made = Board.__new__(Board)
        made.instance = self.instance.copy()
        made._begin()
        return made

    def choices(self, action: str) -> list[Step]:
        """The enabled steps of an action; the same are not looked for twice."""
        if self._asked_at != len(self.taken):
            self._choices, self._asked_at = {}, len(self.taken)
        if action not in self._choices:
            self._choices[action] = self.instance.choices(action)
        return self._choices[action]

    def take(self, *steps: Step) -> None:
        """Take steps, all or none.

        Raises:
            RefusedError: one is not enabled.
        """
        command(*(self.instance.call(s) for s in steps), log=self._took)

    def take_on(self, other: Instance, step: Step) -> Taken:
        """Take a step of another machine in the same command; what it changes is for the caller to write.

        Raises:
            RefusedError: it is not enabled.
        """
        command(other.call(step), log=self._took)
        return self.taken[-1]

    def _took(self, record: Record) -> None:
        self.taken += record.steps

    def see(self, down: frozenset[str]) -> list[Step]:
        """Take the steps by which the machine sees as down whom a failure detector does; which they are.

        Raises:
            RefusedError: one of them is refused, though it is about a node of which the machine keeps whether it is down.
        """
        found: list[Step] = []
        before: frozenset[Node] = self.instance.read("down")
        for node in self.instance.live(Node):
            assert isinstance(node, Node)
            action = "crash" if node not in before else "restart"
            if (node.name in down) == (node in before):
                continue
            refusals = self.instance.refusals(action, n=node)
            if refusals and _NOT_KEPT[action].issuperset(refusals):
                continue
            step = step_of(action, n=node)
            if refusals:
                problem = f"{step} cannot happen: {', '.join(refusals)}"
                raise RefusedError(problem, refusals, help="what is down would be another node")
            self.take(step)
            found.append(step)
        return found

    def add_table(self, layout: TabletMap) -> None:
        """Say which nodes have tablets now that had none before a table of this layout was made.

        Raises:
            RefusedError: one of them cannot.
        """
        hosts: frozenset[Node] = self.instance.read("tablet_hosts")
        new = {Node(r.host) for t in layout.tablets for r in t.replicas} - hosts
        self.take(*(step_of("create_table", n=n) for n in sorted(new, key=lambda n: n.name)))

    def volatile(self) -> dict[str, Any]:
        """What only the coordinator's memory holds now."""
        kept = [v.name for v in self.instance.program.running.variables if v.kept is Kept.VOLATILE]
        return {name: self.instance.read(name) for name in kept}

    def command(
        self,
        description: str,
        catalog: Catalog,
        details: Details,
        beside: Iterable[Mutation] = (),
    ) -> Command:
        """All that was taken, with `beside` what else it writes."""
        own = [t for t in self.taken if t.instance is self.instance]
        rows = mutations_of(own, catalog.tables, details)
        return Command(description, steps_of(Record(tuple(self.taken))), (*beside, *rows))


def unfenced(command: Command) -> Command:
    """A command as a wrong build makes it: it moves no fence."""

    def without(one: Mutation) -> Mutation:
        kept = {k: v for k, v in (one.columns or {}).items() if k != "fence_version"}
        return one if one.columns is None else replace(one, columns=kept)

    return replace(command, mutations=tuple(map(without, command.mutations)))


def step_of(action: str, **arguments: Any) -> Step:
    """A step by names."""
    from stagewright.spec.values import FrozenMap

    return Step(action, FrozenMap(arguments))
