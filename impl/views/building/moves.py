"""What becomes of view building tasks when tablets move: in the same commands as the stages of their tablets.

Tasks of a replica that leaves are aborted when writes begin to go to both; when the operation ends, others with new
ids take their places, on the replica that has come, or where they were if it was undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.group0 import Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance
from stagewright.impl.topology.planning import Board, step_of
from stagewright.impl.views.building.tasks import TASKS, Task, row_of, task_program, tasks_in
from stagewright.machines.scylladb.tablets.tablet_stages import Stage


def follow(
    board: Board, node: Context, moves: Iterable[tuple[TabletRow, Mutation]]
) -> Iterator[Mutation]:
    """The rows of tasks that change with those of tablets, each with its step."""
    tasks = [*tasks_in(node.catalog.tables).values()]
    for row, mutation in moves if tasks else ():
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
            yield from _replace(board, node, mine, dict(zip(gone, come, strict=False)))
        elif columns["stage"] is None:
            back = [t for t in mine if t.aborted]
            yield from _replace(board, node, back, {r: r for r in gone})


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
    """Delete tasks, and create others with new ids in their places; where nobody is to come, none."""
    for task in tasks:
        board.take_on(task.instance(), step_of("give_way" if task.aborted else "drop"))
        yield Mutation(TASKS, (task.id,), None)
        heir = heirs.get(task.place.replica)
        if heir is None:
            continue
        place = task.place._replace(replica=heir)
        new = replace(task, id=node.new_id(), aborted=False, place=place)
        board.take_on(Instance(task_program(), name=new.id), step_of("create"))
        yield row_of(new)
