"""The definitions by which what the engine records in a run is checked."""

from __future__ import annotations

from functools import cache

from stagewright.impl.recording.transition_table import TransitionTable, tables_of
from stagewright.machines.recorded import OF_VIEW_ENGINE


@cache
def tables() -> dict[str, TransitionTable]:
    """The definitions by kind; all runs of a process share what they compute."""
    return tables_of(OF_VIEW_ENGINE)
