"""Failures of a campaign as lines and as JSON: each sort has its own smaller scenario, also two of one seed."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.commands.campaigning.failures import Failures
from stagewright.impl.recording.failure import Failure, Found
from stagewright.impl.recording.shrinking import Shrunk


@dataclass(frozen=True)
class Scenario:
    """A command by its words."""

    command: str


ROWS, TRACE = Failure("clients", "a row is lost"), Failure("trace", "a step cannot happen")
FOUND = Failures(
    [Found(ROWS, 7, 2), Found(TRACE, 7, 1)],
    {"clients": "clients notice", "trace": "the definitions refuse"},
    lambda seed: f"again {seed}",
    [Shrunk(Scenario("lose"), ROWS, 12)],
)


def test_each_sort_is_reported_with_how_to_see_it_again() -> None:
    assert [*FOUND.lines()] == [
        "BROKEN clients notice: a row is lost (2 seeds, first 7)",
        "  reproduce: again 7",
        "  smaller, in 12 runs: lose",
        "BROKEN the definitions refuse: a step cannot happen (1 seed, first 7)",
        "  reproduce: again 7",
    ]


def test_a_smaller_scenario_is_of_its_sort_and_not_of_its_seed() -> None:
    assert [(one["text"], one["shrunk"]) for one in FOUND.as_json()] == [
        ("a row is lost", "lose"),
        ("a step cannot happen", None),
    ]
