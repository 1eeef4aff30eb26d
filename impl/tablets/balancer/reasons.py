"""Why a replica moves, or cannot: each reason with its figures, and as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer.hosts import HostState, TabletName


class Kind(Enum):
    """How a replica comes to its new place."""

    migration = "migration"
    intranode_migration = "intranode migration"
    rebuild = "rebuild"  # from the other replicas: the host that it leaves is dead


@dataclass(frozen=True, slots=True)
class Drain:
    """Its host is to be empty."""

    host: str
    state: HostState

    def __str__(self) -> str:
        return f"{self.host} is {self.state.name}"


@dataclass(frozen=True, slots=True)
class Even:
    """The one shard has more replicas than the other one, even afterwards.

    Both are counted as if all that is under way, and what this plan moves before, were done.
    """

    leaving: int
    pending: int

    def __str__(self) -> str:
        return f"the shard has {self.leaving} replicas and the other one {self.pending}"


@dataclass(frozen=True, slots=True)
class Asked:
    """An operator wants it."""

    def __str__(self) -> str:
        return "an operator asked for it"


@dataclass(frozen=True, slots=True)
class Migration:
    """A replica of a tablet is to move."""

    tablet: TabletName
    leaving: TabletReplica
    pending: TabletReplica
    reason: Drain | Even | Asked

    @property
    def kind(self) -> Kind:
        """What kind of a transition it is."""
        if self.leaving.host == self.pending.host:
            return Kind.intranode_migration
        drains = isinstance(self.reason, Drain) and self.reason.state is HostState.excluded
        return Kind.rebuild if drains else Kind.migration

    @property
    def is_by_hand(self) -> bool:
        """Whether an operator moves it."""
        return isinstance(self.reason, Asked)

    def after(self, replicas: tuple[TabletReplica, ...]) -> tuple[TabletReplica, ...]:
        """The tablet's replicas once it has moved."""
        return tuple(self.pending if r == self.leaving else r for r in replicas)

    def __str__(self) -> str:
        path = f"{_shown(self.leaving)} to {_shown(self.pending)}"
        return f"{self.kind.value} of {self.tablet} from {path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class NoPlace:
    """There is no host that stays and may have the replica."""

    tablet: TabletName
    leaving: TabletReplica

    def __str__(self) -> str:
        return (
            f"{self.tablet} cannot leave {_shown(self.leaving)}: every host that stays has a replica "
            "of it, or is in a rack that has one; add a host"
        )


@dataclass(frozen=True, slots=True)
class NoSource:
    """All replicas are on dead hosts: there is nothing to rebuild it from."""

    tablet: TabletName
    leaving: TabletReplica

    def __str__(self) -> str:
        return (
            f"{self.tablet} cannot leave {_shown(self.leaving)}: no replica of it is on a host that "
            "lives; bring one back"
        )


Blocked = NoPlace | NoSource


def _shown(replica: TabletReplica) -> str:
    return f"{replica.host}:{replica.shard}"
