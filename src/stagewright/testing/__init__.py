"""For the tests of people who write definitions: checks, conformance and Hypothesis strategies as calls.

    def test_a_lease_has_one_holder():
        assert_holds(Lease, sizes={"node": 3})

Failures are `AssertionError`s whose text is the counterexample. `pytest --stagewright` collects machines by itself
(`stagewright.pytest_plugin`).
"""

from stagewright.checker.conformance import (
    Adapter as Adapter,
    ConformanceError as ConformanceError,
    RefusedEvent as RefusedEvent,
)
from stagewright.spec.values import State as State
from stagewright.spec.verdict import Run as Run, Step as Step
from stagewright.testing.checks import PropertyError as PropertyError, assert_holds as assert_holds
from stagewright.testing.conformance import SUITES as SUITES, assert_conforms as assert_conforms
from stagewright.testing.exported import ExportedTests as ExportedTests
from stagewright.testing.strategies import (
    initial_states as initial_states,
    runs as runs,
    states as states,
)

__all__ = [
    "SUITES",
    "Adapter",
    "ConformanceError",
    "ExportedTests",
    "PropertyError",
    "RefusedEvent",
    "Run",
    "State",
    "Step",
    "assert_conforms",
    "assert_holds",
    "initial_states",
    "runs",
    "states",
]
