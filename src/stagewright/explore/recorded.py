"""The path of a recorded entity: its events as the steps of a walk, as far as the definition allows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stagewright.explore.explorer import Explorer
from stagewright.spec.errors import DomainError, InputError
from stagewright.spec.trace import observation


@dataclass(frozen=True)
class RecordedPath:
    """Where the walk stands after an entity's events; `problem` is why it goes no further."""

    entity: str
    path: tuple[str, ...]
    problem: str = ""


def recorded_path(explorer: Explorer, trace: Path, entity: str = "") -> RecordedPath:
    """The walk of an entity of a trace in JSON lines; by default of the first one in the file.

    Raises:
        InputError: there is no such file or entity, it is another machine's, or it begins in no initial state.
    """
    events = sorted(_events(trace, entity), key=_number)
    if not events:
        raise InputError(
            f"{trace} has no event of {entity or 'any entity'}",
            help="name one with --entity; `stagewright validate` reads other formats",
        )
    name, first = str(events[0]["entity"]), _observed(events[0])
    machine = events[0].get("machine")
    if machine != explorer.source.name:
        raise InputError(
            f"{name} is of the machine {machine}, not of {explorer.source.name}",
            help="name the machine with which the trace was recorded",
        )
    begun = next((i for i, s in enumerate(explorer.initial) if _fits(observation(s), first)), None)
    if begun is None:
        raise InputError(
            f"{name} begins in a state that is no initial one",
            help="give the scope with which the trace was recorded, with --size and --budget",
        )
    path, state = [str(begun)], explorer.initial[begun]
    for event in events[1:]:
        number = len(path)
        if _number(event) != number:
            return RecordedPath(name, tuple(path), f"event {number} is missing, or is there twice")
        if event.get("end"):
            break
        action, parameters = event.get("action"), event.get("params")
        if not isinstance(action, str) or not isinstance(parameters, dict):
            return RecordedPath(name, tuple(path), f"event {number} does not say which step it is")
        try:
            label = explorer.label_of(action, parameters)
            state = explorer.take(label, state, number)
        except (InputError, DomainError) as error:
            return RecordedPath(name, tuple(path), error.problem)
        path.append(label)
        held, seen = observation(state), _observed(event)
        if not _fits(held, seen):
            place = next(k for k, v in seen.items() if held.get(k, v) != v)
            found = f"{place} is {seen[place]} in the trace, not {held[place]}"
            return RecordedPath(name, tuple(path), f"after step {number} {found}")
    return RecordedPath(name, tuple(path))


def _events(trace: Path, entity: str) -> Iterator[dict[str, object]]:
    try:
        file = trace.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{trace}: {error.strerror}", help="name a trace in JSON lines") from None
    with file:
        for number, line in enumerate(file, 1):
            if entity not in line and json.dumps(entity)[1:-1] not in line:
                continue
            try:
                event = json.loads(line)
                name = event["entity"]
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"{trace}:{number} is no event",
                    help="`stagewright validate` says what is wrong with a trace",
                ) from None
            entity = entity or name
            if name == entity:
                yield event


def _number(event: Mapping[str, object]) -> int:
    number = event.get("seq")
    return number if isinstance(number, int) else 0


def _observed(event: Mapping[str, object]) -> dict[str, object]:
    found = event.get("observed")
    return found if isinstance(found, dict) else {}


def _fits(state: Mapping[str, object], observed: Mapping[str, object]) -> bool:
    """Whether a state is as it was observed; what a trace observes beyond the definition's leaves counts not."""
    return all(state.get(place, value) == value for place, value in observed.items())
