"""What a campaign has come to: what was met in which state, and what never was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from stagewright.impl.recording.trial import Tally
from stagewright.impl.simulator.campaign.drawing import AIMED_AT
from stagewright.impl.simulator.campaign.trial import Result
from stagewright.impl.simulator.database.weather import ENTERED, KINDS, at_stage
from stagewright.impl.topology.release import release
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import (
    NODE_DIAGRAM,
    TRANSITION_TABLE,
    TransitionState,
)

NOT_RUN = frozenset(
    {
        TransitionState.publish_cdc_generation,  # of older releases, as the next
        TransitionState.tablet_draining,
        TransitionState.snapshot_tables,  # no script asks for this
    }
)
_BESIDE = (
    TransitionState.tablet_migration,
    TransitionState.tablet_resize_finalization,
    TransitionState.truncate_table,
    TransitionState.lock,
)
STATES = (
    *(s.name for s in TransitionState if s not in NOT_RUN),
    *(at_stage(s) for s in Stage if s is not Stage.none),
)
EDGES = tuple(
    [f"node {old.name} {new.name}" for old, after in NODE_DIAGRAM.items() for new in sorted(after, key=lambda s: s.name)]
    + [
        f"topology {old.name} {new.name}"
        for old, following in TRANSITION_TABLE.items()
        for new in sorted(following, key=lambda s: s.name)
        if {old, new} <= {*AIMED_AT, *_BESIDE}
    ]
    + sorted(
        f"tablet {e.source.name} {e.target.name}"
        for e in release().tablets.edges
        if isinstance(e.source, Stage) and isinstance(e.target, Stage) and e.source is not e.target
    )
)  # fmt: skip
"""The edges of both diagrams, in any release, between states that a drawn run comes to, and those of tablets."""


_NO_ORDERS = frozenset(
    s.name
    for s in (
        TransitionState.join_group0,
        TransitionState.commit_cdc_generation,
        TransitionState.write_both_read_new,
        TransitionState.rollback_to_normal,
        TransitionState.lock,
    )
)
_NO_BARRIER = frozenset({TransitionState.join_group0.name, TransitionState.lock.name})
_OF_ORDERS = frozenset({"stream lost", "action fails"})
_OF_TABLETS_ALONE = frozenset({"node dies"})


def why_not(state: str, fault: str) -> str:
    """Why a fault cannot happen in a state of the topology, or in a stage; empty if it can."""
    moves = state.startswith("tablet.") or state == TransitionState.tablet_migration.name
    if fault in _OF_TABLETS_ALONE and not moves:
        return "it is aimed at stages of tablets alone"
    if fault in _OF_ORDERS and state in _NO_ORDERS:
        return "the coordinator has nothing streamed or removed there"
    if fault == "barrier lost" and state in _NO_BARRIER:
        return "there is no barrier"
    return ""


@dataclass
class DatabaseTally(Tally[Result]):
    """Adds up also what was met in each state."""

    met: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    edges: Counter[str] = field(default_factory=Counter[str])
    outcomes: Counter[str] = field(default_factory=Counter[str])

    def add(self, trial: Result) -> None:
        """Take the result of one more run."""
        super().add(trial)
        for state, kinds in trial.met.items():
            for kind, number in kinds.items():
                self.met[state, kind] += number
        self.edges.update(trial.edges)
        self.outcomes.update(trial.outcomes)

    def rows(self) -> Iterator[tuple[str, int, dict[str, int]]]:
        """For each state of the topology: how often it was entered, and how often each fault was met in it."""
        for state in STATES:
            yield state, self.met[state, ENTERED], {k: self.met[state, k] for k in KINDS}

    @property
    def never_entered(self) -> list[str]:
        """The states that no run came to."""
        return [state for state, entered, _ in self.rows() if not entered]

    @property
    def never_met(self) -> list[tuple[str, str]]:
        """States with the faults that never happened in them, of those that were entered and can."""
        return [
            (s, k)
            for s, entered, kinds in self.rows()
            if entered
            for k, n in kinds.items()
            if not n and not why_not(s, k)
        ]

    @property
    def never_taken(self) -> list[str]:
        """The edges that no run took."""
        return [edge for edge in EDGES if not self.edges[edge]]
