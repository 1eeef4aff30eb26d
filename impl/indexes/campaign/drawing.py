"""What a seed says of a run: a script, faults, what clients do, and how backfills are cut."""

from __future__ import annotations

from random import Random

from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.impl.simulator.database.weather import Faults

STRATEGIES = ("swarm", "swarm", "busy", "changing")
_USUAL = {"loss": 0.03, "delay": 0.06, "duplicate": 0.04, "crash": 20.0, "failover": 20.0}
_LESS_OR_MORE = (0.5, 1.0, 2.0, 4.0)
_LATE = (1.0, 4.0, 8.0)
ENFORCED = 0.15  # share of the runs whose transactions are user-enforced
SPLIT = 0.35  # share of the runs in which tablets of the table are told to split
INDEX_SPLIT = 0.4  # share of the runs in which those of indexes are
GROWN = 0.1  # share of the runs in which those that have grown split by themselves
_STEPS = ("get_safe_time", "backfill_tablets", "backfill_tablets", "allow_gc", "write_permissions")


def draw(seed: int) -> Scenario:
    """The scenario of a seed.

    swarm: each fault is there or not, each at a rate of its own; busy: few keys and values, many transactions, slow
    ones among them; changing: indexes are made and dropped all the time.
    """
    dice = Random(f"index campaign {seed}")
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    busy = strategy == "busy"
    keys = dice.choice((6, 12)) if busy else dice.choice((15, 25, 40))
    workload = Workload(
        keys=keys,
        values=dice.choice((keys * 2, keys * 5)) if busy else dice.choice((60, 200, 1_000)),
        slow=0.25 if busy else dice.choice((0.0, 0.05, 0.1)),
    )
    rate = dice.choice((0, 0, 10, 30))
    settings = Settings(
        tablets=dice.choice((1, 2) if rate else (1, 2, 3, 3)),
        batch=dice.choice((2, 4) if rate else (1, 2, 4)),
        chunk_rows=dice.choice((2, 4, 8)),
        rows_per_second=rate,
        slots=dice.choice((1, 2)),
        wait_for_old=dice.choice((0, 300)),
        split_rows=_grown(Random(f"large {seed}")),
    )
    servers = dice.choice((1, 3, 3, 4))
    changes = _changes(dice) if strategy == "changing" else _builds(dice, keys, servers)
    changes = _with_splits(Random(f"halves {seed}"), changes, settings.tablets)
    changes = _with_index_splits(Random(f"entries {seed}"), changes, settings.tablets)
    rows = dice.choice((keys // 2, keys))
    enforced = Random(f"kind of table {seed}").random() < ENFORCED
    if enforced:
        changes = [c.replace("unique ", "") for c in changes]
    table = f"create {'user-enforced ' if enforced else ''}table {rows} rows"
    script = f"{table}; write {dice.randint(20, 60)}; wait {dice.randint(0, 60)}; "
    return Scenario(
        seed=seed,
        servers=servers,
        clients=dice.randint(2, 4),
        script=parse_script(script + "; ".join(changes)),
        faults=_faults(dice, strategy),
        workload=workload,
        settings=settings,
        strategy=strategy,
    )


def _grown(dice: Random) -> int:
    return dice.choice((6, 9, 14)) if dice.random() < GROWN else 0


def _faults(dice: Random, strategy: str) -> Faults:
    if strategy != "swarm" and dice.random() < 0.4:
        return Faults()
    found = {
        name: round(rate * dice.choice(_LESS_OR_MORE), 3)
        for name, rate in _USUAL.items()
        if dice.random() < 0.5
    }
    if strategy == "changing" and "delay" in found:  # what is late meets what has changed
        found["delay"] = round(_USUAL["delay"] * dice.choice(_LATE), 3)
    return Faults(
        loss=found.get("loss", 0.0),
        delay=found.get("delay", 0.0),
        duplicate=found.get("duplicate", 0.0),
        crash=found.get("crash", 0.0),
        failover=found.get("failover", 0.0),
    )


def _kind(dice: Random) -> str:
    return dice.choice(("unique ", "unique ", ""))


def _builds(dice: Random, keys: int, servers: int) -> list[str]:
    """One or two indexes, maybe built in one scan; now and then two rows share a value."""
    found: list[str] = []
    if dice.random() < 0.3:
        value, first = dice.randrange(2_000), keys + dice.randrange(20)
        times = (f"put {first} v={value}", f"put {first + 30} v={value}")
        found += times if dice.random() < 0.5 else times[:1]
    deferred = "deferred " if dice.random() < 0.3 else ""
    two = dice.random() < 0.6
    found.append(f"create {deferred}{_kind(dice)}index i on v")
    if two:
        found.append(f"create {deferred}{_kind(dice)}index j on {dice.choice('vw')}")
    if deferred:
        found += [f"wait {dice.randint(50, 250)}", "backfill"]
    found += _meanwhile(dice, servers)
    found += ["await i", *(["await j"] if two else [])]
    if dice.random() < 0.6:
        found.append(f"write {dice.randint(10, 25)}")
    if dice.random() < 0.3:
        found += [f"read i {dice.randrange(60)}", f"drop index {dice.choice('ij') if two else 'i'}"]
    return [*found, f"wait {dice.randint(50, 300)}"]


def _meanwhile(dice: Random, servers: int) -> list[str]:
    """What happens while it is built."""
    found: list[str] = []
    for _ in range(dice.choice((0, 1, 1, 2))):
        kinds = ["fail over", "write 20", ""]
        kinds += ["kill n1; wait 150; restart n1"] if servers > 1 else []
        what = dice.choice(kinds)
        found += [f"wait {dice.randint(10, 250)}", *filter(None, what.split("; "))]
    return found


def _changes(dice: Random) -> list[str]:
    """Indexes come and go."""
    found: list[str] = []
    names: list[str] = []
    for number in range(dice.randint(2, 4)):
        name = f"x{number}"
        names.append(name)
        deferred = dice.choice(("", "", "deferred "))
        column = dice.choice("vw")
        found.append(f"create {deferred}{_kind(dice)}index {name} on {column}")
        if dice.random() < 0.5:
            found.append(f"wait {dice.randint(0, 260)}")
        else:
            found.append(f"await job {dice.choice(_STEPS)}")
        if dice.random() < 0.7:
            gone = dice.choice((name, dice.choice(names)))
            found.append(f"drop index {gone}")
        if dice.random() < 0.3:
            found.append("backfill")
        if dice.random() < 0.2:
            found.append("fail over")
    return [*found, "backfill", *(f"await {name}" for name in names), "wait 200"]


def _with_splits(dice: Random, changes: list[str], tablets: int) -> list[str]:
    """Tablets split at any time, some while a job waits for its next master."""
    if dice.random() >= SPLIT:
        return changes
    found = list(changes)
    first = next(i for i, change in enumerate(found) if change.startswith("create"))
    for number in range(dice.choice((1, 2, 2, 3))):
        split = f"split {dice.randrange(tablets + 2 * number)}"
        if dice.random() < 0.4:
            job = ["await job backfill_tablets", f"wait {dice.randint(10, 90)}"]
            found[first + 1 : first + 1] = [*job, "fail over", split]
        else:
            at = dice.randint(0, len(found))
            found[at:at] = [split, *dice.choice(([], [f"wait {dice.randint(5, 80)}"]))]
    return found


def _with_index_splits(dice: Random, changes: list[str], tablets: int) -> list[str]:
    """Tablets of an index split at any time after it was created, most while it is built."""
    if dice.random() >= INDEX_SPLIT:
        return changes
    found = list(changes)
    for number in range(dice.choice((1, 2, 2, 3))):
        created = [i for i, change in enumerate(found) if change.startswith("create")]
        first = dice.choice(created)
        index = found[first].partition(" index ")[2].split()[0]
        split = f"split {index} {dice.randrange(tablets + 2 * number)}"
        at = first + 1 if dice.random() < 0.5 else dice.randint(first + 1, len(found))
        before = dice.choice(([], [f"wait {dice.randint(5, 160)}"], ["await job backfill_tablets"]))
        found[at:at] = [*before, split]
    return found
