"""Whether each CDC generation begins to operate after those that were committed before it, by their timestamps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stagewright.machines.recorded.logged_generations import LoggedGenerations
from stagewright.traces.databases.scylladb.log.patterns import UUID
from stagewright.traces.events.observability import Recording

MACHINE = LoggedGenerations.__name__
RECORDING = Recording(end_marked=False)
ENTITY = "generations"
UNREAD = "timestamps of CDC generations cannot be read: their order is not checked"

Moment = tuple[int, ...]
"""Seconds since 1970, and what the text has of a second: nothing, or nine digits."""

_DATE = re.compile(r"(\d{4})[/-](\d\d)[/-](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d+))?")
_SECONDS = re.compile(r"(\d{9,})(?:\.(\d+))?")
_PAIR = re.compile(rf"(?P<time>\d[\d/\-T :.]*\d)\D*?\W(?P<id>{UUID})")


@dataclass
class Found:
    """What happens, beginning with None for an entity of which nothing was known; how many times cannot be read."""

    actions: list[str | None] = field(default_factory=list[str | None])
    unread: int = 0


class GenerationOrder:
    """The order of one cluster's generations."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._last: Moment = ()

    def commit(self, generation: str, time: str) -> Found:
        """A generation is committed that is to operate from a time on."""
        starts = moment(time)
        if generation in self._known or starts is None:
            return Found(unread=int(starts is None))
        found = Found([] if self._known else [None])
        self._known.add(generation)
        later = starts > self._last if len(starts) > 1 else starts >= self._last[:1]
        found.actions.append("commit" if later else "commit_earlier")
        self._last = max(self._last, starts)
        return found

    def see(self, committed: object) -> Found:
        """A dump has these generations, each with its time."""
        text = committed if isinstance(committed, str) else json.dumps(committed)
        pairs = {found["id"]: found["time"] for found in _PAIR.finditer(text)}
        found = Found()
        for generation in sorted(pairs, key=lambda g: moment(pairs[g]) or ()):
            one = self.commit(generation, pairs[generation])
            found.actions += one.actions
            found.unread += one.unread
        return found


def moment(text: str) -> Moment | None:
    """A time as ScyllaDB writes it: a date in UTC, or seconds since 1970."""
    if found := _DATE.match(text):
        *fields, rest = found.groups()
        try:
            seconds = int(datetime(*map(int, fields), tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type]
        except ValueError:
            return None
    elif found := _SECONDS.fullmatch(text):
        seconds, rest = int(found[1]), found[2]
    else:
        return None
    return (seconds,) if rest is None else (seconds, int(f"{rest:0<9}"[:9]))
