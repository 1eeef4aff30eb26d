"""A counterexample as a story, in the order a person reads it; the renderers only lay it out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagewright.checker.counterexample.breach import IN_BOUNDS, Breach, breach_of
from stagewright.checker.counterexample.scopes import scope_of_run
from stagewright.spec.definition import NO_DEADLOCK, Action, Definition
from stagewright.spec.entities import Entity
from stagewright.spec.errors import InputError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import Scope
from stagewright.spec.text.words import spoken, variable_name
from stagewright.spec.values import State, Value, flatten, show, summarised
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step

SEEN = "seen: "
"""How the places of the machine begin that a run is seen as."""


@dataclass(frozen=True)
class Change:
    """One leaf of the state that a step changed: `stage[tablet0]: streaming → use_new`."""

    place: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.place}: {self.old} → {self.new}"


@dataclass(frozen=True)
class StoryStep:
    """One step: `number` is 1-based and leads to state `number`.

    `actor` acts; `entities` are those among the arguments, which may contain the actor.
    A step of a loop (`forever`) happens again and again; the `closing` one leads back to its start.
    """

    number: int
    actor: str
    entities: tuple[str, ...]
    action: str
    label: str
    title: str
    sentence: str
    changes: tuple[Change, ...]
    forever: bool = False
    closing: bool = False

    @property
    def lanes(self) -> tuple[str, ...]:
        """Whom the step involves: the actor first, each once."""
        return tuple(dict.fromkeys([self.actor, *self.entities]))


@dataclass(frozen=True)
class Story:
    """A run as a story: where it starts, its steps, and what it breaks."""

    definition: Definition
    verdict: PropertyVerdict
    run: Run
    scope: Scope
    start: tuple[tuple[str, str], ...]
    steps: tuple[StoryStep, ...]
    loop: int | None  # state to which the run returns for ever
    breach: Breach

    @property
    def headline(self) -> str:
        """`tablet migration (seed) breaks reads_are_complete in 6 steps`."""
        many = len(self.run.steps)
        after = f"after {many} step{'s' if many != 1 else ''}" if many else "in its initial state"
        if self.verdict.witness is not None:
            return f"{self.machine}: {self.verdict.name} is reached {after}"
        if self.verdict.outcome is not Outcome.VIOLATED:
            return f"{self.machine}: the induction for {self.verdict.name} fails {after}"
        if (refined := self.verdict.refined) is not None:
            said = "no longer refines" if many else "does not refine"
            return f"{self.machine} {said} {_machine(refined.seen)} {after}"
        what = {NO_DEADLOCK: "comes to a deadlock", IN_BOUNDS: "can leave the bounds of a variable"}
        return (
            f"{self.machine} {what.get(self.verdict.name, f'breaks {self.verdict.name}')} {after}"
        )

    @property
    def opening(self) -> str:
        """What state 0 is."""
        real = self.verdict.outcome is Outcome.VIOLATED or self.verdict.witness is not None
        return "initially" if real else "suppose"

    @property
    def machine(self) -> str:
        """The machine's name, with its profile when it has any."""
        return _machine(self.definition)

    @property
    def lanes(self) -> tuple[str, ...]:
        """Every lane: those that only act in order of appearance, then the entities by number."""
        entities = {e for s in self.steps for e in s.entities}
        actors = [s.actor for s in self.steps if s.actor not in entities]
        return tuple(dict.fromkeys([*actors, *sorted(entities, key=_lane_order)]))


def story_of(definition: Definition, verdict: PropertyVerdict, scope: Scope | None = None) -> Story:
    """The story of a verdict's run; without `scope`, of the scope that the run shows.

    Raises:
        InputError: the verdict has no run, and no witness.
    """
    run = verdict.run if verdict.witness is None else verdict.witness
    if run is None:
        raise InputError(
            f"{verdict.name} of {_machine(definition)} has no run to show"
            f": {verdict.note or 'it holds'}",
            help="only a violated property, or an induction that failed, comes with a run",
        )
    if verdict.refined is not None:  # the run may be another machine's
        definition, scope = verdict.refined.concrete, verdict.refined.scope
    scope = scope or scope_of_run(definition, run)
    interpreter = Interpreter(definition, scope)
    return Story(
        definition,
        verdict,
        run,
        scope,
        (*summary(run.states[0]), *_seen_at_first(verdict)),
        tuple(with_seen(verdict, step) for step in _steps(definition, run)),
        run.loop,
        breach_of(interpreter, definition, verdict, run),
    )


def _steps(definition: Definition, run: Run) -> tuple[StoryStep, ...]:
    parts = [
        _step(definition, i + 1, step, run.states[i], run.states[i + 1], looping=_in_loop(run, i))
        for i, step in enumerate(run.steps)
    ]
    if run.loop is not None and run.loop_step is not None:
        last, back = run.states[-1], run.states[run.loop]
        parts.append(
            _step(definition, len(parts) + 1, run.loop_step, last, back, looping=True, closing=True)
        )
    return tuple(parts)


def _seen_at_first(verdict: PropertyVerdict) -> tuple[tuple[str, str], ...]:
    """Of a refinement, what is seen of the first state."""
    if verdict.refined is None:
        return ()
    looks = summarised(verdict.refined.looks[0])
    return tuple((f"{SEEN}{place}", value) for place, value in looks)


def with_seen(verdict: PropertyVerdict, step: StoryStep) -> StoryStep:
    """Of a refinement's run, the step with what it changes of what is seen."""
    if verdict.refined is None:
        return step
    old, new = verdict.refined.looks[step.number - 1 : step.number + 1]
    seen = [Change(f"{SEEN}{place}", old[place], v) for place, v in new.items() if old[place] != v]
    return replace(step, changes=(*step.changes, *seen))


def _in_loop(run: Run, index: int) -> bool:
    return run.loop is not None and index >= run.loop


def _step(
    definition: Definition,
    number: int,
    step: Step,
    old: State,
    new: State,
    *,
    looping: bool,
    closing: bool = False,
) -> StoryStep:
    action = next((a for a in definition.actions if a.name == step.action), None)
    entities = [show(v) for v in step.arguments.values() if isinstance(v, Entity)]
    actor = _actor(definition, action, entities)
    return StoryStep(
        number=number,
        actor=actor,
        entities=tuple(entities),
        action=step.action,
        label=step.label,
        title=_title(step, actor),
        sentence=_sentence(action, step),
        changes=changes(old, new),
        forever=looping,
        closing=closing,
    )


def _actor(definition: Definition, action: Action | None, entities: list[str]) -> str:
    if action is not None and action.actor is not None:
        return action.actor.name
    return entities[0] if entities else definition.name


def _title(step: Step, actor: str) -> str:
    """The action's name in words, with the arguments that are not the actor itself."""
    parts = [
        show(v) if isinstance(v, Entity) else f"{spoken(name)} = {show(v)}"
        for name, v in step.arguments.items()
        if show(v) != actor
    ]
    action = spoken(step.action.rpartition(".")[2])  # the arguments say of which part it is
    return f"{action} ({', '.join(parts)})" if parts else action


def _sentence(action: Action | None, step: Step) -> str:
    """The first sentence of the action's docstring, with its parameters' values in their places."""
    if action is None or not action.doc:
        return ""
    text = first_sentence(action.doc)
    for name, value in step.arguments.items():
        text = text.replace(f"`{name}`", show(value))
    return text


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(doc.strip().split("\n\n")[0].split())
    end = paragraph.find(". ")
    return paragraph if end < 0 else paragraph[: end + 1]


def changes(old: State, new: State) -> tuple[Change, ...]:
    """The leaves of the state whose values differ."""
    before = leaves(old)
    return tuple(
        Change(place, show(before[place]) if place in before else "absent", show(value))
        for place, value in leaves(new).items()
        if place not in before or before[place] != value
    )


def leaves(state: State) -> dict[str, Value]:
    """Every leaf of a state by its place, as a person writes it."""
    return {
        place: leaf
        for name, value in state.items()
        for place, leaf in flatten(variable_name(name), value)
    }


def summary(state: State) -> tuple[tuple[str, str], ...]:
    """The leaves of a state and their values; `learned[*]` where all keys have one value."""
    return tuple(summarised({place: show(value) for place, value in leaves(state).items()}))


def _machine(definition: Definition) -> str:
    return f"{definition.name} ({definition.profile})" if definition.profile else definition.name


def _lane_order(lane: str) -> tuple[str, int]:
    """`node10` after `node9`, not after `node1`."""
    stem = lane.rstrip("0123456789")
    digits = lane[len(stem) :]
    return stem, int(digits) if digits else -1
