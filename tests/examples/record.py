"""Records `trace.jsonl` of an example from its implementation: `python -m tests.examples.record NAME`.

The definition says which steps may happen, chance chooses, and what the adapter observes is written.
"""

import json
import random
import sys
from pathlib import Path

from stagewright.checker.conformance.oracle import Oracle
from stagewright.commands.conformance.adapter_loading import adapter_factory
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.values import State, plain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
INSTANCES = 5
STEPS = 25


def record(machine: str, adapter: str, seed: int = 7) -> str:
    """The lines of a trace of several instances."""
    definition = load(machine)
    scope = scope_of(definition)
    oracle = Oracle(definition, scope)
    make = adapter_factory(adapter, definition, scope)
    chance = random.Random(seed)
    lines: list[str] = []
    for instance in range(INSTANCES):
        driven = make()
        state: State = chance.choice(oracle.initial_states())
        driven.reset(state)
        entity = f"instance{instance}"
        events: list[dict[str, object]] = [
            {"action": None, "params": {}, "observed": driven.observe()}
        ]
        for _ in range(STEPS):
            enabled = oracle.allowed(state).enabled
            if not enabled:
                break
            step = chance.choice(enabled)
            driven.do(step)
            state = oracle.after(step, state)
            params = {name: plain(value) for name, value in step.arguments.items()}
            events.append({"action": step.action, "params": params, "observed": driven.observe()})
        events.append({"end": True})
        lines += [
            json.dumps({"entity": entity, "seq": n, **event}) for n, event in enumerate(events)
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    name, machine = sys.argv[1:]
    folder = EXAMPLES / name
    text = record(f"{folder / name}.py:{machine}", f"{folder}/service.py:Adapter")
    (folder / "trace.jsonl").write_text(text, "utf-8")
