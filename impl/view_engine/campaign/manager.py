"""The cluster manager: who has which partition; moves them one by one, and fails nodes over."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from stagewright.impl.view_engine.campaign.copies import Copy
from stagewright.impl.view_engine.campaign.network import Network
from stagewright.impl.view_engine.campaign.node import CampaignNode, StaleCommandError
from stagewright.impl.view_engine.campaign.tasks import Tasks
from stagewright.impl.view_engine.cluster.messages import NodeUnavailableError
from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.group.partitions import PartitionStateError

_Result = TypeVar("_Result")
TRIED = 4


class MoveStoppedError(Exception):
    """A move of a partition cannot go on; what holds by then is made consistent."""


class Manager:
    """Runs in one task; nodes obey it in the order of its commands."""

    def __init__(
        self,
        nodes: dict[str, CampaignNode],
        partitions: int,
        replicas: int,
        tasks: Tasks,
        network: Network,
        chosen: random.Random,
    ) -> None:
        self._nodes = nodes
        self._partitions = partitions
        self._wanted_replicas = replicas
        self._tasks = tasks
        self._network = network
        self._chosen = chosen
        self._commands = 0
        self.members: list[str] = []
        self.writes: dict[int, str] = {}  # where each partition takes writes
        self.queries: dict[int, str] = {}  # which node answers for it
        self.replicas: dict[int, list[str]] = {p: [] for p in range(partitions)}
        self.maps: list[dict[int, str]] = []  # of queries; coordinators may have an older one
        self.moves = self.failovers = 0

    def write_node(self, partition: int) -> str | None:
        return self.writes.get(partition)

    def begin(self, members: Iterable[str]) -> None:
        self.members = [*members]
        for partition in range(self._partitions):
            node = self.members[partition % len(self.members)]
            self.writes[partition] = self.queries[partition] = node
            self._nodes[node].copies.activate(partition, anew=True)
        self._publish()
        self.settle()

    def _publish(self) -> None:
        self.maps.append(dict(self.queries))

    def _ask(
        self, name: str, work: Callable[[CampaignNode], _Result], tried: int = TRIED
    ) -> _Result:
        """A command, repeated under new numbers where no answer came."""
        node = self._nodes[name]
        for left in range(tried - 1, -1, -1):
            self._commands += 1
            number = self._commands
            try:
                return self._network.call(name, partial(node.obey, number, partial(work, node)))
            except NodeUnavailableError:
                if not left:
                    raise
            except StaleCommandError:
                if not left:
                    raise NodeUnavailableError(f"{name} came late") from None
        raise AssertionError

    # -- rebalance -------------------------------------------------------------------------------------------

    def rebalance(self, members: Iterable[str]) -> None:
        """Spread partitions evenly over these nodes."""
        wanted = [*members]
        self.members = [*dict.fromkeys([*self.members, *wanted])]
        self.settle()
        for partition in range(self._partitions):
            old = self.queries[partition]
            load = {name: sum(n == name for n in self.queries.values()) for name in wanted}
            new = min(wanted, key=load.__getitem__)
            if old not in wanted or load[old] > load[new] + 1:
                try:
                    self._move(partition, old, new)
                    self.moves += 1
                except (NodeUnavailableError, MoveStoppedError, PartitionStateError):
                    self.settle()
                    break
        if not {*self.queries.values()} - {*wanted}:
            left = [name for name in self.members if name not in wanted]
            self.members = wanted
            self.empty(left)
        self.settle()

    def _move(self, partition: int, old: str, new: str) -> None:
        p = partition
        if old == new:
            return
        self.replicas[p] = [name for name in self.replicas[p] if name != new]
        self._ask(new, lambda n: n.copies.held.setdefault(p, Copy(p)))
        self._ask(new, lambda n: n.indexes.set_partition_states(passive=[p]))
        self._wait_for_copy(p, old, new)
        self._ask(old, lambda n: n.indexes.mark_unindexable([p]))
        target = self._wait_for_copy(p, old, new)
        self._wait(lambda: self._indexed(p, new) >= target.seq)
        self._take_over(p, old, new)
        self._ask(new, lambda n: n.indexes.set_partition_states(active=[p]))
        self.queries[p] = new
        self._publish()
        self._ask(old, partial(_remove, p))
        self.settle()

    def _indexed(self, partition: int, node: str) -> int:
        self._ask(node, lambda n: n.update_index())
        return self._ask(node, lambda n: n.indexed(partition))

    def _wait_for_copy(self, partition: int, old: str, new: str) -> Position:
        target = self._ask(old, lambda n: n.copies.held[partition].position)

        def there() -> bool:
            position = self._ask(new, lambda n: n.copies.held[partition].position)
            return position.uuid == target.uuid and position.seq >= target.seq

        self._wait(there)
        return target

    def _take_over(self, partition: int, old: str, new: str) -> None:
        """The old copy takes no more writes; the new one has all that it took."""
        p = partition

        def stop(node: CampaignNode) -> Position:
            node.copies.held[p].active = False
            return node.copies.held[p].position

        last = self._ask(old, stop)

        def caught_up() -> bool:
            def get(node: CampaignNode) -> Position:
                node.catch_up(node.copies.held[p], old)
                return node.copies.held[p].position

            return self._ask(new, get) == last

        self._wait(caught_up)
        self.writes[p] = new
        self._ask(new, lambda n: n.copies.activate(p, anew=False))

    def _wait(self, there: Callable[[], bool]) -> None:
        for _ in range(25):
            if there():
                return
            self._tasks.sleep(1)
        raise MoveStoppedError

    # -- failover --------------------------------------------------------------------------------------------

    def fail_over(self, dead: str) -> None:
        """The dead node's partitions become active where there are replicas, else anywhere, empty."""
        self.members = [name for name in self.members if name != dead]
        self.failovers += 1
        for partition in range(self._partitions):
            at = [name for name in self.replicas[partition] if name in self.members]
            self.replicas[partition] = at
            if dead not in (self.writes[partition], self.queries[partition]):
                continue
            if self.writes[partition] != dead:  # it had taken over already
                new = self.writes[partition]
            else:
                new = at[0] if at else self._chosen.choice(self.members)
                self.writes[partition] = new
                self._activate(new, partition, anew=True)
            self.queries[partition] = new
        self._publish()
        self.settle()

    def _activate(self, node: str, partition: int, *, anew: bool) -> None:
        while True:
            try:
                self._ask(node, lambda n: n.copies.activate(partition, anew=anew))
            except NodeUnavailableError:
                self._tasks.sleep(3)
            else:
                return

    # -- what has to hold ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Make every member have what the maps say; whoever does not answer has it said later again."""
        for partition in range(self._partitions):
            if self.queries[partition] != self.writes[partition]:
                self.queries[partition] = self.writes[partition]
                self._publish()
            self._choose_replicas(partition)
        for name in self.members:
            self._instruct(name)

    def _choose_replicas(self, partition: int) -> None:
        kept = [
            name
            for name in self.replicas[partition]
            if name in self.members and name != self.writes[partition]
        ][: self._wanted_replicas]
        others = [n for n in self.members if n not in (*kept, self.writes[partition])]
        while len(kept) < self._wanted_replicas and others:
            kept.append(others.pop(self._chosen.randrange(len(others))))
        self.replicas[partition] = kept

    def _instruct(self, name: str) -> None:
        active = [p for p, node in self.writes.items() if node == name]
        replicas = [p for p, nodes in self.replicas.items() if name in nodes]

        def work(node: CampaignNode) -> None:
            for p in active:
                node.copies.activate(p, anew=False)
            for p in replicas:
                node.copies.held.setdefault(p, Copy(p))
            for p in [*node.copies.held]:
                if p not in active and p not in replicas:
                    del node.copies.held[p]
            indexes = node.indexes
            everything = range(self._partitions)
            indexes.mark_indexable(everything)
            indexes.set_partition_states(
                active=active, cleanup=[p for p in everything if p not in active]
            )
            indexes.remove_replicas([p for p in everything if p not in replicas])
            indexes.add_replicas(replicas)

        for _ in range(3):
            try:
                self._ask(name, work)
            except (NodeUnavailableError, PartitionStateError):
                self._tasks.sleep(2)
            else:
                return

    def empty(self, names: Iterable[str]) -> None:
        """Nodes that left have nothing any more."""
        for name in names:
            if self._network.up.get(name, 0):
                self._instruct(name)


def _remove(partition: int, node: CampaignNode) -> None:
    node.indexes.mark_indexable([partition])
    node.indexes.set_partition_states(cleanup=[partition])
