"""What the lines of ScyllaDB's logs come to: events of several machines at once, in the order of time.

The coordinator writes what it intends, then that it commits: what it intended is an event where it commits,
unless `scylla_order` has found the commit lost, or in doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.scylladb.views.view_task import Life
from stagewright.spec.text.counting import counted
from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import (
    balancer,
    barriers,
    batches,
    cdc,
    generation_order,
    row_work,
    tablets,
    topology,
    views,
)
from stagewright.traces.databases.scylladb.lines.generations import Generations
from stagewright.traces.databases.scylladb.lines.turns import Turns
from stagewright.traces.databases.scylladb.log.barriers import Barriers
from stagewright.traces.databases.scylladb.log.batches import Batches
from stagewright.traces.databases.scylladb.log.order import GOES_ON, Placed
from stagewright.traces.databases.scylladb.log.row_work import RowWork
from stagewright.traces.databases.scylladb.log.stages import Stages
from stagewright.traces.events.observability import Recording

_TOPOLOGY = "topology"  # the one entity of the topology as a whole
_LEFT_OPEN = "changes were left open by a change of coordinator"


@dataclass
class _InFlight:
    """What a commit does to tasks: those that it ends are called until the coordinator has learned of it.

    Calls of those that it makes show that it has.
    """

    ends: list[Effect] = field(default_factory=list[Effect])
    makes: set[str] = field(default_factory=set[str])


class Reading:
    """Follows all nodes through their lines."""

    def __init__(self, placed: Sequence[Placed], profile: str) -> None:
        self._placed = placed
        self._profile, self._versions = _version_of(placed, profile)
        self._levels = _levels(placed)
        self._enters = any(p.record.says == topology.ENTERED for p in placed)
        self.book = Book(self._profile)
        self.book.tenured = frozenset(
            machine for machine, recording in self.recordings().items() if recording.hidden.visible
        )
        # Followed over all coordinators, where it is known how these followed each other.
        self._across = {topology.NODE, topology.TRANSITION} - self.book.tenured
        self._suffix = (
            ""  # beside the name of what is followed over the coordinators of one node alone
        )
        self._generations = Generations(self.book)
        self._turns = Turns(self.book)
        self._barriers = Barriers(self.book, placed, self._versions or [profile])
        self._batches = Batches(self.book, self._versions or [profile])
        self._stages = Stages(self.book, placed, self._versions or [profile])
        self._row_work = RowWork(self.book, placed, self._versions or [profile])
        self._intended: dict[str, list[Effect]] = {}  # by node, not yet attempted
        self._in_flight: dict[str, _InFlight] = {}  # by node
        self._commits = (
            False  # lines of commits are in the log: they say which plans were carried out
        )
        self._working = ""  # the host id of the node that the coordinator works on
        self._coordinator = ""
        self._resizes: Counter[str] = Counter()
        self._resized: set[str] = set()  # tables of which nothing was logged since
        self._first_node: dict[str, str] = {}  # of a view building task
        self._apart: set[str] = set()

    def recordings(self) -> dict[str, Recording]:
        """How each machine's events were recorded."""
        debug = self._levels.debug and not self._levels.info
        transition = topology.HIDDEN_RECORDING
        if self._enters:
            transition = topology.ENTERED_RECORDING
        return {
            tablets.MACHINE: (tablets.DEBUG_RECORDING if debug else tablets.INFO_RECORDING),
            topology.TRANSITION: transition,
            topology.NODE: topology.HIDDEN_RECORDING,
            cdc.MACHINE: cdc.RECORDING,
            generation_order.MACHINE: generation_order.RECORDING,
            views.MACHINE: views.RECORDING,
            views.PROCESSED: views.PROCESSED_RECORDING,
            **dict.fromkeys(barriers.MACHINES, barriers.RECORDING),
            **dict.fromkeys(batches.MACHINES, batches.RECORDING),
            **dict.fromkeys(row_work.MACHINES, row_work.RECORDING),
        }

    def notes(self) -> list[str]:
        """What was noticed and is worth a note."""
        notes = []
        if self._levels.debug and self._levels.info:
            nodes = ", ".join(sorted(self._levels.info))
            notes.append(f"not at DEBUG: {nodes}; steps of tablets may be missing")
        if self.book.tenure:
            notes.append(
                f"the topology coordinator changed {counted(self.book.tenure, 'time')}: what each one logs is "
                "checked by itself, for yet another may have led in between"
            )
        if self._apart:
            notes.append(
                f"{len(self._apart)} view building tasks are logged by several nodes: each node's lines "
                "are checked by themselves, for clocks differ"
            )
        return [*self.book.notes(), *notes]

    def of_version(self) -> list[str]:
        """As what is evaluated where nobody says which release it is."""
        notes = []
        if len(self._versions) > 1:
            text = ", ".join(self._versions)
            oldest = f"the logs are of versions {text}: checked as the oldest of them"
            notes.append(f"{oldest} (--profile any: by each)")
        if not self._profile:
            notes.append(
                "no line says which version of ScyllaDB this is: the topology is checked as that of any "
                "release, the rest as the newest (--profile says another)"
            )
        return notes

    def releases(self) -> tuple[str, ...]:
        """Those that may have written the logs, where no line says which one did."""
        if self._profile:
            return ()
        return versions.released_by(max((p.time for p in self._placed if p.time), default=None))

    def read(self) -> None:
        """Take all records."""
        for one in self._placed:
            self._barriers.see(one, _source(one))
            self._batches.see(one, _source(one))
            self._stages.see(one, _source(one))
            self._row_work.see(one, _source(one))
            if one.tenure == -1:
                self.book.counts["lines are of a node that was not the coordinator then"] += 1
                continue
            if one.tenure is not None:
                self._set_coordinator(one)
            if one.record.says in GOES_ON:
                self._end_tasks(one.record.node)
            self._take(one)
        for node in [*self._in_flight]:
            self._end_tasks(node)
        for effects in self._intended.values():  # at least intended: it must be legal
            self._happen(_newest_plans(effects) if self._commits else effects)
        self._batches.end()

    def _set_coordinator(self, one: Placed) -> None:
        assert one.tenure is not None
        if one.tenure > self.book.tenure:
            self._end_tasks(self._coordinator)
            self.book.counts[_LEFT_OPEN] += len(self._intended.pop(self._coordinator, []))
            self.book.tenure = one.tenure
            self._working, self._commits = "", False
            self._generations.begin_anew()
        self._coordinator = one.record.node
        self._suffix = f" at {one.record.node}" if one.apart else ""
        self._generations.suffix = self._suffix

    def _take(self, one: Placed) -> None:
        record = one.record
        take = _TAKES.get(record.says)
        if take is not None:
            take(self, one, _source(one))

    # -- commits ---------------------------------------------------------------------------------------

    def _intend(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._intended.setdefault(effect.source.node, []).append(effect)

    def _fail(self, _: Placed, source: Source) -> None:
        self._intended.pop(source.node, None)

    def _commit_by_hand(self, one: Placed, source: Source) -> None:
        self._settle(one, self._intended.pop(source.node, []))

    def _commit(self, one: Placed, source: Source) -> None:
        reason = one.record.words["reason"]
        self._commits = True
        if not topology.fiber_of(reason):
            self._end_tasks(one.record.node)
        effects: list[Effect] = []
        # A pass of the main fiber that loses a race plans anew, whichever commit it was that was lost.
        over = one.lost and not topology.fiber_of(reason)
        if over or topology.carries_plans(reason):
            effects = _newest_plans(self._intended.pop(one.record.node, []))
        self._settle(
            one, [*effects, *effects_of(reason, self._working, source)], is_logged_first=True
        )

    def _settle(
        self, one: Placed, effects: Sequence[Effect], *, is_logged_first: bool = False
    ) -> None:
        """What becomes of what was to be committed; `is_logged_first`: the line is written before the commit."""
        if one.lost:
            self.book.counts["changes were cancelled by a race"] += len(effects)
        elif one.left_open:
            self.book.counts[_LEFT_OPEN] += len(effects)
        elif one.unknown:
            self.book.counts["changes were committed or not, the coordinator did not know"] += len(
                effects
            )
            for effect in effects:
                self.book.forget(effect)
        elif is_logged_first:
            others = [e for e in effects if not _ends_task(e)]
            commit = self._in_flight.setdefault(one.record.node, _InFlight())
            commit.ends.extend(filter(_ends_task, effects))
            commit.makes.update(e.key for e in others if e.machine == views.MACHINE)
            self._happen(others)
        else:
            self._happen(effects)

    def _end_tasks(self, node: str) -> None:
        """The coordinator's last commit is carried out: it has learned which tasks are no more."""
        if commit := self._in_flight.pop(node, None):
            self._happen(commit.ends)

    def _happen(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if effect.machine == cdc.MACHINE:
                self._generations.happen(effect)
            else:
                self._add(effect)

    def _add(self, effect: Effect) -> None:
        if effect.machine in self._across:
            effect = replace(effect, key=effect.key + self._suffix)
        self.book.add(effect)

    # -- tablets ---------------------------------------------------------------------------------------

    def _will_set(self, one: Placed, source: Source) -> None:
        self._intend([self._stage(one, source)])

    def _is_in(self, one: Placed, source: Source) -> None:
        self.book.add(self._stage(one, source))

    def _cleans_up(self, one: Placed, source: Source) -> None:
        """The line does not say in which stage; only where each stage leaves a line, the last one says it."""
        effect = self._stage(one, source)
        last = self.book.last(effect, tablets.STAGE)
        if last in tablets.CLEANUPS:
            self.book.add(replace(effect, observed={tablets.STAGE: last}))
        elif last is not None and self._levels.debug and not self._levels.info:
            self.book.add(replace(effect, observed={tablets.STAGE: min(tablets.CLEANUPS)}))

    def _fail_barrier(self, one: Placed, source: Source) -> None:
        effect = self._stage(one, source)
        self.book.add(replace(effect, observed={}, action=tablets.FAILS_BARRIER))

    def _stage(self, one: Placed, source: Source) -> Effect:
        words = one.record.words
        self._resized.discard(words["table"])
        key = f"{words['table']}:{words['tablet']}"
        if resize := self._resizes[words["table"]]:
            key += f"@{resize}"
        return Effect(tablets.MACHINE, key, {tablets.STAGE: words.get("stage")}, source)

    def _resize(self, one: Placed, _: Source) -> None:
        table = one.record.words["table"]
        if table not in self._resized:  # several lines are about one resize
            self._resizes[table] += 1
            self._resized.add(table)

    def _decide_resize(self, _: Placed, __: Source) -> None:
        self.book.counts["resize decisions were emitted or revoked"] += 1

    # -- the topology ----------------------------------------------------------------------------------

    def _topology(self, observed: dict[str, object], source: Source) -> None:
        self._add(Effect(topology.TRANSITION, _TOPOLOGY, observed, source))

    def _node(self, node: str, state: str, source: Source) -> None:
        self._add(Effect(topology.NODE, node, {topology.NODE_STATE: state}, source))

    def _enter(self, one: Placed, source: Source) -> None:
        state = topology.state_named(one.record.words["state"])
        self._topology({topology.TRANSITION_STATE: state}, source)

    def _find(self, one: Placed, source: Source) -> None:
        self._working = node = one.record.words["node"]
        state = one.record.words["state"]
        working = state if state in topology.IN_TRANSITION else None
        self._topology({topology.IN_TRANSITION_IS: working}, source)
        self._node(node, state, source)

    def _leave(self, one: Placed, source: Source) -> None:
        self._node(one.record.words["node"], NodeState.left.name, source)

    # -- CDC generations -------------------------------------------------------------------------------

    def _use_generation(self, one: Placed, source: Source) -> None:
        key = one.record.words["generation"]
        if source.node != self._coordinator:  # another clock
            key += f" at {source.node}"
        self._generations.use(key, source)

    def _learn_late(self, _: Placed, source: Source) -> None:
        what = f"times {source.node} says that it wrote with an older CDC generation than it should"
        self.book.counts[what] += 1

    # -- view building ---------------------------------------------------------------------------

    def _select(self, one: Placed, source: Source) -> None:
        self._turns.select(one.record.words["base"], source)

    def _finish(self, one: Placed, source: Source) -> None:
        self._turns.finish(one.record.words["base"], source)

    def _doubt_selection(self, _: Placed, source: Source) -> None:
        self._turns.doubt(source.node)

    def _see(self, one: Placed, source: Source) -> None:
        effects = self._tasks(one, source)
        commit = self._in_flight.get(source.node)
        if commit is not None and not commit.makes.isdisjoint(e.key for e in effects):
            self._end_tasks(source.node)
        for effect in effects:
            self.book.add(effect)

    def _will_be(self, one: Placed, source: Source) -> None:
        self._intend(self._tasks(one, source))

    def _will_be_at_once(self, one: Placed, source: Source) -> None:
        self._settle(one, self._tasks(one, source))

    def _tasks(self, one: Placed, source: Source) -> list[Effect]:
        words = one.record.words
        observed = {k: v for k, v in words.items() if k in (views.LIFE, views.CALL, views.WORK)}
        ids = views.ids_in(words.get("ids") or words.get("id") or "")
        made = [words[name] for name in ("new", "second") if name in words]
        action = words.get("action")
        return [
            *(self._task(i, observed, source, action) for i in ids),
            *(self._task(i, {views.LIFE: Life.normal.name}, source) for i in made),
        ]

    def _task(
        self, task: str, observed: dict[str, str], source: Source, action: str | None = None
    ) -> Effect:
        first = self._first_node.setdefault(task, source.node)
        key = task
        if source.node != first:
            self._apart.add(task)
            key += f" at {source.node}"
        return Effect(views.MACHINE, key, observed, source, action)


def _source(one: Placed) -> Source:
    return Source(one.part, one.record.line, one.record.node, one.time)


def _ends_task(effect: Effect) -> bool:
    life = effect.observed.get(views.LIFE)
    return effect.machine == views.MACHINE and life is not None and life != Life.normal.name


def _newest_plans(effects: Sequence[Effect]) -> list[Effect]:
    """Each entity's last: a pass that failed without a commit has planned what the next one plans anew."""
    return list({(effect.machine, effect.key): effect for effect in effects}.values())


_Take = Callable[[Reading, Placed, Source], None]
_TAKES: dict[str, _Take] = {
    tablets.WILL_SET: Reading._will_set,
    tablets.IS_IN: Reading._is_in,
    tablets.CLEANS_UP: Reading._cleans_up,
    tablets.CLEANUP_FAILED: Reading._cleans_up,
    tablets.CLEANUP_ENDED: Reading._cleans_up,
    tablets.BARRIER_FAILED: Reading._fail_barrier,
    balancer.RESIZE: Reading._resize,
    balancer.DECISION: Reading._decide_resize,
    topology.COMMIT: Reading._commit,
    topology.FAILED: Reading._fail,
    topology.DEPOSED: Reading._fail,
    topology.ENTERED: Reading._enter,
    topology.FOUND: Reading._find,
    topology.LEFT: Reading._leave,
    views.SELECTED: Reading._select,
    views.FINISHED: Reading._finish,
    views.SELECTION_IN_DOUBT: Reading._doubt_selection,
    views.SEEN: Reading._see,
    views.CALLS: Reading._see,
    views.BATCH_STARTS: Reading._see,
    views.BATCH_ENDS: Reading._see,
    views.WILL: Reading._will_be,
    views.GC_WILL: Reading._will_be_at_once,
    views.CREATE_STAGING: Reading._will_be_at_once,
    views.API_COMMIT: Reading._commit_by_hand,
    cdc.STARTED_USING: Reading._use_generation,
    cdc.LEARNED_LATE: Reading._learn_late,
}
"""What is done with a line that says so; nothing with those of which only the order matters."""


def effects_of(reason: str, working: str, source: Source) -> list[Effect]:
    """What a commit for a reason changes; `working`: the host id of the node that it is about, if known."""
    effects: list[Effect] = []
    if generation := cdc.change_of(reason):
        effects.append(Effect(cdc.MACHINE, *generation, source))
    if cleared := cdc.CLEARED.search(reason):
        effects.append(Effect(cdc.MACHINE, "", {"cleared before": cleared["bound"]}, source))
    change = topology.change_of(reason)
    if change is None:
        return effects
    observed: dict[str, object] = {}
    if change.transition is not None:
        observed[topology.TRANSITION_STATE] = change.transition
    if change.working is not None:
        observed[topology.IN_TRANSITION_IS] = change.working or None
    if observed:
        effects.append(Effect(topology.TRANSITION, _TOPOLOGY, observed, source))
    for node, state in change.nodes:
        if node or working:
            key, seen = node or working, {topology.NODE_STATE: state}
            effects.append(Effect(topology.NODE, key, seen, source))
    return effects


def _version_of(placed: Sequence[Placed], profile: str) -> tuple[str, list[str]]:
    """The profile that is asked for, or the oldest version that the logs name; and all these versions."""
    if profile:
        return profile, []
    found = {p.record.words["version"] for p in placed if p.record.says == versions.STARTS}
    named = sorted(found, key=lambda v: versions.version_of(v) or (0, 0))
    return (named[0] if named else ""), named


class _Levels:
    """Which nodes log tablets at DEBUG, and which do not."""

    def __init__(self) -> None:
        self.debug: set[str] = set()
        self.info: set[str] = set()


def _levels(placed: Sequence[Placed]) -> _Levels:
    levels = _Levels()
    for one in placed:
        if one.record.says == tablets.WILL_SET:
            levels.debug.add(one.record.node)
        elif one.record.says == tablets.IS_IN:
            levels.info.add(one.record.node)
    levels.info -= levels.debug
    return levels
