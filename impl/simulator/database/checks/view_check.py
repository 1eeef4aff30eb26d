"""Checks view building: each task's steps on an instance of its machine, whoever took them, beside its row.

What groups of tasks do (choices of the coordinator, batches of shards) is checked by the machine of the coordinator, a
base table at a time, until tablets of the table move, or a view is built anew: that machine has none that do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.group0 import Entry
from stagewright.impl.node.context import Context
from stagewright.impl.runtime import Instance
from stagewright.impl.simulator.database.checks.choice_check import ChoiceCheck
from stagewright.impl.views.building.records import Record, What
from stagewright.impl.views.building.tasks import (
    STAGING,
    Task,
    coordinator_program,
    task_program,
    tasks_in,
)
from stagewright.machines.scylladb.views.view_task import Call, Life, RaftTerm, Work
from stagewright.spec.errors import RefusedError
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

GOES = ("drop", "give_way")  # with a tablet that moves


class _Checked:
    """A task, its machine as all actors together have it, and the term in which it was handled last."""

    def __init__(self, task: Task) -> None:
        self.instance = Instance(task_program(), name=task.id)
        self.host = task.place.replica.host
        self.base = task.place.base
        self.stages = task.type == STAGING
        self.term = 0
        self.restarts = False  # after an answer that is on its way
        self.over = False  # a step was refused, or the machine has no name for one

    def is_at(self, call: Call | None = None, work: Work | None = None) -> bool:
        """Whether the call and the work are so."""
        state = self.instance.state
        return (call is None or state["call"] is call) and (work is None or state["work"] is work)

    @property
    def is_asked_late(self) -> bool:
        """Whether a request that was given up, or a copy of one, may still arrive under the current term."""
        late = self.instance.state["late"]
        assert isinstance(late, frozenset)
        return RaftTerm.current in late


class ViewCheck:
    """The tasks and the choices of a run; `problems` is where it says what is wrong."""

    def __init__(self, catalog: Catalog, problems: list[str]) -> None:
        self.now = 0
        self._catalog = catalog
        self._problems = problems
        self._tasks: dict[str, _Checked] = {}
        self._events: list[tuple[str, str, State, str, int]] = []
        self._choices: dict[str, ChoiceCheck] = {}  # by base table

    @property
    def used(self) -> bool:
        """Whether there was a view."""
        return bool(self._choices)

    def _fire(self, task: _Checked, action: str, node: str = "") -> None:
        if task.over:
            return
        name = task.instance.name
        try:
            task.instance.fire(action)
        except RefusedError as error:
            self._problems.append(f"view task {name}: {error.problem}")
            task.over = True
        self._events.append((name, action, task.instance.state, node, self.now))

    def _of(self, record: Record, term: int) -> list[_Checked]:
        """The tasks of a record; whoever has learned of a term knows that the coordinator before it is gone."""
        found = [self._tasks[i] for i in record.tasks if i in self._tasks]
        for task in found:
            self._reign(task, term)
        return found

    def _reign(self, task: _Checked, term: int) -> None:
        if term > task.term:
            if task.term:
                self._fire(task, "change_leader")
                self._restart_late(task)
            task.term = term

    # -- what is committed ---------------------------------------------------------------------------------

    def committed(self, entry: Entry, now: int) -> None:
        """An entry is committed, and in the catalog."""
        self.now = now
        stored = tasks_in(self._catalog.tables)
        machine, choices = task_program().definition.name, coordinator_program().definition.name
        creates = any(s.action == "create_view" for s in entry.command.steps)
        for step in entry.command.steps:
            if step.machine == machine:
                if step.action == "create" and step.instance in stored:
                    self._tasks[step.instance] = _Checked(stored[step.instance])
                    state = self._tasks[step.instance].instance.state
                    self._events.append((step.instance, "", state, "", now))
                task = self._tasks[step.instance]
                if step.action == "remove":
                    self._reign(task, entry.term)
                moves = step.action == "abort" or (task.stages and step.action in GOES)
                if moves or (step.action == "create" and not (task.stages or creates)):
                    self._choices[task.base].end()
                self._fire(task, step.action)
            elif step.machine == choices:
                self._choose(step.action, {n: str(v) for n, v in step.arguments.items()}, entry)
        for choice in self._choices.values():
            choice.reign(entry.term, now)
        if any(m.table == "view_building_tasks" for m in entry.command.mutations):
            self._compare(entry, stored)

    def _choose(self, action: str, arguments: dict[str, str], entry: Entry) -> None:
        view = arguments.get("v", "")
        known = self._catalog.view.views.get(view)
        base = arguments.get("b") or ("" if known is None else known.base)
        for name, choice in self._choices.items():
            base = name if view and view in choice.views else base
        if base not in self._choices:
            self._choices[base] = ChoiceCheck(base, self._catalog, self._problems)
        self._choices[base].reign(entry.term, self.now)
        self._choices[base].choose(action, arguments, self.now)

    def _compare(self, entry: Entry, stored: dict[str, Task]) -> None:
        for name, task in self._tasks.items():
            life = task.instance.state["life"]
            assert isinstance(life, Life)
            row = stored.get(name)
            if task.over or (row.life if row is not None else None) is (
                life if life.stored else None
            ):
                continue
            said = "gone" if row is None else row.life.name
            self._problems.append(
                f"{entry.id.position}: the row of view task {name} says {said}, the steps {life.name}"
            )
            task.over = True

    # -- what nodes say ------------------------------------------------------------------------------------

    def observe(self, by: Context, record: Record, now: int) -> None:
        """A node has recorded something, as far as it has learned what is committed."""
        self.now = now
        node, term = by.name, by.member.term
        known = tasks_in(by.catalog.tables) if record.what in (What.send, What.start) else {}
        worker = record.what not in (What.send, What.answer, What.give_up)
        for task in self._of(record, term if worker else record.term):
            if record.term and record.term < task.term and record.what is not What.start:
                continue  # of a coordinator that is gone
            if record.what is What.start and record.term == term < task.term:
                # The worker has not learned of the coordinator that has sent it since: in the machine all learn at once.
                task.over = True
            life: Any = task.instance.state["life"]
            row = known.get(task.instance.name)
            if row is not None and row.life is not life:
                # It was aborted or dropped, as the node has not learned yet: in the machine all learn at once.
                task.over = task.over or record.what is not What.start or not life.stored
            self._step(task, record, node)
        if record.place is not None and record.place.base in self._choices:
            self._choices[record.place.base].observe(record, now)

    def _step(self, task: _Checked, record: Record, node: str) -> None:
        match record.what:
            case What.send:
                self._fire(task, "send", node)
            case What.answer:
                self._fire(task, "answer", node)
                self._restart_late(task)
            case What.give_up:
                if task.is_at(call=Call.sent) or task.is_at(call=Call.attached):
                    refused = task.instance.can("refuse")
                    self._fire(task, "refuse" if refused else "lose_call", node)
                self._restart_late(task)
            case What.start:
                current = record.term == task.term and not task.is_at(call=Call.sent)
                if current and not task.is_asked_late and task.is_at(call=Call.attached):
                    self._fire(task, "repeat_call", node)  # a copy: the life before had the call
                late = record.term < task.term or (current and task.is_asked_late)
                self._fire(task, "start_late" if late else "start", node)
            case What.attach:
                if task.is_at(call=Call.sent):
                    self._fire(task, "attach", node)
            case What.finish:
                self._fire(task, "finish", node)
            case What.leave:
                self._fire(task, "observe_abort", node)
            case _:
                pass

    def ends(self, node: str, now: int) -> None:
        """A node has crashed: what its worker knew is lost, but for an answer that is on its way."""
        self.now = now
        for task in self._tasks.values():
            if task.host != node or task.is_at(work=Work.none):
                continue
            if task.is_at(Call.attached, Work.done):
                task.restarts = True
            else:
                self._fire(task, "restart", node)
        for choice in self._choices.values():
            choice.ends(node, now)

    def _restart_late(self, task: _Checked) -> None:
        if task.restarts:
            task.restarts = False
            self._fire(task, "restart", task.host)

    # -- the traces ----------------------------------------------------------------------------------------

    def write(self, directory: Path, trace: str) -> None:
        """The traces of tasks and of choices; without views, what an earlier run has left of them is deleted."""
        tasks, choices = (directory / f"view-{kind}.jsonl" for kind in ("tasks", "choices"))
        if not self.used:
            tasks.unlink(missing_ok=True)
            choices.unlink(missing_ok=True)
            return
        with TraceWriter(tasks, task_program().definition, trace) as writer:
            for name, action, state, node, now in self._events:
                if action:
                    step = Step(action, FrozenMap({}))
                    writer.record(name, step, observation(state), node=node, time=now)
                else:
                    writer.start(name, state, node=node, time=now)
        with TraceWriter(choices, coordinator_program().definition, trace) as writer:
            for choice in self._choices.values():
                choice.write(writer)
