"""CREATE and DROP of a table, with its log and its tablets if it has any: any node commits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import TABLES, TABLETS, Row
from stagewright.impl.catalog.names import (
    drop_of_table,
    name_of,
    new_id,
    refuse_late,
    was_dropped,
)
from stagewright.impl.catalog.stream_rows import STREAMS
from stagewright.impl.catalog.tablet_rows import rows_of
from stagewright.impl.catalog.view import View
from stagewright.impl.cdc.rows import log_of
from stagewright.impl.group0 import Command, Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import CreateTable
from stagewright.impl.tablets.allocation import allocated
from stagewright.impl.tablets.resizing import streams_from
from stagewright.impl.topology.planning import Board, step_of
from stagewright.impl.views.building.tasks import TASKS, tasks_in
from stagewright.machines.scylladb.cluster import Node
from stagewright.spec.errors import RefusedError
from stagewright.spec.text.counting import counted


def create_table(node: Context, request: CreateTable) -> Command | None:
    """The command that makes a table, and its log; None: it is there already, and the same.

    Raises:
        RefusedError: the name is taken, or was since this was asked, or there are too few nodes.
    """
    catalog, name = node.catalog, name_of(request.table)
    known, table = catalog.tables[TABLES], meant(node, request.table)
    if node.has(Defect.recreated_tables_are_the_same):
        table = name
    if table in node.view.views:
        raise RefusedError(f"there is a view {name}", (), help="choose another name")
    if (table,) in known:
        _refuse_another(table, known, _rows_of(table, request))
        return None
    if not node.has(Defect.recreated_tables_are_the_same):
        refuse_late(catalog.tables, table)
    made, text = _rows_of(table, request), f"create table {name}"
    if not request.tablets:
        return Command(text, mutations=tuple(made))
    layout = allocated(node.view, request.tablets, request.replicas, node.down)
    board = Board(node.rules, catalog)
    board.see(node.down)
    board.add_table(layout)
    rows = (*made, *rows_of(table, layout))
    if request.cdc:
        rows = (*rows, streams_from(node, table, layout, node.time()))
    return board.command(text, catalog, node.details(), rows)


def _rows_of(table: str, request: CreateTable) -> list[Mutation]:
    """The row of the table, and that of its log."""
    row: dict[str, Any] = {"replicas": request.replicas, "tablets": request.tablets}
    made = [Mutation(TABLES, (table,), row)]
    if request.cdc:
        options = {"log_of": table, "preimage": request.images, "ttl": request.ttl}
        made.append(Mutation(TABLES, (log_of(table),), {**row, "tablets": 0, **options}))
    return made


def _refuse_another(
    table: str, known: Mapping[tuple[str, ...], Row], made: Sequence[Mutation]
) -> None:
    """A table that is there already is as good as made, if it and its log are the same.

    Raises:
        RefusedError: it has other replicas or tablets, or is logged otherwise.
    """
    wanted = {m.key: {**(m.columns or {})} for m in made}
    log = (log_of(table),)
    has, keeps = known[table,], known.get(log)
    asked = wanted.get(log)
    logged = None if keeps is None else (keeps["preimage"], keeps["ttl"])
    if has.items() >= wanted[table,].items() and logged == (
        asked and (asked["preimage"], asked["ttl"])
    ):
        return
    changes = "no log of changes"
    if logged is not None:
        images, ttl = logged
        changes = f"a log of changes{' and images' if images else ''}, kept {f'for {ttl / 1000:g} s' if ttl else 'for ever'}"
    tablets = counted(has["tablets"], "tablet") if has["tablets"] else "no tablets"
    size = f"{tablets}, {counted(has['replicas'], 'replica')}"
    raise RefusedError(
        f"there is a table {name_of(table)} with {size} and {changes}",
        (),
        help="choose another name",
    )


def meant(node: Context, thing: str) -> str:
    """The table or view that a statement is about, which has an id: also if there is another one of its name by now."""
    if not node.has(Defect.statements_act_on_names):
        return thing
    there = node.view.named(name_of(thing))
    return there if there in node.view.tables else new_id(node.catalog.tables, name_of(thing))


def drop_table(node: Context, table: str) -> Command | None:
    """The command that drops a table with its log, whatever is done to it; None: it was dropped before.

    Nodes remove the rows when they learn of it.

    Raises:
        RefusedError: there never was such a table, it is a view or a log, or it has views.
    """
    catalog, view = node.catalog, node.view
    table = meant(node, table)
    if table not in view.tables and was_dropped(catalog.tables, table):
        return None
    _refuse_to_drop(view, table)
    board = Board(node.rules, catalog)
    for host in sorted(emptied(node, view, table)):
        board.take(step_of("drop_table", n=Node(host)))
    rows = [Mutation(TABLES, (one,), None) for one in view.families(table)]
    rows += drop_of_table(catalog.tables, table)
    rows += [Mutation(TABLETS, row.key, None) for row in view.tablets.get(table, ())]
    rows += [Mutation(STREAMS, key, None) for key in catalog.tables[STREAMS] if key[0] == table]
    rows += _tasks(board, catalog, table)
    return board.command(f"drop table {name_of(table)}", catalog, node.details(), rows)


def _refuse_to_drop(view: View, table: str) -> None:
    name = name_of(table)
    if table in view.views:
        raise RefusedError(f"{name} is a view", (), help=f"drop view {name}")
    if table not in view.tables:
        known = ", ".join(sorted(map(name_of, view.tables))) or "none"
        raise RefusedError(f"there is no table {name}", (), help=f"known: {known}")
    base = next((base for base, log in view.logs.items() if log == table), "")
    if base:
        problem = f"{name} is the log of the changes of {name_of(base)}, and goes with it"
        raise RefusedError(problem, (), help=f"drop table {name_of(base)}")
    if views := view.views_of(table):
        names = ", ".join(sorted(name_of(v.name) for v in views))
        raise RefusedError(f"{name} has views: {names}", (), help="drop them first")


def _tasks(board: Board, catalog: Catalog, table: str) -> list[Mutation]:
    """The tasks of rows that were staged for views which it had: they end with it."""
    found = [t for t in tasks_in(catalog.tables).values() if t.place.base == table]
    for task in found:
        board.take_on(task.instance(), step_of("drop"))
    return [Mutation(TASKS, (task.id,), None) for task in found]


def emptied(node: Context, view: View, table: str) -> set[str]:
    """The nodes that hold tablets of a table, or view, alone: they hold none when it is dropped.

    A tablet that is on its way to a node is not there yet.
    """
    early = node.has(Defect.tablets_that_come_are_counted)
    others = [row for other, rows in view.tablets.items() if other != table for row in rows]
    stay = {r.host for row in others for r in row.tablet.replicas}
    come = {r.host for row in others for r in row.tablet.next or ()}
    mine = {r.host for row in view.tablets.get(table, ()) for r in row.tablet.replicas}
    return mine - stay - (come if early else set[str]())
