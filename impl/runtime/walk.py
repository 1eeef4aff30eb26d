"""Random walks: instances of any machine that take steps chosen by a seed, and record what they do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stagewright.impl.runtime.instance import Instance
from stagewright.impl.runtime.program import Program
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import FrozenMap


@dataclass(frozen=True)
class Walk:
    """What the walks of some instances came to."""

    instances: int
    steps: int
    fired: Mapping[str, int]  # how often each action happened; every action is there
    stuck: int  # instances that ended in a state without an enabled step
    trace: Path


def walk(
    definition: Definition, scope: Scope, *, instances: int, steps: int, seed: int, trace: Path
) -> Walk:
    """Let each instance take up to `steps` enabled steps, each action as likely as any other.

    The same definition, scope and seed give the same trace, byte for byte.

    Raises:
        DomainError: a step assigns a number outside of its variable's bounds.
    """
    chance = random.Random(seed)
    program = Program(definition, scope)
    fired = Counter({action.name: 0 for action in definition.actions})
    stuck = 0
    with TraceWriter(trace, definition, f"{definition.name}-seed-{seed}") as writer:
        for number in range(instances):
            initial = program.starts.decode(chance.choice(program.starts.initial))
            one = Instance(program, initial)
            entity = f"{definition.name.lower()}{number}"
            writer.start(entity, initial)
            for _ in range(steps):
                enabled = one.enabled()
                if not enabled:
                    stuck += 1
                    break
                action = chance.choice(sorted({step.action for step in enabled}))
                step = chance.choice([s for s in enabled if s.action == action])
                one.fire(step)
                fired[action] += 1
                writer.record(entity, step, observation(one.state))
    return Walk(instances, fired.total(), FrozenMap(fired), stuck, trace)
