"""What is committed, as far as somebody has learned it: tablets, their replicas, the fence, who is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from stagewright.impl.store import Entry
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Replicas, Stage


@dataclass(frozen=True)
class TabletView:
    """A tablet as one entry committed it. At rest `next` equals `replicas`."""

    name: str
    stage: Stage
    kind: Kind | None
    replicas: tuple[str, ...]
    next: tuple[str, ...]
    session: int | None
    version: int  # of the commit
    entered: int  # the version with which the tablet entered its stage

    def chosen(self, which: Replicas) -> tuple[str, ...]:
        """The nodes that a selector stands for."""
        match which:
            case Replicas.previous:
                return self.replicas
            case Replicas.both:
                return (*self.replicas, *self.pending)
            case Replicas.next:
                return self.next

    @property
    def pending(self) -> tuple[str, ...]:
        """The nodes that are replicas only after the transition."""
        return tuple(n for n in self.next if n not in self.replicas)

    @property
    def leaving(self) -> tuple[str, ...]:
        """The nodes that are replicas only before the transition."""
        return tuple(n for n in self.replicas if n not in self.next)

    @property
    def staying(self) -> tuple[str, ...]:
        """The nodes that are replicas before and after the transition."""
        return tuple(n for n in self.replicas if n in self.next)

    def stored_at(self, node: str) -> bool:
        """Whether a node that knows this has storage for the tablet."""
        return node in self.chosen(self.stage.storage)

    def attached(self) -> dict[str, object]:
        """What is committed beside the state of the definition."""
        return {
            "replicas": list(self.replicas),
            "next": list(self.next),
            "session": self.session,
            "version": self.version,
            "entered": self.entered,
        }


@dataclass(frozen=True)
class View:
    """The committed entries up to a position."""

    position: int = 0
    version: int = 0
    fence: int = 0  # requests that began under an older version are refused
    ignored: frozenset[str] = frozenset()  # nodes that are down for good, says the operator
    tablets: Mapping[str, TabletView] = field(default_factory=dict)

    def after(self, entry: Entry) -> View:
        """The view one entry later; entries come in order."""
        assert entry.position == self.position + 1, f"entry {entry.position} after {self.position}"
        if not entry.entity:
            fence = cast("int", entry.attached.get("fence", self.fence))
            ignored = self.ignored | frozenset(cast("list[str]", entry.attached.get("ignored", [])))
            return replace(self, position=entry.position, fence=fence, ignored=ignored)
        tablet = _tablet(entry)
        return replace(
            self,
            position=entry.position,
            version=tablet.version,
            tablets={**self.tablets, tablet.name: tablet},
        )

    def after_all(self, entries: tuple[Entry, ...] | list[Entry]) -> View:
        """The view after several entries."""
        view = self
        for entry in entries:
            view = view.after(entry)
        return view


def _tablet(entry: Entry) -> TabletView:
    observed, attached = entry.observed, entry.attached
    kind = observed["kind"]
    return TabletView(
        name=entry.entity,
        stage=Stage[cast("str", observed["stage"])],
        kind=None if kind is None else Kind[cast("str", kind)],
        replicas=tuple(cast("list[str]", attached["replicas"])),
        next=tuple(cast("list[str]", attached["next"])),
        session=cast("int | None", attached["session"]),
        version=cast("int", attached["version"]),
        entered=cast("int", attached["entered"]),
    )
