"""Random walks: instances of any machine that take steps chosen by a seed, and record what they do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from stagewright.impl.runtime.instance import Instance
from stagewright.impl.runtime.program import Program
from stagewright.spec.definition import Definition
from stagewright.spec.errors import DomainError
from stagewright.spec.scope import Scope
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step


@dataclass(frozen=True)
class Walk:
    """What the walks of some instances came to."""

    instances: int
    steps: int
    fired: Mapping[str, int]  # how often each action happened; every action is there
    stuck: int  # instances that ended in a state without an enabled step
    at_bounds: int  # instances whose next steps all lead out of the bounds of a check
    trace: Path


def walk(
    definition: Definition, scope: Scope, *, instances: int, steps: int, seed: int, trace: Path
) -> Walk:
    """Let each instance take up to `steps` enabled steps, each action as likely as any other.

    A step that would assign a number outside of its bounds is not taken: the trace stays within what a
    check at this scope knows. The same definition, scope and seed give the same trace, byte for byte.
    """
    chance = random.Random(seed)
    program = Program(definition, scope)
    fired = Counter({action.name: 0 for action in definition.actions})
    ends: Counter[_End] = Counter()
    with TraceWriter(trace, definition, f"{definition.name}-seed-{seed}") as writer:
        for number in range(instances):
            initial = program.starts.decode(chance.choice(program.starts.initial))
            one = Instance(program, initial)
            entity = f"{definition.name.lower()}{number}"
            writer.start(entity, initial)
            for _ in range(steps):
                step = _taken(one, chance)
                if isinstance(step, _End):
                    ends[step] += 1
                    break
                fired[step.action] += 1
                writer.record(entity, step, observation(one.state))
    return Walk(
        instances,
        fired.total(),
        FrozenMap(fired),
        ends[_End.STUCK],
        ends[_End.AT_BOUNDS],
        trace,
    )


class _End(Enum):
    """Why an instance takes no step."""

    STUCK = auto()
    AT_BOUNDS = auto()


def _taken(one: Instance, chance: random.Random) -> Step | _End:
    """A step that the instance has taken, or why it takes none."""
    actions = list(one.program.actions)
    chance.shuffle(actions)
    end = _End.STUCK
    for action in actions:
        steps = one.choices(action)
        chance.shuffle(steps)
        for step in steps:
            try:
                one.fire(step)
            except DomainError:
                end = _End.AT_BOUNDS
            else:
                return step
    return end
