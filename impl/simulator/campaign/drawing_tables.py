"""Draws tablet tables, their views and what is done to their tablets into a script. Its throws are its own: the rest of a scenario is as without them."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.group0.dice import Dice
from stagewright.impl.simulator.database.script import Operation

TABLES = 0.5  # share of the runs that have tablet tables
SECOND_TABLE = 0.2
VIEWS = 0.65  # share of these that have views
SECOND_VIEW = 0.4
CHANGES = ("repair", "alter", "split", "merge")
CHANGED = 0.3  # share of the tables to which each of these is done
_KEYED_BY = (0, 2, 3, 7)  # moduli


def has_tablets(seed: int) -> bool:
    """Whether the scenario of a seed has tablet tables."""
    return Dice(seed).chance(TABLES, "tablets")


def with_tables(dice: Dice, script: tuple[Operation, ...], nodes: int) -> tuple[Operation, ...]:
    """The script with tablet tables before it, and maybe views of them between its operations."""
    names = ["t", "u"] if dice.chance(SECOND_TABLE, "second table") else ["t"]
    tables = [_table(dice, name, nodes) for name in names]
    found = list(script)
    if dice.chance(VIEWS, "views"):
        for name in ["v", "w"] if dice.chance(SECOND_VIEW, "second view") else ["v"]:
            base = names[dice.between(0, len(names) - 1, "base")]
            _put_in(dice, found, _life(dice, name, base))
    for name in names:
        changes = [
            Operation(v, name, replicas=dice.between(2, min(4, nodes), "rf") if v == "alter" else 0)
            for v in CHANGES
            if dice.chance(CHANGED, "change", v)
        ]
        _put_in(dice, found, changes, "place of a change")
    return (*tables, *found)


def _table(dice: Dice, name: str, nodes: int) -> Operation:
    tablets = (1, 2, 4, 8)[dice.between(0, 3, "number of tablets")]
    replicas = dice.between(2, min(3, nodes), "replicas")
    return Operation("table", name, number=tablets, replicas=replicas)


def _life(dice: Dice, name: str, base: str) -> list[Operation]:
    """What becomes of a view: created, maybe awaited, maybe dropped, and maybe created again under its name."""
    wait, drop = Operation("await", name), Operation("drop", name)
    found = [_view(dice, name, base)]
    found += [wait] if dice.chance(0.5, "await") else []
    if dice.chance(0.5, "drop"):
        found.append(drop)
        if dice.chance(0.7, "again"):
            alike = dice.chance(0.5, "alike")
            found.append(found[0] if alike else _view(dice, name, base))
            found += [wait] if dice.chance(0.3, "await again") else []
    return found


def _view(dice: Dice, name: str, base: str) -> Operation:
    modulus = _KEYED_BY[dice.between(0, len(_KEYED_BY) - 1, "modulus")]
    found = Operation("create", name, base, modulus)
    if dice.chance(0.25, "where"):
        bound = dice.between(5, 100, "bound")
        return replace(found, comparison=("<", ">=")[bound % 2], bound=bound)
    return found


def _put_in(
    dice: Dice, script: list[Operation], life: list[Operation], throw: str = "place"
) -> None:
    """Put operations somewhere into the script, in their order."""
    places = sorted(dice.between(1, len(script), throw) for _ in life)
    for place, one in reversed([*zip(places, life, strict=True)]):
        script.insert(place, one)
