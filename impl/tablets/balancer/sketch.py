"""The load sketch: how many replicas each shard has once all that is under way is done, and what streams.

It changes as the cluster does, one migration or host at a time, so that a plan never starts from the tables.
A migration that is active counts as done, also while it is undone, until its replicas are what they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer.hosts import Host, HostState, TabletName
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.errors import InputError

STREAMS = frozenset(
    {
        Stage.allow_write_both_read_old,
        Stage.write_both_read_old,
        Stage.rebuild_repair,
        Stage.streaming,
    }
)
"""A migration in one of these streams, or is about to: it counts against the limits of its shards."""


class Phase(Enum):
    """What an active migration is to the balancer."""

    streams = auto()
    streamed = auto()  # or is undone: it streams no more, and still counts as done

    @classmethod
    def of(cls, stage: Stage) -> Phase:
        """The phase of a stage."""
        return cls.streams if stage in STREAMS else cls.streamed


class LoadSketch:
    """The loads of a cluster. Shards and tablets are numbered within, in the order in which they came.

    Raises:
        InputError: two hosts have one name.
    """

    def __init__(self, hosts: Iterable[Host] = ()) -> None:
        self.hosts: dict[str, Host] = {}
        self.shards: list[TabletReplica] = []
        self.host_of: list[str] = []  # of each shard
        self.load: list[int] = []
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.resting: list[dict[TabletName, None]] = []  # tablets of a shard that may be moved
        self.places: dict[TabletName, tuple[int, ...]] = {}  # shards, once all is done
        self.active: dict[TabletName, tuple[int, int, Phase]] = {}  # leaving, pending
        self._number: dict[TabletReplica, int] = {}
        self.busy: set[TabletName] = set()  # in a transition that moves nothing
        for host in hosts:
            self.add_host(host)

    # -- hosts ---------------------------------------------------------------------------------------

    def add_host(self, host: Host) -> None:
        """A host comes, with empty shards."""
        if host.name in self.hosts:
            raise InputError(f"{host.name} is there already", help="give each host its own name")
        self.hosts[host.name] = host
        for shard in range(host.shards):
            replica = TabletReplica(host.name, shard)
            self._number[replica] = len(self.shards)
            self.shards.append(replica)
            self.host_of.append(host.name)
            self.load.append(0)
            self.reads.append(0)
            self.writes.append(0)
            self.resting.append({})

    def set_state(self, name: str, state: HostState) -> None:
        """A host is to leave, is excluded, or stays after all."""
        host = self._host(name)
        self.hosts[name] = Host(name, host.shards, host.rack, state)

    # -- tablets -------------------------------------------------------------------------------------

    def add_tablet(self, tablet: TabletName, replicas: Iterable[TabletReplica]) -> None:
        """A tablet at rest, with its replicas.

        Raises:
            InputError: the tablet is there already, two replicas are on one host, or one is nowhere.
        """
        if tablet in self.places:
            raise InputError(f"{tablet} is there already", help="remove it before it comes again")
        places = tuple(self.number_of(r) for r in replicas)
        if len({self.host_of[p] for p in places}) != len(places):
            raise InputError(
                f"two replicas of {tablet} are on one host", help="replicas are on different hosts"
            )
        self.places[tablet] = places
        for place in places:
            self.load[place] += 1
            self.resting[place][tablet] = None

    def remove_tablet(self, tablet: TabletName) -> None:
        """A tablet at rest goes: its table is dropped, or split, or merged."""
        self._at_rest(tablet)
        for place in self.places.pop(tablet):
            self.load[place] -= 1
            del self.resting[place][tablet]

    def occupy(self, tablet: TabletName) -> None:
        """A transition begins that moves no replica, such as a repair: the tablet cannot move meanwhile."""
        self._at_rest(tablet)
        self.busy.add(tablet)
        self._unrest(tablet)

    def release(self, tablet: TabletName) -> None:
        """That transition ends."""
        if tablet not in self.busy:
            raise InputError(f"{tablet} is not occupied", help="occupy it before")
        self.busy.discard(tablet)
        self._rest(tablet)

    # -- migrations ----------------------------------------------------------------------------------

    def start(
        self,
        tablet: TabletName,
        leaving: TabletReplica,
        pending: TabletReplica,
        stage: Stage = Stage.streaming,
    ) -> None:
        """A migration is committed; `stage` says how far it is."""
        self._at_rest(tablet)
        source, target = self.number_of(leaving), self.number_of(pending)
        places = self.places[tablet]
        stay = [p for p in places if p != source]
        if source not in places or self.host_of[target] in {self.host_of[p] for p in stay}:
            raise InputError(
                f"{tablet} cannot move from {leaving} to {pending}",
                help=f"its replicas: {', '.join(str(self.shards[p]) for p in places)}",
            )
        self._unrest(tablet)
        phase = Phase.of(stage)
        self.active[tablet] = (source, target, phase)
        self._count_streams(source, target, 1 if phase is Phase.streams else 0)
        self._move(tablet, source, target)

    def enter(self, tablet: TabletName, stage: Stage) -> None:
        """An active migration goes on to another stage, or begins its way back."""
        source, target, before = self._active(tablet)
        now = Phase.of(stage)
        self.active[tablet] = (source, target, now)
        change = (now is Phase.streams) - (before is Phase.streams)
        self._count_streams(source, target, change)

    def end(self, tablet: TabletName, *, undone: bool = False) -> None:
        """An active migration is over; undone, the replicas are what they were and counted so again."""
        source, target, phase = self._active(tablet)
        self._count_streams(source, target, -1 if phase is Phase.streams else 0)
        if undone:
            self._move(tablet, target, source)
        del self.active[tablet]
        self._rest(tablet)

    # -- what it holds -------------------------------------------------------------------------------

    def number_of(self, replica: TabletReplica) -> int:
        """The number of a shard.

        Raises:
            InputError: there is no such shard.
        """
        number = self._number.get(replica)
        if number is None:
            host = self._host(replica.host)
            raise InputError(
                f"{replica.host} has no shard {replica.shard}", help=f"it has {host.shards}"
            )
        return number

    def spread(self) -> int:
        """The greatest load less the least, of the shards of hosts that stay."""
        stays = [
            load
            for load, name in zip(self.load, self.host_of, strict=True)
            if self.hosts[name].state is HostState.normal
        ]
        return max(stays) - min(stays) if stays else 0

    def _host(self, name: str) -> Host:
        if name not in self.hosts:
            raise InputError(f"there is no host {name}", help=f"known: {', '.join(self.hosts)}")
        return self.hosts[name]

    def _active(self, tablet: TabletName) -> tuple[int, int, Phase]:
        if tablet not in self.active:
            raise InputError(f"{tablet} does not migrate", help="start it before")
        return self.active[tablet]

    def _at_rest(self, tablet: TabletName) -> None:
        if tablet not in self.places:
            raise InputError(f"there is no tablet {tablet}", help="add it before")
        if tablet in self.active or tablet in self.busy:
            raise InputError(f"{tablet} is in transition", help="end that before")

    def _rest(self, tablet: TabletName) -> None:
        for place in self.places[tablet]:
            self.resting[place][tablet] = None

    def _unrest(self, tablet: TabletName) -> None:
        for place in self.places[tablet]:
            del self.resting[place][tablet]

    def _move(self, tablet: TabletName, source: int, target: int) -> None:
        places = self.places[tablet]
        self.places[tablet] = tuple(target if p == source else p for p in places)
        self.load[source] -= 1
        self.load[target] += 1

    def _count_streams(self, source: int, target: int, change: int) -> None:
        self.reads[source] += change
        self.writes[target] += change
