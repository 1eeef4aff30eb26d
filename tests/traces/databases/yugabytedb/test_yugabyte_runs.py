"""Random runs of the job's machine, logged as the masters log them: what is legal for all is so for each index."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.thorough import some_of
from tests.traces.databases.yugabytedb.yugabyte_texts import (
    COMPLETED,
    INDEX,
    OTHER,
    SENT,
    TABLE,
    all_done,
    chunk,
    done,
    failed,
    launched,
    line,
    safe_time,
    tablet_done,
    updating,
)
from tests.traces.readers.evaluated_log import EvaluatedLog, evaluated

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import observation
from stagewright.spec.values import plain

Observed = dict[str, object]
IDS = {"index0": INDEX, "index1": OTHER}
NUMBERS = {
    "write_and_delete": 2,
    "do_backfill": 4,
    "delete_only_while_removing": 10,
    "index_unused": 12,
}
KEYS = {"never_begun": "", "in_the_middle": "4785f0"}


class Masters:
    """Two masters and their logs; one of them is the leader."""

    def __init__(self) -> None:
        self.logs: tuple[list[str], list[str]] = ([], [])
        self._leader = 0
        self._second = 0
        self._goals: list[tuple[str, int]] = []

    def say(self, message: str) -> None:
        """The leader says something."""
        self._second += 1
        self.logs[self._leader].append(line(self._second, message))

    def log(self, action: str, values: Observed, old: Observed, new: Observed) -> None:
        """What the leader says of a step."""
        in_job = [i for i in IDS if new[f"job[{i}]"] is not None]
        names = ", ".join(in_job)
        index = IDS.get(str(values.get("i")), "")
        match action:
            case "launch_next_version":
                for i in (i for i in IDS if old[f"permission[{i}]"] != new[f"permission[{i}]"]):
                    self.say(updating(IDS[i], NUMBERS[str(new[f"permission[{i}]"])]))
                    self.say(SENT)
            case "finish_alter":
                self.say(COMPLETED)
            case "drop_index":
                where = f"table {TABLE} index {index} multi_stage=1"
                self.say(f"MarkIndexInfoFromTableForDeletion {where}")
            case "launch" | "resume":
                requested = new["requested"]
                assert isinstance(requested, list)
                self.say(launched(*(IDS[str(i)] for i in requested or in_job)))
            case "choose_read_time":
                self.say(safe_time(names))
            case "backfill_chunk":
                self._chunk(int(str(values["t"])[-1]), old, new)
            case "fail_index":
                self.say(failed(index, names))
            case "find_all_done" if any(new[f"job[{i}]"] == "success" for i in IDS):
                self.say(all_done(names))
            case "write_permissions":
                self._write_permissions(in_job, new)
            case "finish":
                self.say(done(*self._goals))
            case "fail_over":
                self._leader = 1 - self._leader
            case _:
                pass

    def _chunk(self, tablet: int, old: Observed, new: Observed) -> None:
        left = [i for i in IDS if new[f"job[{i}]"] in ("in_progress", "success")]
        at = [str(old[f"checkpoint[tablet{tablet}][{i}]"]) for i in left]
        self.say(chunk(KEYS[min(at, key=list(KEYS).index)], tablet, ", ".join(left)))
        if all(new[f"checkpoint[tablet{tablet}][{i}]"] == "done" for i in left):
            self.say(tablet_done(tablet))

    def _write_permissions(self, in_job: list[str], new: Observed) -> None:
        self._goals = []
        for i in in_job:
            built, now = new[f"job[{i}]"] == "success", str(new[f"permission[{i}]"])
            self._goals.append((IDS[i], 6 if built else 8))
            if built and now not in ("read_write_and_delete", "absent"):
                self.say(
                    f"Index {IDS[i]} on table orders [id={TABLE}] has index_permission INDEX_PERM_"
                    f"{now.upper()} already past INDEX_PERM_READ_WRITE_AND_DELETE. Will not update it"
                )


def run(tmp_path: Path, seed: int, steps: int = 60) -> EvaluatedLog:
    """A random run, as the logs of both masters show it."""
    rng = random.Random(seed)
    definition = define(BackfillJob)
    scope = scope_of(definition, {}, {b.name: None for b in definition.budgets})
    interpreter, masters = Interpreter(definition, scope), Masters()
    state = rng.choice(list(interpreter.initial_states()))
    rare = {"fail_over": 0.2, "fail_to_write": 0.2, "drop_index": 0.05, "give_up": 0.1}
    for _ in range(steps):
        choices = list(interpreter.successors(state))
        if not choices:
            break
        weights = [rare.get(step.action, 1.0) for step, _ in choices]
        step, after = rng.choices(choices, weights)[0]
        values = {name: plain(value) for name, value in step.arguments.items()}
        masters.log(step.action, values, observation(state), observation(after))
        state = after
    paths = []
    for number, texts in enumerate(masters.logs):
        paths.append(tmp_path / f"m{number}.log")
        paths[-1].write_text("\n".join(texts) + "\n")
    return evaluated("yugabyte-log", paths)


@pytest.mark.parametrize("seed", some_of(range(12)))
def test_a_run_of_two_masters_is_ok_for_each_index_and_tablet(seed: int, tmp_path: Path) -> None:
    found = run(tmp_path, seed)
    assert not found.wrong
    assert not found.reasons
