"""Steps, runs and verdicts: what backends hand to people, to files and to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.source import Source
from stagewright.spec.values import FrozenMap, Printer, State, Value, flatten, show, summarised

REFINEMENT = "refinement"
"""The kind of a verdict on one, beside the kinds of properties."""


class Outcome(Enum):
    """What a decision came to; its value is the exit code."""

    HOLDS = 0
    VIOLATED = 1
    UNDECIDED = 3


@dataclass(frozen=True)
class Step:
    """One occurrence of an action: its name and its arguments by parameter name."""

    action: str
    arguments: FrozenMap[str, Value] = field(default_factory=lambda: FrozenMap({}))

    @property
    def label(self) -> str:
        if not self.arguments:
            return self.action
        return f"{self.action}({', '.join(map(show, self.arguments.values()))})"


@dataclass(frozen=True)
class Run:
    """A finite run: `states[0]` is initial and `steps[i]` leads from `states[i]` to `states[i + 1]`.

    With `loop` the run is a lasso: its last state's next one is `states[loop]` again, by `loop_step`.
    """

    states: tuple[State, ...]
    steps: tuple[Step, ...]
    loop: int | None = None
    loop_step: Step | None = None

    def __post_init__(self) -> None:
        assert len(self.states) == len(self.steps) + 1
        assert (self.loop is None) == (self.loop_step is None)

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """How Hypothesis and notebooks show it: where it begins, and what each step changes."""
        assert not cycle, "what is immutable does not contain itself"
        now = _shown(self.states[0])
        shown = ", ".join(f"{place} = {value}" for place, value in summarised(now))
        printer.text(f"Run from {shown}")
        for number, (step, state) in enumerate(zip(self.steps, self.states[1:], strict=True), 1):
            before, now = now, _shown(state)
            changed = [f"{p}: {before[p]} → {v}" for p, v in now.items() if before[p] != v]
            shown = ", ".join(changed) or "changes nothing"
            printer.text(f"\n    {number:>2}  {step.label}   {shown}")
        if self.loop_step is not None:
            printer.text(f"\n        {self.loop_step.label}   back to state {self.loop}")


def _shown(state: State) -> dict[str, str]:
    leaves = (leaf for name, value in state.items() for leaf in flatten(name, value))
    return {place: show(value) for place, value in leaves}


@dataclass(frozen=True)
class Refined:
    """What a verdict on a refinement adds: which machine is seen as which, and what is seen of its run.

    `concrete` and `scope` are those of the run; they are another machine's where the refinement was decided for
    the machine that is seen. `looks` says what is seen of each state of the run, place by place; `instead` what
    the seen machine could have done in the place of the last step. `taken` of its `edges` (its steps between
    things that look different) were taken by the concrete machine; `untaken` are the others, in words.
    """

    doc: str
    where: Source
    concrete: Definition
    scope: Scope
    seen: Definition
    hidden: tuple[str, ...] = ()
    looks: tuple[FrozenMap[str, str], ...] = ()
    instead: tuple[str, ...] = ()
    edges: int = 0
    taken: int = 0
    untaken: tuple[str, ...] = ()


@dataclass(frozen=True)
class PropertyVerdict:
    """What was decided about one promise, by which method, and the run that shows a violation.

    `name` is the property's name, or one of "no deadlock" and "assigned values stay in bounds".
    `arguments` are the parameter values of the violated instance. `note` says what the method can say
    more: "holds in all 45 states", "proved by 2-induction", "vacuous: the premise never held"; `vacuous`
    says this last one to programs.
    """

    name: str
    outcome: Outcome
    method: str
    note: str = ""
    run: Run | None = None
    arguments: FrozenMap[str, Value] = field(default_factory=lambda: FrozenMap({}))
    seconds: float = 0.0
    vacuous: bool = False  # it holds, but what it speaks of never happened
    refined: Refined | None = None  # the verdict is one on a refinement
    witness: Run | None = None  # of what sometimes happens: a run that shows it
    scope: str = ""  # at which it was decided, if that is not the report's


@dataclass(frozen=True)
class Coverage:
    """How often each action happened and each (action, requirement) was the false one, over all states."""

    fired: FrozenMap[str, int]
    requirement_false: FrozenMap[tuple[str, str], int]

    @property
    def never_fired(self) -> tuple[str, ...]:
        return tuple(name for name, n in self.fired.items() if n == 0)

    @property
    def never_false(self) -> tuple[tuple[str, str], ...]:
        return tuple(key for key, n in self.requirement_false.items() if n == 0)


@dataclass(frozen=True)
class Reduction:
    """How symmetry was used: then a report counts orbits, each of which stands for several states."""

    sorts: FrozenMap[str, int]  # the interchangeable sorts, with their sizes
    used: bool
    reason: str = ""  # why it was not used
    states: int | None = None  # how many states the orbits stand for, if that was counted


@dataclass(frozen=True)
class Report:
    """The result of one check or proof of one definition at one scope."""

    definition: Definition
    scope: str
    method: str
    verdicts: tuple[PropertyVerdict, ...]
    states: int = 0  # distinct states
    transitions: int = 0
    depth: int = 0  # edges on the longest shortest path from an initial state
    exhausted: bool = True
    seconds: float = 0.0
    coverage: Coverage | None = None
    note: str = ""
    interrupted: bool = False  # by the user, who then wants nothing else decided, either
    reduction: Reduction | None = None
    # By refinement for this machine: the profiles of it that no profile of the concrete machine is seen as.
    uncovered: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        outcomes = {v.outcome for v in self.verdicts}
        if Outcome.VIOLATED in outcomes:
            return Outcome.VIOLATED
        return Outcome.UNDECIDED if Outcome.UNDECIDED in outcomes else Outcome.HOLDS
