"""What a suite has exercised: actions, edges, requirements as refusals, observed leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from stagewright.spec.definition import Definition
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


@dataclass
class Exercised:
    """Counts over all runs of a suite; Hypothesis's include those in which it shrinks a failure.

    `alone`: how often a requirement was the only false one, so that nothing else could refuse.
    """

    runs: int = 0
    steps: int = 0
    refusals: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    alone: Counter[tuple[str, str]] = field(default_factory=Counter)
    edges: set[tuple[State, Step]] = field(default_factory=set)
    observed: set[str] = field(default_factory=set)

    def took(self, state: State, step: Step) -> None:
        """A step was carried out; `state` is what an implementation can know of the state before it."""
        self.steps += 1
        self.fired[step.action] += 1
        self.edges.add((state, step))

    def refused_for(self, step: Step, requirements: Iterable[str]) -> None:
        """A step was refused, as these requirements demand."""
        self.refusals += 1
        keys = [(step.action, name) for name in dict.fromkeys(requirements)]
        self.refused.update(keys)
        if len(keys) == 1:
            self.alone.update(keys)

    def merge(self, other: Exercised) -> None:
        """Count what another suite exercised as well."""
        self.runs += other.runs
        self.steps += other.steps
        self.refusals += other.refusals
        self.fired.update(other.fired)
        self.refused.update(other.refused)
        self.alone.update(other.alone)
        self.edges |= other.edges
        self.observed |= other.observed


@dataclass(frozen=True)
class Gaps:
    """What was not exercised, by name."""

    actions: tuple[str, ...]
    requirements: tuple[tuple[str, str], ...]  # never false in an event that was tried
    never_alone: tuple[tuple[str, str], ...]  # false only together with others
    leaves: tuple[str, ...]  # never observed


def gaps(definition: Definition, leaves: Iterable[str], exercised: Exercised) -> Gaps:
    """What a definition has and the suites did not exercise; `leaves` are all that could be observed."""
    keys = list(dict.fromkeys((a.name, r.name) for a in definition.actions for r in a.guards))
    return Gaps(
        tuple(a.name for a in definition.actions if not exercised.fired[a.name]),
        tuple(key for key in keys if not exercised.refused[key]),
        tuple(key for key in keys if exercised.refused[key] and not exercised.alone[key]),
        tuple(leaf for leaf in leaves if leaf not in exercised.observed),
    )
