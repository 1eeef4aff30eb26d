"""What was found of properties over several entities, as a report has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.cross_entity.sweep import Broken, Counts, Swept
from stagewright.traces.cross_entity.system import Together, Unevaluated
from stagewright.traces.events.event_block import NO_TIME, EntityKey, Place
from stagewright.traces.events.where import Where
from stagewright.traces.replay.related.classes import Related
from stagewright.traces.replay.related.timeline import BEGINNING

LISTED_MAX = 1_000  # broken groups in a report


@dataclass(frozen=True)
class PropertyReport:
    """A property, how it was evaluated, and what it came to.

    `ordered`: it relates entities, so that the events of a group need a total order; else it was evaluated on
    each entity by itself. `evaluated`, `broken` and `open` count groups, or entities; an open one is neither
    broken nor known to hold: `why` says the reasons. `doubted`: events may be missing anywhere.
    """

    system: str
    name: str
    doc: str
    ordered: bool
    evaluated: int
    broken: int
    open: int
    why: tuple[str, ...] = ()
    doubted: bool = False
    first_open: Where | None = None

    @property
    def verdict(self) -> TraceVerdict:
        """A violation if any group has broken it; ok only if it is known to hold in all."""
        if self.doubted:
            return TraceVerdict.UNDECIDED
        if self.broken:
            return TraceVerdict.VIOLATION
        return TraceVerdict.UNDECIDED if self.open or not self.evaluated else TraceVerdict.OK


@dataclass(frozen=True)
class MemberReport:
    """An entity that has a part in breaking a property, and the event since which it has it."""

    key: EntityKey
    where: Where
    beginning: bool


@dataclass(frozen=True)
class GroupReport:
    """A group that has broken a property: when and where first, by which entities, and how often."""

    system: str
    name: str
    doc: str
    group: str
    time: int | None
    where: Where
    members: tuple[MemberReport, ...]
    times: int


@dataclass(frozen=True)
class TogetherReport:
    """The verdicts on all properties over several entities."""

    properties: tuple[PropertyReport, ...]
    unevaluated: tuple[Unevaluated, ...]
    broken: tuple[GroupReport, ...]
    broken_left_out: int = 0
    ungrouped: int = 0  # entities that --group puts into no group

    @property
    def verdicts(self) -> dict[TraceVerdict, int]:
        """How many properties have each verdict."""
        found = [p.verdict for p in self.properties]
        return {v: found.count(v) for v in TraceVerdict if v in found}


def report_together(
    watched: Together,
    parts: Sequence[Swept],
    where: Callable[[Place], Where],
    *,
    damaged: bool,
) -> TogetherReport:
    """The report on what all partitions have found; `damaged`: a part of the input was left out."""
    whole = Swept()
    for part in parts:
        whole.add(part)
    whole.broken.sort(key=lambda b: (b.prop, b.group, b.place))
    listed = whole.broken[:LISTED_MAX]
    return TogetherReport(
        (
            *(
                _property(p, whole.of(n), where, damaged=damaged)
                for n, p in enumerate(watched.properties)
            ),
            *(_undecided(related, why) for related, why in watched.undecided),
        ),
        watched.unevaluated,
        tuple(_group(watched.properties[b.prop], b, where) for b in listed),
        whole.left_out + len(whole.broken) - len(listed),
        whole.ungrouped,
    )


def _property(
    related: Related, counts: Counts, where: Callable[[Place], Where], *, damaged: bool
) -> PropertyReport:
    unknown = counts.open - counts.untimed - counts.backwards
    what = "entities" if related.local else "groups"
    reasons = (
        (counts.untimed, f"{what} need a total order, but have events without a time"),
        (counts.backwards, f"{what} need a total order, but the time of an entity runs backwards"),
        (unknown, f"{what} have an entity of which it is not known in which state it is"
         if not related.local else f"{what} are in a state that is not known"),
    )  # fmt: skip
    why = [f"{count:,} {text}" for count, text in reasons if count]
    if not counts.evaluated:
        why.append("no entity of its machines was recorded")
    # Of one entity a hole is known, and its state after it unknown; a group may lack whole entities.
    doubted = damaged and (not related.local or not counts.broken)
    if doubted:
        why.append("a part of what was recorded is damaged and was left out")
    return PropertyReport(
        related.system,
        related.name,
        related.doc,
        not related.local,
        counts.evaluated,
        counts.broken,
        counts.open,
        tuple(why),
        doubted,
        None if counts.first_open is None else where(counts.first_open),
    )


def _undecided(related: Related, why: str) -> PropertyReport:
    return PropertyReport(related.system, related.name, related.doc, True, 0, 0, 0, (why,))


def _group(related: Related, broken: Broken, where: Callable[[Place], Where]) -> GroupReport:
    return GroupReport(
        related.system,
        related.name,
        related.doc,
        str(broken.group),
        None if broken.time in (BEGINNING, NO_TIME) else broken.time,
        where(broken.place),
        tuple(MemberReport(m.key, where(m.place), m.beginning) for m in broken.members),
        broken.times,
    )
