"""Why no run explains an event, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.traces.explain.replay_window import ViolationWindow

EXPLAINED_MAX = 200  # violations reported with the events before them, and with files of their own


class AccountingError(Exception):
    """The counts do not add up: a fault of this program, never of its input."""


@dataclass(frozen=True)
class GoodStep:
    """An event that a run explains, before the one that none does.

    `changes` are leaf, old and new value (all that are possible), `values` those of every leaf after it,
    `states` how many states the entity may have been in then.
    """

    sequence: int
    event: str
    changes: tuple[tuple[str, str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    states: int = 1


@dataclass(frozen=True)
class LegalStep:
    """A step that the definition allows, with the leaves that it changes: name, old and new value.

    `hidden`: it would have left no event of its own.
    """

    step: str
    changes: tuple[tuple[str, str, str], ...] = ()
    hidden: bool = False


@dataclass(frozen=True)
class Nearest:
    """The shortest legal run from before an unexplained event to what was observed after it.

    `by_action`: its last step is what the event says. Without steps there is no such run among the `states`
    that were looked at, which were all there are if `exhausted`.
    """

    steps: tuple[LegalStep, ...]
    by_action: bool
    states: int
    exhausted: bool


@dataclass(frozen=True)
class Explanation:
    """Why no run of the definition explains an event, in the words of the definition.

    `failed` are the requirements that refuse the event's action, by name, with where they are written;
    `expected` and `observed` the values, by leaf, that differ after it (an expected one lists all that are
    possible); `enabled` what could have happened instead; `state` the entity's possible values before it,
    by leaf; `states` how many states it may have been in; `steps` the last events before it that a run
    explains; `window` what its files are made of.
    """

    event: str
    failed: tuple[tuple[str, str], ...] = ()
    expected: tuple[tuple[str, str], ...] = ()
    observed: tuple[tuple[str, str], ...] = ()
    enabled: tuple[str, ...] = ()
    state: tuple[tuple[str, str], ...] = ()
    states: int = 0
    steps: tuple[GoodStep, ...] = ()
    nearest: Nearest | None = None
    window: ViolationWindow | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Refused:
    """The first event of an entity that a candidate refuses, and why; None: it is one before, of which no more is known."""

    candidate: str
    sequence: int | None
    explanation: Explanation | None = None


@dataclass(frozen=True)
class CandidateReport:
    """What one candidate is to the entities of a trace whose machines it is a profile of.

    It `explains` those that are ok by it, and `refuses` those with an event that no run of it explains, of which
    `first` is the first by name; what is left is incomplete, or not decided.
    """

    trace: str
    candidate: str
    entities: int
    explains: int
    refuses: int
    first: str = ""
