"""Draws what is asked of a cluster as a whole where no node is away: TRUNCATE of tables, a lock. Its throws are its own.

A table that has views or a log then is not truncated: that is refused.
"""

from __future__ import annotations

from stagewright.impl.group0.dice import Dice
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.tables import TABLE

TRUNCATED = 0.2  # share of the scripts
AGAIN = 0.3  # share of these in which a table is truncated once more
LOCKED = 0.05  # share of the scripts in which the topology is locked for a while
_BACK = {"kill": "restart", "partition": "reconnect", "suspend": "resume", "isolate": "replace"}


def with_globals(dice: Dice, script: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """The script in which a table may be truncated while clients write, once or twice, or the topology locked."""
    if dice.chance(LOCKED, "locked"):
        places = list(_places(script))
        place = places[dice.between(0, len(places) - 1, "place of a lock")]
        wait = Operation("wait", number=dice.between(20, 400, "locked for"))
        script = (*script[:place], Operation("lock"), wait, Operation("unlock"), *script[place:])
    if not dice.chance(TRUNCATED, "truncated"):
        return script
    times = 2 if dice.chance(AGAIN, "truncated again") else 1
    for time in range(times):
        script = _truncated(dice, script, str(time))
    return script


def _truncated(dice: Dice, script: tuple[Operation, ...], time: str) -> tuple[Operation, ...]:
    places = list(_places(script))
    place = places[dice.between(0, len(places) - 1, "place of a truncation", time)]
    tables = [TABLE.partition(".")[2], *_tables(script[:place])]
    table = tables[dice.between(0, len(tables) - 1, "truncated table", time)]
    found = [Operation("truncate", table)]
    found.insert(0, Operation("write", number=dice.between(20, 80, "truncated writes", time)))
    return (*script[:place], *found, *script[place:])


def _tables(script: tuple[Operation, ...]) -> list[str]:
    """The tables of tablets that are there after these operations."""
    there: dict[str, None] = {}
    for one in script:
        if one.verb == "table":
            there[one.node] = None
        elif one.verb == "drop" and one.of_table:
            there.pop(one.node, None)
    return list(there)


def _places(script: tuple[Operation, ...]) -> list[int]:
    """Where clients have begun to write, the token ring has its table, and nobody is away."""
    found, away, writes = list[int](), set[str](), False
    for place, one in enumerate((*script, None)):
        if writes and not away:
            found.append(place)
        if one is None or (one.verb, one.node, one.by) == ("drop", "rows", "table"):
            break
        writes = writes or one.verb == "write"
        if one.verb in _BACK:
            away.add(f"{_BACK[one.verb]} {one.node}")
        if one.verb == "lock":
            away.add("unlock ")
        away.discard(f"{one.verb} {one.node}")
    return found or [len(script)]
