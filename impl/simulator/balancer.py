"""The load balancer: which tablet moves next, and where to."""

from __future__ import annotations

from random import Random

from stagewright.impl.cluster.view import TabletView, View
from stagewright.impl.simulator.options import Options
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage

Plan = tuple[str, Kind, tuple[str, ...]]  # tablet, kind of transition, the replicas afterwards


class Balancer:
    """Plans transitions of the kinds that the options ask for and the profile has."""

    def __init__(self, options: Options, kinds: frozenset[Kind], rng: Random) -> None:
        self._options = options
        self._kinds = frozenset(options.kinds) & kinds
        self._rng = rng

    def first_replicas(self, number: int) -> tuple[str, ...]:
        """Where a tablet is at the start; where rebuilds are possible, every third one lacks a replica."""
        nodes = self._options.node_names
        lacks = number % 3 == 2 and bool(self._kinds & {Kind.rebuild, Kind.rebuild_v2})
        if not self._kinds - {Kind.rebuild, Kind.rebuild_v2}:
            lacks = True
        size = self._options.replicas - lacks
        return tuple(nodes[(number + i) % len(nodes)] for i in range(size))

    def plan(self, view: View) -> Plan | None:
        """Any transition that makes sense now."""
        at_rest = [t for t in view.tablets.values() if t.stage is Stage.none]
        self._rng.shuffle(at_rest)
        for tablet in at_rest:
            kind = self._kind(tablet, view)
            if kind is None:
                continue
            replicas = self._replicas(tablet, kind, view)
            if replicas is not None:
                return tablet.name, kind, replicas
        return None

    def _kind(self, tablet: TabletView, view: View) -> Kind | None:
        live = [n for n in tablet.replicas if n not in view.ignored]
        rebuilds = sorted(self._kinds & {Kind.rebuild, Kind.rebuild_v2}, key=lambda k: k.name)
        if rebuilds and len(live) < self._options.replicas:
            return self._rng.choice(rebuilds)
        others = sorted(self._kinds & {Kind.migration, Kind.repair}, key=lambda k: k.name)
        if not others:
            return None
        if Kind.migration in others and self._rng.random() < 0.8:
            return Kind.migration
        return self._rng.choice(others)

    def _replicas(self, tablet: TabletView, kind: Kind, view: View) -> tuple[str, ...] | None:
        if kind is Kind.repair:
            return tablet.replicas
        nodes = [n for n in self._options.node_names if n not in view.ignored]
        free = [n for n in nodes if n not in tablet.replicas]
        if not free:
            return None
        pending = self._rng.choice(free)
        live = [n for n in tablet.replicas if n not in view.ignored]
        if kind is Kind.migration:
            leaving = self._rng.choice(live)
            return tuple(pending if n == leaving else n for n in tablet.replicas)
        return (*live, pending)
