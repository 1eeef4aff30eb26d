"""Draws tablet tables, their views and what is done to their tablets into a script. Its throws are its own: the rest of a scenario is as without them."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.group0.dice import Dice
from stagewright.impl.simulator.database.script import Operation

TABLES = 0.5  # share of the runs that have tablet tables
SECOND_TABLE = 0.2
VIEWS = 0.65  # share of these that have views
VIEWED = 0.9  # of those whose number of replicas comes down to one
SECOND_VIEW = 0.4
TOGETHER = 0.5  # share of the second views that come while the first one is built
CHANGES = ("repair", "alter", "split", "merge")
CHANGED = 0.3  # share of the tables to which each of these is done
ASKED = 0.3  # share of the splits and merges before which repairs are asked for that nobody awaits
ALTERED_BACK = 0.7  # share of those that have four replicas then
MOVED = 0.4  # share of the tables whose tablets are moved by hand
UNBALANCED = 0.3  # share of these in which the balancer is off for a while
ABORTED = 0.15  # share of the scripts in which a node is asked to leave and that is aborted
SPARED = 0.3  # of those in which one that is not reached is to be removed, which is aborted, and comes back
LONG, LONGER = 0.3, 4  # share of these nodes whose tablets are rebuilt for so many times as long
TWICE = 0.3  # share of these scripts in which that is done to two nodes
MOST_REPLICAS = 3  # of a table that is drawn
GONE = {"kill": "restart", "partition": "reconnect", "suspend": "resume"}  # and how nodes come back
_KEYED_BY = (0, 2, 3, 7)  # moduli


def has_tablets(seed: int) -> bool:
    """Whether the scenario of a seed has tablet tables."""
    return Dice(seed).chance(TABLES, "tablets")


def with_tables(
    dice: Dice,
    script: tuple[Operation, ...],
    nodes: int,
    *,
    busy: bool,
    few: bool = False,
    always: tuple[str, ...] = (),
    views: float = VIEWS,
    undone: bool = False,
) -> tuple[Operation, ...]:
    """The script with tablet tables before it, and maybe views of them between its operations.

    Where clients are busy and messages get lost, tables get more replicas and fewer again; `few`: one, and more again.
    `always` is done to each table whatever else is. `undone`: somebody dies as the first tablets move, while a view is built.
    """
    names = ["t", "u"] if dice.chance(SECOND_TABLE, "second table") else ["t"]
    tables = [table_of_tablets(dice, name, nodes) for name in names]
    found = list(script)
    if dice.chance(views, "views"):
        for name in ["v", "w"] if dice.chance(SECOND_VIEW, "second view") else ["v"]:
            base = names[dice.between(0, len(names) - 1, "base")]
            life = _life(dice, name, base)
            if name == "w" and dice.chance(TOGETHER, "together"):
                _put_after(dice, found, life)
            else:
                _put_in(dice, found, life)
    if undone:
        _view_what_moves(dice, found, tables[0])
    for name in names:
        changes = [
            Operation(v, name, replicas=dice.between(2, min(4, nodes), "rf") if v == "alter" else 0)
            for v in CHANGES
            if dice.chance(CHANGED, "change", v) or v in always
        ]
        # Only from four replicas to two a quorum of the table is smaller than one of the tablets of before.
        most = Operation("alter", name, replicas=MOST_REPLICAS + 1)
        if busy and nodes > MOST_REPLICAS:
            changes = [most, replace(most, replicas=2), *(c for c in changes if c.verb != "alter")]
        elif few:
            changes = [Operation("alter", name, replicas=count) for count in (1, MOST_REPLICAS)]
        elif most in changes and dice.chance(ALTERED_BACK, "back"):
            changes.insert(changes.index(most) + 1, replace(most, replicas=2))
        _put_in(dice, found, changes, "place of a change")
        for change in changes:
            if change.verb in ("split", "merge") and dice.chance(
                ASKED, "asked", f"{change.verb} {name}"
            ):
                # While a node is rebuilt, no tablet is repaired: the resize could come before that.
                node = f"n{dice.between(1, nodes, 'asked of', name)}"
                place = found.index(change)
                asks = Operation("ask", node, "rebuild"), Operation("ask", name, "repair")
                found[place:place] = asks
        if few:
            _write_after(dice, found, changes, name)
        elif any(c.verb == "alter" for c in changes):
            # What requests wait for while replicas come and go shows if there are any.
            last = max(i for i, o in enumerate(found) if o.verb == "alter" and o.node == name)
            found.insert(
                last, Operation("write", number=dice.between(40, 120, "while altered", name))
            )
        if dice.chance(MOVED, "moves"):
            _put_in(dice, found, _moves(dice, name), "place of a move")
    if nodes > MOST_REPLICAS:
        _abort(dice, found, nodes)
        _spare(dice, found, nodes)
    return (*tables, *found)


def _abort(dice: Dice, script: list[Operation], nodes: int) -> None:
    """A node is asked to leave, maybe, and need not."""
    if not dice.chance(ABORTED, "abort"):
        return
    node = f"n{dice.between(1, nodes, 'abort of')}"
    wait = Operation("wait", number=dice.between(5, 150, "abort after"))
    place = dice.between(1, len(script), "place of an abort")
    script[place:place] = [Operation("ask", node, "decommission"), wait, Operation("abort", node)]


def _spare(dice: Dice, script: list[Operation], nodes: int) -> None:
    """It is asked to remove a node, maybe, or two of them, and then not."""
    if dice.chance(SPARED, "spared"):
        _spare_one(dice, script, nodes)
        if dice.chance(TWICE, "spared twice"):
            _spare_one(dice, script, nodes)


def _spare_one(dice: Dice, script: list[Operation], nodes: int) -> None:
    """A node is not reached, or dead; its tablets are rebuilt elsewhere for a while, and then nobody removes it."""
    node = f"n{dice.between(1, nodes, 'spared')}"
    away = dice.between(0, len(GONE) - 1, "gone")
    times = LONGER if dice.chance(LONG, "rebuilt for long") else 1
    meanwhile = Operation("wait", number=times * dice.between(20, 450, "rebuilt for"))
    then = [Operation("abort", node), Operation([*GONE.values()][away], node)]
    if dice.chance(0.5, "spared for"):
        then.insert(1, Operation("wait", number=dice.between(20, 400, "spared before")))
    gone = Operation([*GONE][away], node)
    place = dice.between(1, len(script), "place of a spared one")
    script[place:place] = [gone, Operation("ask", node, "remove"), meanwhile, *then]


def _write_after(dice: Dice, script: list[Operation], changes: list[Operation], name: str) -> None:
    """Clients write while each of the changes goes on."""
    for change in dict.fromkeys(changes):
        place = script.index(change)
        writes = dice.between(40, 120, "while altered", name)
        script.insert(place, Operation("write", number=writes))


def _moves(dice: Dice, name: str) -> list[Operation]:
    """An operator moves some tablets, with the balancer off meanwhile or not."""
    count = dice.between(1, 3, "number of moves")
    found = [Operation("move", name, number=dice.between(0, 3, "moved")) for _ in range(count)]
    if dice.chance(UNBALANCED, "balancing"):
        return [Operation("balancing", "off"), *found, Operation("balancing", "on")]
    return found


def table_of_tablets(dice: Dice, name: str, nodes: int) -> Operation:
    """A table with as many tablets and replicas as are thrown."""
    tablets = (1, 2, 4, 8)[dice.between(0, 3, "number of tablets")]
    replicas = dice.between(2, min(MOST_REPLICAS, nodes), "replicas")
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


def _put_after(dice: Dice, script: list[Operation], life: list[Operation]) -> None:
    """Put a view right behind another one of the same table, which is about to be built."""
    first = next(i for i, o in enumerate(script) if o.verb == "create")
    created = replace(life[0], by=script[first].by)
    life = [created if o == life[0] else o for o in life]
    script[first + 1 : first + 1] = [
        Operation("wait", number=dice.between(1, 40, "between views")),
        *life,
    ]


def _view_what_moves(dice: Dice, script: list[Operation], table: Operation) -> None:
    """Create a view, and move the tablet that is built last, before anything else is done."""
    move = Operation("move", table.node, number=table.number - 1)
    script[1:1] = [_view(dice, "x", table.node), move]


def _put_in(
    dice: Dice, script: list[Operation], life: list[Operation], throw: str = "place"
) -> None:
    """Put operations somewhere into the script, in their order."""
    places = sorted(dice.between(1, len(script), throw) for _ in life)
    for place, one in reversed([*zip(places, life, strict=True)]):
        script.insert(place, one)
