"""How far a proof may go, and what it says while it goes; without the solver, for the command line."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_K = 10
DEFAULT_DEPTH = 20


@dataclass(frozen=True)
class Limits:
    """When to give up: seconds of wall time for the whole proof, Z3's units of work for one query."""

    seconds: float | None = None
    rlimit: int | None = None


@dataclass(frozen=True)
class Progress:
    """What a long proof has come to so far; `k` is 0 once only the bounded search goes on."""

    depth: int
    k: int
    proved: int
    violated: int
    undecided: int
    seconds: float
