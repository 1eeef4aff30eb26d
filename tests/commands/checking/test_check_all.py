"""`check --all`: several machines at once, reported one after the other."""

from __future__ import annotations

import argparse
import os
import re

import pytest

from stagewright import machines
from stagewright.checker.check import check
from stagewright.commands import run_command_line
from stagewright.commands.checking.check_all import Task, in_order
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.reports.result import Result
from stagewright.spec.define import define
from stagewright.spec.loading import find
from stagewright.spec.scope import scope_of

FEW = ("topology-node", "view-task", "cdc-generation", "backfill-tablet")
TASKS = [Task(name, "", of_several=False) for name in FEW]


def checked(task: Task) -> list[Result]:
    definition = define(find(task.machine, machines.SHIPPED))
    scope = scope_of(definition)
    return [Result(check(definition, scope), scope, (), "", witnesses=False)]


def of_all(*, workers: int) -> argparse.Namespace:
    return argparse.Namespace(all=True, workers=workers)


def test_several_at_once_are_reported_in_their_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {name: machines.SHIPPED[name] for name in FEW}
    monkeypatch.setattr(machines, "SHIPPED", few)
    printed: list[str] = []
    for workers in ("1", "2"):
        assert run_command_line(["check", "--all", "--workers", workers]) == ExitCode.HOLDS
        printed.append(re.sub(r"[\d.]+ s\b", "", capsys.readouterr().out))
    assert printed[0] == printed[1]
    assert [line.split()[1] for line in printed[0].splitlines()[:-1]] == list(FEW)


def test_what_a_process_leaves_when_it_is_ended_is_done_by_its_parent() -> None:
    parent = os.getpid()

    def work(task: Task) -> list[Result]:
        if os.getpid() != parent and task.machine == "view-task":
            os._exit(1)
        return checked(task)

    found = list(in_order(TASKS, work, of_all(workers=2)))
    assert [results[0].report.definition.name for results in found] == [
        "TopologyNode",
        "ViewTask",
        "CdcGeneration",
        "BackfillTablet",
    ]


def test_other_processes_find_what_one_does() -> None:
    alone = [r[0].report for r in in_order(TASKS, checked, of_all(workers=1))]
    apart = [r[0].report for r in in_order(TASKS, checked, of_all(workers=2))]
    assert [(r.states, r.outcome) for r in apart] == [(r.states, r.outcome) for r in alone]
    assert [r.definition for r in apart] == [r.definition for r in alone]
