"""From what a search found to a verdict for each promise, with the run that shows a violation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagewright.checker.explicit.exploration import Edge, Exploration
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.runs import Path, paths_to, run_along
from stagewright.checker.fair_runs import FairRuns
from stagewright.checker.goals import nearest_hopeless
from stagewright.checker.limits import OnProgress, Stop
from stagewright.checker.liveness import FairSteps, Lasso, fair_steps
from stagewright.checker.symmetry.lifting import lifted_breach, lifted_step, run_of
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.spec.definition import (
    NO_DEADLOCK,
    Definition,
    Property,
    PropertyKind,
)
from stagewright.spec.grounding.ground import GroundModel, GroundProperty, GroundStep
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.text.counting import counted
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run

METHOD = "exhaustive search"
IN_BOUNDS = "assigned values stay in bounds"

_EDGE_BYTES = 32  # of memory, at the most, while a graph is made and walked
_AFTERWARDS = (PropertyKind.REACHABLE, PropertyKind.LEADS_TO, PropertyKind.EVENTUALLY)


@dataclass(frozen=True)
class _Breach:
    """A violated instance, or a witness: where it shows (a state's id), and how to find the run from there."""

    state: int
    note: str = ""
    instance: GroundProperty | None = None
    beyond: Edge | Lasso | None = None  # what follows on the path to `state`
    witness: bool = False  # nothing is violated: it is what was looked for
    leaves: int | None = None  # the ground step that would leave the bounds


_Finding = _Breach | PropertyVerdict


def verdicts_of(
    definition: Definition, found: Exploration, stop: Stop, progress: OnProgress | None = None
) -> tuple[PropertyVerdict, ...]:
    """One verdict a promise, in the definition's order, then those that every machine makes.

    Where there is no memory for the states that a run is made of, violations are reported without one.
    """
    asked = _Questions(found, stop)
    try:
        return _with_runs(definition, found, asked, stop, progress)
    except MemoryError as error:
        return _without_runs(definition, found, asked, str(error) or "memory ran out")


def _with_runs(
    definition: Definition,
    found: Exploration,
    asked: _Questions,
    stop: Stop,
    progress: OnProgress | None,
) -> tuple[PropertyVerdict, ...]:
    findings: list[tuple[str, _Finding, float]] = []
    for prop in definition.properties:
        started = time.monotonic()
        if progress is not None and prop.kind in _AFTERWARDS:
            progress(found.tally.progress(stop.seconds, deciding=prop.name))
        finding = asked.about(prop)
        findings.append((prop.name, finding, time.monotonic() - started))
    if found.watch.deadlock:
        findings.append((NO_DEADLOCK, asked.deadlock(), 0.0))
    findings.append((IN_BOUNDS, asked.overflow(), 0.0))
    breaches = [f.state for _, f, _ in findings if isinstance(f, _Breach)]
    paths = paths_to(found, breaches)
    return tuple(
        _violated(found, asked, name, finding, paths[finding.state], seconds)
        if isinstance(finding, _Breach)
        else finding
        for name, finding, seconds in findings
    )


def _without_runs(
    definition: Definition, found: Exploration, asked: _Questions, why: str
) -> tuple[PropertyVerdict, ...]:
    tally, model = found.tally, found.engine.model
    noted = [
        *zip(model.invariants, tally.state_notes, strict=False),
        *zip(model.step_properties, tally.step_notes, strict=False),
    ]
    broken = {instance.property.name for instance, note in noted if note is not None}
    looked_for = (PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP, PropertyKind.RESTRICTED)

    def verdict(name: str, kept: PropertyVerdict, *, violated: bool) -> PropertyVerdict:
        note = f"no run is shown: {why}"
        return PropertyVerdict(name, Outcome.VIOLATED, METHOD, note) if violated else kept

    verdicts = [
        PropertyVerdict(p.name, Outcome.UNDECIDED, METHOD, f"not decided: {why}")
        if p.kind in (*_AFTERWARDS, *looked_for)
        else verdict(p.name, asked.kept(p), violated=p.name in broken)
        for p in definition.properties
    ]
    if found.watch.deadlock:
        kept = asked.no_deadlock()
        verdicts.append(verdict(NO_DEADLOCK, kept, violated=tally.deadlock is not None))
    verdicts.append(verdict(IN_BOUNDS, asked.in_bounds(), violated=tally.overflow is not None))
    return tuple(verdicts)


def _violated(
    found: Exploration,
    asked: _Questions,
    name: str,
    breach: _Breach,
    path: Path,
    seconds: float,
) -> PropertyVerdict:
    arguments = breach.instance.arguments if breach.instance is not None else ()
    note = breach.note
    if isinstance(found.engine, Reduced):
        assert not isinstance(breach.beyond, Lasso), "properties under fairness need all states"
        lifted, arguments = lifted_breach(found, path, breach.beyond, arguments)
        run = run_of(found.engine.model, lifted)
        last, symmetry = lifted.states[-1], found.engine.symmetry
        if breach.leaves is not None:
            step = lifted_step(found.engine.model, symmetry, lifted, breach.leaves)
            note = _overflow_note(found.engine.model, last, step)
    else:
        run = _run(found, asked, path, breach.beyond)
        if breach.leaves is not None:
            last = found.engine.layout.unpack(found.words, breach.state)
            model = found.engine.model
            note = _overflow_note(model, last, model.steps[breach.leaves])
    if breach.witness:
        named = FrozenMap(dict(arguments))
        return PropertyVerdict(
            name,
            Outcome.HOLDS,
            METHOD,
            _reached(len(run.steps)) + note,
            witness=run,
            arguments=named,
            seconds=seconds,
        )
    return PropertyVerdict(
        name,
        Outcome.VIOLATED,
        METHOD,
        note,
        run,
        arguments=FrozenMap(dict(arguments)),
        seconds=seconds,
    )


def _reached(steps: int) -> str:
    return f"some run reaches it, in {steps} step{'' if steps == 1 else 's'}"


def _run(found: Exploration, asked: _Questions, path: Path, beyond: Edge | Lasso | None) -> Run:
    start, steps = path
    match beyond:
        case None:
            return run_along(found, path)
        case Edge(_, step, target):
            return run_along(found, (start, (*steps, (step, target))))
        case Lasso(_, edges, cycle):
            graph = asked.fair_runs.graph
            walked = [(int(graph.steps[e]), int(graph.targets[e])) for e in (*edges, *cycle)]
            if not cycle:
                return run_along(found, (start, (*steps, *walked)))
            back = len(steps) + len(edges)
            full = (*steps, *walked[:-1])
            return run_along(found, (start, full), (back, walked[-1][0]))


class _Questions:
    """Answers, from an exploration, one promise at a time."""

    def __init__(self, found: Exploration, stop: Stop) -> None:
        self._found, self._stop = found, stop
        self._model = found.engine.model

    def about(self, prop: Property) -> _Finding:
        """The first violated instance of a promise, or the verdict that there is none."""
        match prop.kind:
            case PropertyKind.INVARIANT | PropertyKind.ACCEPTS:
                return self._invariant(prop)
            case PropertyKind.STEP:
                return self._step_property(prop)
            case PropertyKind.REACHABLE:
                return self._afterwards(prop, self._model.reachable, self._goal)
            case PropertyKind.LEADS_TO | PropertyKind.EVENTUALLY:
                return self._afterwards(prop, self._model.leads_to, self._on_fair_runs)
            case PropertyKind.SOMETIMES | PropertyKind.RESTRICTED:
                return self._sometimes(prop, self._model.witnesses, step=False)
            case PropertyKind.SOMETIMES_STEP:
                return self._sometimes(prop, self._model.step_witnesses, step=True)

    def deadlock(self) -> _Finding:
        """Whether some state has no successor and is not final."""
        if self._found.deadlock is not None:
            note = f"no step is enabled{self._without_budgets} and the state is not final"
            return _Breach(self._found.deadlock, note)
        return self.no_deadlock()

    def no_deadlock(self) -> PropertyVerdict:
        """What is said if none was found."""
        return self._fine(
            NO_DEADLOCK,
            f"a step is enabled{self._without_budgets} in every state that is not final",
            self._found.depth - 1,
        )

    def overflow(self) -> _Finding:
        """Whether some enabled step assigns a value that its variable cannot hold."""
        if self._found.overflow is not None:
            state, index = self._found.overflow
            return _Breach(state, leaves=index)
        return self.in_bounds()

    def in_bounds(self) -> PropertyVerdict:
        """What is said if nothing was out of them."""
        return self._fine(
            IN_BOUNDS, "no enabled step assigns a value out of bounds", self._found.depth - 1
        )

    @property
    def _without_budgets(self) -> str:
        """What a deadlock leaves out of account, if there is any."""
        spends = any(step.action.spends for step in self._model.steps)
        return ", not counting those that spend a budget," if spends else ""

    @cached_property
    def fair_runs(self) -> FairRuns:
        """All explored runs, as fairness sees them."""
        return FairRuns(self._found)

    @cached_property
    def _fair(self) -> FairSteps:
        return fair_steps(self._model.steps)

    @cached_property
    def _unbudgeted(self) -> Graph:
        """All explored edges that spend no budget: a goal is not reached by the grace of a fault."""
        steps = self._model.steps
        return self._found.graph.without([s.index for s in steps if s.action.spends])

    def _fine(self, name: str, note: str, depth: int, *, vacuous: bool = False) -> PropertyVerdict:
        if self._found.exhausted:
            note += "; vacuous: its premise never held" if vacuous else ""
            return PropertyVerdict(name, Outcome.HOLDS, METHOD, note, vacuous=vacuous)
        if depth < 0:
            note = "nothing was searched (not exhausted)"
        else:
            note = f"no violation up to depth {depth} (not exhausted)"
        return PropertyVerdict(name, Outcome.UNDECIDED, METHOD, note)

    def _invariant(self, prop: Property) -> _Finding:
        found = self._found
        violated = [
            (state, i)
            for i, (instance, state) in enumerate(
                zip(self._model.invariants, found.first_false, strict=False)
            )
            if instance.property.name == prop.name and state is not None
        ]
        if violated:
            state, i = min(violated)
            return _Breach(state, instance=self._model.invariants[i])
        return self.kept(prop)

    def kept(self, prop: Property) -> PropertyVerdict:
        """What is said of an invariant, or a promise about steps, that nothing broke."""
        found, invariant = self._found, prop.kind is not PropertyKind.STEP
        of_states = f"holds in all {found.states:,} {_states(found)}{self._of_them_beyond}"
        note = of_states if invariant else f"holds in all {counted(found.transitions, 'step')}"
        return self._fine(prop.name, note, found.depth, vacuous=self._vacuous(prop))

    def _step_property(self, prop: Property) -> _Finding:
        found = self._found
        violated = [
            (edge.source, i, edge)
            for i, (instance, edge) in enumerate(
                zip(self._model.step_properties, found.bad_edges, strict=False)
            )
            if instance.property.name == prop.name and edge is not None
        ]
        if violated:
            state, i, edge = min(violated, key=lambda v: v[:2])
            return _Breach(state, instance=self._model.step_properties[i], beyond=edge)
        return self.kept(prop)

    def _sometimes(
        self, prop: Property, instances: Sequence[GroundProperty], *, step: bool
    ) -> _Finding:
        """The witness that is furthest away, if each instance has one."""
        found = self._found
        mine = [(i, p) for i, p in enumerate(instances) if p.property.name == prop.name]
        met = self._met(step=step)
        missing = [p for i, p in mine if not met[i]]
        if missing and not found.exhausted:
            note = f"no run reaches it up to depth {max(0, found.depth)} (not exhausted)"
            return PropertyVerdict(prop.name, Outcome.UNDECIDED, METHOD, note)
        if missing and found.tally.beyond:
            return self._leaves(prop, "no run reaches it, but some")
        if missing:
            what = (
                f"steps: {found.transitions:,}" if step else f"{_states(found)}: {found.states:,}"
            )
            note = f"no run reaches it: false in all {what}"
            if prop.kind is PropertyKind.RESTRICTED:
                note = f"nothing refuses `{prop.action}` more than the part does: remove it from `restricts` ({what})"
            arguments = FrozenMap(dict(missing[0].arguments))
            return PropertyVerdict(prop.name, Outcome.VIOLATED, METHOD, note, arguments=arguments)
        if not found.kept:
            return PropertyVerdict(prop.name, Outcome.HOLDS, METHOD, "some run reaches it")
        several = (
            f"; all {len(mine)} choices of its parameters are reached" if len(mine) > 1 else ""
        )
        at = [(found.witness(i, step=step), p) for i, p in mine]
        seen = [
            _Breach(a.source, several, p, a, witness=True)
            if isinstance(a, Edge)
            else _Breach(a, several, p, witness=True)
            for a, p in at
            if a is not None
        ]
        return max(seen, key=lambda breach: breach.state)

    def _met(self, *, step: bool) -> list[bool]:
        """Of which witnesses a place was noted."""
        watch, tally = self._found.watch, self._found.tally
        watched, notes = (
            (watch.steps, tally.step_notes) if step else (watch.states, tally.state_notes)
        )
        return [note is not None for note in notes[len(watched.promises) :]]

    def _vacuous(self, prop: Property) -> bool:
        """Whether the promise has a premise and no instance of it ever held."""
        model, tally = self._model, self._found.tally
        seen = [
            false
            for instances, met in (
                (model.premises, tally.met_states),
                (model.step_premises, tally.met_steps),
            )
            for instance, false in zip(instances, met, strict=False)
            if instance.property.name == prop.name
        ]
        return bool(seen) and not any(seen)

    def _afterwards(
        self,
        prop: Property,
        instances: Sequence[GroundProperty],
        decide: Callable[[GroundProperty], _Finding | None],
    ) -> _Finding:
        """Decide a promise about runs, one instance after the other, while there is time."""
        undecided: _Finding | None = None
        for instance in instances:
            if instance.property.name != prop.name:
                continue
            if reason := self._stop.reason(memory=self._graph_bytes):
                note = f"not decided: {reason}"
                return PropertyVerdict(prop.name, Outcome.UNDECIDED, METHOD, note)
            finding = decide(instance)
            if isinstance(finding, _Breach):
                return finding
            undecided = undecided or finding
        if undecided is not None:
            return undecided
        what = (
            "reachable from"
            if prop.kind is PropertyKind.REACHABLE
            else "holds on every fair run through"
        )
        note = f"{what} all {self._found.states:,} {_states(self._found)}"
        return self._fine(prop.name, note, self._found.depth - 1, vacuous=self._vacuous(prop))

    @property
    def _graph_bytes(self) -> int:
        """About how much memory it takes to look at all edges."""
        found = self._found
        a_state = 8 * (2 * found.engine.layout.words + 2)
        return found.transitions * _EDGE_BYTES + found.states * a_state

    @property
    def _of_them_beyond(self) -> str:
        beyond = self._found.tally.beyond
        return f", {beyond:,} of them beyond the constraint" if beyond else ""

    def _leaves(self, prop: Property, what: str) -> PropertyVerdict:
        """The verdict on a promise that may be kept or broken beyond the constraint."""
        note = f"{what} leave the constraint, and what is beyond was not searched"
        return PropertyVerdict(prop.name, Outcome.UNDECIDED, METHOD, note)

    def _goal(self, instance: GroundProperty) -> _Finding | None:
        (goal,) = self._found.everywhere([instance.condition])
        found, graph, beyond = self._found, self._unbudgeted, self.fair_runs.beyond
        state = nearest_hopeless(graph, goal | beyond, found.expanded)
        if state is None and beyond.any():
            inside = graph.closure(graph.into, goal & ~beyond)
            if not (inside | beyond).all():
                return self._leaves(instance.property, "some runs to the goal have to")
        if state is None:
            return None
        return _Breach(state, "from the last state the goal can no longer be reached", instance)

    def _on_fair_runs(self, instance: GroundProperty) -> _Finding | None:
        sides = self.fair_runs.sides(instance)
        lasso = self.fair_runs.lasso(sides, self._fair)
        if lasso is None and self.fair_runs.leave(sides):
            return self._leaves(instance.property, "runs that wait for the conclusion")
        if lasso is None:
            return None
        if lasso.cycle:
            note = "the run can go round its loop for ever, fairly, and never gets there"
        else:
            note = "nothing that is enabled in the last state has to happen: the run may stop there"
        return _Breach(lasso.start, note, instance, lasso)


def _overflow_note(model: GroundModel, state: tuple[int, ...], step: GroundStep) -> str:
    assigned = [(model.cells[index], evaluate(node, state)) for index, node in step.updates.items()]
    shown = [
        f"{value} to {cell.name} (bounds {cell.low}..{cell.high})"
        for cell, value in assigned
        if not cell.low <= value <= cell.high
    ]
    return f"`{step.label}` is enabled in the last state and would assign {', '.join(shown)}"


def _states(found: Exploration) -> str:
    return "orbits of states" if isinstance(found.engine, Reduced) else "states"
