"""The lines of the topology coordinator about tablets: stages that they are to enter, what it asks of replicas, and its end."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.columns import TABLETS
from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.group0 import Commit
from stagewright.impl.node.messages import Order, OrderDone, Work
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.server_log.lines import TOPOLOGY, Level, tablet_id
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Run, Stage

Say = Callable[[str, str, Level, int], None]
"""Write a line of a logger: its words, how much it matters, the shard."""

_OF_TABLETS = {
    Work.stream_tablet: Run.streaming,
    Work.repair_tablet: Run.repair,
    Work.clean_tablet: Run.cleanup,
}
# upstream logs neither of these, nor the stage that a transition begins with
_UNSAID = ("", Stage.none.name)


class TabletLines:
    """The lines of one life of a node, while it is the coordinator."""

    def __init__(self, say: Say, node: DatabaseNode) -> None:
        self._say = say
        self._node = node

    def _write(self, text: str, level: Level = Level.INFO) -> None:
        self._say(TOPOLOGY, text, level, 0)

    def orders(self, to: str, order: Order) -> None:
        """The coordinator has a node do something about a tablet."""
        if order.work not in _OF_TABLETS:
            return
        row = self._node.context.view.tablet(order.table, order.tablet)
        tablet = tablet_id(order.table, order.tablet)
        replica = f"{host_id_of(to)}:0"
        kind = "migration" if row is None or row.kind is None else row.kind.name
        if order.work is Work.repair_tablet:
            what = "tablet repair" if kind == "repair" else "repair phase of tablet rebuild"
            self._write(f"Initiating {what} host={host_id_of(to)} tablet={tablet}")
            return
        if order.work is Work.stream_tablet:
            self._write(f"Initiating tablet streaming ({kind}) of {tablet} to {replica}")
            return
        reverts = row is not None and row.tablet.stage is Stage.cleanup_target
        end = " to revert migration" if reverts else ""
        self._write(f"Initiating tablet cleanup of {tablet} on {replica}{end}")

    def ended(self, done: OrderDone) -> None:
        """A replica answers: with the last one, what the stage is for has ended."""
        coordinator = self._node.coordinator
        if coordinator is None or coordinator.leadership.term != done.term:
            return
        for job in coordinator.orders.jobs.values():
            if job.work not in _OF_TABLETS or {*job.numbers} != {done.number}:
                continue
            row = self._node.context.view.tablet(*job.tablet)
            if row is None or row.tablet.stage.action is not _OF_TABLETS[job.work]:
                continue  # the stage was left without it, as a replica was given up meanwhile
            of = f"{job.key[0]} for tablet {tablet_id(*job.tablet)}"
            problems = [*job.problems, *([] if done.succeeded else [done.reason])]
            if problems:
                self._write(f"{of} failed: {problems[0]}", Level.WARN)
            self._write(f"{of} resolved.", Level.DEBUG)

    def plans(self, request: Commit) -> None:
        """The stages that tablets are to enter."""
        rows = self._node.context.view.tablets
        for change in request.command.mutations:
            stage = (change.columns or {}).get("stage") or ""
            if change.table != TABLETS or stage in _UNSAID:
                continue
            table, last = change.key
            row = next(r for r in rows.get(table, ()) if str(r.range[1]) == last)
            if row.tablet.stage.name in (Stage.none.name, stage):  # none is entered
                continue
            if row.tablet.stage is Stage.cleanup:
                self._nobody_cleans(row)
            text = f"Will set tablet {tablet_id(table, row.number)} stage to {stage}"
            self._write(text, Level.DEBUG)

    def _nobody_cleans(self, row: TabletRow) -> None:
        """Of a replica that is given up, and where none leaves, nothing is asked; nor within a node, whose shards share rows."""
        tablet, leaving = tablet_id(row.table, row.number), row.hosts[Role.leaving]
        gone = [h for h in leaving if h in self._node.context.view.given_up]
        if row.kind is Kind.intranode_migration:
            (replica,) = {*row.tablet.replicas} - {*(row.tablet.next or ())}
            place = f"{host_id_of(replica.host)}:{replica.shard}"
            self._write(f"Initiating tablet cleanup of {tablet} on {place}")
        elif not leaving:
            self._write(f"Tablet cleanup of {tablet} skipped because no replicas leaving")
        elif gone:
            place = f"{host_id_of(gone[0])}:0"
            self._write(f"Tablet cleanup of {tablet} on {place} skipped because node is excluded")
        else:
            return
        self._write(f"cleanup for tablet {tablet} resolved.", Level.DEBUG)
