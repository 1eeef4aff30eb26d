"""Checks plans of the load balancer: each migration of one is a step that its definition allows where it is committed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.tablets.balancer import HostState, LoadSketch
from stagewright.impl.tablets.balancer.sketch import Phase
from stagewright.impl.tablets.loads import sketch_of
from stagewright.impl.tablets.reports import moves_of
from stagewright.impl.tablets.resizing import decided
from stagewright.machines.scylladb.cluster import Track
from stagewright.machines.scylladb.tablets import load_balancer as machine
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import define
from stagewright.spec.errors import RefusedError
from stagewright.spec.values import FrozenMap

_PLANNED = re.compile(
    r"of (\S+) from (\S+) to (\S+): (?:the shard has|\S+ is (?:leaving|excluded)$)"
)
"""A move of the balancer, as commands say it; what operators and merges move has other reasons."""


Move = tuple[TabletReplica, TabletReplica]


class BalanceCheck:
    """The plans of a run; `problems` is where it says what is wrong."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def committed(self, entry: Entry, before: View) -> None:
        """An entry is committed; it may hold a plan, of which nothing was left out."""
        planned = planned_in(entry)
        if not planned or not is_whole(entry, before):
            return
        instance = Instance(_program(), _state(sketch_of(before)), name="balancer")
        for tablet, move in planned.items():
            source, target = (machine.Shard(f"{r.host}:{r.shard}") for r in move)
            try:
                instance.fire(
                    "plan_migration", t=machine.Tablet(tablet), leaving=source, pending=target
                )
            except RefusedError as error:
                self._problems.append(f"{entry.id.position}: {error.problem}")
                return


def planned_in(entry: Entry) -> dict[str, Move]:
    """The migrations that the balancer planned and a command begins, in their order, by tablet."""
    moves = moves_of(entry.command.description, entry.command.steps)
    found = (_PLANNED.search(m) for m in moves)
    return {m[1]: (_replica(m[2]), _replica(m[3])) for m in found if m is not None}


def is_whole(entry: Entry, before: View) -> bool:
    """Whether nothing was left out of the plan that a command has: nobody else begins moves, and no merge waits for some."""
    moves = [*moves_of(entry.command.description, entry.command.steps)]
    return len(planned_in(entry)) == len(moves) and not decided(before, Resize.merge)


def _replica(text: str) -> TabletReplica:
    host, _, shard = text.partition(":")
    return TabletReplica(host, int(shard))


@cache
def _program() -> Program:
    return Program(define(machine.LoadBalancer))


def _state(sketch: LoadSketch) -> dict[str, Any]:
    """What the balancer's machine makes of a sketch: a plan is about to be made."""
    shards = [machine.Shard(f"{r.host}:{r.shard}") for r in sketch.shards]
    tablets = {name: machine.Tablet(str(name)) for name in sketch.places}
    nobody: dict[Any, Any] = dict.fromkeys(tablets.values())
    leaving, pending = dict(nobody), dict(nobody)
    replicas = {t: {shards[p] for p in sketch.places[n]} for n, t in tablets.items()}
    stages = dict.fromkeys(tablets.values(), Stage.none)
    for name, (source, target, phase) in sketch.active.items():
        tablet = tablets[name]
        leaving[tablet], pending[tablet] = shards[source], shards[target]
        replicas[tablet] = replicas[tablet] - {shards[target]} | {shards[source]}
        streams = phase is Phase.streams
        stages[tablet] = Stage.streaming if streams else Stage.write_both_read_new
    for name in sketch.busy:
        stages[tablets[name]] = Stage.repair
    hosts = sketch.hosts.items()
    gone = (machine.Node(n) for n, host in hosts if host.state is not HostState.normal)
    return {
        "node": FrozenMap(
            {s: machine.Node(h) for s, h in zip(shards, sketch.host_of, strict=True)}
        ),
        "track": Track.idle,
        "request_pending": False,
        "draining": frozenset(gone),
        "replicas": FrozenMap({t: frozenset(of) for t, of in replicas.items()}),
        "stage": FrozenMap(stages),
        "leaving": FrozenMap(leaving),
        "pending": FrozenMap(pending),
        "invoked": True,
        "plan_leaving": FrozenMap(nobody),
        "plan_pending": FrozenMap(nobody),
        "outdated": False,
    }
