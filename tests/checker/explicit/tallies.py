"""What a search has counted and noted, in a form that can be compared."""

from stagewright.checker.explicit.exploration import Tally


def counted(tally: Tally) -> tuple[object, ...]:
    """Everything, but not how far the search came."""
    return (
        tally.levels,
        tally.fired.tolist(),
        tally.false_counts.tolist(),
        tally.state_notes,
        tally.step_notes,
        tally.deadlock,
        tally.overflow,
        tally.met_states,
        tally.met_steps,
    )
