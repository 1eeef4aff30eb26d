"""`assert_holds` and `assert_conforms`: what passes, and what their failures say."""

import pytest
from tests.models.lease import Lease, LeaseTable
from tests.models.stuck import Stuck

from stagewright.checker.limits import Limits
from stagewright.spec.errors import InputError, ScopeError
from stagewright.spec.verdict import Step
from stagewright.testing import (
    ConformanceError,
    PropertyError,
    RefusedEvent,
    assert_conforms,
    assert_holds,
)


class Table:
    """A lease that conforms to its definition."""

    def reset(self, initial: object) -> None:
        self.lease, self.epoch = Lease.free, 0
        self.holder: object = None

    def do(self, step: Step) -> None:
        before = {"acquire": Lease.free, "go_silent": Lease.held, "expire": Lease.expiring}
        if self.lease is not before[step.action] or (step.action == "acquire" and self.epoch == 4):
            raise RefusedEvent
        match step.action:
            case "acquire":
                self.lease, self.holder = Lease.held, step.arguments["n"]
                self.epoch += 1
            case "go_silent":
                self.lease = Lease.expiring
            case _:
                self.lease, self.holder = Lease.free, self.forgotten()

    def forgotten(self) -> object:
        return None

    def observe(self) -> dict[str, object]:
        return {"lease": self.lease, "holder": self.holder, "epoch": self.epoch}


class Remembering(Table):
    """One that forgets to clear the holder."""

    def forgotten(self) -> object:
        return self.holder


def test_a_machine_that_holds_gives_its_report() -> None:
    # Free at five epochs; held or expiring at four, by either node.
    assert assert_holds(LeaseTable, sizes={"node": 2}).states == 21


def test_a_violation_is_reported_by_its_run() -> None:
    with pytest.raises(PropertyError, match=r"(?s)hang.*it_ends"):
        assert_holds(Stuck, properties=["it_ends"])


def test_what_is_not_decided_fails_too() -> None:
    with pytest.raises(PropertyError, match=r"undecided at Node=3: .*not exhausted"):
        assert_holds(LeaseTable, limits=Limits(states=2))


def test_a_size_of_nothing_that_the_machine_has_is_refused() -> None:
    with pytest.raises(ScopeError, match="nodes"):
        assert_holds(LeaseTable, sizes={"nodes": 2})


def test_an_implementation_that_conforms_passes_every_suite() -> None:
    assert_conforms(LeaseTable, Table, sizes={"node": 2}, examples=10)


@pytest.mark.parametrize("suite", ["tour", "refusals", "hypothesis"])
def test_one_that_does_not_fails_each_suite_with_the_shortest_run(suite: str) -> None:
    with pytest.raises(ConformanceError, match=r"in step 3, `expire`.*another state"):
        assert_conforms(LeaseTable, Remembering, suites=[suite], examples=10)


def test_a_suite_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="there is no suite `tours`"):
        assert_conforms(LeaseTable, Table, suites=["tours"])
