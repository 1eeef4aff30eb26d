"""The event before an entity's first action, where the log has none: it observes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagewright.spec.trace import Event


def begun(events: Sequence[tuple[int, Event]], *, always: bool = False) -> list[tuple[int, Event]]:
    """The events of one entity, each with its part, after one that observes nothing.

    Without `always` only if number 0 is an action or the end, and so cannot be the beginning itself.
    """
    for part, event in events:
        if event.sequence == 0 and (always or event.action is not None or event.end):
            return [(part, start_of(event)), *((p, moved(e)) for p, e in events)]
    return list(events)


def start_of(event: Event) -> Event:
    """The event before an entity's first one: where the entity begins, of which nothing is observed."""
    return replace(event, action=None, parameters={}, observed={}, end=False, time=None)


def moved(event: Event) -> Event:
    """The event as it is numbered after one that was put before all others."""
    return replace(event, sequence=event.sequence + 1)
