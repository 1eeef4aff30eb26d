"""The default strategy notices wrong builds: by what clients get or what lies on disks, and by the definitions."""

from __future__ import annotations

import pytest
from tests.thorough import by_turns, some_of

from stagewright.commands.campaigning.asked import Asked
from stagewright.commands.campaigning.of_database import Database
from stagewright.commands.campaigning.wrong_builds import Shown, hunt
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.campaign.trial import BY_CLIENTS, BY_TRACE

D = Defect
BY_BOTH = (
    D.pending_is_not_awaited,
    D.writes_skip_pending,
    D.streaming_misses_rows,
    D.streaming_is_skipped,
    D.tombstones_are_not_streamed,
    D.one_answer_less,
    D.timeouts_acknowledge,
    D.cleanup_drops_owned_rows,
    D.streaming_from_one_source,
    D.sync_is_forgotten,
)
# What these skip, another safeguard bears: fences where a barrier is skipped, barriers where a fence is.
BY_DEFINITIONS = (
    D.barrier_asks_nobody,
    D.barrier_does_not_learn,
    D.barrier_does_not_drain,
    D.reads_are_not_drained,
    D.fence_is_not_spread,
    D.joining_node_is_not_asked,
    D.streaming_does_not_wait,
    D.old_reads_are_not_awaited,
    D.cleanup_does_not_wait,
    D.end_is_not_awaited,
)


def hunted(defect: Defect, seeds: int) -> Shown:
    seeds_of = range(seeds)
    return hunt(Database(Asked("database", seeds_of, 1, wrong_builds=(defect.name,))), seeds_of)


@pytest.mark.parametrize("defect", by_turns(some_of(BY_BOTH, each=6)), ids=lambda d: d.name)
def test_a_wrong_build_is_noticed_by_rows_and_by_definitions(defect: Defect) -> None:
    assert {BY_CLIENTS, BY_TRACE} <= {*hunted(defect, 24).first}


@pytest.mark.parametrize("defect", by_turns(some_of(BY_DEFINITIONS, each=10)), ids=lambda d: d.name)
def test_a_wrong_build_that_another_safeguard_bears_is_noticed_by_definitions(
    defect: Defect,
) -> None:
    assert BY_TRACE in hunted(defect, 1).first
