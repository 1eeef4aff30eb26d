"""Takes back verdicts that hang on what a log does not say: an order of equal times, or an event that was lost.

The entities concerned are evaluated in every order that is possible. What holds in all of them is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.automaton.product_automaton import Source
from stagewright.traces.events.event_block import EntityKey, Place, Stream, block_of
from stagewright.traces.readers.protocol import Unsure
from stagewright.traces.replay.exact_verdicts import (
    DETAILS_MAX,
    Cause,
    Evaluated,
    Finding,
    MachineKey,
    evaluate,
)


@dataclass(frozen=True)
class UnsureEntity:
    """What is not known of the entity of a key."""

    key: EntityKey
    about: Unsure


def entities_of(unsure: Iterable[Unsure], form: str) -> list[UnsureEntity]:
    """The entities that a log of a form is unsure of."""
    found: list[UnsureEntity] = []
    for one in unsure:
        event = one.events[0][1]
        stream = Stream(event.trace, event.machine, event.profile, event.definition or form)
        found.append(UnsureEntity(EntityKey(stream, event.entity), one))
    return found


def take_back(
    evaluated: Sequence[Evaluated],
    unsure: Sequence[UnsureEntity],
    automata: Mapping[MachineKey, Source],
) -> None:
    """Change the verdicts that hang on what is not known."""
    unsure = [one for one in unsure if one.key.stream[1:] in automata]
    if not unsure:
        return
    given = _evaluated({one.key: one.about.events for one in unsure}, automata)
    found: dict[EntityKey, set[TraceVerdict]] = {k: {f.verdict} for k, f in given.items()}
    for number in range(max(len(one.about.orders) for one in unsure)):
        orders = {
            one.key: one.about.orders[number] for one in unsure if number < len(one.about.orders)
        }
        for key, finding in _evaluated(orders, automata).items():
            found[key].add(finding.verdict)
    places = {f.key: (j, i) for j in evaluated for i, f in enumerate(j.findings) if f.key in given}
    for one in unsure:
        was = given[one.key]
        early = was.cause is not None and was.sequence < one.about.first
        sure = len(found[one.key]) == 1 and bool(one.about.orders)
        well = one.about.mixed and was.cause is None
        if not (early or sure or well):
            _replace(evaluated, places.get(one.key), was, _finding(one, was))


def _evaluated(
    events: Mapping[EntityKey, Sequence[tuple[int, Event]]],
    automata: Mapping[MachineKey, Source],
) -> dict[EntityKey, Finding]:
    blocks = [
        block_of([e for _, e in of], definition=k.stream.definition) for k, of in events.items()
    ]
    return {finding.key: finding for finding in evaluate(blocks, automata, every=True).findings}


def _finding(one: UnsureEntity, was: Finding) -> Finding:
    cause = Cause.SEVERAL if one.about.mixed else Cause.ORDER
    cause = Cause.NOT_UNDERSTOOD if one.about.lost else cause
    place = next(
        (Place(part, e.line) for part, e in one.about.events if e.sequence >= one.about.first), None
    )
    return Finding(one.key, cause, one.about.first, was.duplicates, place)


def _replace(
    evaluated: Sequence[Evaluated], place: tuple[Evaluated, int] | None, was: Finding, now: Finding
) -> None:
    """Put one finding in place of another, which has none if all was well or there were too many."""
    if place is not None:
        one, index = place
        one.findings[index] = now
        _recount(one, was, now)
        return
    one = next(j for j in evaluated if j.verdicts.get((was.key.stream[1:], was.verdict)))
    _recount(one, was, now)
    if was.cause is not None:
        return  # it was left out, and is so still
    if len(one.findings) < DETAILS_MAX:
        one.findings.append(now)
    else:
        one.findings_left_out += 1


def _recount(evaluated: Evaluated, was: Finding, now: Finding) -> None:
    evaluated.count(was.key.stream, was.verdict, -1)
    evaluated.count(now.key.stream, now.verdict)
