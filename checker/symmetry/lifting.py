"""From a path of canonical states to a run of the machine itself, every step of which it takes.

A canonical path says: from this state that ground step leads into the orbit of the next one. The run
keeps the permutation that makes its own state of the canonical one, takes the step renamed by it, and
finds the permutation for the state that comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagewright.checker.explicit.exploration import Edge, Exploration
from stagewright.checker.explicit.runs import Path, step_of
from stagewright.checker.symmetry.groups import Permutation, Symmetry
from stagewright.checker.symmetry.permutations.motion import (
    Arguments,
    Ints,
    Renaming,
    permutation_between,
)
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.spec.grounding.ground import GroundModel, GroundStep
from stagewright.spec.grounding.ground_eval import take
from stagewright.spec.verdict import Run


@dataclass(frozen=True)
class Lifted:
    """A run of the machine; by state, `permutations` makes the run's state of the path's."""

    states: tuple[Ints, ...]
    steps: tuple[GroundStep, ...]
    permutations: tuple[Permutation, ...]


def lifted(
    model: GroundModel, symmetry: Symmetry, states: Sequence[Ints], steps: Sequence[int]
) -> Lifted:
    """The run along a path: canonical `states`, the first one initial, and the ground steps between them."""
    renaming = Renaming(model, symmetry)
    permutations = [symmetry.identity]
    run, taken = [states[0]], list[GroundStep]()
    for index, canonical in zip(steps, states[1:], strict=True):
        step = renaming.step(model.steps[index], permutations[-1])
        assert step is not None, "a step that is enabled has a counterpart under every permutation"
        run.append(take(step, run[-1]))
        taken.append(step)
        found = permutation_between(symmetry, canonical, run[-1])
        assert found is not None, "a path leads from orbit to orbit"
        permutations.append(found)
    return Lifted(tuple(run), tuple(taken), tuple(permutations))


def lifted_along(found: Exploration, symmetry: Symmetry, path: Path) -> Lifted:
    """The run along a path of an exploration of canonical states."""
    engine = found.engine
    start, steps = path
    ids = (start, *(state for _, state in steps))
    states = [engine.layout.unpack(found.words, state) for state in ids]
    return lifted(engine.model, symmetry, states, [step for step, _ in steps])


def lifted_step(model: GroundModel, symmetry: Symmetry, run: Lifted, step: int) -> GroundStep:
    """The step that the run takes in its last state where the path's last state takes ground step `step`."""
    image = Renaming(model, symmetry).step(model.steps[step], run.permutations[-1])
    assert image is not None, "a step that is enabled has a counterpart under every permutation"
    return image


def lifted_arguments(
    model: GroundModel, symmetry: Symmetry, run: Lifted, arguments: Arguments, at: int = -1
) -> Arguments:
    """What an instance of a promise, violated by the path's state `at`, is called where the run violates it.

    For a step property it is the state before the step: -2 where the path ends with that step.
    """
    return Renaming(model, symmetry).arguments(arguments, run.permutations[at])


def lifted_breach(
    found: Exploration, path: Path, beyond: Edge | None, arguments: Arguments
) -> tuple[Lifted, Arguments]:
    """The run along a path (and one step more), and what the instance that it breaks is called there."""
    engine = found.engine
    assert isinstance(engine, Reduced)
    start, steps = path
    whole = path if beyond is None else (start, (*steps, (beyond.step, beyond.target)))
    run = lifted_along(found, engine.symmetry, whole)
    at = -1 if beyond is None else -2
    return run, lifted_arguments(engine.model, engine.symmetry, run, arguments, at)


def run_of(model: GroundModel, run: Lifted) -> Run:
    """The run in the definition's own values."""
    return Run(
        tuple(model.decode(state) for state in run.states), tuple(step_of(s) for s in run.steps)
    )
