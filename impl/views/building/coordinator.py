"""The view building coordinator of one term: it chooses a base table and has the tasks of its tablets worked on.

It runs on the node that leads, beside the topology coordinator. What it has sent and who has answered is in its memory
alone; the tasks that workers have finished it removes from group0 in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stagewright.impl.group0 import Command, Leadership, Mutation
from stagewright.impl.group0.member import DeposedError, Ended, Plan
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages.tables import WorkedOnTasks, WorkOnTasks
from stagewright.impl.node.port import Effect, Reason, Send, Wake
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance
from stagewright.impl.views.building.choices import Sent, choices, shard_entity, tablet_entity
from stagewright.impl.views.building.records import OnRecord, Record, What
from stagewright.impl.views.building.steps import Steps, described, rows_of_choice
from stagewright.impl.views.building.tasks import (
    BUILD,
    TASKS,
    Place,
    Task,
    processed_in,
    status_in,
    tasks_in,
)
from stagewright.machines.scylladb.views import view_coordinator as machine
from stagewright.machines.scylladb.views.view_task import Call, Work

CHOICES = ("start_view", "mark_view_built", "leave_base", "choose_base")


class ViewBuildingCoordinator:
    """One term of one node."""

    def __init__(self, node: Context, leadership: Leadership, on_record: OnRecord) -> None:
        self.leadership = leadership
        self._on_record = on_record
        self._node = node
        self._sent: dict[TabletReplica, Sent] = {}
        self._resting: set[TabletReplica] = set()  # whose last call failed, for a while
        self._began = False
        self._busy = False  # a commit is on its way
        self._over = False
        self._removes = False  # a removal is due

    # -- what happens --------------------------------------------------------------------------------------

    def start(self) -> list[Effect]:
        """Learn what is committed, and go on from there: what another coordinator knew is lost."""

        def then(_: Ended) -> list[Effect]:
            self._began = True
            return self.go_on()

        return self._node.read_barrier(then)

    def learned(self) -> list[Effect]:
        """Something was committed."""
        return self.go_on()

    def wake(self, reason: Reason) -> list[Effect]:
        """The passing of time; a reason of another term is of no use."""
        match reason:
            case (_, _, int(term), *_) if term != self.leadership.term:
                return []
            case (_, "call", _, int(number)):
                return self._failed(number)
            case (_, "rest", _, str(host), int(shard)):
                self._resting.discard(TabletReplica(host, shard))
                return self.go_on()
            case (_, "remove", _):
                self._removes = False
                return self._remove()
            case (_, "again", _):
                return self.go_on()
            case _:
                raise AssertionError(f"no view building coordinator is woken for {reason}")

    def _wake(self, milliseconds: int, what: str, *about: str | int) -> Wake:
        return Wake(milliseconds, ("view building", what, self.leadership.term, *about))

    # -- choices -------------------------------------------------------------------------------------------

    def go_on(self) -> list[Effect]:
        """Make the next choice, or have tasks worked on."""
        node = self._node
        tables = node.catalog.tables
        idle = self._busy or self._over or not self._began
        # Until the first commit of its term is learned, workers would refuse its calls.
        if idle or node.member.term != self.leadership.term:
            return []
        if not (tables[TASKS] or processed_in(tables) or node.view.views):
            return []
        found = self._choices()
        chosen = self._chosen(found)
        if chosen is None:
            return self._work(found)

        def plan() -> Command | None:
            again = self._choices()
            step = self._chosen(again)
            if step is None:
                return None
            steps = Steps()
            taken = steps.take(again, step[0], **step[1])
            return steps.command(described(taken), rows_of_choice(taken, node.view))

        return self._commit(plan)

    def _choices(self) -> Instance:
        return choices(self._node.catalog.tables, self._node.view, self._sent)

    def _chosen(
        self, instance: Instance
    ) -> tuple[str, dict[str, machine.View | machine.Base]] | None:
        """The choice to be made now; of tables and views that may be chosen the first by name."""
        for action in CHOICES:
            steps = instance.choices(action)
            if steps:
                first = min(steps, key=lambda s: [str(a) for a in s.arguments.values()])
                return action, dict(first.arguments)  # type: ignore[arg-type]
        return None

    def _commit(self, plan: Plan, replicas: tuple[TabletReplica, ...] = ()) -> list[Effect]:
        self._busy = True

        def then(ended: Ended) -> list[Effect]:
            self._busy = False
            if ended.error is None:
                for replica in replicas:
                    self._sent.pop(replica, None)
                return self.go_on()
            if isinstance(ended.error, DeposedError):
                self._over = True
                return []
            return [self._wake(self._node.timing.retry, "again"), *self._ask_removal()]

        return self._node.propose(plan, then, self.leadership.term)

    # -- calls ---------------------------------------------------------------------------------------------

    def _work(self, found: Instance) -> list[Effect]:
        """Call every shard that is idle and has tasks."""
        effects: list[Effect] = []
        for place, tasks in self._ready():
            replica = place.replica
            if replica in self._sent:
                continue
            builds = tasks[0].type == BUILD
            action = "send_build_range" if builds else "send_process_staging"
            where = {
                "s": shard_entity(replica),
                "t": tablet_entity(place),
                "b": machine.Base(place.base),
            }
            if not found.can(action, **where):
                continue
            found.fire(action, **where)
            for task in tasks:
                task.instance().fire("send")
            effects += self._call(place, tasks)
        return effects

    def _call(self, place: Place, tasks: list[Task]) -> list[Effect]:
        node, replica = self._node, place.replica
        number, ids = node.number(), tuple(t.id for t in tasks)
        views = frozenset(t.view for t in tasks if t.view)
        self._sent[replica] = Sent(place, views, ids, number)
        self._on_record(Record(What.send, ids, place, self.leadership.term))
        message = WorkOnTasks(number, self.leadership.term, replica.shard, ids)
        return [Send(replica.host, message), self._wake(node.timing.view_call, "call", number)]

    def _ready(self) -> Iterator[tuple[Place, list[Task]]]:
        """The tasks of one batch each, that may be sent: ranges of a tablet before its staging sstables."""
        node, tables = self._node, self._node.catalog.tables
        base = processed_in(tables)
        started = {v for v in node.view.views if status_in(tables, v) is machine.ViewStatus.started}
        found: dict[Place, list[Task]] = {}
        for task in tasks_in(tables).values():
            of_base = task.place.base == base and not task.aborted
            if of_base and (task.type != BUILD or task.view in started):
                found.setdefault(task.place, []).append(task)
        moving = {(row.table, row.range[1]) for row in node.view.moving}
        for place in sorted(found, key=lambda p: (p.last_token, p.replica)):
            resting = place.replica in self._resting or place.replica.host in node.down
            tasks = found[place]
            early = tasks[0].type != BUILD and node.has(Defect.staging_is_processed_early)
            if resting or ((place.base, place.last_token) in moving and not early):
                continue
            builds = [t for t in tasks if t.type == BUILD]
            yield place, builds or tasks

    def replied(self, sender: str, answer: WorkedOnTasks) -> list[Effect]:
        """A worker has answered, or the call has failed."""
        replica, one = self._of(answer.number)
        if replica is None or one is None or replica.host != sender:
            return []
        finished = frozenset(answer.finished) & {*one.ids}
        if answer.problem or not finished:
            return self._failed(answer.number)
        if self._node.has(Defect.an_answer_counts_for_all):
            finished = frozenset(one.ids)
        tasks = tasks_in(self._node.catalog.tables)
        views = frozenset(tasks[i].view for i in finished if i in tasks and tasks[i].view)
        self._sent[replica] = replace(one, views=views, finished=finished, answered=True)
        self._on_record(Record(What.answer, tuple(finished), one.place, self.leadership.term))
        if rest := tuple(i for i in one.ids if i not in finished):
            self._on_record(Record(What.give_up, rest, one.place, self.leadership.term))
        return self._ask_removal()

    def _of(self, number: int) -> tuple[TabletReplica | None, Sent | None]:
        for replica, one in self._sent.items():
            if one.number == number and not one.answered:
                return replica, one
        return None, None

    def _failed(self, number: int) -> list[Effect]:
        """A call has failed, or nothing is heard of it: rest, and select anew."""
        replica, one = self._of(number)
        if replica is None or one is None:
            return []
        del self._sent[replica]
        self._on_record(Record(What.give_up, one.ids, one.place, self.leadership.term))
        self._resting.add(replica)
        return [self._wake(self._node.timing.retry, "rest", replica.host, replica.shard)]

    # -- what is finished ----------------------------------------------------------------------------------

    def _ask_removal(self) -> list[Effect]:
        if self._removes or not any(one.answered for one in self._sent.values()):
            return []
        self._removes = True
        return [self._wake(self._node.timing.view_removal, "remove")]

    def _remove(self) -> list[Effect]:
        """Remove the tasks that are finished, in one command; those that were aborted stay."""
        if self._over:
            return []
        if self._busy:
            return self._ask_removal()
        done = {r: one for r, one in self._sent.items() if one.answered}

        def plan() -> Command | None:
            steps, rows = Steps(), list[Mutation]()
            found, tasks = self._choices(), tasks_in(self._node.catalog.tables)
            for replica, one in done.items():
                stored = [tasks[i] for i in sorted(one.finished) if i in tasks]
                keeps = not self._node.has(Defect.aborted_tasks_are_removed)
                gone = [t for t in stored if not (t.aborted and keeps)]
                for task in gone:
                    life = replace(task, aborted=False)
                    steps.take(life.instance(Call.answered, Work.done), "remove")
                    rows.append(Mutation(TASKS, (task.id,), None))
                if len(gone) == len(stored):
                    where = {"t": tablet_entity(one.place), "b": machine.Base(one.place.base)}
                    steps.take(found, "remove_finished", s=shard_entity(replica), **where)
            if not steps.taken:
                return None
            return steps.command(f"Removing {len(rows)} finished tasks", rows)

        return self._commit(plan, tuple(done))
