"""The tablet migration track: the coordinator drives each tablet in transition by an instance of its machine.

All stages that can be entered are entered in one command, with the version that they make. A barrier is one for
all tablets that wait for it: nodes drain, the fence is committed, and they learn it. The balancer plans while
nothing else is asked of the topology, and what is to be drained first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from stagewright.impl.catalog.tablet_rows import TabletRow, mutation_of
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Command, Leadership, Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Phase, Work as Errand
from stagewright.impl.node.port import Effect, Wake
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance
from stagewright.impl.tablets.balancer import Migration
from stagewright.impl.tablets.beginnings import Start, beginnings, drained, holders, kind_of
from stagewright.impl.tablets.holding import ENDS, account
from stagewright.impl.tablets.moves_by_hand import withdrawn
from stagewright.impl.topology.orders import Job, Key, Orders
from stagewright.impl.topology.planning import Board, step_of
from stagewright.impl.topology.rounds import Rounds
from stagewright.impl.topology.uncommitted import Uncommitted
from stagewright.impl.views.building.moves import follow
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_migration import Progress
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Replicas, Role, Run, Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState, Work
from stagewright.spec.errors import RefusedError
from stagewright.spec.verdict import Step

_ERRANDS = {
    Run.streaming: Errand.stream_tablet,
    Run.repair: Errand.repair_tablet,
    Run.cleanup: Errand.clean_tablet,
}
UNKNOWN = {"barrier": Progress.none, "operation": Progress.none}
REPEATS = 8  # of what a barrier asks, until it has failed

# Built with one of these defects, the coordinator does not wait for the barrier of a stage.
_NOT_AWAITED = {
    Stage.write_both_read_old: Defect.streaming_does_not_wait,
    Stage.write_both_read_new: Defect.old_reads_are_not_awaited,
    Stage.use_new: Defect.cleanup_does_not_wait,
    Stage.end_migration: Defect.end_is_not_awaited,
}


class Driver(Protocol):
    """The coordinator whose track it is."""

    node: Context
    leadership: Leadership
    rounds: Rounds
    orders: Orders
    is_busy: bool  # a commit is on its way, or waits for another one of this node

    def commit(
        self, add: Callable[[Board], Command], committed: Callable[[], None] = ...
    ) -> list[Effect]:
        """Commit what is added to a board."""
        ...


class TabletTrack:
    """What one coordinator knows of tablets in transition."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._node = driver.node
        self._volatile: dict[str, dict[str, Any]] = {}  # after the last commit, by tablet
        self._pending: dict[str, Uncommitted] = {}  # inner steps since then
        self._made: dict[tuple[Any, ...], Instance] = {}  # in each state that was met, to be copied
        self._jobs: dict[str, Key] = {}  # what was asked for last
        self._asked: dict[str, tuple[Stage, frozenset[str]]] = {}  # who, and for which stage
        self._due_then = frozenset[str]()  # whom barriers asked when tablets were looked at last
        self._number = 0
        self._planned_at = -1  # the commit after which the balancer found nothing
        self.waited: set[str] = set()  # tablets whose delay is over
        self._waiting: set[str] = set()

    # -- steps of tablets ------------------------------------------------------------------------------

    def _committed(self, row: TabletRow) -> dict[str, Any]:
        """The state of a tablet's machine after what is committed."""
        return {**row.state(), **self._volatile.get(row.name, UNKNOWN)}

    def _instance(self, row: TabletRow) -> Instance:
        """A tablet's machine after what is committed; inner steps are not taken yet."""
        state = self._committed(row)
        key = tuple(state.values())
        if key not in self._made:
            self._made[key] = Instance(self._node.release.tablets, state)
        return self._made[key].copy(row.name)

    def take_over(self, board: Board) -> None:
        """What another coordinator knew of barriers and actions is lost."""
        for row in self._node.view.moving:
            board.take_on(self._instance(row), step_of("fail_over"))

    def go_on(self, board: Board) -> list[Effect]:
        """Do what can be done for tablets now."""
        view = self._node.view
        moves = view.transition_state is TransitionState.tablet_migration
        if not view.tablets and not moves:  # the last ones may have been dropped while they moved
            return []
        if withdrawn(view):
            return self._driver.commit(self._forget)
        if view.transition_state is TransitionState.null:
            return self._enter(board)
        if not moves:
            return []
        work: Work | None = board.instance.read("tablet_work")
        if work is None:
            return []
        if not view.moving:
            begun = self._plan_more(view, work)
            return begun if self._driver.is_busy else self._settle(board)
        effects: list[Effect] = []
        entered, waits = self._look(view, effects)
        entered = self._held_back(view, work, entered)
        if entered:
            return [*effects, *self._commit(entered, ())]
        effects += self._plan_more(view, work)
        return [*effects, *self._barrier(view)] if waits and not self._driver.is_busy else effects

    def _look(self, view: View, effects: list[Effect]) -> tuple[list[tuple[TabletRow, Step]], bool]:
        """The stages that can be entered, and whether some tablet waits for a barrier."""
        moves: list[tuple[TabletRow, Step]] = []
        waits, due = False, frozenset(self._due(view))
        if not due <= self._due_then:
            self._pending.clear()  # barriers may have passed without whom they ask now
        self._due_then = due
        for row in view.moving:
            if self._comes_back(view, row):
                self._pending.pop(row.name, None)
            machine = self._pending.setdefault(row.name, Uncommitted())
            machine.resume(tuple(self._committed(row).values()), partial(self._instance, row))
            for step in self._inner(view, row, machine, effects):
                machine.take(step)
            move = machine.first(self._node.release.forward)
            if move is not None and self._is_to_be_cleaned(row, machine):
                move = None
            if move is not None:
                moves.append((row, move))
            elif machine.can("pass_barrier"):
                waits = True
        return moves, waits

    def _is_to_be_cleaned(self, row: TabletRow, machine: Uncommitted) -> bool:
        """Whether somebody has rows to remove before the tablet goes on.

        The definition knows by its kind whether a replica leaves a tablet, and none of those that have fewer then; nor that
        a replica which it excludes may be back.
        """
        cleans = row.tablet.stage.action is Run.cleanup
        asked = {*_cleaned(row)} - self._node.view.given_up if cleans else ()
        careless = self._node.has(Defect.removed_replicas_keep_rows)
        return bool(asked) and machine.now.read("operation") is not Progress.done and not careless

    def _comes_back(self, view: View, row: TabletRow) -> bool:
        """Whether somebody was given up when a tablet was cleaned up, and is no more: it is asked, too."""
        stage, asked = self._asked.get(row.name, (Stage.none, frozenset[str]()))
        cleans = stage is row.tablet.stage and stage.action is Run.cleanup
        return cleans and not {*_cleaned(row)} - view.given_up <= asked

    def _inner(
        self, view: View, row: TabletRow, machine: Uncommitted, effects: list[Effect]
    ) -> Iterator[Step]:
        """The steps that only the coordinator's memory knows, each to be taken before the next is asked for."""
        yield from self._found(view, row, machine)
        if machine.now.read("operation") is Progress.running:
            job = self._job(row)
            if job is None or not job.over:
                return
            yield _ended(job)
            if not job.succeeded and row.kind is Kind.repair:
                self._driver.rounds.round = None  # what passed before says nothing of what goes on
        leaves = any(view.nodes[h].asked == "leave" for h in row.hosts[Role.leaving])
        failed = machine.now.read("operation") is Progress.failed
        if failed and leaves and machine.can("make_unwanted"):
            yield step_of("make_unwanted")
        for retry in ("retry_barrier", "retry_operation"):
            # A repair that failed is drained, ends, and begins anew.
            if machine.can(retry) and (retry, row.kind) != ("retry_operation", Kind.repair):
                if not self._has_waited(row, effects):
                    return
                if self._has_failed(view):
                    self._driver.rounds.round = None
                yield step_of(retry)
                yield from self._found(view, row, machine)  # it may have passed meanwhile
        if machine.can("start_operation"):
            effects += self._ask(view, row)
            yield step_of("start_operation")
            job = self._job(row)
            if job is not None and job.over:  # nobody was to be asked
                yield _ended(job)

    def _found(self, view: View, row: TabletRow, machine: Uncommitted) -> Iterator[Step]:
        """What has become of nodes, and of the barrier."""
        for role, hosts in row.hosts.items():
            if view.given_up & {*hosts} and machine.can("exclude", role=role):
                yield step_of("exclude", role=role)
        if machine.can("pass_barrier"):
            if self._has_passed(view) or self._is_careless(row):
                yield step_of("pass_barrier")
            elif self._has_failed(view):
                yield step_of("fail_barrier")

    def _has_waited(self, row: TabletRow, effects: list[Effect]) -> bool:
        """Whether the delay is over after which something is tried again; it begins if it has not."""
        if row.name in self.waited:
            self.waited.discard(row.name)
            self._waiting.discard(row.name)
            return True
        if row.name not in self._waiting:
            self._waiting.add(row.name)
            reason = ("coordinator", "tablet", self._driver.leadership.term, row.name)
            effects.append(Wake(self._node.timing.retry, reason))
        return False

    def _job(self, row: TabletRow) -> Job | None:
        return self._driver.orders.jobs.get(self._jobs.get(row.name, ("", "", 0)))

    def _ask(self, view: View, row: TabletRow) -> list[Effect]:
        """Have a tablet streamed, repaired or cleaned up; of what no node is there for, nothing is asked."""
        stage = row.tablet.stage
        hosts = row.tablet.hosts(stage.storage)
        if stage.action is Run.repair:
            hosts = row.tablet.hosts(Replicas.previous)
        elif stage.action is Run.cleanup:
            hosts = _cleaned(row)
        elif row.kind is not Kind.intranode_migration:
            hosts = row.chosen.pending
        asked = tuple(h for h in hosts if h not in view.given_up)
        if stage.action is Run.repair and self._node.has(Defect.repairs_ask_one_replica):
            asked = asked[:1]
        self._asked[row.name] = stage, frozenset(asked)
        self._number += 1
        key = stage.name, row.name, self._number
        self._driver.orders.jobs.pop(self._jobs.get(row.name, key), None)
        self._jobs[row.name] = key
        tablet = row.table, row.number
        effects = self._driver.orders.begin(key, _ERRANDS[stage.action], asked, tablet, row.session)
        if stage.action is not Run.cleanup and hosts and not asked:
            self._driver.orders.jobs[key].problems.append("who was to have the tablet is given up")
        return effects

    # -- barriers ----------------------------------------------------------------------------------------

    def _has_passed(self, view: View) -> bool:
        """Everyone has drained what is older than the stages of now, and knows the fence.

        Who is given up no more, as nobody removes it any longer, may go on with what is older: it is asked, too.
        """
        found = self._driver.rounds.round
        careless = self._node.has(Defect.fence_skips_nodes_that_seem_down)
        return (
            view.fence_version == view.version
            and found is not None
            and found.serves(Phase.fence, view.version, self._due(view))
            and found.missing <= view.given_up | (self._node.down if careless else frozenset())
        )

    def _due(self, view: View) -> tuple[str, ...]:
        """Whom a barrier asks."""
        if self._node.has(Defect.who_is_spared_again_is_not_asked):
            return ()
        return tuple(n for n in view.participants if n not in view.given_up)

    def _has_failed(self, view: View) -> bool:
        """Who has not answered is down, or has been asked many times."""
        found = self._driver.rounds.round
        if found is None or found.version != view.version:
            return False
        missing = found.missing - view.given_up
        return bool(missing) and (missing <= self._node.down or found.repeats >= REPEATS)

    def _is_careless(self, row: TabletRow) -> bool:
        defect = _NOT_AWAITED.get(row.tablet.stage)
        return defect is not None and self._node.has(defect)

    def _barrier(self, view: View) -> list[Effect]:
        rounds = self._driver.rounds
        found, asked = rounds.round, [n for n in view.participants if n not in view.given_up]
        phase = Phase.drain if view.fence_version < view.version else Phase.fence
        if found is None or not found.serves(phase, view.version, self._due(view)):
            return rounds.begin(phase, tuple(asked))
        if phase is Phase.drain and found.missing <= view.given_up:
            return self._driver.commit(self._fence)
        return []

    def _forget(self, board: Board) -> Command:
        void = withdrawn(self._node.view)
        if not void:
            raise RefusedError("its table was dropped", (), help="look again")
        text = "moves that were requested and cannot be made are withdrawn"
        return board.command(text, self._node.catalog, self._node.details(), void)

    def _fence(self, board: Board) -> Command:
        board.take(step_of("fence_stages"))
        return board.command("advance fence version", self._node.catalog, self._node.details())

    # -- commits -----------------------------------------------------------------------------------------

    def _held_back(
        self, view: View, work: Work, moves: list[tuple[TabletRow, Step]]
    ) -> list[tuple[TabletRow, Step]]:
        """A node is drained when all is at rest: its last tablets wait for the others."""
        if work is not Work.draining:
            return moves
        ends = {row.name for row, step in moves if step.action in ("finish", "finish_revert")}
        if not ends or all(row.name in ends for row in view.moving):
            return moves
        left = {h for h in holders(view, ends) if h in holders(view, set())}
        emptied = holders(view, set()) - left
        return [
            (row, step)
            for row, step in moves
            if row.name not in ends or not emptied & {*row.tablet.hosts(Stage.none.writes)}
        ]

    def _commit(
        self, moves: list[tuple[TabletRow, Step]], starts: tuple[Start, ...], enter: str = ""
    ) -> list[Effect]:
        """Enter stages, and begin migrations, with one version."""
        after: dict[str, dict[str, Any]] = {}
        planned_at, due = self._node.catalog.commits, {*self._due(self._node.view)}

        def add(board: Board) -> Command:
            view = self._node.view
            after.clear()
            careless = self._node.has(Defect.stale_plans_are_committed)
            if starts and self._node.catalog.commits != planned_at and not careless:
                problem = "something was committed since the plan was made"
                raise RefusedError(problem, (), help="look again")
            if enter:
                node = {"n": Node(drained(view))} if enter == "start_draining" else {}
                board.take(step_of(enter, **node))
            _refuse_dropped(view, moves, starts)
            if not due.issuperset(self._due(view)):  # barriers have passed without it
                for row, _ in moves:
                    self._pending.pop(row.name, None)
                raise RefusedError("a node is no longer given up", (), help="look again")
            if any(self._comes_back(view, row) for row, _ in moves):
                raise RefusedError("a node is no longer given up", (), help="look again")
            rows: list[tuple[TabletRow, Mutation | None]] = []
            for row, step in moves:
                rows.append((row, self._step(board, row, [step], None, after)))
            for start in starts:
                row = view.tablets[start.tablet.table][start.tablet.number]
                then = start.after(row.tablet.replicas)
                begin = step_of("start", kind=kind_of(start, row, self._node))
                rows.append((row, self._step(board, row, [begin], then, after)))
            if not enter:
                board.take(step_of("change_stages"))
            changed = [(row, m) for row, m in rows if m is not None]
            tasks = follow(board, self._node, changed)
            self._account(board, view, moves)
            text = "; ".join([*map(_entered, moves), *map(str, starts)])
            beside = (*(m for _, m in changed), *tasks)
            return board.command(text, self._node.catalog, self._node.details(), beside)

        def committed() -> None:
            self._volatile.update(after)
            for name in after:
                self._pending.pop(name, None)
                self.waited.discard(name)
                self._waiting.discard(name)

        return self._driver.commit(add, committed)

    def _step(
        self,
        board: Board,
        row: TabletRow,
        steps: list[Step],
        planned: tuple[TabletReplica, ...] | None,
        after: dict[str, dict[str, Any]],
    ) -> Mutation | None:
        instance = self._instance(row)
        known = self._pending.get(row.name) if planned is None else None
        pending = known.steps if known is not None else []
        repaired = False
        for step in (*pending, *steps):
            done = instance.read("operation") is Progress.done
            repaired |= step.action == "end_repair" and done
            board.take_on(instance, step)
        after[row.name] = {name: instance.read(name) for name in UNKNOWN}
        return mutation_of(row, instance.state, planned, self._node.new_id, repaired=repaired)

    def _account(self, board: Board, view: View, moves: list[tuple[TabletRow, Step]]) -> None:
        """Say which nodes hold tablets now that have held none, and which ones do no more."""
        ended = {row.name for row, step in moves if step.action == "finish"}
        silent = self._node.has(Defect.last_tablets_move_silently)
        ends = ("finish_draining_node",) if silent else ENDS
        try:
            account(board, holders(view, set()), holders(view, ended), ends)
        except RefusedError:
            self._planned_at = -1  # what was planned is wanted still
            raise

    def _settle(self, board: Board) -> list[Effect]:
        """All is at rest."""
        if not board.instance.can("settle_tablets"):
            return []

        def add(made: Board) -> Command:
            made.take(step_of("settle_tablets"))
            return made.command("tablets are at rest", self._node.catalog, self._node.details())

        return self._driver.commit(add)

    # -- the balancer --------------------------------------------------------------------------------------

    def _enter(self, board: Board) -> list[Effect]:
        """The topology is at rest: drain who is to leave, else bring loads closer."""
        if self._planned_at == self._node.catalog.commits:
            return []
        view = self._node.view
        if self._is_short_of_nodes(view):
            return []
        self._planned_at = self._node.catalog.commits
        drains = bool(board.instance.choices("start_draining"))
        if not drains and not board.instance.can("start_balancing"):
            return []
        starts, repairs = beginnings(self._node, drains)
        if not starts and not repairs:
            return []
        way = "start_draining" if drains else "start_balancing"
        if (
            not drains
            and not repairs
            and all(isinstance(s, Migration) and s.is_by_hand for s in starts)
        ):
            way = "move_tablet"
        return self._commit(repairs, starts, way)

    def _plan_more(self, view: View, work: Work) -> list[Effect]:
        """While tablets move, others may begin to."""
        if self._planned_at == self._node.catalog.commits or self._is_short_of_nodes(view):
            return []
        self._planned_at = self._node.catalog.commits
        drains = work is Work.draining
        asked = any(m.asked for m in view.nodes.values())
        if asked and not drains:
            return []
        starts, repairs = beginnings(self._node, drains)
        return self._commit(repairs, starts) if starts or repairs else []

    def _is_short_of_nodes(self, view: View) -> bool:
        """Whether nothing is to begin now: what is down comes back, or is removed."""
        return bool((self._node.down - view.given_up) & {*view.participants})


def _ended(job: Job) -> Step:
    return step_of("finish_operation" if job.succeeded else "fail_operation")


def _cleaned(row: TabletRow) -> tuple[str, ...]:
    """Who is to remove the rows of a tablet that is being cleaned up."""
    hosts = row.tablet.hosts(row.tablet.stage.storage)
    return tuple(h for h in hosts if h not in row.chosen.writes)


def _refuse_dropped(
    view: View, moves: list[tuple[TabletRow, Step]], starts: tuple[Start, ...]
) -> None:
    """A table may have been dropped since its tablets were looked at.

    Raises:
        RefusedError: it was.
    """
    tables = {row.table for row, _ in moves} | {m.tablet.table for m in starts}
    if gone := tables - view.tablets.keys():
        raise RefusedError(f"{', '.join(sorted(gone))} was dropped", (), help="look again")


def _entered(move: tuple[TabletRow, Step]) -> str:
    return f"{move[0].name}: {move[1].action}"
