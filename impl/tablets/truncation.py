"""TRUNCATE of a table: a global request, which the topology coordinator works on when nothing else goes on.

It removes what is no later than the timestamp of the statement, as if every row had been deleted then, but leaves nothing
behind. From the command on that starts it, whoever has learned that takes no such row any more, however late it comes; it
is done once every node says that it has removed what it had.
"""

from __future__ import annotations

from stagewright.impl.catalog.columns import ALL, TABLES, TOPOLOGY, TRUNCATE_AT, TRUNCATED_AT
from stagewright.impl.catalog.names import name_of, was_dropped
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Command, Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.messages.tables import TruncateTable
from stagewright.impl.topology.planning import Board, step_of
from stagewright.machines.scylladb.topology.topology_states import GlobalRequest, TransitionState
from stagewright.spec.errors import RefusedError

AHEAD = 10_000_000  # microseconds: so far a client's clock may be ahead of a node's


def truncate_table(node: Context, request: TruncateTable) -> Command | None:
    """The command that asks for it; None: it was asked for before, or is done.

    Raises:
        RefusedError: there is no such table; it has views or a log, which would keep what it loses; a node is down, whose
            rows would stay; another global request goes on; or the client's clock is far ahead.
    """
    view, table = node.view, request.table
    _refuse_to_truncate(node, table)
    if (ahead := request.timestamp - node.around.now()) > AHEAD:
        raise RefusedError(
            f"the statement's time is {ahead // 1_000_000} s ahead, and rows would be refused until then",
            (),
            help="set the client's clock",
        )
    if request.timestamp <= max(view.truncated.get(table, 0), view.truncations.get(table, 0)):
        return None
    if going_on := node.catalog.tables[TOPOLOGY][ALL]["global_topology_request"]:
        raise RefusedError(f"{going_on.replace('_', ' ')} goes on", (), help="ask again then")
    if down := down_in(node):
        raise RefusedError(
            f"{down[0]} is down, whose rows would stay", (), help=f"start {down[0]}, or remove it"
        )
    board = Board(node.rules, node.catalog)
    board.see(node.down)
    board.take(step_of("ask_globally", request=GlobalRequest.truncate_table))
    asked = Mutation(TABLES, (table,), {TRUNCATE_AT: request.timestamp})
    return board.command(f"truncate table {name_of(table)}", node.catalog, node.details(), (asked,))


def _refuse_to_truncate(node: Context, table: str) -> None:
    view, name = node.view, name_of(table)
    if table in view.views:
        raise RefusedError(f"{name} is a view", (), help="it has what its base table has")
    if table not in view.tables:
        problem = "was dropped" if was_dropped(node.catalog.tables, table) else "is not there"
        known = ", ".join(sorted(map(name_of, view.tables))) or "none"
        raise RefusedError(f"the table {name} {problem}", (), help=f"known: {known}")
    if table in view.logs.values():
        problem = f"{name} is the log of the changes of another table"
        raise RefusedError(problem, (), help="`ttl` says how long a log keeps them")
    if table in view.logs:
        problem = f"{name} keeps a log of its changes, whose consumers would not learn of it"
        raise RefusedError(problem, (), help="delete its rows, or drop it and create it again")
    if views := view.views_of(table):
        names = ", ".join(sorted(name_of(v.name) for v in views))
        raise RefusedError(f"{name} has views: {names}", (), help="drop them first")


def down_in(node: Context) -> list[str]:
    """The nodes whose answer is waited for, and that are down."""
    return sorted(node.down & {*node.view.participants})


def started(view: View) -> list[Mutation]:
    """What the start of the request changes: from then on nobody takes rows that are older."""
    return [
        Mutation(TABLES, (table,), {TRUNCATE_AT: None, TRUNCATED_AT: until})
        for table, until in sorted(view.truncations.items())
    ]


def is_being_truncated(view: View, table: str) -> bool:
    """Whether a table is to be truncated, or nodes are about to."""
    goes_on = view.transition_state is TransitionState.truncate_table
    return table in view.truncations or (goes_on and table in view.truncated)


def truncated_until(view: View, table: str) -> int:
    """Up to which time no node has rows of a table any more, in microseconds; 0: it never was truncated."""
    goes_on = view.transition_state is TransitionState.truncate_table
    return 0 if goes_on else view.truncated.get(table, 0)
