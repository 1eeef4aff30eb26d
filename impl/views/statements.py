"""CREATE and DROP of a view: any node commits them, with the tasks that they bring or end."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.catalog.columns import TABLES, TABLETS
from stagewright.impl.catalog.names import drop_of, name_of, refuse_late
from stagewright.impl.catalog.tablet_rows import rows_of
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Command, Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.runtime import Instance
from stagewright.impl.tablets.allocation import allocated
from stagewright.impl.tablets.replication import is_altered
from stagewright.impl.tablets.statements import emptied, meant
from stagewright.impl.tablets.truncation import is_being_truncated
from stagewright.impl.topology.planning import Board, step_of
from stagewright.impl.views.building.choices import choices, places_of
from stagewright.impl.views.building.tasks import (
    BUILD,
    BUILT,
    STATUS,
    TASKS,
    Task,
    row_of,
    task_program,
    tasks_in,
)
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views import view_coordinator as machine
from stagewright.spec.errors import RefusedError


def create_view(node: Context, wanted: ViewDefinition) -> Command | None:
    """The command that makes a view with as many tablets as its base table; None: it is there already.

    Raises:
        RefusedError: there is no such base table, it is no table of tablets, or the name is taken, or was since this was
            asked.
    """
    catalog, view = node.catalog, node.view
    name = name_of(wanted.name)
    made_again = node.has(Defect.recreated_views_are_the_same)
    wanted = replace(
        wanted,
        name=name if made_again else meant(node, wanted.name),
        base=meant(node, wanted.base),
    )
    if view.views.get(wanted.name) == wanted:
        return None
    _refuse(view, wanted)
    if not made_again:
        refuse_late(catalog.tables, wanted.name)
    layout = allocated(view, len(view.tablets[wanted.base]), view.tables[wanted.base], node.down)
    board = Board(node.rules, catalog)
    board.see(node.down)
    board.add_table(layout)
    made = choices(catalog.tables, view, bases=(wanted.base,), coming=wanted.name)
    board.take_on(made, step_of("create_view", v=machine.View(wanted.name)))
    row = {"replicas": view.tables[wanted.base], "tablets": len(layout.tablets), **wanted.columns}
    rows = [Mutation(TABLES, (wanted.name,), row), *rows_of(wanted.name, layout)]
    for place in places_of(view, wanted.base):
        task = Task(node.new_id(), BUILD, False, wanted.name, place)
        board.take_on(Instance(task_program(), name=task.id), step_of("create"))
        rows.append(row_of(task))
    return board.command(f"create view {wanted.name}", catalog, node.details(), rows)


def _refuse(view: View, wanted: ViewDefinition) -> None:
    base = name_of(wanted.base)
    if wanted.name in view.tables:
        problem = f"there is a {name_of(wanted.name)} already"
        raise RefusedError(problem, (), help="choose another name")
    if wanted.base not in view.tables:
        raise RefusedError(f"there is no table {base}", (), help="create it first")
    if wanted.base in view.views or wanted.base not in view.tablets:
        problem = f"{base} is no table of tablets"
        raise RefusedError(
            problem, (), help="make a view of a table that has tablets, and is no view"
        )
    if is_being_truncated(view, wanted.base):
        raise RefusedError(f"{base} is being truncated", (), help="wait until that is done")
    if is_altered(view, wanted.base):
        problem = f"the replicas of {base} change"
        raise RefusedError(problem, (), help="wait until that is done")


def drop_view(node: Context, name: str) -> Command | None:
    """The command that drops a view, by its id, with its tasks; None: it is not there any more."""
    catalog, view = node.catalog, node.view
    name = meant(node, name)
    known = view.views.get(name)
    if known is None:
        return None
    board = Board(node.rules, catalog)
    for host in sorted(emptied(node, view, name)):
        board.take(step_of("drop_table", n=Node(host)))
    made = choices(catalog.tables, view, bases=(known.base,))
    board.take_on(made, step_of("drop_view", v=machine.View(name)))
    rows = [Mutation(TABLES, (name,), None), drop_of(catalog.tables, name_of(name))]
    rows += [Mutation(TABLETS, row.key, None) for row in view.tablets[name]]
    rows += [Mutation(STATUS, key, None) for key in catalog.tables[STATUS] if key[0] == name]
    rows += [Mutation(BUILT, key, None) for key in catalog.tables[BUILT] if key[0] == name]
    for task in tasks_in(catalog.tables).values():
        if task.view == name and not node.has(Defect.tasks_outlive_their_view):
            board.take_on(task.instance(), step_of("drop"))
            rows.append(Mutation(TASKS, (task.id,), None))
    return board.command(f"drop view {name}", catalog, node.details(), rows)
