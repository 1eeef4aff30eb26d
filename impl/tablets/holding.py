"""Which nodes hold tablets after a command, as steps of the topology: some come to hold one, others hold none any more.

The topology must know it: a node that holds tablets does not leave, and one that holds none is not waited for.
"""

from __future__ import annotations

from collections.abc import Collection

from stagewright.impl.topology.planning import Board, step_of
from stagewright.machines.scylladb.cluster import Node
from stagewright.spec.errors import RefusedError

ENDS = ("move_last_tablet", "finish_draining_node")
"""How a node comes to hold none; when the last node is drained, the work is over."""


def account(
    board: Board, before: Collection[str], now: Collection[str], ends: Collection[str] = ENDS
) -> None:
    """Take the steps that say which of the nodes hold tablets `now` that did not `before`, and which do no more.

    `ends`: of a wrong build, which knows fewer ways and says nothing of what is left.

    Raises:
        RefusedError: one of these steps is refused. The command must not be made without it: the topology would go on
            from what is not so.
    """
    for host in sorted({*now} - {*before}):
        board.take(step_of("settle_tablets_on", n=Node(host)))
    emptied = {*before} - {*now}
    for action in ends:
        for host in sorted(emptied):
            steps = (step_of(action, n=Node(host), heir=Node(heir)) for heir in sorted(now))
            step = next((s for s in steps if not board.instance.call(s).refusals()), None)
            if step is not None:
                board.take(step)
                emptied.discard(host)
    if emptied and ends is ENDS:
        problem = f"{', '.join(sorted(emptied))} would hold no tablets, and no step may say so"
        raise RefusedError(problem, ENDS, help="look again")
