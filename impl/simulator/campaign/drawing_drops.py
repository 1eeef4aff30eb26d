"""Draws DROP TABLE into a script: at any time, whatever is done to the table; most are created again. Its throws are its own."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.group0.dice import Dice
from stagewright.impl.simulator.campaign.drawing_tables import table_of_tablets
from stagewright.impl.simulator.database.script import Operation

DROPS_FROM = 400_000_000  # seeds, as tests and tables of wrong builds rely on what earlier ones are
DROPPED = 0.6  # share of the tables of tablets that are dropped
BUSY = 0.5  # share of these to whose tablets something is done then
AGAIN = 0.75  # share of these that are created again,
ALIKE = 0.5  # as they were
LATE = 0.25  # share of these of which a node gets one of the two statements late
RING = 0.1  # share of the scripts in which the table of the token ring is dropped
TWICE = 0.3  # share of the tables that are dropped once more


def with_drops(dice: Dice, script: tuple[Operation, ...], nodes: int) -> tuple[Operation, ...]:
    """The script in which some of its tables are dropped, after the views that they have then."""
    found = list(script)
    for one in [o for o in script if o.verb == "table"]:
        if dice.chance(DROPPED, "dropped", one.node):
            _drop(dice, found, one, nodes)
            if dice.chance(TWICE, "dropped twice", one.node):
                _drop(dice, found, one, nodes)
    if dice.chance(RING, "ring dropped"):
        place = dice.between(_first(found), len(found), "place of the ring's drop")
        found.insert(place, Operation("drop", "rows", "table"))
    return tuple(found)


def _first(script: list[Operation]) -> int:
    """Where clients have begun to write."""
    return 1 + next(i for i, o in enumerate(script) if o.verb == "write")


def _drop(dice: Dice, script: list[Operation], table: Operation, nodes: int) -> None:
    """Put a drop, and maybe what follows, after the table was created last."""
    name = table.node
    made = max(i for i, o in enumerate(script) if o.verb == "table" and o.node == name)
    first = max(made + 1, _first(script))
    place = dice.between(first, len(script), "place of a drop", name)
    views = dict.fromkeys(o.node for o in script[:place] if o.verb == "create" and o.by == name)
    drops = [Operation("drop", view) for view in views if _is_there(script[:place], view)]
    drop = Operation("drop", name, "table")
    found = [*_beforehand(dice, table), drop]
    if dice.chance(AGAIN, "again", name):
        alike = dice.chance(ALIKE, "alike again", name)
        found.append(table if alike else table_of_tablets(dice, name, nodes))
        if dice.chance(LATE, "late", name):
            found = _late(dice, found, f"n{dice.between(1, nodes, 'late at', name)}")
        found.append(Operation("write", number=dice.between(20, 80, "writes again", name)))
    then = [o for o in script[place:] if not _is_over(script, place, o, drops)]
    script[place:] = [*drops, *found, *then]


def _is_there(script: list[Operation], view: str) -> bool:
    last = next(o for o in reversed(script) if o.node == view and o.verb in ("create", "drop"))
    return last.verb == "create"


def _is_over(script: list[Operation], place: int, one: Operation, drops: list[Operation]) -> bool:
    """Whether an operation is about a view that is dropped now, and not created again before it."""
    if one.verb not in ("await", "drop") or one.node not in {d.node for d in drops}:
        return False
    before = script[place : script.index(one, place)]
    return not any(o.verb == "create" and o.node == one.node for o in before)


def _beforehand(dice: Dice, table: Operation) -> list[Operation]:
    """Something that its tablets do when it is dropped."""
    name = table.node
    if not dice.chance(BUSY, "busy when dropped", name):
        return []
    asked = ("repair", "split", "merge")[
        dice.between(0, 2 if table.number > 1 else 1, "busy", name)
    ]
    wait = Operation("wait", number=dice.between(5, 300, "busy for", name))
    return [Operation("ask", name, asked), wait]


def _late(dice: Dice, script: list[Operation], node: str) -> list[Operation]:
    """A node is cut off, and gets one of the statements when it is back and others have done all of them."""
    statements = [i for i, o in enumerate(script) if o.verb in ("drop", "table")]
    which = statements[dice.between(0, len(statements) - 1, "late statement")]
    found = [replace(o, through=node) if i == which else o for i, o in enumerate(script)]
    if found[which].verb == "table":
        found.append(Operation("drop", found[which].node, "table"))
    wait = Operation("wait", number=dice.between(100, 1000, "after a late statement"))
    return [Operation("partition", node), *found, Operation("reconnect", node), wait]
