"""CDC generations keep their promises: how tokens map to streams, what nodes accept, what is published."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines.scylladb.cdc.cdc_generations import (
    COORDINATOR,
    DELAY,
    LEEWAY,
    CdcGenerations,
    Generation,
    Node,
)
from stagewright.machines.scylladb.cdc.cdc_log import CdcLog
from stagewright.machines.scylladb.cdc.cdc_mapping import CdcMapping
from stagewright.machines.scylladb.cdc.cdc_publication import (
    CdcPublication,
    Generation as NumberedGeneration,
    Transition,
)
from stagewright.spec import Fairness, Machine, Term, action, require, scope_of
from stagewright.spec.define import define
from stagewright.spec.derived.assumptions import without
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.verdict import Outcome, Report


def checked(
    machine: type[Machine],
    profile: str = "",
    budgets: dict[str, int] | None = None,
    sizes: dict[str, int] | None = None,
) -> Report:
    definition = define(machine, profile)
    report = check(definition, scope_of(definition, sizes, budgets), symmetry=True)
    assert report.exhausted
    return report


# -- the mapping -------------------------------------------------------------------------------------------


def test_every_small_ring_keeps_base_and_log_rows_together() -> None:
    report = checked(CdcMapping)
    assert broken(report) == set()
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


class RangesOfTheOldRing(CdcMapping):
    """The generation is made for the vnodes that there are, without the joining token."""

    def _vnodes_with(self, t: Any, /) -> Any:
        return {end: self.ring[end].is_some() for end in super()._vnodes_with(t)}


class StartOfTheRangeIncluded(CdcMapping):
    """A stream's token may be the end of the range before."""

    def _first_token(self, ends: Any, end: Any, shard: Any, two_shards: Any) -> Any:
        return super()._first_token(ends, end.around()[-1], shard, two_shards)


@pytest.mark.parametrize("mutant", [RangesOfTheOldRing, StartOfTheRangeIncluded])
def test_a_generation_for_other_vnodes_loses_colocation(mutant: type[Machine]) -> None:
    assert "base_and_log_rows_are_in_one_vnode" in broken(checked(mutant))


# -- log writes --------------------------------------------------------------------------------------------


def test_replicas_receive_base_and_log_write_or_none_where_the_ring_waits_for_its_generation() -> (
    None
):
    """003: "This problem will be fixed when the two-phase-commit approach is implemented"."""
    report = checked(CdcLog)
    assert broken(report) == set()
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


@pytest.mark.parametrize("profile", ["seed", "scylla-2026.2"])
def test_colocation_is_lost_for_a_while_as_the_seed_says(profile: str) -> None:
    report = checked(CdcLog, profile)
    assert broken(report) == {
        "replicas_receive_both_writes_or_none",
        "changes_are_read_with_the_rows",
    }


def test_only_a_lost_message_makes_the_lost_colocation_seen_by_a_client() -> None:
    report = checked(CdcLog, "scylla-2026.2", {"losses": 0})
    assert broken(report) == {"replicas_receive_both_writes_or_none"}


# -- generations in a cluster ------------------------------------------------------------------------------


def test_two_phases_keep_every_promise_whoever_is_cut_off() -> None:
    report = checked(CdcGenerations)
    assert broken(report) == set()
    assert report.coverage is not None
    assert report.coverage.never_fired == ("learn",)


def test_the_newest_release_keeps_every_promise_if_nobody_is_cut_off_between_the_phases() -> None:
    report = checked(CdcGenerations, "scylla-2026.2", {}, {"node": 2})
    assert broken(report) == set()
    assert (report.states, report.transitions) == (261_040, 1_077_880)


def test_without_that_assumption_a_node_of_the_newest_release_uses_the_old_generation() -> None:
    """It is a FIXME of the code, which 003 wants to be gone with the two phases."""
    definition = without(
        define(CdcGenerations, "scylla-2026.2"), "no generation is on its way to it"
    )
    report = check(definition, scope_of(definition), symmetry=True)
    assert {
        "log_writes_use_the_generation_that_operates",
        "timestamps_are_in_the_window",
    } <= broken(report)


@pytest.mark.parametrize(
    ("budgets", "sizes"),
    by_turns(
        some_of(
            [
                ({"restarts": 1, "partitions": 0}, {}),
                ({"restarts": 1, "partitions": 0, "writes": 0}, {"node": 2}),
                ({"writes": 0}, {"node": 2}),
                ({"joins": 2, "writes": 0}, {"generation": 3}),
            ]
        )
    ),
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(budgets: dict[str, int], sizes: dict[str, int]) -> None:
    assert broken(checked(CdcGenerations, "", budgets, sizes)) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("partitions", [0, 1])
def test_two_clocks_differ_while_a_node_is_cut_off(partitions: int) -> None:
    report = checked(CdcGenerations, "", {"partitions": partitions}, {"node": 2})
    assert broken(report) == set()


@pytest.mark.parametrize("profile", ["seed", "seed-code"])
def test_the_seed_loses_what_its_text_says_it_loses(profile: str) -> None:
    report = checked(CdcGenerations, profile, {}, {"node": 1})
    assert broken(report) == {
        "log_writes_use_the_generation_that_operates",
        "timestamps_are_in_the_window",
        "decisions_of_paxos_are_applied",
    }


def test_the_seed_uses_the_right_generation_as_long_as_nobody_is_cut_off() -> None:
    report = checked(CdcGenerations, "seed", {"partitions": 0}, {"node": 1})
    assert broken(report) == {
        "decisions_of_paxos_are_applied",
    }


class NobodyWaitsForTheData(CdcGenerations):
    """The generation gets its timestamp before every node has stored its data."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def commit_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        require(self.on_its_way == g, "its data is written")
        self._introduce(n, g)
        self.unpublished.add(g)
        self.on_its_way = None


class TimestampIsTooNear(CdcGenerations):
    """A generation operates as soon as a message and the leeway have passed, whatever the clocks say."""

    def _introduce(self, n: Any, g: Any) -> None:
        self.start[g] = self.clock(n) + LEEWAY + 1
        self.introduced.add(g)


class ClearedTooEarly(CdcGenerations):
    """The publisher clears a generation without waiting for slower clocks and the leeway."""

    def _may_be_the_oldest(self, n: Any, kept: Any) -> Any:
        return self.start[kept] <= self.clock(n)


class ClearedByOneClock(CdcGenerations):
    """The publisher takes its own clock for everybody's."""

    def _may_be_the_oldest(self, n: Any, kept: Any) -> Any:
        return self.start[kept] <= self.clock(n) - LEEWAY


@pytest.mark.parametrize(
    ("mutant", "budgets", "sizes"),
    by_turns(
        some_of(
            [
                (NobodyWaitsForTheData, {"partitions": 1}, {"node": 1}),
                (TimestampIsTooNear, {"partitions": 0}, {"node": 2}),
                (ClearedTooEarly, {"partitions": 0, "writes": 0}, {"node": 2}),
                (ClearedByOneClock, {"partitions": 0, "writes": 0}, {"node": 2}),
            ]
        )
    ),
)
def test_less_waiting_breaks_a_promise(
    mutant: type[Machine], budgets: dict[str, int], sizes: dict[str, int]
) -> None:
    assert broken(checked(mutant, "scylla-2026.2", budgets, sizes)) != set()


class Play:
    """A run of one node with one generation more, step by step."""

    def __init__(self, profile: str) -> None:
        definition = define(CdcGenerations, profile)
        scope = scope_of(definition, {"node": 1}, {"writes": 1, "joins": 1, "partitions": 0})
        self.interpreter = Interpreter(definition, scope)
        self.state = next(iter(self.interpreter.initial_states()))

    def do(self, *names: str) -> None:
        """The steps of those names, of which there is one each."""
        for name in names:
            (after,) = {
                s for step, s in self.interpreter.successors(self.state) if step.action == name
            }
            self.state = after

    def timestamps(self) -> list[int]:
        """The timestamps that the node accepts writes with, in order."""
        steps = (step for step, _ in self.interpreter.successors(self.state))
        found = [s.arguments["timestamp"] for s in steps if s.action == "write_row"]
        return sorted(t for t in found if isinstance(t, int))


@pytest.mark.parametrize(
    ("profile", "first", "last"),
    [
        ("seed", DELAY, DELAY + 1 + LEEWAY - 1),
        ("seed-code", DELAY, DELAY + 1 + LEEWAY),
        ("scylla-2026.2", DELAY + 1 - LEEWAY + 1, DELAY + 1 + LEEWAY),
    ],
)
def test_the_window_of_timestamps_after_a_switch_is_that_of_its_time(
    profile: str, first: int, last: int
) -> None:
    """One tick after generation T began to operate: [T, C+L), [T, C+L], or (C-L, C+L]."""
    play = Play(profile)
    if profile == "scylla-2026.2":
        play.do("write_data", "store_data", "commit_generation", "learn")
    else:
        play.do("gossip_generation", "learn", "read_data")
    play.do(*["tick"] * (DELAY + 1))
    assert play.timestamps() == list(range(first, last + 1))


def test_long_after_the_switch_old_timestamps_are_accepted_again_in_the_current_generation() -> (
    None
):
    play = Play("scylla-2026.2")
    assert play.timestamps() == list(range(LEEWAY + 1))
    play.do("write_data", "store_data", "commit_generation", "learn")
    play.do(*["tick"] * (DELAY + LEEWAY))
    now = DELAY + LEEWAY
    assert play.timestamps() == list(range(DELAY, now + LEEWAY + 1))


def test_writes_that_need_a_generation_which_could_not_be_read_are_rejected() -> None:
    play = Play("seed")
    play.do("gossip_generation", "learn")
    play.do(*["tick"] * DELAY)
    assert play.timestamps() == []
    play.do("read_data")
    assert play.timestamps() == list(range(DELAY, DELAY + LEEWAY))


# -- publication -------------------------------------------------------------------------------------------


def test_publication_keeps_its_promises_and_every_action_happens() -> None:
    report = checked(CdcPublication)
    assert broken(report) == set()
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


def test_the_seed_waits_for_ever_for_tables_that_cannot_be_written() -> None:
    report = checked(CdcPublication, "seed")
    assert broken(report) == {
        "generations_are_described",
        "topology_changes_end",
        "no deadlock",
    }


class RollbackSkipsPublishing(CdcPublication):
    """A join that is rolled back takes its generation from the queue."""

    @CdcPublication.transition.step(
        Transition.write_both_read_old, Transition.left_token_ring, spends=CdcPublication.failures
    )
    def fail_streaming(self, g: Term[NumberedGeneration]) -> None:
        require(self.new_generation == g, "the generation was made for it")
        self.tokens.discard(g)
        self.unpublished.discard(g)


def test_a_rollback_must_not_skip_the_publication() -> None:
    assert {"the_queue_loses_nothing", "generations_are_described"} <= broken(
        checked(RollbackSkipsPublishing)
    )


@pytest.mark.parametrize("machine", [CdcMapping, CdcPublication])
def test_the_safety_of_mapping_and_publication_is_proved(machine: type[Machine]) -> None:
    definition = define(machine)
    report = prove(definition, scope_of(definition), max_k=2, depth=4)
    assert {v.outcome for v in report.verdicts} == {Outcome.HOLDS}
