"""The random machines of one run: explored once by the interpreter, looked at by several tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.thorough import THOROUGH

from stagewright.spec.verdict import Outcome

MACHINES = 900 if THOROUGH else 70
EXAMPLES = 2400 if THOROUGH else 200  # of which some repeat, and some are too large
MOST_STATES = 250
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@dataclass
class Met:
    """Distinct machines that have an initial state, and how their promises ended."""

    machines: dict[str, Explored] = field(default_factory=dict, repr=False)
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)

    @property
    def enough(self) -> bool:
        """Whether the rest of the examples can be skipped."""
        return len(self.machines) >= MACHINES

    def meet(self, machine: RandomMachine, look: Callable[[Explored], None]) -> None:
        """Look at a machine that was not met before; it counts if nothing is wrong with it."""
        name = machine.definition.fingerprint()
        if self.enough or name in self.machines:
            return
        try:
            explored = Explored(machine, MOST_STATES)
        except TooLargeError:
            return
        look(explored)
        if explored.initial:
            self.machines[name] = explored


@pytest.fixture(scope="session")
def met() -> Met:
    """What the tests of this run have met so far."""
    return Met()


@pytest.fixture
def all_met(met: Met) -> Met:
    """Enough machines, met by other tests or now."""

    @settings(max_examples=EXAMPLES, suppress_health_check=PATIENT, phases=[Phase.generate])
    @given(machines())
    def meet(machine: RandomMachine) -> None:
        met.meet(machine, lambda explored: None)

    if not met.enough:
        meet()
    return met
