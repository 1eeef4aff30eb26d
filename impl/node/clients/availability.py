"""Whether enough replicas of a request are alive for its level, as far as its coordinator knows.

It knows from its failure detector (`Context.down`), which may be late, or wrong for a while. Who counts as down and is not
makes a request fail that could have been done; who is down and does not count as down yet is waited for, in vain.
"""

from __future__ import annotations

from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Level, Unavailable

Parts = tuple[tuple[tuple[str, ...], int], ...]
"""Of whom how many must answer, for each part of a request."""


def too_few(
    node: Context, level: Level, parts: Parts, *, of_log: bool = False
) -> Unavailable | None:
    """What a request is answered of which a part has too few replicas that are alive; None: all have enough.

    While replicas change, a write's parts are about the old ones and the new ones alike.
    """
    for replicas, needed in parts:
        down = tuple(n for n in replicas if node.refuses and n in node.down)
        alive = len(replicas) - len(down)
        if alive < needed or (down and node.has(Defect.any_dead_replica_refuses)):
            return Unavailable(level, needed, alive, down, of_log)
    return None
