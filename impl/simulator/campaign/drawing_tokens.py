"""Draws nodes that join with the tokens of another one, as if its settings had been copied. Its throws are its own.

As long as another node owns such a token, the coordinator gives the newcomer up; once nobody does, it gets them.
"""

from __future__ import annotations

from stagewright.impl.group0.dice import Dice
from stagewright.impl.simulator.database.script import Operation

COPIED = 0.15  # share of the scripts
THEN = 0.5  # share of these in which clients write meanwhile


def with_copied_tokens(
    dice: Dice, script: tuple[Operation, ...], nodes: int
) -> tuple[Operation, ...]:
    """The script in which, maybe, one more node comes: as clients begin to write, before another one joins, or last."""
    if not dice.chance(COPIED, "copied tokens"):
        return script
    first = next(i for i, o in enumerate(script) if o.verb == "write")
    joins = [i for i, o in enumerate(script) if o.verb == "join" and i > first]
    places = [first + 1, *joins, len(script)]
    place = places[dice.between(0, len(places) - 1, "place of copied tokens")]
    known = [f"n{i + 1}" for i in range(nodes)]
    known += _newcomers(script[:place])
    newcomer = f"n{1 + max(int(name[1:]) for name in (*known, *_newcomers(script)))}"
    owner = known[dice.between(0, len(known) - 1, "whose tokens")]
    found = [Operation("join", newcomer, tokens_of=owner)]
    if dice.chance(THEN, "writes beside copied tokens"):
        found.insert(0, Operation("write", number=dice.between(20, 80, "number beside")))
    return (*script[:place], *found, *script[place:])


def _newcomers(script: tuple[Operation, ...]) -> list[str]:
    return [o.by or o.node for o in script if o.verb in ("join", "replace")]
