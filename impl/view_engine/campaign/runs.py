"""One run: a cluster of some nodes under everything that may happen to it, all of it decided by a seed."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from functools import partial
from pathlib import Path

from stagewright.impl.recording.recording import Recording
from stagewright.impl.view_engine.campaign.copies import Copies, Copy, History
from stagewright.impl.view_engine.campaign.counts import Counts
from stagewright.impl.view_engine.campaign.drawing import draw_query
from stagewright.impl.view_engine.campaign.manager import Manager
from stagewright.impl.view_engine.campaign.network import Network
from stagewright.impl.view_engine.campaign.node import CampaignNode, Remote
from stagewright.impl.view_engine.campaign.oracle import (
    VIEWS,
    WrongAnswerError,
    check_answer,
    partition_of_document,
)
from stagewright.impl.view_engine.campaign.tasks import Tasks
from stagewright.impl.view_engine.campaign.traces import tables
from stagewright.impl.view_engine.cluster.coordinator import ClusterQueryError, Coordinator, OnError
from stagewright.impl.view_engine.cluster.messages import NodeUnavailableError
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.header import contradictions
from stagewright.impl.view_engine.index.files import index_path
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.trace.trace import Trace
from stagewright.impl.view_engine.tree.check import check_file

DESIGN = DesignDocument("d", VIEWS)
MOST_WRITES = 150
MOST_QUERIES = 25


class Run:
    """Built from its seed; `go` raises what is wrong."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        chosen = self._chosen = random.Random(f"run {seed}")
        self.tasks = Tasks(f"tasks {seed}", switching=chosen.choice((0.05, 0.3, 0.7)))
        self.network = Network(self.tasks, f"network {seed}", chosen.choice((0, 0.03, 0.2)))
        self.partitions = chosen.choice((3, 4, 6))
        self.history = History()
        self.counts = Counts()
        self.nodes: dict[str, CampaignNode] = {}
        self.logs: dict[str, list[str]] = {}
        self.recording = Recording(tables(), lambda: round(self.tasks.now * 1_000_000))
        self.manager = Manager(
            self.nodes,
            self.partitions,
            chosen.choice((0, 1, 1, 2)),
            self.tasks,
            self.network,
            random.Random(f"manager {seed}"),
        )
        for number in range(chosen.randint(2, 5)):
            name = f"n{number}"
            self.nodes[name] = CampaignNode(
                name,
                folder / name,
                Copies(self.history),
                DESIGN,
                self.partitions,
                self.tasks,
                self.network,
                self.manager.write_node,
                self.nodes.__getitem__,
                random.Random(f"{name} {seed}"),
                self.logs.setdefault(name, []),
                self.recording,
            )
        self._over = False
        self._asked = 0

    def go(self) -> Counts:
        """Raises WrongAnswerError, or whatever went wrong besides."""
        try:
            self.tasks.run(self._drive)
        finally:
            self._count()
        return self.counts

    def end_somehow(self) -> Exception | None:
        """Let the run go on as far as it does; gives what went wrong."""
        try:
            self.go()
        except Exception as error:  # noqa: BLE001 - what there is of its logs is checked by itself
            return error
        finally:
            self.close()
        return None

    def write_logs(self, folder: Path) -> list[Path]:
        """The log of each node that wrote one, as a file."""
        paths: list[Path] = []
        for node, records in self.logs.items():
            if records:
                paths.append(folder / f"{node}.couchdb.log")
                paths[-1].write_text("".join(records), "utf-8")
        return paths

    def close(self) -> None:
        """Let go of the files."""
        for node in self.nodes.values():
            with suppress(NodeUnavailableError):
                node.streams.close_all()
                for group in node.groups:
                    group.index.file.close()

    # -- the story -------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        chosen, manager = self._chosen, self.manager
        names = [*self.nodes]
        members = names[: chosen.randint(2, len(names))]
        for node in self.nodes.values():
            node.start()
        self.tasks.sleep(0.1)
        manager.begin(members)
        for _ in range(chosen.choice((0, 20))):
            self._write(chosen)
        workers = [
            self.tasks.start(self._write_often, "writer"),
            self.tasks.start(self._query_often, "client 1"),
            self.tasks.start(self._query_often, "client 2"),
        ]
        for _ in range(chosen.randint(1, 3)):
            self.tasks.sleep(chosen.random() * 6)
            self._happen(chosen, names)
        self._over = True
        for worker in workers:
            worker.join()
        self._end(names)

    def _happen(self, chosen: random.Random, names: list[str]) -> None:
        """One thing that the manager does, or that befalls a node."""
        manager = self.manager
        match chosen.randrange(6):
            case 0 | 1 | 2:
                wanted = chosen.sample(names, chosen.randint(1, len(names)))
                if chosen.random() < 0.4:
                    self.tasks.start(self._restart_some_node, "fault")
                manager.rebalance(wanted)
            case 3:
                self._restart_some_node()
            case _:
                if len(manager.members) > 1:
                    self._fail_over_some_node(chosen)
        manager.settle()

    def _restart_some_node(self) -> None:
        chosen = self._chosen
        self.tasks.sleep(chosen.random() * 8)
        node = self.nodes[chosen.choice([*self.nodes])]
        self._crash(node)
        self.tasks.sleep(chosen.random() * 30)
        node.start()
        for partition, copy in node.copies.held.items():
            if copy.active and chosen.random() < 0.6:
                node.copies.lose(partition, chosen.randrange(8))

    def _fail_over_some_node(self, chosen: random.Random) -> None:
        dead = self.nodes[chosen.choice(self.manager.members)]
        self._crash(dead)
        self.tasks.sleep(chosen.random() * 5)
        self.manager.fail_over(dead.name)
        self.tasks.sleep(chosen.random() * 20)
        dead.start()
        if chosen.random() < 0.5:
            self.manager.rebalance([*self.manager.members, dead.name])

    def _crash(self, node: CampaignNode) -> None:
        self.counts.crashes += 1
        node.crash()

    # -- clients ---------------------------------------------------------------------------------------------

    def _write_often(self) -> None:
        chosen = random.Random(f"writer {self.seed}")
        while not self._over and self.counts.writes < MOST_WRITES:
            for _ in range(chosen.randrange(8)):
                self._write(chosen)
            self.tasks.sleep(chosen.random() * 3)

    def _write(self, chosen: random.Random) -> None:
        doc_id = f"d{chosen.randrange(40)}"
        numbers = [chosen.randrange(100) for _ in range(chosen.randrange(4))]
        body = json.dumps({"numbers": numbers}).encode() if chosen.random() < 0.8 else None
        partition = partition_of_document(doc_id, self.partitions)
        node = self.manager.write_node(partition)
        if node is not None and self.nodes[node].copies.write(partition, doc_id.encode(), body):
            self.counts.writes += 1

    def positions(self) -> dict[int, Position]:
        found: dict[int, Position] = {}
        for partition in range(self.partitions):
            node = self.manager.write_node(partition)
            copy: Copy | None = (
                None if node is None else self.nodes[node].copies.held.get(partition)
            )
            if copy is not None and copy.log:
                found[partition] = copy.position
        return found

    def _query_often(self) -> None:
        self._asked += 1
        chosen = random.Random(f"client {self.seed} {self._asked}")
        while not self._over and self.counts.answers + self.counts.refused < MOST_QUERIES:
            self.tasks.sleep(chosen.random() * 5)
            coordinator = chosen.choice([*self.nodes])
            view, query = draw_query(chosen, self.partitions)
            asked = partial(self._ask, view, query, chosen)
            asking = self.tasks.start(asked, "query", owner=coordinator)
            answers = self.counts.answers + self.counts.refused
            asking.join()
            if self.counts.answers + self.counts.refused == answers:
                self.counts.coordinators_died += 1

    def _ask(self, view: str, query: Query, chosen: random.Random, *, final: bool = False) -> None:
        self._asked += 1
        maps = self.manager.maps

        def placement() -> dict[int, str]:
            return maps[-1] if final or chosen.random() < 0.7 else chosen.choice(maps[-3:])

        coordinator = Coordinator(
            f"q{self._asked}",
            lambda name: Remote(self.nodes[name], self.network),
            placement,
            scheduler=self.tasks,
            pause=lambda: self.tasks.sleep(1),
            trace=Trace(self.recording.take, "client"),
        )
        before = self.positions()
        on_error: OnError = "stop" if final or chosen.random() < 0.5 else "continue"
        try:
            answer = coordinator.query(DESIGN, view, query, on_error)
        except (ClusterQueryError, NodeUnavailableError) as error:
            if final or "update of the index failed" in str(error):
                raise
            self.counts.refused += 1
            return
        self.counts.answers += 1
        self.counts.with_errors += bool(answer.errors)
        check_answer(
            self.history,
            self.partitions,
            view,
            query,
            answer,
            before,
            self.positions(),
        )

    # -- the end ---------------------------------------------------------------------------------------------

    def _end(self, names: list[str]) -> None:
        """Without faults all becomes well: every index has what was written, and every file is whole."""
        self.network.loss = 0
        for _ in range(2):
            self.tasks.sleep(20)
            self.manager.settle()
            self.manager.empty(name for name in names if name not in self.manager.members)
        for view in VIEWS:
            self._ask(view, Query(reduce=False), self._chosen, final=True)
        for left in range(40, -1, -1):
            try:
                for name in names:
                    self._check_node(self.nodes[name])
                break
            except WrongAnswerError:
                if not left:
                    raise
                self.tasks.sleep(10)

    def _count(self) -> None:
        self.counts.switches = self.tasks.switches
        self.counts.compactions = sum(node.compactions for node in self.nodes.values())
        self.counts.transfers = sum(node.transfers for node in self.nodes.values())
        self.counts.moves = self.manager.moves
        self.counts.failovers = self.manager.failovers

    def _check_node(self, node: CampaignNode) -> None:
        indexes = node.indexes
        if indexes.on_transfer:
            raise WrongAnswerError(
                f"{node.name} does not end the transfer of {indexes.on_transfer}"
            )
        served = [p for p, at in self.manager.queries.items() if at == node.name]
        copied = [p for p, at in self.manager.replicas.items() if node.name in at]
        for group, mine in zip(node.groups, (served, copied), strict=True):
            header = group.header
            if wrong := contradictions(header):
                raise WrongAnswerError(f"{node.name} {group.kind}: {wrong[0]}")
            there = sorted(header.seqs)
            if there != sorted(mine) or header.unindexable_seqs:
                raise WrongAnswerError(f"{node.name} {group.kind}: {there} instead of {mine}")
            path = index_path(group.folder, group.kind, group.design.signature, group.number)
            disk = RealDisk(path, read_only=True)
            problems = check_file(disk).problems
            disk.close()
            if problems:
                raise WrongAnswerError(f"{node.name} {group.kind}: {problems[0]}")
