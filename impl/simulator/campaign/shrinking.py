"""How a scenario of the database becomes small: operations and faults are left out, then numbers made smaller.

The randomness of a run is keyed by link and kind, so that what is left out shifts nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stagewright.impl.node.defects import Defect
from stagewright.impl.recording.failure import CheckLogs, Failure
from stagewright.impl.recording.shrinking import RUNS, Cuts, Shrunk, shrink as shrink_by
from stagewright.impl.simulator.campaign.scenario import Scenario
from stagewright.impl.simulator.campaign.trial import attempt
from stagewright.impl.simulator.database.script import TABLETS, Operation
from stagewright.impl.simulator.database.weather import FAULTS, NONE, Faults

RING = "rows"  # the table of the token ring
Part = Operation | str | tuple[str, str]  # a fault by its name, or an aimed one


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
        return attempt(tried, defects, check_logs).failures

    return shrink_by(scenario, failure, failures, Cuts(_parts, _of, smaller), most)


def _parts(scenario: Scenario) -> list[Part]:
    faults: list[Part] = [name for name in FAULTS if getattr(scenario.faults, name)]
    return [*faults, *scenario.faults.aimed, *scenario.script]


def _of(scenario: Scenario, parts: list[Part]) -> Scenario:
    faults: Faults = NONE
    for part in parts:
        if isinstance(part, str):
            faults = replace(faults, **{part: getattr(scenario.faults, part)})
    aimed = tuple(p for p in parts if isinstance(p, tuple))
    script = whole(p for p in parts if isinstance(p, Operation))
    return replace(scenario, faults=replace(faults, aimed=aimed), script=script)


def whole(script: Iterable[Operation]) -> tuple[Operation, ...]:
    """A script without what uses a table or a view that is not made in it, or makes a view that is there.

    Of a table that was dropped, which may be refused, nothing is left out.
    """
    tables, views = {RING}, set[str]()
    found: list[Operation] = []
    for one in script:
        match one.verb:
            case "table":
                tables.add(one.node)
            case "drop" if one.of_table and one.node in tables:
                pass
            case "create" if one.by in tables and one.node not in views:
                views.add(one.node)
            case "await" | "drop" if one.node in views:
                views -= {one.node} if one.verb == "drop" else set()
            case "create" | "await" | "drop":
                continue
            case _ if one.of_table and one.node not in tables - {RING}:
                continue
            case _:
                pass
        found.append(one)
    return tuple(found)


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios in which one number is less."""
    script = scenario.script
    for i, one in enumerate(script):
        for number in (one.number // 4, one.number // 2, one.number - 1):
            if one.number > number > 0 and (one.verb != "table" or number in TABLETS):
                less = replace(one, number=number)
                yield replace(scenario, script=(*script[:i], less, *script[i + 1 :]))
    named = {name for one in script for name in (one.node, one.by, one.tokens_of)}
    if scenario.nodes > 1 and f"n{scenario.nodes}" not in named:
        yield replace(scenario, nodes=scenario.nodes - 1)
    if scenario.ttl:
        yield replace(scenario, ttl=0)
    if scenario.images:
        yield replace(scenario, images=False)
    if scenario.cdc:
        yield replace(scenario, cdc=False, images=False, ttl=0)
    load = scenario.workload
    for keys in (1, load.keys // 2):
        if 0 < keys < load.keys:
            yield replace(scenario, workload=replace(load, keys=keys))
    if load.deletes:
        yield replace(scenario, workload=replace(load, deletes=0.0))
    if load.refused:
        yield replace(scenario, workload=replace(load, refused=False, all=0.0))
    if load.clients > 1:
        yield replace(scenario, workload=replace(load, clients=1))
