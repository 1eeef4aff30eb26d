"""What happened in runs: a campaign whose runs do nothing proves nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counts:
    """Of one run."""

    answers: int = 0
    with_errors: int = 0
    refused: int = 0
    coordinators_died: int = 0
    writes: int = 0
    crashes: int = 0
    moves: int = 0
    failovers: int = 0
    transfers: int = 0
    compactions: int = 0
    switches: int = 0
    log_events: int = 0
    steps: int = 0  # of the trace
