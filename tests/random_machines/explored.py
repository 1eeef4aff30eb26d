"""A machine explored by the reference interpreter alone, and its verdicts, by simple and slow means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import assert_never

from tests.random_machines.definitions import RandomMachine

from stagewright.spec.definition import Fairness, Joined, Property, PropertyKind
from stagewright.spec.errors import DomainError
from stagewright.spec.interpreter import Environment, Interpreter, step_of
from stagewright.spec.nodes import Apply, Bound, Node, Op, variables_in
from stagewright.spec.values import State
from stagewright.spec.verdict import Outcome, Step

Edge = tuple[State, Step, State]


MOST_STRONG = 6  # groups of steps: all their subsets are tried


class TooLargeError(Exception):
    """The machine has more states, or more that is strongly fair, than a test of many machines can look at."""


@dataclass
class Explored:
    """All reachable states and steps; none are taken from states beyond the constraints."""

    machine: RandomMachine
    most: int
    interpreter: Interpreter = field(init=False)
    states: set[State] = field(default_factory=set)
    edges: list[Edge] = field(default_factory=list)
    enabled: dict[State, list[Step]] = field(default_factory=dict)
    overflows: set[tuple[State, Step]] = field(default_factory=set)
    outcomes: dict[Property, Outcome] = field(default_factory=dict)  # of those that were asked for

    def __post_init__(self) -> None:
        self.interpreter = Interpreter(self.machine.definition, self.machine.scope)
        if len(self._fair(Fairness.STRONG)) > MOST_STRONG:
            raise TooLargeError
        self.initial = list(self.interpreter.initial_states())
        todo = list(self.initial)
        self.states.update(todo)
        while todo:
            if len(self.states) > self.most:
                raise TooLargeError
            state = todo.pop()
            for after in self._expand(state):
                if after not in self.states:
                    self.states.add(after)
                    todo.append(after)

    @cached_property
    def steps(self) -> list[Step]:
        """Every action with every value of its parameters."""
        return [
            step_of(action, environment)
            for action in self.interpreter.definition.actions
            for environment in self.interpreter.instances(action.params)
        ]

    @cached_property
    def beyond(self) -> set[State]:
        """The states beyond the constraints."""
        return {s for s in self.states if not self.interpreter.is_within(s)}

    def _expand(self, state: State) -> Iterator[State]:
        self.enabled[state] = []
        if not self.interpreter.is_within(state):
            return
        for step in self.steps:
            if self.interpreter.failed_requirements(step, state):
                continue
            self.enabled[state].append(step)
            try:
                after = self.interpreter.take(step, state)
            except DomainError:
                self.overflows.add((state, step))
            else:
                self.edges.append((state, step, after))
                yield after

    @cached_property
    def changes(self) -> list[Edge]:
        """The steps that change something: for fairness there are no others."""
        return [(s, a, t) for s, a, t in self.edges if s != t]

    @cached_property
    def after(self) -> dict[State, list[State]]:
        """Where the steps lead that can be taken in a state."""
        found: dict[State, list[State]] = {}
        for source, _, target in self.edges:
            found.setdefault(source, []).append(target)
        return found

    @cached_property
    def urged(self) -> dict[State, set[Step]]:
        """What is enabled in each state and would change something."""
        found: dict[State, set[Step]] = {s: set() for s in self.states}
        for source, step, _ in self.changes:
            found[source].add(step)
        return found

    # -- verdicts ----------------------------------------------------------------------------------

    def verdict(self, prop: Property) -> Outcome:
        """What the whole graph says of a promise; of no value where steps overflow, for two kinds."""
        if prop not in self.outcomes:
            self.outcomes[prop] = self._verdict(prop)
        return self.outcomes[prop]

    def _verdict(self, prop: Property) -> Outcome:
        match prop.kind:
            case PropertyKind.INVARIANT if prop.independent:
                holds = all(self._waits_for_nothing(prop, s) for s in self.states)
            case PropertyKind.INVARIANT:
                holds = all(self.interpreter.holds(prop, s)[0] for s in self.states)
            case PropertyKind.STEP:
                holds = all(self.interpreter.holds(prop, s, t)[0] for s, _, t in self.edges)
            case PropertyKind.REACHABLE:
                return worst(self._always_reachable(prop, e) for e in self._instances(prop))
            case PropertyKind.LEADS_TO | PropertyKind.EVENTUALLY:
                return worst(self._on_fair_runs(prop, e) for e in self._instances(prop))
            case PropertyKind.SOMETIMES:
                return self._met(all(self._some_state(prop, e) for e in self._instances(prop)))
            case PropertyKind.SOMETIMES_STEP:
                return self._met(all(self._some_step(prop, e) for e in self._instances(prop)))
            case PropertyKind.ACCEPTS:
                holds = all(self._accepted(prop, s) for s in self.states)
            case PropertyKind.RESTRICTED:
                return self._met(not all(self._accepted(prop, s) for s in self.states))
            case _:
                assert_never(prop.kind)
        return Outcome.HOLDS if holds else Outcome.VIOLATED

    def _met(self, found: bool) -> Outcome:
        if found:
            return Outcome.HOLDS
        return Outcome.UNDECIDED if self.beyond else Outcome.VIOLATED

    def _some_state(self, prop: Property, environment: Environment) -> bool:
        return any(
            self.interpreter.evaluate(prop.condition, s, None, environment) is True
            for s in self.states
        )

    def _some_step(self, prop: Property, environment: Environment) -> bool:
        return any(
            self.interpreter.evaluate(prop.condition, s, t, environment) is True
            for s, _, t in self.edges
        )

    def _waits_for_nothing(self, prop: Property, state: State) -> bool:
        """Whether each choice that only the variables apart would refuse is not refused."""
        apart = set(prop.apart)
        for action in self.machine.definition.actions:
            asked = [part for r in action.guards for part in _parts(r.condition)]
            of_others = [part for part in asked if not apart & variables_in(part)]
            for e in self.interpreter.instances(action.params):
                accepted = [
                    all(self.interpreter.evaluate(part, state, None, e) for part in parts)
                    for parts in (of_others, asked)
                ]
                if action.name in prop.independent and accepted == [True, False]:
                    return False
        return True

    def _accepted(self, prop: Property, state: State) -> bool:
        """Whether, for each choice at which the condition holds, the action has one that nothing refuses."""
        for environment in self._instances(prop):
            if self.interpreter.evaluate(prop.condition, state, None, environment) is not True:
                continue
            named = {bound.name: value for bound, value in environment.items()}
            if not any(
                all(named.get(name, value) == value for name, value in called.items())
                for called in self._calls(prop.action, state)
            ):
                return False
        return True

    def _calls(self, name: str, state: State) -> Iterator[dict[str, object]]:
        """The parameters with which an action can happen: by itself, or joined by steps of the system."""
        for action in self.machine.definition.actions:
            for e in self.interpreter.instances(action.params):
                if not all(
                    self.interpreter.evaluate(r.condition, state, None, e) for r in action.guards
                ):
                    continue
                if action.name == name:
                    yield {bound.name: value for bound, value in e.items()}
                for call in action.joined:
                    if call.action == name:
                        yield from self._called(call, state, e)

    def _called(self, call: Joined, state: State, e: Environment) -> Iterator[dict[str, object]]:
        for more in self.interpreter.instances(tuple(bound for bound, _ in call.loops)):
            within = {**e, **more}
            if all(
                c is None or self.interpreter.evaluate(c, state, None, within)
                for _, c in call.loops
            ):
                yield {
                    n: self.interpreter.evaluate(a, state, None, within) for n, a in call.arguments
                }

    @property
    def no_deadlock(self) -> Outcome:
        """Whether each state is final in which at the most budgeted steps are enabled."""
        stuck = [
            s
            for s in self.states - self.beyond
            if all(step.action in self._spending for step in self.enabled[s])
            and not self.interpreter.is_final(s)
        ]
        return Outcome.VIOLATED if stuck else Outcome.HOLDS

    @cached_property
    def _spending(self) -> set[str]:
        return {a.name for a in self.interpreter.definition.actions if a.budget is not None}

    def _instances(self, prop: Property) -> Iterator[Environment]:
        return self.interpreter.instances(prop.params)

    def _where(self, node: Node, environment: dict[Bound, object] | Environment) -> set[State]:
        return {s for s in self.states if self.interpreter.evaluate(node, s, None, environment)}  # type: ignore[arg-type]

    def _always_reachable(self, prop: Property, environment: Environment) -> Outcome:
        """Whether the goal can be reached from everywhere by steps that spend no budget."""
        goal = self._where(prop.condition, environment)
        edges = [e for e in self.edges if e[1].action not in self._spending]
        if _before(edges, goal | self.beyond) != self.states:
            return Outcome.VIOLATED
        inside = _before(edges, goal - self.beyond) | self.beyond
        return Outcome.HOLDS if inside == self.states else Outcome.UNDECIDED

    def _on_fair_runs(self, prop: Property, environment: Environment) -> Outcome:
        waiting = self.states - self._where(prop.condition, environment)
        begin = set(self.initial)
        if prop.premise is not None:
            begin = self._where(prop.premise, environment)
        begin &= waiting
        if self._breaks(begin - self.beyond, waiting - self.beyond):
            return Outcome.VIOLATED
        leaves = self._onward(begin, waiting) & self.beyond
        return Outcome.UNDECIDED if leaves else Outcome.HOLDS

    def _onward(self, begin: Set[State], region: Set[State]) -> set[State]:
        """The states that can be reached from some without leaving a region."""
        found, todo = set(begin), list(begin)
        while todo:
            new = {t for t in self.after.get(todo.pop(), ()) if t in region} - found
            found |= new
            todo += new
        return found

    def _breaks(self, start: Set[State], waiting: Set[State]) -> bool:
        """Whether some fair run waits for ever: by fixpoints, with no strongly connected parts in sight."""
        begin = self._onward(start, waiting)
        groups = self._fair(Fairness.WEAK) + self._fair(Fairness.STRONG)
        if any(not any(group & self.urged[s] for group in groups) for s in begin):
            return True  # the run may stop there
        return any(self._fair_run(begin, taken) for taken in _subsets(self._fair(Fairness.STRONG)))

    def _fair(self, strength: Fairness) -> list[frozenset[Step]]:
        """The steps that share each fairness of a strength, for each choice of its keys."""
        found: dict[object, set[Step]] = {}
        for step in self.steps:
            for fair in self.interpreter.definition.action(step.action).fair:
                keys = tuple(step.arguments[key.name] for key in fair.keys)
                if fair.strength is strength:
                    found.setdefault((fair.name or step.action, keys), set()).add(step)
        return [frozenset(group) for group in found.values()]

    def _fair_run(self, region: Set[State], taken: Sequence[frozenset[Step]]) -> bool:
        """Whether a weakly fair run stays in the region for ever, takes some of each group of `taken` again
        and again, and never enables any step of another strongly fair group.
        """  # noqa: D205 one sentence
        idle = [group for group in self._fair(Fairness.STRONG) if group not in taken]
        inside = {s for s in region if not any(group & self.urged[s] for group in idle)}
        while True:
            edges = [(s, a, t) for s, a, t in self.changes if s in inside and t in inside]
            kept = {s for s, _, _ in edges}
            for group in taken:
                kept &= _before(edges, {s for s, a, _ in edges if a in group})
            for group in self._fair(Fairness.WEAK):
                pays = {s for s, a, _ in edges if a in group or not group & self.urged[s]}
                kept &= _before(edges, pays)
            if kept == inside:
                return bool(inside)
            inside = kept


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a promise, from those of its instances."""
    found = set(outcomes)
    if Outcome.VIOLATED in found:
        return Outcome.VIOLATED
    return Outcome.UNDECIDED if Outcome.UNDECIDED in found else Outcome.HOLDS


def _before(edges: list[Edge], goal: set[State]) -> set[State]:
    """The states from which a path along the edges leads to the goal."""
    before: dict[State, list[State]] = {}
    for source, _, target in edges:
        before.setdefault(target, []).append(source)
    found, todo = set(goal), list(goal)
    while todo:
        new = set(before.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found


def _subsets(groups: list[frozenset[Step]]) -> Iterator[tuple[frozenset[Step], ...]]:
    sizes = range(len(groups) + 1)
    return chain.from_iterable(combinations(groups, size) for size in sizes)


def _parts(condition: Node) -> list[Node]:
    """What a condition joins by `&`."""
    if isinstance(condition, Apply) and condition.op is Op.AND:
        return [part for arg in condition.args for part in _parts(arg)]
    return [condition]
