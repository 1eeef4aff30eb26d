"""What becomes of view building tasks when tablets move, and when they are split or merged: in the same commands.

Tasks of a replica that leaves are aborted when writes begin to go to both; when the operation ends, others with new
ids take their places, on the replica that has come, or where they were if it was undone. A replica that comes beside the
others gets a task of its own for each view that is not built yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.group0 import Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.ring.tablets import TabletMap, TabletReplica
from stagewright.impl.runtime import Instance
from stagewright.impl.topology.planning import Board, step_of
from stagewright.impl.views.building.tasks import (
    BUILD,
    STAGING,
    TASKS,
    Place,
    Task,
    row_of,
    status_in,
    task_program,
    tasks_in,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus


def follow(
    board: Board, node: Context, moves: Iterable[tuple[TabletRow, Mutation]]
) -> Iterator[Mutation]:
    """The rows of tasks that change with those of tablets, each with its step."""
    moves = tuple(moves)
    changed = [*_follow(board, node, moves)]
    yield from changed
    for view in sorted({row.table for row, mutation in moves if _is_lost(node, row, mutation)}):
        yield from _anew(board, node, view, moves, changed)


def _follow(
    board: Board, node: Context, moves: Iterable[tuple[TabletRow, Mutation]]
) -> Iterator[Mutation]:
    tasks = [*tasks_in(node.catalog.tables).values()]
    for row, mutation in moves if tasks or node.view.views else ():
        columns = mutation.columns or {}
        if "stage" not in columns or row.tablet.next is None:
            continue
        then = row.tablet.next
        gone = [r for r in row.tablet.replicas if r not in then]
        come = [r for r in then if r not in row.tablet.replicas]
        mine = [t for t in tasks if _is_of(t, row, gone)]
        if columns["stage"] == Stage.write_both_read_old.name:
            yield from _abort(board, mine)
        elif columns["stage"] is None and row.tablet.stage is Stage.end_migration:
            if node.has(Defect.tasks_stay_behind):
                continue
            if node.has(Defect.staging_tasks_stay_behind):
                mine = [t for t in mine if t.type != STAGING]
            yield from _replace(board, node, mine, dict(zip(gone, come, strict=False)))
            yield from _new_replicas(board, node, row, come[len(gone) :])
        elif columns["stage"] is None:
            back = [t for t in mine if t.aborted]
            if node.has(Defect.tasks_of_undone_moves_stay_aborted):
                back = []
            yield from _replace(board, node, back, {r: r for r in gone})
            # What the replica has staged that does not come is cleaned up with it.
            yield from _replace(board, node, [t for t in tasks if _is_of(t, row, come)], {})


def _new_replicas(
    board: Board, node: Context, row: TabletRow, come: list[TabletReplica]
) -> Iterator[Mutation]:
    """Tasks of replicas that take nobody's place, for the views that are not built."""
    tables = node.catalog.tables
    for view in sorted(v.name for v in node.view.views_of(row.table)):
        if status_in(tables, view) is ViewStatus.success:
            continue
        for replica in come:
            place = Place(row.table, row.range[1], replica)
            yield _created(board, Task(node.new_id(), BUILD, False, view, place))


def _is_lost(node: Context, row: TabletRow, mutation: Mutation) -> bool:
    """Whether another replica takes the place of one that a view has lost while it is built.

    If that one is back meanwhile, it may be too late to ask it for what it had.
    """
    stage = (mutation.columns or {}).get("stage", row.tablet.stage)
    if stage is not None or row.tablet.stage is not Stage.end_migration:
        return False
    if row.table not in node.view.views:
        return False
    started = status_in(node.catalog.tables, row.table) is ViewStatus.started
    return started and bool(row.lost)


def _anew(
    board: Board,
    node: Context,
    view: str,
    moves: tuple[tuple[TabletRow, Mutation], ...],
    changed: list[Mutation],
) -> Iterator[Mutation]:
    """All base replicas build a view anew that has lost a replica.

    One of them, which may be done, had put its rows there alone; who takes that place has what the others had.
    `changed` is what becomes of tasks in the same command.
    """
    rows = dict(node.catalog.tables[TASKS])
    for mutation in changed:
        known = rows.pop(mutation.key, {})
        if mutation.columns is not None:
            rows[mutation.key] = {**known, **mutation.columns}
    settled: set[Place] = set()  # tasks that are new, or that others replace when the move ends
    for task in [t for t in tasks_in({TASKS: rows}).values() if t.view == view and t.type == BUILD]:
        if task.aborted or (task.id,) not in node.catalog.tables[TASKS]:
            settled.add(task.place)
            continue
        instance = task.instance()
        board.take_on(instance, step_of("abort"))
        board.take_on(instance, step_of("give_way"))
        yield Mutation(TASKS, (task.id,), None)
    ends = {
        row.name: row.tablet.next
        for row, m in moves
        if row.tablet.stage is Stage.end_migration and (m.columns or {}).get("stage", "") is None
    }
    for base in node.view.tablets[node.view.views[view].base]:
        for replica in ends.get(base.name) or base.tablet.replicas:
            place = Place(base.table, base.range[1], replica)
            if place not in settled:
                yield _created(board, Task(node.new_id(), BUILD, False, view, place))


def resized(board: Board, node: Context, table: str, after: TabletMap) -> Iterator[Mutation]:
    """The rows of tasks that change as a table gets other tablets: n becomes 2n and 2n + 1, or n / 2.

    Of tasks that come to be of one tablet and replica, one is made.
    """
    if node.has(Defect.tasks_outlive_their_tablet):
        return
    made: set[tuple[str, str, Place]] = set()
    for task in [t for t in tasks_in(node.catalog.tables).values() if t.place.base == table]:
        row = node.view.tablet_with(table, task.place.last_token)
        assert row is not None, "tasks are of tablets"
        instance = task.instance()
        if not task.aborted:
            board.take_on(instance, step_of("abort"))
        board.take_on(instance, step_of("give_way"))
        yield Mutation(TASKS, (task.id,), None)
        for number in _heirs(row.number, len(node.view.tablets[table]), len(after.tablets)):
            replicas = after.tablets[number].replicas
            replica = next((r for r in replicas if r.host == task.place.replica.host), None)
            if replica is None:
                continue
            place = Place(table, after.last_token(number), replica)
            if (task.type, task.view, place) not in made:
                made.add((task.type, task.view, place))
                yield _created(board, replace(task, id=node.new_id(), aborted=False, place=place))


def _heirs(number: int, before: int, after: int) -> tuple[int, ...]:
    """The tablets that have the rows of a tablet afterwards."""
    return (2 * number, 2 * number + 1) if after > before else (number // 2,)


def _created(board: Board, task: Task) -> Mutation:
    board.take_on(Instance(task_program(), name=task.id), step_of("create"))
    return row_of(task)


def _is_of(task: Task, row: TabletRow, replicas: list[TabletReplica]) -> bool:
    place = task.place
    tablet = (place.base, place.last_token) == (row.table, row.range[1])
    return tablet and place.replica in replicas


def _abort(board: Board, tasks: list[Task]) -> Iterator[Mutation]:
    for task in tasks:
        if not task.aborted:
            board.take_on(task.instance(), step_of("abort"))
            yield Mutation(TASKS, (task.id,), {"aborted": True})


def _replace(
    board: Board, node: Context, tasks: list[Task], heirs: dict[TabletReplica, TabletReplica]
) -> Iterator[Mutation]:
    """Delete tasks, and create others with new ids in their places; where nobody is to come, none.

    Who comes may have a task for its staging already.
    """
    there = {t.place for t in tasks_in(node.catalog.tables).values() if t.type == STAGING}
    there -= {t.place for t in tasks}
    for task in tasks:
        board.take_on(task.instance(), step_of("give_way" if task.aborted else "drop"))
        yield Mutation(TASKS, (task.id,), None)
        heir = heirs.get(task.place.replica)
        if heir is None:
            continue
        place = task.place._replace(replica=heir)
        if task.type == STAGING:
            if place in there:
                continue
            there.add(place)
        yield _created(board, replace(task, id=node.new_id(), aborted=False, place=place))
