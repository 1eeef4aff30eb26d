"""Draws the scenario of a seed: its operations, its faults, its clients. The seed alone says all of it.

Half of the seeds are a swarm: each fault is there or not, at some rate, under some workload. A quarter aims one
fault at one state of the topology, by turns, so that every pair is tried, or at one stage of tablets. A quarter has all faults at once, or
one of the mixes that are known to show what the others do not.

Half of the runs have tablet tables beside the one of vnodes, and most of these views (`drawing_tables.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stagewright.impl.catalog.features import FEATURES
from stagewright.impl.group0.dice import Dice
from stagewright.impl.simulator.campaign.drawing_drops import DROPS_FROM, with_drops
from stagewright.impl.simulator.campaign.drawing_globals import with_globals
from stagewright.impl.simulator.campaign.drawing_tables import (
    VIEWED,
    VIEWS,
    has_tablets,
    with_tables,
)
from stagewright.impl.simulator.campaign.drawing_tokens import with_copied_tokens
from stagewright.impl.simulator.campaign.scenario import Scenario
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.weather import (
    DEATHS,
    OF_MESSAGES,
    OF_NODES,
    OF_TABLETS,
    PENDING,
    SUSPEND,
    Faults,
    at_stage,
    parse_faults,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState

T = TransitionState
AIMED_AT = (
    T.null,
    T.join_group0,
    T.commit_cdc_generation,
    T.write_both_read_old,
    T.write_both_read_new,
    T.left_token_ring,
    T.rollback_to_normal,
)
FORWARD = (
    Stage.allow_write_both_read_old,
    Stage.write_both_read_old,
    Stage.streaming,
    Stage.write_both_read_new,
    Stage.use_new,
    Stage.cleanup,
    Stage.end_migration,
)
WAY_BACK = {
    Stage.cleanup_target: "dead@tablet.streaming",
    Stage.revert_migration: "dead@tablet.streaming",
    Stage.write_both_read_old_fallback_cleanup: (
        "dead@tablet.write_both_read_new,action@tablet.write_both_read_new"
    ),
}
"""The stages of the way back, and what must go wrong for a tablet to come to them."""
TO_COME = {T.rollback_to_normal: "action@write_both_read_old"}
"""The same of states of the topology: what was to be streamed for a node that leaves is not."""
ON_REQUEST = {
    T.tablet_resize_finalization.name: ("split", "merge"),
    at_stage(Stage.repair): ("repair",),
    at_stage(Stage.end_repair): ("repair",),
    at_stage(Stage.rebuild_repair): ("alter",),
}
"""What tablets come to by an operation of the script, of these; so many of the aims at tablets are at one of it:"""
REQUESTED = 0.3
TABLET_AIMS = tuple(
    (kind, stage)
    for stage in (*FORWARD, *WAY_BACK)
    for kind in OF_TABLETS
    if not (kind == "dead" and stage in WAY_BACK)  # the one node that may die is dead already
)
PENDING_DIES = {
    Stage.cleanup_target: "pending@tablet.streaming",
    Stage.revert_migration: "pending@tablet.streaming",
    Stage.write_both_read_old_fallback_cleanup: (
        "pending@tablet.write_both_read_new,action@tablet.write_both_read_new"
    ),
}
"""The same in newer seeds: it is always the replica that comes that is gone."""
WAY_BACK_AIMS = tuple((kind, stage) for stage in WAY_BACK for kind in (*OF_TABLETS, SUSPEND))
ON_THE_WAY_BACK = 0.3  # share of the aims at tablets of newer seeds
ENOUGH_NODES = 5  # so that one can die while others come and go
MANY_NODES, MANY_REPLICAS = 7, 5  # of the table of the token ring, if two nodes die for good
RATES = {
    "loss": 0.03,
    "delay": 0.05,
    "duplicate": 0.03,
    "crash": 20.0,
    "failover": 20.0,
    "election": 10.0,
    "storm": 1.0,
    "action": 0.05,
    "skew": 300.0,
}
OFTEN = {"join": 4, "decommission": 3, "replace": 3, "remove": 2, "rebuild": 1, "cleanup": 1,
         "generation": 1, "isolate": 1, "restart": 1, "wait": 1}  # fmt: skip
SCANNED, SCANS = 0.3, 0.3  # share of the swarm in which clients scan, and of their reads
OLDER = 0.08  # share of the new nodes of an older release, which are rejected
SMALL_SKEW = 100.0  # milliseconds
ODD, ODDS = 0.2, 0.05  # share of the runs with change logs that have odd timestamps, and of these
UNAWARE = 0.6  # share of the nodes that are cut off, if there are change logs, that do not hear of the newest streams
OF_LOGS = {"images": 0.4, "expires": 0.4}
TTLS = (
    2_000,
    5_000,
    20_000,
)  # milliseconds: the least that there is, and what is over within a run
# Share of the runs whose nodes refuse what is unavailable, and there of requests at level all; from this seed on, as tests and
# tables of wrong builds rely on what earlier seeds are.
REFUSED, ALL, REFUSED_FROM = 0.3, 0.1, 300_000_000
NEWER = 500_000_000  # from this seed on tables are truncated, nodes come with copied tokens, more is aimed at ways back
AWAY = 0.1  # share of the swarm in which nodes are not reached for a while, and of those that leave so, and come back
AWAY_RATES = (4, 8, 16)
_AWAY = {"partition": "reconnect", "suspend": "resume"}  # and how these end
_WAY_OUT = ("decommission", "replace", "remove", "isolate")  # of a node


_CUT = ",".join(f"cut@{at_stage(stage)}" for stage in FORWARD if stage.barrier)


@dataclass(frozen=True)
class Directed:
    """A mix of faults, sizes and operations that shows what the others seldom do."""

    name: str
    faults: str
    keys: int
    gap: tuple[int, int]
    chunk: int = 64
    tablets: bool = False  # always
    often: Mapping[str, int] = field(default_factory=lambda: OFTEN)
    few: bool = False  # tables come down to one replica, and go up again
    reads: float = 0.5


DIRECTED = (
    Directed("everything", "all,skew=300", 40, (1, 6)),
    Directed("busy", "delay=0.15,loss=0.1,crash=40", 5, (0, 2)),
    Directed("slow streams", "delay=0.3,crash=60", 60, (0, 2), 3),
    Directed("deposed", "storm,failover=120,election=60,skew=2000", 12, (0, 3)),
    # What a call has started goes on after it broke, in a session that is over by then; its answer comes in another term.
    Directed("broken calls", "action=0.4,delay=0.4,duplicate=0.2,failover=120", 60, (0, 2), 3, tablets=True),
    # Nodes that seem to be dead live on while tablets move, and clients reach them.
    Directed("cut off", f"delay=0.1,{_CUT}", 12, (0, 2), tablets=True,
             often={"isolate": 1, "join": 4, "decommission": 2}),
    # Answers are lost while the number of replicas, and with it that of a quorum, changes; few reads repair them.
    Directed("few replicas", "loss=0.25,delay=0.2,crash=40", 30, (0, 2), tablets=True, few=True,
             reads=0.1, often={"join": 2, "cleanup": 1, "restart": 2, "decommission": 1}),
)  # fmt: skip


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    dice = Dice(seed)
    strategy: Callable[[int, Dice], Scenario] = (_swarm, _aimed, _swarm, _directed)[seed % 4]
    found = strategy(seed, dice)
    directed = next((d for d in DIRECTED if d.name == found.strategy), DIRECTED[0])
    # A clock that is far off lets nearly no change into the log.
    cdc = found.faults.skew <= SMALL_SKEW and dice.chance(0.35, "cdc")
    script = _script(dice, found, directed.often, cdc=cdc)
    if has_tablets(seed) or directed.tablets:
        few, busy = directed.few, found.strategy == "busy"
        always = ON_REQUEST.get(found.strategy.rpartition("@")[2], ())
        views = VIEWED if few else VIEWS
        undone = any(kind in DEATHS for kind, _ in found.faults.aimed)
        script = with_tables(
            dice, script, found.nodes, busy=busy, few=few, always=always, views=views, undone=undone
        )
    if seed >= DROPS_FROM:
        script = with_drops(dice, script, found.nodes)
    if seed >= NEWER:
        script = with_copied_tokens(dice, script, found.nodes)
        script = with_globals(dice, script)
    if any(kind == PENDING for kind, _ in found.faults.aimed):
        script = tuple(
            replace(o, replicas=3) if o.verb == "table" else o for o in script
        )  # one can die
    images, expires = (cdc and dice.chance(share, kind) for kind, share in OF_LOGS.items())
    ttl = TTLS[dice.between(0, len(TTLS) - 1, "ttl")] if expires else 0
    odd = ODDS if cdc and dice.chance(ODD, "odd times") else 0.0
    refused = seed >= REFUSED_FROM and dice.chance(REFUSED, "refused")
    work = replace(found.workload, odd=odd, refused=refused, all=ALL if refused else 0.0)
    return replace(found, script=script, workload=work, cdc=cdc, images=images, ttl=ttl)


def _swarm(seed: int, dice: Dice) -> Scenario:
    words = [
        f"{name}={min(rate * (0.5, 1, 2, 4)[dice.between(0, 3, 'rate', name)], _most(name)):g}"
        for name, rate in RATES.items()
        if dice.chance(0.5, "fault", name)
    ]
    words += [
        f"{name}={AWAY_RATES[dice.between(0, len(AWAY_RATES) - 1, 'rate', name)]}"
        for name in _AWAY
        if dice.chance(AWAY, "fault", name)
    ]
    found = _sized(seed, dice, parse_faults(",".join(words)), "swarm")
    scans = SCANS if dice.chance(SCANNED, "scanned") else 0.0
    return replace(found, workload=replace(found.workload, scans=scans))


def _most(name: str) -> float:
    return 0.2 if name in (*OF_MESSAGES, "action") else 1e9


def _aimed(seed: int, dice: Dice) -> Scenario:
    turn, kinds = seed // 4, OF_NODES + OF_MESSAGES
    kind, state = kinds[turn % len(kinds)], AIMED_AT[turn // len(kinds) % len(AIMED_AT)]
    if has_tablets(seed) and dice.chance(0.75, "aimed at tablets"):
        return _aimed_at_tablets(seed, dice)
    words = ["delay=0.05", TO_COME.get(state, ""), f"{kind}@{state.name}"]
    faults = parse_faults(",".join(words))
    return _sized(seed, dice, faults, f"aimed: {kind}@{state.name}")


def _aimed_at_tablets(seed: int, dice: Dice) -> Scenario:
    if dice.chance(REQUESTED, "requested"):
        kinds, states = OF_NODES + OF_MESSAGES, tuple(ON_REQUEST)
        kind = kinds[dice.between(0, len(kinds) - 1, "aim")]
        aim = f"{kind}@{states[dice.between(0, len(states) - 1, 'requested aim')]}"
        return _sized(seed, dice, parse_faults(f"delay=0.05,{aim}"), f"aimed: {aim}")
    if seed >= NEWER and dice.chance(ON_THE_WAY_BACK, "aimed at a way back"):
        return _aimed_at_a_way_back(seed, dice)
    kind, stage = TABLET_AIMS[dice.between(0, len(TABLET_AIMS) - 1, "aim")]
    aim = f"{kind}@{at_stage(stage)}"
    words = ["delay=0.05", WAY_BACK.get(stage, ""), aim]
    return _sized(seed, dice, parse_faults(",".join(words)), f"aimed: {aim}")


def _aimed_at_a_way_back(seed: int, dice: Dice) -> Scenario:
    """Tablets turn back since the replica that comes is gone for good; then something else befalls them, maybe a second death."""
    kind, stage = WAY_BACK_AIMS[dice.between(0, len(WAY_BACK_AIMS) - 1, "aim")]
    aim = f"{kind}@{at_stage(stage)}"
    faults = parse_faults(f"delay=0.05,{PENDING_DIES[stage]},{aim}")
    found = _sized(seed, dice, faults, f"aimed: {aim}")
    if kind == "dead":
        return replace(found, nodes=MANY_NODES, replicas=MANY_REPLICAS)
    return replace(found, nodes=max(found.nodes, ENOUGH_NODES))


def _directed(seed: int, dice: Dice) -> Scenario:
    one = DIRECTED[seed // 4 % len(DIRECTED)]
    found = _sized(seed, dice, parse_faults(one.faults), one.name)
    workload = replace(found.workload, keys=one.keys, gap=one.gap, reads=one.reads)
    return replace(found, workload=workload, chunk=one.chunk)


def _sized(seed: int, dice: Dice, faults: Faults, strategy: str) -> Scenario:
    gap = ((0, 2), (1, 6), (0, 3))[dice.between(0, 2, "gap")]
    keys = (3, 5, 12, 40)[dice.between(0, 3, "keys")]
    deletes = (0.05, 0.1, 0.3)[dice.between(0, 2, "deletes")]
    return Scenario(
        seed,
        nodes=dice.between(3, 5, "nodes"),
        faults=faults,
        workload=Workload(keys=keys, gap=gap, deletes=deletes),
        chunk=(3, 64)[dice.between(0, 1, "chunk")],
        strategy=strategy,
    )


def _lacks(dice: Dice, number: int) -> str:
    """The feature of which a new node does not know, seldom one."""
    if not dice.chance(OLDER, "older", str(number)):
        return ""
    return FEATURES[dice.between(0, len(FEATURES) - 1, "lacks", str(number))]


def _script(
    dice: Dice, of: Scenario, often: Mapping[str, int], *, cdc: bool
) -> tuple[Operation, ...]:
    """Operations one after the other; of the nodes that begin the cluster two stay at least."""
    here = [f"n{i + 1}" for i in range(of.nodes)]
    founders, last = of.nodes, of.nodes
    found = [Operation("write", number=dice.between(40, 150, "writes"))]
    for _ in range(dice.between(2, 5, "operations")):
        pool = [v for v, n in often.items() if founders > 2 or v not in _WAY_OUT for _ in range(n)]
        verb = pool[dice.between(0, len(pool) - 1, "verb")]
        node = here[dice.between(0, len(here) - 1, "node")]
        if verb in ("join", "replace") or verb == "isolate":
            last += 1
        begun = len(found)
        match verb:
            case "join":
                found.append(Operation("join", f"n{last}", lacks=(lacks := _lacks(dice, last))))
                here += [] if lacks else [f"n{last}"]
            case "replace":
                if lacks := _lacks(dice, last):
                    found.append(Operation("replace", node, f"n{last}", lacks=lacks))
                    last += 1
                found.append(Operation("replace", node, f"n{last}"))
            case "isolate":
                found += _cut_off(dice, node, cdc=cdc)
                found.append(Operation("replace", node, f"n{last}"))
            case "restart":
                wait = Operation("wait", number=dice.between(20, 400, "apart"))
                found += [Operation("kill", node), wait, Operation("restart", node)]
            case "cleanup" | "generation":
                found.append(Operation(verb))
                if verb == "cleanup" and dice.chance(0.5, "join after"):
                    last += 1
                    found.append(Operation("join", f"n{last}"))
                    here.append(f"n{last}")
            case "wait":
                found.append(Operation("wait", number=dice.between(10, 600, "wait")))
            case _:
                found.append(Operation(verb, node))
        done = found[begun:]
        gone = verb in ("remove", "replace", "isolate") and Operation("generation") not in done
        if gone and dice.chance(AWAY, "away"):
            found[begun:] = _not_dead(dice, node, done)
        if verb in _WAY_OUT:
            here.remove(node)
            founders -= int(node[1:]) <= of.nodes
            here += [f"n{last}"] if verb in ("replace", "isolate") else []
        if dice.chance(0.4, "more"):
            found.append(Operation("write", number=dice.between(20, 80, "more writes")))
    return tuple(found)


def _not_dead(dice: Dice, node: str, script: list[Operation]) -> list[Operation]:
    """What is done to a node that is taken for dead, and then is back as it was, with its old requests."""
    away = [*_AWAY][dice.between(0, len(_AWAY) - 1, "away")]
    rest = [one for one in script if one.verb != "isolate"]
    return [Operation(away, node), *rest, Operation(_AWAY[away], node)]


def _cut_off(dice: Dice, node: str, *, cdc: bool) -> list[Operation]:
    """A node is cut off for a while, or just after streams were committed, until these operate."""
    if cdc and dice.chance(UNAWARE, "unaware"):
        return [
            Operation("generation"),
            Operation("isolate", node),
            Operation("write", number=dice.between(60, 120, "unaware writes")),
            Operation("wait", number=dice.between(800, 1300, "unaware for")),
            Operation("write", number=dice.between(20, 60, "later writes")),
        ]
    found = [Operation("isolate", node)]
    if dice.chance(0.5, "cut off"):
        found.append(Operation("write", number=dice.between(20, 60, "cut off writes")))
        found.append(Operation("wait", number=dice.between(50, 600, "cut off for")))
    return found
