"""Which definitions the nodes of a cluster run: the newest topology, and tablets of any release.

The topology of older releases has no tablets to drain, so that no cluster of tablets could run on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from stagewright.impl.runtime import Program
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import SEED, Stage
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.spec import define
from stagewright.spec.errors import InputError


@dataclass(frozen=True)
class Release:
    """The programs that nodes run: the topology state machine and the machine of a tablet."""

    topology: Program
    tablets: Program

    @cached_property
    def forward(self) -> tuple[str, ...]:
        """The steps by which a tablet in transition enters another stage, in the definition's order."""
        found = {
            e.action
            for e in self.tablets.edges
            if e.source is not Stage.none and e.target not in (None, e.source)
        }
        return tuple(name for name in self.tablets.actions if name in found)


@lru_cache(maxsize=8)
def release(profile: str = "") -> Release:
    """What nodes run whose tablets are of a profile, by default the newest.

    Raises:
        ScopeError: tablets have no such profile.
        InputError: tablets of the profile do not stream in sessions, as nodes do.
    """
    if profile == SEED.name:
        raise InputError(
            f"--profile {profile}: nodes stream in sessions, which the design of 2023 does not have",
            help="name a later one; `stagewright check tablet-migration --profile seed` checks that design",
        )
    return Release(Program(define(TopologyControl, "")), Program(define(TabletMigration, profile)))
