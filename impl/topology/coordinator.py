"""The topology coordinator of one term: it takes the steps that the definition enables, and nothing else.

Whenever something happens it looks which steps are enabled. A step that waits for nothing is taken: in memory
if it only changes what the coordinator knows, else as a command in group0. For a step that waits (for a
barrier, for streams, for a node that joins) it has that done. When its term is over, all is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from stagewright.impl.catalog.columns import ALL, TOPOLOGY
from stagewright.impl.catalog.view import Member
from stagewright.impl.group0 import Command, Leadership, Mutation
from stagewright.impl.group0.member import DeposedError, Ended, RaceLostError
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import BarrierAck, Joined, OrderDone, Phase, Work
from stagewright.impl.node.port import Effect, Reason, Wake
from stagewright.impl.tablets.resizing import Preparation, finalised
from stagewright.impl.tablets.track import TabletTrack
from stagewright.impl.tablets.truncation import down_in, started
from stagewright.impl.topology.admission import rejection, taken_token
from stagewright.impl.topology.clearing import Clearing
from stagewright.impl.topology.descriptions import described
from stagewright.impl.topology.new_generation import (
    latest_commit,
    start_of_next,
    tokens_of,
    unqueued,
    vnodes_with,
)
from stagewright.impl.topology.orders import Job, Key, Orders
from stagewright.impl.topology.planning import Board, step_of, unfenced
from stagewright.impl.topology.refusals import Refusals
from stagewright.impl.topology.rounds import Round, Rounds
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import Barrier, NodeState
from stagewright.spec.errors import RefusedError
from stagewright.spec.verdict import Step

Resigned = Callable[[Leadership], list[Effect]]
STARTS = frozenset({"commit_cdc_generation", "commit_generation", "finish_resize"})
"""The steps that say from when on streams operate."""


@dataclass(frozen=True)
class Rule:
    """What a step waits for beside its guard: nothing, or what `ready` says; `work` has that done.

    An `inner` step changes only what the coordinator of the moment knows, so that it needs no commit.
    """

    action: str
    ready: Callable[[TopologyCoordinator, Step], bool] | None = None
    work: Callable[[TopologyCoordinator, Step], list[Effect]] | None = None
    inner: bool = False


class TopologyCoordinator:
    """One term of one node."""

    def __init__(
        self,
        node: Context,
        leadership: Leadership,
        resigned: Resigned,
        rules: Iterable[Rule],
    ) -> None:
        self.leadership = leadership
        self.node = node
        self.rounds = Rounds(node, leadership.term)
        self.orders = Orders(node, leadership.term)
        self.refusals = Refusals(node)
        self._resigned = resigned
        self._began = False
        self.is_busy = False  # a commit is on its way
        self._over = False
        self._volatile: dict[str, Any] | None = None  # after the last commit
        self._pending: list[Step] = []  # inner steps since then
        self._board: Board | None = None
        self._position = -1  # of the board
        self._start: tuple[int, dict[str, Any] | None, Board] | None = None  # before the pending
        self._waited: set[Key] = set()  # delays that are over
        self._waiting: set[Key] = set()
        self.track = TabletTrack(self)
        self.resizes = Preparation(node, self.orders)
        self.clearing = Clearing(self)
        self._rules = [r for r in rules if r.action in node.rules.actions]

    # -- what happens --------------------------------------------------------------------------------------

    def start(self) -> list[Effect]:
        """Take over: whatever another coordinator knew is lost."""
        taken = step_of("fail_over")

        def plan() -> Command:
            board = Board(self.node.rules, self.node.catalog)
            board.take(taken)
            self.track.take_over(board)
            text = f"Starting new topology coordinator {self.node.name}"
            return board.command(text, self.node.catalog, self.node.details())

        def then(ended: Ended) -> list[Effect]:
            if ended.error is not None:
                return self._give_up()
            self._began = True
            return self.go_on()

        return self.node.propose(plan, then, self.leadership.term)

    def handle(self, sender: str, message: BarrierAck | OrderDone | Joined) -> list[Effect]:
        """A node answers."""
        if isinstance(message, BarrierAck):
            over = self.rounds.acknowledged(sender, message)
        else:
            over = self.orders.done(sender, message)
        return self.go_on() if over else []

    def wake(self, reason: Reason) -> list[Effect]:
        """The passing of time."""
        match reason:
            case (_, _, int(term), *_) if term != self.leadership.term:
                return []
            case (_, "round", _, int(number)):
                return [*self.rounds.again(number), *self.go_on()]
            case (_, "job", _, int(first)):
                return self.orders.again(first)
            case (_, "tablet", _, str(name)):
                self.track.waited.add(name)
                return self.go_on()
            case (_, "clear", _):
                self.clearing.woken()
                return self.go_on()
            case (_, "delay", _, str(action), str(name), int(version)):
                self._waiting.discard((action, name, version))
                self._waited.add((action, name, version))
                return self.go_on()
            case _:
                raise AssertionError(f"no coordinator is woken for {reason}")

    def learned(self) -> list[Effect]:
        """Something was committed."""
        return self.go_on()

    def seen(self) -> list[Effect]:
        """A node is down, or back."""
        return self.go_on()

    # -- steps ---------------------------------------------------------------------------------------------

    def go_on(self) -> list[Effect]:
        """Take what can be taken now, and have done what the next steps wait for."""
        if self.is_busy or not self._began or self._over:
            return []
        try:
            board = self._look()
        except RefusedError:  # what it knew does not fit what was committed
            return self._give_up()
        if self._steps_down():
            return self._give_up()
        self._pending += board.see(self.node.down)
        effects: list[Effect] = []
        while (found := self._next(board, effects)) is not None:
            rule, step = found
            if not rule.inner:
                return [*effects, *self._commit(step)]
            board.take(step)
            self._pending.append(step)
            self._took(rule, step)
        try:
            effects += [*self.track.go_on(board), *self.clearing.go_on()]
        except RefusedError:
            return [*effects, *self._give_up()]
        if not self.is_busy:
            self.refusals.over()
        return effects

    def _took(self, rule: Rule, step: Step) -> None:
        """What is tried again begins anew."""
        if rule.action in ("retry_barrier", "fail_barrier"):
            self.rounds.round = None
            self._waited.discard(self._key(step))

    def _look(self) -> Board:
        """The machine at what is committed, after the inner steps since the last commit."""
        if self._board is None or self._position != self.node.catalog.commits:
            board = self._committed().copy()
            for step in self._pending:
                board.take(step)
            self._board, self._position = board, self.node.catalog.commits
        return self._board

    def _committed(self) -> Board:
        """The machine at what is committed."""
        commits, known = self.node.catalog.commits, self._start
        if known is None or known[0] != commits or known[1] is not self._volatile:
            board = Board(self.node.rules, self.node.catalog, self._volatile)
            self._start = known = commits, self._volatile, board
        return known[2]

    def _steps_down(self) -> bool:
        """A node that leaves lets another one coordinate the end of it."""
        own = self.node.view.nodes[self.node.name]
        return own.state not in (NodeState.normal, NodeState.rebuilding)

    def _next(self, board: Board, effects: list[Effect]) -> tuple[Rule, Step] | None:
        """The first step that is enabled and waits for nothing; work for those that do goes to `effects`."""
        for rule in self._rules:
            for step in board.choices(rule.action):
                if rule.ready is None or rule.ready(self, step):
                    return rule, step
                if rule.work is not None:
                    effects += rule.work(self, step)
        return None

    def _commit(self, step: Step) -> list[Effect]:
        """Commit a step with the inner ones before it."""

        def add(board: Board) -> Command:
            board.take(step)
            tokens = tokens_of(self.node, step)
            details = self.node.details(
                tokens=tokens,
                vnodes=vnodes_with(self.node, tokens),
                from_then_on=start_of_next(self.node),
                error=rejection(self.node, step) or self._reason(step),
            )
            beside = (*self._beside(step), *self.resizes.tasks(board, step))
            text = described(step, self.node.view)
            made = board.command(text, self.node.catalog, details, beside)
            if step.action in STARTS:
                made = replace(made, until=latest_commit(self.node))
            waived = step.action == "wait_ring_delay"
            if waived and self.node.has(Defect.waived_barriers_move_no_fence):
                return unfenced(made)
            forgets = self.node.has(Defect.generations_are_not_queued)
            return unqueued(made, self.node.catalog) if forgets else made

        return self.commit(add, partial(self._forget_round, step))

    def _forget_round(self, step: Step) -> None:
        """Where the version stays, what nodes acknowledged before says nothing of what has been committed now."""
        if step.action in ("start_truncating", "clear_request_session"):
            self.rounds.round = None

    def commit(
        self, add: Callable[[Board], Command], committed: Callable[[], None] = lambda: None
    ) -> list[Effect]:
        """Commit what is added to the inner steps since the last commit, which are taken on the board."""
        self.is_busy = True
        after: dict[str, Any] = {}

        def plan() -> Command:
            board = self._committed().copy()
            for one in self._pending:
                board.take(one)
            made = add(board)
            after.clear()
            after.update(board.volatile())
            return made

        def then(ended: Ended) -> list[Effect]:
            self.is_busy = False
            if ended.error is None:
                self._volatile, self._pending, self._board = after, [], None
                self.refusals.over()
                committed()
                return self.go_on()
            if isinstance(ended.error, RefusedError | RaceLostError):
                self._board = None
                self.refusals.met(ended.error)
                if self.refusals.lasting and any(key[0] == "again" for key in self._waiting):
                    return []  # whatever else happens, it is tried again as often as before
                return [self._delay(("again", "", ended.number))]
            return self._give_up(not isinstance(ended.error, DeposedError))

        return self.node.propose(plan, then, self.leadership.term)

    def _give_up(self, resign: bool = True) -> list[Effect]:
        self._over = True
        effects = self._resigned(self.leadership)
        return effects if resign else []

    # -- what steps bring beside ---------------------------------------------------------------------------

    def _beside(self, step: Step) -> tuple[Mutation, ...]:
        if step.action == "finish_resize":
            return tuple(finalised(self.node, self.resizes.tables))
        if step.action == "start_truncating":
            return tuple(started(self.node.view))
        if not self.node.has(Defect.rows_of_left_nodes_are_dropped):
            return ()
        left = [m.name for m in self.node.view.nodes.values() if m.state is NodeState.left]
        return tuple(Mutation("topology", (name,), None) for name in left)

    def _reason(self, step: Step) -> str:
        """Why what goes on fails, if it does."""
        if step.action == "roll_back_join" and (taken := taken_token(self.node)):
            return taken
        problems = dict.fromkeys(p for job in self.orders.jobs.values() for p in job.problems)
        down = [n for n in self.node.view.participants if n in self.node.down]
        return "; ".join([*problems, *(f"{n} is down" for n in down)]) or "the request failed"

    # -- what steps wait for ---------------------------------------------------------------------------------

    def _delay(self, key: Key, milliseconds: int | None = None) -> Effect:
        self._waiting.add(key)
        wait = self.node.timing.retry if milliseconds is None else milliseconds
        return Wake(wait, ("coordinator", "delay", self.leadership.term, *key))

    def _key(self, step: Step) -> Key:
        n = step.arguments.get("n")
        of = n.name if isinstance(n, Node) else ""
        if (
            step.action == "clear_request_session"
        ):  # the version stays: another request has another session
            of = self.node.view.session
        return step.action, of, self.node.view.version

    def has_drained(self, _: Step) -> bool:
        """All have drained, so that the fence may advance."""
        if self.node.has(Defect.barrier_asks_nobody):
            return True
        found = self._round(Phase.drain)
        return found is not None and found.passed

    def _round(self, phase: Phase) -> Round | None:
        """The round of this phase that goes on or is over, if it asks all who take part now."""
        found, view = self.rounds.round, self.node.view
        careless = (Defect.barrier_of_before_counts, Defect.joining_node_is_not_asked)
        asks = () if any(map(self.node.has, careless)) else view.participants
        return found if found is not None and found.serves(phase, view.version, asks) else None

    def drain(self, _: Step) -> list[Effect]:
        """Begin a barrier, unless it goes on."""
        if self._round(Phase.drain) is not None:
            return []
        return self.rounds.begin(Phase.drain, self.node.view.participants)

    def knows_the_fence(self, _: Step) -> bool:
        """No replica that takes part accepts what is older than the fence any more.

        Who seems to be down may live: it is left out only if the barrier was put up with.
        """
        view = self.node.view
        skips = map(self.node.has, (Defect.barrier_asks_nobody, Defect.fence_is_not_spread))
        if view.fence_version < view.version or any(skips):
            return True  # another coordinator has gone on, as the commit will show
        found = self._round(Phase.fence)
        careless = self.node.has(Defect.fence_skips_nodes_that_seem_down)
        waived = self._look().instance.read("barrier") is Barrier.waived
        skipped = self.node.down if waived or careless else frozenset[str]()
        return found is not None and found.missing <= skipped

    def spread_the_fence(self, _: Step) -> list[Effect]:
        """Have the fence learned, unless that goes on."""
        if self._round(Phase.fence) is not None:
            return []
        return self.rounds.begin(Phase.fence, self.node.view.participants)

    def is_prepared(self, _: Step) -> bool:
        """Tablets can be split or merged at once, and nothing waits for a node that is down."""
        view = self.node.view
        down = (self.node.down - view.given_up) & {*view.participants}
        return bool(self.resizes.tables) and not down

    def prepare(self, _: Step) -> list[Effect]:
        """Have nodes get ready for that."""
        return self.resizes.go_on()

    def may_finish_resize(self, step: Step) -> bool:
        """The fence is known, and what was prepared is so, as far as this coordinator knows."""
        careless = self.node.has(Defect.resizes_do_not_await_the_fence)
        return self.resizes.settled and (careless or self.knows_the_fence(step))

    def have_resize_finished(self, step: Step) -> list[Effect]:
        """Have that be so."""
        ready = self.resizes.settled
        return self.spread_the_fence(step) if ready else self.resizes.go_on()

    def is_due(self) -> bool:
        """Whether rows that nodes have lost are to be removed: before a node leaves, or on request."""
        requests = {m.request["request_type"] for m in self._waiting_nodes() if m.request}
        return bool(requests & {"leave", "remove"}) or self._asked("cleanup")

    def _waiting_nodes(self) -> list[Member]:
        return [m for m in self.node.view.nodes.values() if m.request and not m.request["done"]]

    def _asked(self, request: str) -> bool:
        wanted: object = self.node.catalog.tables[TOPOLOGY][ALL]["global_topology_request"]
        return wanted == request

    def has_drained_to_clean(self, step: Step) -> bool:
        """Requests to ranges that were lost are over; of nodes that are down, which may be removed next, too."""
        return self.is_due() and (self.has_drained(step) or self.is_stuck(step))

    def drain_to_clean(self, step: Step) -> list[Effect]:
        """Have them end, if there is something to clean."""
        return self.drain(step) if self.is_due() else []

    def is_stuck(self, _: Step) -> bool:
        """Only nodes that are down have not drained, of those that were asked to for this version."""
        found = self._round(Phase.drain)
        return found is not None and bool(found.missing) and found.missing <= self.node.down

    def has_waited(self, step: Step) -> bool:
        """So long that what began before is over, or that something may be tried again."""
        return self._key(step) in self._waited

    def wait_for_ring_delay(self, step: Step) -> list[Effect]:
        """Sleep, unless it does so."""
        key = self._key(step)
        return [] if key in self._waiting else [self._delay(key, self.node.timing.ring_delay)]

    def wait_for_retry(self, step: Step) -> list[Effect]:
        """The same, for a shorter time."""
        key = self._key(step)
        return [] if key in self._waiting else [self._delay(key)]

    def _job(self, step: Step) -> Job | None:
        return self.orders.jobs.get(self._key(step))

    def is_done(self, step: Step) -> bool:
        """The node has done what the step says."""
        job = self._job(step)
        if job is not None and job.over and job.problems:
            self.orders.forget(job)
        return job is not None and job.succeeded

    def _order(self, step: Step, work: Work | None, nodes: tuple[str, ...]) -> list[Effect]:
        key = self._key(step)
        return [] if key in self.orders.jobs else self.orders.begin(key, work, nodes)

    def let_join(self, step: Step) -> list[Effect]:
        """Have a node join group0."""
        return self._order(step, None, (_name(step),))

    def have_cleaned(self, step: Step) -> list[Effect]:
        """Have a node remove the rows that it lost."""
        return self._order(step, Work.clean, (_name(step),)) if self.is_due() else []

    def is_up(self, _: Step) -> bool:
        """Nobody whose answer is waited for is down."""
        return not down_in(self.node)

    def truncate(self, step: Step) -> list[Effect]:
        """Have every node remove what it had."""
        return self._order(step, Work.truncate, self.node.view.participants)

    def has_truncated(self, step: Step) -> bool:
        """All have."""
        return self.node.has(Defect.truncations_are_not_awaited) or self.is_done(step)

    def have_shut_down(self, step: Step) -> list[Effect]:
        """Tell a node that it is no longer needed."""
        return self._order(step, Work.shut_down, (_name(step),))

    def have_rebuilt(self, step: Step) -> list[Effect]:
        """Have a node fetch its rows anew."""
        return self._order(step, Work.stream, (_name(step),))

    def has_streamed(self, step: Step) -> bool:
        """All who gain ranges have their rows, and knew the fence before that."""
        job = self._job(step)
        return job is not None and job.succeeded

    def stream(self, step: Step) -> list[Effect]:
        """Have all who gain ranges fetch their rows, once the fence is known."""
        if not self.knows_the_fence(step):
            return self.spread_the_fence(step)
        view = self.node.view
        gain = {
            name
            for factor in view.vnode_tables.values()
            for _, high in view.ranges()
            for name in view.fetchers(high, factor)
        }
        return self._order(step, Work.stream, tuple(sorted(gain)))

    def has_failed_to_stream(self, _: Step) -> bool:
        """A node says that it cannot."""
        job = self.orders.jobs.get(("stream_ranges", "", self.node.view.version))
        return job is not None and job.over and bool(job.problems)


def _name(step: Step) -> str:
    n = step.arguments["n"]
    assert isinstance(n, Node)
    return n.name
