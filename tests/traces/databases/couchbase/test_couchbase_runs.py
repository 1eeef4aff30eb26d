"""Random runs of the states of partitions, logged as the group process logs them, and what is wrong in a copy."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.thorough import some_of
from tests.traces.databases.couchbase.couchbase_texts import (
    applying,
    cleaned,
    marked,
    record,
    updated,
)
from tests.traces.readers.evaluated_log import EvaluatedLog, evaluated

from stagewright.machines.couchbase.partitions.partition_states import PartitionStates
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import observation

Observed = dict[str, object]
PARTITIONS = range(3)
LEAVES = {
    "active": "abit",
    "passive": "pbit",
    "cleanup": "content.cbit",
    "unindexable": "content.in_unindexable_seqs",
    "pending active": "pending_active",
    "pending passive": "pending_passive",
    "paused": "pending_unindexable",
}


def of_whom(state: Observed, name: str) -> list[int]:
    return [p for p in PARTITIONS if state[f"group[partition{p}].{LEAVES[name]}"]]


def ids(which: list[int]) -> str:
    return f"[{','.join(map(str, which))}]"


def text(state: Observed) -> str:
    """The states, as `updated` wants them."""
    lists = {name: of_whom(state, name) for name in LEAVES}
    seqs = "[" + ",".join(f"{{{p},7}}" for p in lists["unindexable"]) + "]"
    texts = [
        f"{name} {seqs if name == 'unindexable' else ids(v)}" for name, v in lists.items() if v
    ]
    return "; ".join(texts)


def records_of(action: str, old: Observed, new: Observed, rng: random.Random) -> list[str]:
    """The records of one step; what workers do may be logged later, by the next record."""
    match action:
        case "set_active" | "set_passive" | "set_cleanup":
            return [updated(text(old), text(new))]
        case "mark_unindexable" | "mark_indexable":
            how = "added" if action == "mark_unindexable" else "removed"
            before, after = (ids(of_whom(state, "unindexable")) for state in (old, new))
            pending = ids(of_whom(old, "paused")), ids(of_whom(new, "paused"))
            return [marked(before, after, pending=pending, how=how)]
        case "apply_pending_transition":
            left = {name: sorted({*of_whom(old, name)} - {*of_whom(new, name)}) for name in LEAVES}
            lists = (left["pending active"], left["pending passive"], left["paused"])
            # The header has the new transition already when what was before is logged.
            names = ("pending_active", "pending_passive", "pending_unindexable")
            set_already = {k: new[k] if k.endswith(names) else v for k, v in old.items()}
            return [applying(*map(ids, lists)), updated(text(set_already), text(new))]
        case "clean" if rng.random() < 0.5:
            return [cleaned(text(old), text(new))]
        case _:
            return []


def run(seed: int, steps: int = 40) -> list[str]:
    """The records of a random run."""
    rng = random.Random(seed)
    definition = define(PartitionStates)
    scope = scope_of(definition, {"Partition": len(PARTITIONS)})
    interpreter = Interpreter(definition, scope)
    state, messages = next(iter(interpreter.initial_states())), [updated("", "")]
    for _ in range(steps):
        step, after = rng.choice(list(interpreter.successors(state)))
        if observation(state) != observation(after):
            messages += records_of(step.action, observation(state), observation(after), rng)
        state = after
    return messages


def of_messages(tmp_path: Path, messages: list[str]) -> EvaluatedLog:
    path = tmp_path / "couchdb.log"
    path.write_text("".join(record(second, m) for second, m in enumerate(messages)))
    return evaluated("couchbase-log", [path])


@pytest.mark.parametrize("seed", some_of(range(10)))
def test_a_run_is_ok_for_each_partition(seed: int, tmp_path: Path) -> None:
    found = of_messages(tmp_path, run(seed))
    assert not found.wrong
    assert not found.reasons


def test_a_record_that_is_lost_is_noticed_by_the_next(tmp_path: Path) -> None:
    noticed = 0
    for seed in range(10):
        messages = run(seed)
        places = [i for i, m in enumerate(messages) if "states updated" in m][1:-1]
        lost = random.Random(seed).choice(places)
        found = of_messages(tmp_path, messages[:lost] + messages[lost + 1 :])
        noticed += bool(found.wrong)
    assert noticed >= 9  # a partition may come back to where it was
