"""Makes a failing scenario small: operations and faults are left out, then numbers made smaller, while it fails alike.

The randomness of a run is keyed by link and kind, so that what is left out shifts nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from stagewright.impl.node.defects import Defect
from stagewright.impl.recording.failure import CheckLogs, Failure
from stagewright.impl.recording.minimize import minimize
from stagewright.impl.simulator.campaign.scenario import Scenario
from stagewright.impl.simulator.campaign.trial import attempt
from stagewright.impl.simulator.database.script import OF_TABLES, TABLETS, Operation
from stagewright.impl.simulator.database.weather import FAULTS, NONE, Faults
from stagewright.spec.errors import InputError

RUNS = 150
Part = Operation | str | tuple[str, str]  # a fault by its name, or an aimed one


@dataclass
class Shrunk:
    """The smallest scenario that was found, what fails in it, and how many runs that took."""

    scenario: Scenario
    failure: Failure
    runs: int


class _Spent(Exception):  # noqa: N818 - no error: the runs that it may take are over
    pass


class _Shrinker:
    def __init__(
        self,
        scenario: Scenario,
        failure: Failure,
        defects: frozenset[Defect],
        check_logs: CheckLogs | None,
        most: int,
    ) -> None:
        self.best = Shrunk(scenario, failure, 0)
        self._defects = defects
        self._check_logs = check_logs
        self._most = most

    def fails(self, scenario: Scenario) -> bool:
        """Whether it still shows the failure; if so it is the smallest one by now."""
        if self.best.runs >= self._most:
            raise _Spent
        self.best.runs += 1
        try:
            result = attempt(scenario, self._defects, self._check_logs)
        except InputError:  # an operation names a node that was left out
            return False
        sort = self.best.failure.sort
        alike = next((f for f in result.failures if f.sort == sort), None)
        if alike is None:
            return False
        self.best.scenario, self.best.failure = scenario, alike
        return True

    def leave_out(self) -> None:
        """Do ddmin over operations and faults."""
        minimize(_parts(self.best.scenario), lambda kept: self.fails(_of(self.best.scenario, kept)))

    def lessen(self) -> None:
        """Fewer writes, nodes and keys."""
        changed = True
        while changed:
            changed = any(self.fails(smaller) for smaller in smaller(self.best.scenario))


def shrink(
    scenario: Scenario,
    failure: Failure,
    defects: frozenset[Defect] = frozenset(),
    check_logs: CheckLogs | None = None,
    *,
    most: int = RUNS,
    progress: Callable[[int], None] = lambda _runs: None,
) -> Shrunk:
    """A scenario as small as `most` runs can make it that shows the same failure."""
    shrinker = _Shrinker(scenario, failure, defects, check_logs, most)
    try:
        before: Scenario | None = None
        while before != shrinker.best.scenario:
            before = shrinker.best.scenario
            shrinker.leave_out()
            progress(shrinker.best.runs)
            shrinker.lessen()
            progress(shrinker.best.runs)
    except _Spent:
        pass
    return shrinker.best


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
    """A script without what uses a table or a view that is not made in it, or makes a view that is there."""
    tables, views = set[str](), set[str]()
    found: list[Operation] = []
    for one in script:
        match one.verb:
            case "table":
                tables.add(one.node)
            case "create" if one.by in tables and one.node not in views:
                views.add(one.node)
            case "await" | "drop" if one.node in views:
                views -= {one.node} if one.verb == "drop" else set()
            case "create" | "await" | "drop":
                continue
            case verb if verb in OF_TABLES and one.node not in tables:
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
    named = {name for one in script for name in (one.node, one.by)}
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
    if load.clients > 1:
        yield replace(scenario, workload=replace(load, clients=1))
