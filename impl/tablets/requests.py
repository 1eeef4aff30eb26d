"""What operators ask of a table: of its tablets, what becomes columns of their rows, which the track reads; or its end."""

from __future__ import annotations

from stagewright.impl.catalog.columns import TABLES
from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Command, Mutation
from stagewright.impl.group0.member import Plan
from stagewright.impl.node.context import Context
from stagewright.impl.node.messages.tables import (
    AlterTable,
    DropTable,
    MoveTablet,
    RepairTable,
    Resize,
    ResizeTable,
    SetBalancing,
    TableChange,
    TruncateTable,
)
from stagewright.impl.tablets.allocation import refuse_too_many
from stagewright.impl.tablets.moves_by_hand import ask_to_move, switch_balancing
from stagewright.impl.tablets.replication import is_altered, staying
from stagewright.impl.tablets.statements import drop_table
from stagewright.impl.tablets.truncation import truncate_table
from stagewright.spec.errors import RefusedError

MOST_TABLETS = 1024
_PAST = {Resize.split: "split", Resize.merge: "merged"}


def plan_of(node: Context, request: TableChange) -> Plan:
    """The command that writes down what is asked for, made from what the node has learned."""
    return lambda: _written(node, request)


def _written(node: Context, request: TableChange) -> Command | None:
    match request:
        case RepairTable():
            return _repair(node, request)
        case AlterTable():
            return _alter(node, request)
        case ResizeTable():
            return _resize(node, request)
        case MoveTablet():
            return ask_to_move(node.view, _tablets_of(node.view, request.table), request)
        case DropTable():
            return drop_table(node, request.table)
        case TruncateTable():
            return truncate_table(node, request)
        case SetBalancing():
            return switch_balancing(node.view, request)


def _repair(node: Context, request: RepairTable) -> Command:
    table = request.table
    rows = _tablets_of(node.view, table)
    if any(row.repair for row in rows):
        raise RefusedError(
            f"{name_of(table)} is being repaired", (), help="wait until that is done"
        )
    task = {"repair_task_info": node.new_id()}
    asked = tuple(Mutation("tablets", row.key, task) for row in rows)
    return Command(f"repair of the tablets of {name_of(table)} is requested", mutations=asked)


def _alter(node: Context, request: AlterTable) -> Command | None:
    view, table, replicas = node.view, request.table, request.replicas
    _tablets_of(view, table)
    if table in view.views:
        problem = f"{name_of(table)} is a view: it has as many replicas as its base table"
        raise RefusedError(problem, (), help=f"alter {name_of(view.views[table].base)}")
    if view.tables[table] == replicas:
        return None
    _refuse_altered(view, table)
    refuse_too_many(len(staying(view)), replicas)
    text = f"alter table {name_of(table)}: {view.tables[table]} to {replicas} replicas"
    tables = (table, *(v.name for v in view.views_of(table)))
    return Command(
        text, mutations=tuple(Mutation(TABLES, (t,), {"replicas": replicas}) for t in tables)
    )


def _resize(node: Context, request: ResizeTable) -> Command:
    """A decision, with a number of its own."""
    view, table, resize = node.view, request.table, request.resize
    count = len(_tablets_of(view, table))
    if resize is Resize.merge and count == 1:
        raise RefusedError(
            f"{name_of(table)} has one tablet", (), help="there is none to merge it with"
        )
    if resize is Resize.split and count * 2 > MOST_TABLETS:
        problem = f"{name_of(table)} has {count} tablets, and {MOST_TABLETS} are the most"
        raise RefusedError(problem, (), help="leave it as it is")
    _refuse_altered(view, table)
    last: int = node.catalog.tables[TABLES][table,].get("resize_seq_number", 0)
    row = {"resize_type": resize.value, "resize_seq_number": last + 1}
    text = f"Emitting resize decision of type {resize.value} for table {name_of(table)}"
    return Command(text, mutations=(Mutation(TABLES, (table,), row),))


def _refuse_altered(view: View, table: str) -> None:
    """Nothing changes twice at once.

    Raises:
        RefusedError: the replicas of the table change, or those of a view of it.
    """
    for one in (table, *(v.name for v in view.views_of(table))):
        if is_altered(view, one):
            raise RefusedError(
                f"the replicas of {name_of(one)} change", (), help="wait until that is done"
            )


def _tablets_of(view: View, table: str) -> tuple[TabletRow, ...]:
    """The tablets of a table.

    Raises:
        RefusedError: there is no such table, or it has none.
    """
    if table not in view.tablets:
        known = ", ".join(sorted(map(name_of, view.tablets))) or "none"
        raise RefusedError(
            f"there is no table {name_of(table)} of tablets", (), help=f"known: {known}"
        )
    if table in view.resizes:
        problem = f"the tablets of {name_of(table)} are to be {_PAST[Resize(view.resizes[table])]}"
        raise RefusedError(problem, (), help="wait until that is done")
    return view.tablets[table]
