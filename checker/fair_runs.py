"""The fair runs of an explored machine: whether one breaks a promise, under what is assumed of the actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.liveness import FairSteps, Lasso, fair_lasso, may_stop
from stagewright.spec.grounding.ground import GroundProperty


@dataclass(frozen=True)
class FairRuns:
    """What a search has found, as far as it was expanded."""

    found: Exploration
    _stops: dict[FairSteps, Bools] = field(default_factory=dict)  # of the last that was asked for

    @cached_property
    def graph(self) -> Graph:
        """All explored edges that change something: no others are steps of a fair run."""
        return self.found.graph.changing

    @cached_property
    def beyond(self) -> Bools:
        """The states beyond the constraints, from which nothing was searched."""
        constraint = self.found.engine.model.constraint
        if constraint is None:
            return np.zeros(self.found.states, dtype=np.bool_)
        (within,) = self.found.everywhere([constraint])
        return ~within

    def sides(self, promise: GroundProperty) -> tuple[Bools, Bools]:
        """Where one instance of a promise begins, and where it is kept."""
        if promise.premise is None:
            (conclusion,) = self.found.everywhere([promise.condition])
            return np.arange(self.found.states) < self.found.initial, conclusion
        premise, conclusion = self.found.everywhere([promise.premise, promise.condition])
        return premise, conclusion

    def lasso(self, sides: tuple[Bools, Bools], fair: FairSteps) -> Lasso | None:
        """A fair run within the constraints that begins where a promise does and is never where it is kept."""
        premise, conclusion = sides
        inside = premise & ~self.beyond, conclusion | self.beyond
        return fair_lasso(self.graph, fair, *inside, self._may_stop(fair))

    def _may_stop(self, fair: FairSteps) -> Bools:
        if fair not in self._stops:
            self._stops.clear()
            self._stops[fair] = may_stop(self.graph, fair, self.found.expanded)
        return self._stops[fair]

    def leave(self, sides: tuple[Bools, Bools]) -> bool:
        """Whether a run that waits can leave the constraints, and may be kept or broken there."""
        if not self.beyond.any():
            return False
        premise, conclusion = sides
        waiting = self.graph.closure(self.graph.out, premise & ~conclusion, ~conclusion)
        return bool((waiting & self.beyond).any())
