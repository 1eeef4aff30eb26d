"""Makes a failing scenario of an indexed table small: what is not needed is left out, then numbers are made smaller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.campaign.trial import attempt
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.simulated.script import Operation
from stagewright.impl.recording.failure import CheckLogs, Failure
from stagewright.impl.recording.minimize import minimize
from stagewright.impl.simulator.database.weather import FAULTS, Faults
from stagewright.spec.errors import InputError

RUNS = 150
Part = Operation | str  # a fault by its name
_OF_INDEXES = ("await", "drop", "status", "read")


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
            trial = attempt(scenario, self._defects, check_logs=self._check_logs)
        except InputError:  # an operation names what was left out
            return False
        sort = self.best.failure.sort
        alike = next((f for f in trial.failures if f.sort == sort), None)
        if alike is not None:
            self.best.scenario, self.best.failure = scenario, alike
        return alike is not None

    def fails_with(self, parts: list[Part]) -> bool:
        """Whether only these parts of the smallest scenario show the failure."""
        return self.fails(_of(self.best.scenario, parts))


def shrink(
    scenario: Scenario,
    failure: Failure,
    defects: frozenset[Defect] = frozenset(),
    check_logs: CheckLogs | None = None,
    *,
    most: int = RUNS,
) -> Shrunk:
    """A scenario as small as `most` runs can make it that shows the same failure."""
    shrinker = _Shrinker(scenario, failure, defects, check_logs, most)
    try:
        before: Scenario | None = None
        while before != shrinker.best.scenario:
            before = shrinker.best.scenario
            minimize(_parts(before), shrinker.fails_with)
            while any(shrinker.fails(less) for less in smaller(shrinker.best.scenario)):
                pass
    except _Spent:
        pass
    return shrinker.best


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
        if one.verb not in _OF_INDEXES or one.name in made:
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
