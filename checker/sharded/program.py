"""What a task needs to know of a model: compiled code and where things lie; no definition travels.

Workers get LLVM's text, made where the definition is, and compile it for their own processor: they need
neither the user's file nor anything that it imports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from stagewright.checker.explicit.exploration import Watch
from stagewright.checker.explicit.native.code.expansion import expansion_source
from stagewright.checker.explicit.native.code.jit import Module
from stagewright.checker.explicit.native.code.observed import Observed
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.packing import Layout, Place
from stagewright.checker.sharded.routing import routing_source
from stagewright.checker.symmetry.compiled import canonical_source
from stagewright.checker.symmetry.groups import Symmetry


@dataclass(frozen=True)
class Program:
    """The text of the code that searches one model, and the layout of its states and observations."""

    expand: str  # finds successors and observes
    edges: str  # finds successors and names their steps
    words: int
    places: tuple[Place, ...]
    steps: int
    overflowing_steps: int
    observed: Observed
    canonical: str = ""  # replaces states by those of their orbits that stand for them

    @classmethod
    def of(cls, engine: NativeEngine, watch: Watch, symmetry: Symmetry | None = None) -> Self:
        """The program that searches an engine's model for what is to be watched."""
        plan, model = engine.plan(watch), engine.model
        return cls(
            expansion_source(plan),
            expansion_source(engine.plan()),
            engine.layout.words,
            engine.layout.places,
            len(model.steps),
            sum(step.overflows is not model.builder.false for step in model.steps),
            plan.observed,
            "" if symmetry is None else canonical_source(engine.layout, symmetry),
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `json` has written."""
        places = tuple(Place(*place) for place in data["places"])
        observed = Observed(**data["observed"])
        return cls(**{**data, "places": places, "observed": observed})

    def json(self) -> dict[str, Any]:
        """All of it, for a file."""
        places = [[place.word, place.shift, place.bits] for place in self.places]
        return {**asdict(self), "places": places}

    @property
    def digest(self) -> str:
        """Equal for programs that do the same."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @property
    def layout(self) -> Layout:
        """How states are packed; what the cells mean is not known here."""
        return Layout((), self.places, self.words)

    def most_successors(self, states: int) -> int:
        """How many successors so many states have at most."""
        return states * self.steps


@dataclass
class Compiled:
    """A program's functions in this process, compiled when they are first asked for."""

    program: Program

    @cached_property
    def _expansion(self) -> Module:
        return Module(self.program.expand)

    @property
    def expand_address(self) -> int:
        """Where the function that finds successors begins."""
        return self._expansion.address("expand")

    @cached_property
    def expand(self) -> Callable[..., int]:
        """Finds successors and observes."""
        return self._expansion.function("expand", 7)

    @cached_property
    def _routing(self) -> Module:
        return Module(routing_source(self.program.words, self.program.canonical))

    @cached_property
    def route(self) -> Callable[..., int]:
        """Expands states and puts successors into buffers."""
        return self._routing.function("route", 3)

    @cached_property
    def send(self) -> Callable[..., int]:
        """Puts states into buffers."""
        return self._routing.function("send", 3)

    @cached_property
    def canonical(self) -> Callable[..., int] | None:
        """Replaces states by those that stand for them; None where every state stands for itself."""
        return self._routing.function("canonical", 2) if self.program.canonical else None

    @cached_property
    def _edges(self) -> Module:
        return Module(self.program.edges)

    @cached_property
    def edges(self) -> Callable[..., int]:
        """Finds successors and their steps."""
        return self._edges.function("expand", 7)
