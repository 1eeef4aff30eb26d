"""How a scenario of an indexed table becomes small: what is not needed is left out, then numbers are made smaller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.campaign.trial import attempt
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.simulated.script import Operation
from stagewright.impl.recording.failure import CheckLogs, Failure
from stagewright.impl.recording.shrinking import RUNS, Cuts, Shrunk, shrink as shrink_by
from stagewright.impl.simulator.database.weather import FAULTS, Faults

Part = Operation | str  # a fault by its name
_OF_INDEXES = ("await", "drop", "status", "read")


def shrink(
    scenario: Scenario,
    failure: Failure,
    defects: frozenset[Defect] = frozenset(),
    check_logs: CheckLogs | None = None,
    *,
    most: int = RUNS,
) -> Shrunk[Scenario]:
    """A scenario as small as `most` runs can make it that shows the same failure."""

    def failures(tried: Scenario) -> tuple[Failure, ...]:
        return attempt(tried, defects, check_logs=check_logs).failures

    return shrink_by(scenario, failure, failures, Cuts(_parts, _of, smaller), most)


def _parts(scenario: Scenario) -> list[Part]:
    faults: list[Part] = [name for name in FAULTS if getattr(scenario.faults, name)]
    return [*faults, *scenario.script[1:]]


def _of(scenario: Scenario, parts: list[Part]) -> Scenario:
    kept = {part: getattr(scenario.faults, part) for part in parts if isinstance(part, str)}
    script = whole(p for p in parts if isinstance(p, Operation))
    return replace(scenario, faults=Faults(**kept), script=(scenario.script[0], *script))


def whole(script: Iterable[Operation]) -> tuple[Operation, ...]:
    """A script without what uses an index that is not created in it before."""
    made = set[str]()
    found: list[Operation] = []
    for one in script:
        if one.verb == "create":
            made.add(one.name)
        of_index = one.verb in _OF_INDEXES or (one.verb == "split" and one.name)
        if not of_index or one.name in made:
            found.append(one)
    return tuple(found)


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios in which one number is less."""
    script = scenario.script
    for i, one in enumerate(script):
        if one.verb not in ("table", "write", "wait"):
            continue
        for number in (one.number // 4, one.number // 2):
            if number < one.number:
                text = one.text.replace(str(one.number), str(number), 1)
                less = replace(one, number=number, text=text)
                yield replace(scenario, script=(*script[:i], less, *script[i + 1 :]))
    if scenario.clients > 1:
        yield replace(scenario, clients=scenario.clients - 1)
    settings = scenario.settings
    if settings.tablets > 1:
        yield replace(scenario, settings=replace(settings, tablets=settings.tablets - 1))
