"""One running instance of a machine: it takes the steps that its definition enables, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any

from stagewright.impl.runtime.commands import Log, command
from stagewright.impl.runtime.present import values_now
from stagewright.impl.runtime.program import Program
from stagewright.impl.runtime.shapes import entities_named, misfit, refuse_misfits
from stagewright.impl.runtime.steps import StepModel
from stagewright.spec.definition import Action, Actor, Definition, Kept
from stagewright.spec.entities import Entity
from stagewright.spec.errors import InputError
from stagewright.spec.nodes import Bound
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EntitySort, EnumSort, OptionalSort, RecordSort, SetSort, Sort
from stagewright.spec.text.suggestions import nearest
from stagewright.spec.values import FrozenMap, State, Value, show
from stagewright.spec.verdict import Step

# An action by name, as a step with its arguments, or as the method that defines it.
ActionRef = str | Step | Callable[..., None]

LISTED = 8  # enabled steps in the text of a refusal
SMALL = 16  # of an instance with more entities they are not searched for that


def instance(
    definition: Definition,
    scope: Scope | None = None,
    *,
    initial: Mapping[str, Value] | None = None,
    control: str | None = None,
) -> Instance:
    """A running instance of a definition; many of one definition should share one `Program`.

    Raises:
        InputError: `initial` is not a state of the definition, or `control` not an enum variable.
    """
    return Instance(Program(definition, scope, control=control), initial)


class Instance:
    """A state of a definition that changes by its steps alone, and by entities that come and go.

    `state` has values of variables; those left out are as they start. `entities` live from the beginning,
    beside those that `state` names. A program with a scope brings its own, and a first initial state.
    `log` takes the record of each step that counts, and undoes it by raising an exception.

    Raises:
        InputError: `state` is not one of the definition; or there is none, and the definition leaves open
            how it starts.
    """

    __slots__ = ("cells", "log", "name", "program")

    def __init__(
        self,
        program: Program,
        state: Mapping[str, Value] | None = None,
        *,
        entities: Iterable[Entity] = (),
        name: str = "",
        log: Log | None = None,
    ) -> None:
        self.program = program
        self.name = name
        self.log = log
        if state is not None:  # what is the model's alone is not there when it runs
            unknown = program.history
            state = {n: v for n, v in state.items() if n not in unknown}
        if state is None and program.scope is not None:
            state = program.starts.decode(program.starts.initial[0])
        self.cells = program.cells(_living(program, entities, state or {}))
        if state is not None:
            refuse_misfits(program.running, program.fits, state, self.cells.live)
            self.cells.load(state)
        elif program.unmet(self.cells):
            raise InputError(
                f"{program.definition.name} does not say how an instance starts",
                help="its @initially conditions hold in several states, or in none without entities: "
                "give `state=` and `entities=`",
            )

    def copy(self, name: str | None = None) -> Instance:
        """Another instance in the same state, which costs less than making one; it has no log."""
        made = Instance.__new__(Instance)
        made.program, made.cells, made.log = self.program, self.cells.copy(), None
        made.name = self.name if name is None else name
        return made

    @property
    def state(self) -> State:
        """The values of all variables; its size is that of the instance."""
        return self.cells.state()

    def read(self, name: str) -> Any:
        """The value of one variable, which costs less than all of `state`.

        Raises:
            KeyError: the machine has no such variable.
        """
        return self.cells.value_of(name)

    @property
    def control(self) -> Enum | None:
        """The value of the control variable; None if the machine has none, or one of each entity."""
        column = self.program.control
        if column is None or column.keys:
            return None
        member: Enum = self.cells.held[column.index]
        return member

    def starts(self) -> bool:
        """Whether the definition may start in this state, as far as its @initially conditions say."""
        return not self.program.unmet(self.cells)

    # -- what survives -----------------------------------------------------------------------------------

    def committed(self) -> State:
        """The values of the variables that are committed: `Instance(program, committed)` goes on from them."""
        kept = {c.variable.name for c in self.program.columns if c.variable.kept is Kept.COMMITTED}
        return FrozenMap({n: v for n, v in self.state.items() if n in kept})

    def forget(self, actor: Actor) -> None:
        """An actor fails: what only its memory held is as it starts.

        Raises:
            InputError: no variable is volatile, of that actor.
        """
        held = [
            c
            for c in self.program.columns
            if c.variable.kept is Kept.VOLATILE and c.variable.actor == actor
        ]
        if not held:
            known = {c.variable.actor.name for c in self.program.columns if c.variable.actor}
            raise InputError(
                f"{self.program.definition.name} has nothing that is volatile, of {actor.name}",
                help=f"its actors with variables of their own: {', '.join(sorted(known)) or 'none'}",
            )
        self.program.reset(self.cells, held)

    # -- steps -----------------------------------------------------------------------------------------

    def fire(self, action: ActionRef, /, **arguments: Value) -> None:
        """Take a step.

        Raises:
            RefusedError: the step is not enabled; names the requirements that are false.
            DomainError: at a scope, it assigns a number outside of its variable's bounds.
            InputError: the definition has no such action, or no such arguments.
        """
        step = self.call(action, **arguments)
        command(step, log=self.log)

    def call(self, action: ActionRef, /, **arguments: Value) -> StepModel:
        """A step that was not taken yet, for a `command`.

        Raises:
            InputError: as `fire`.
        """
        given: Mapping[str, Value]
        if isinstance(action, Step):
            assert not arguments, "a step has its arguments already"
            name, given = action.action, action.arguments
        else:
            name, given = action if isinstance(action, str) else action.__name__, arguments
        return StepModel(self, name, self._checked(name, given))

    def can(self, action: ActionRef, /, **arguments: Value) -> bool:
        """Whether a step is enabled."""
        return not self.refusals(action, **arguments)

    def refusals(self, action: ActionRef, /, **arguments: Value) -> tuple[str, ...]:
        """The names of the requirements that are false for a step now; empty if it is enabled."""
        return tuple(self.call(action, **arguments).refusals())

    def enabled(self) -> list[Step]:
        """Every step that is enabled, in the order of the definition."""
        return [step for action in self.program.actions for step in self.choices(action)]

    def choices(self, action: str) -> list[Step]:
        """The enabled steps of one action, in the order of its arguments."""
        chosen = list(self._choices(action))
        if not chosen:
            return []
        params = self.program.actions[action].params
        names = [p.name for p in params]
        found = [Step(action, FrozenMap(dict(zip(names, one, strict=True)))) for one in chosen]
        if len(found) > 1:
            found.sort(key=lambda s: self._rank(params, tuple(s.arguments.values())))
        return found

    def search(self, action: str) -> Iterator[Step]:
        """The enabled steps of one action as they are found, in no order; the instance must not change."""
        names = [p.name for p in self.program.actions[action].params]
        for chosen in self._choices(action):
            yield Step(action, FrozenMap(dict(zip(names, chosen, strict=True))))

    def _choices(self, action: str) -> Iterable[tuple[Any, ...]]:
        cells = self.cells
        compiled = self.program.compiler.actions[action]
        return compiled.choices(cells.held, cells.live, cells.buckets)

    def _rank(self, params: tuple[Bound, ...], chosen: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(
            rank
            for p, value in zip(params, chosen, strict=True)
            for rank in self._ranks(p.sort, value)
        )

    def _ranks(self, sort: Sort, value: Any) -> Iterator[int]:
        """Where a value stands among those of its sort; of a record, where its fields do."""
        match sort:
            case EntitySort(kind):
                yield self.cells.live[kind][value]
            case EnumSort():
                yield sort.members.index(value)
            case OptionalSort(element):
                yield from (-1,) if value is None else self._ranks(element, value)
            case RecordSort(_, fields):
                for name, field in fields:
                    yield from self._ranks(field, value[name])
            case SetSort(element):
                yield from (int(m in value) for m in values_now(element, self.cells.live))
            case _:
                yield int(value)

    def hint(self) -> str:
        """What can happen instead, for the text of a refusal."""
        if sum(map(len, self.cells.live.values())) > SMALL:
            return "`enabled()` lists what can happen now"
        steps = ((a, c) for a in self.program.actions for c in self._choices(a))
        found = [
            f"{a}({', '.join(map(show, c))})" if c else a for a, c in islice(steps, LISTED + 1)
        ]
        listed = ", ".join(found[:LISTED]) + (", …" if len(found) > LISTED else "")
        return f"enabled now: {listed or 'nothing'}"

    def _checked(self, name: str, given: Mapping[str, Value]) -> tuple[Any, ...]:
        """The arguments of a step in their order."""
        action = self.program.written.get(name)
        if action is None:
            raise self._unknown(name)
        params = action.params
        if len(given) != len(params):
            raise _wrong_arguments(action)
        live, checked = self.cells.live, []
        for param in params:
            value = given.get(param.name, Ellipsis)
            if value is Ellipsis:
                raise _wrong_arguments(action)
            sort = param.sort
            fits = (
                value in live[sort.kind]
                if isinstance(sort, EntitySort)
                else not misfit(value, sort, live, bounds=True)
            )
            if not fits:
                raise self._misfit(name, param)
            checked.append(value)
        return tuple(checked)

    def _unknown(self, name: str) -> InputError:
        known = self.program.written
        near = nearest(name, known)
        return InputError(
            f"{self.program.definition.name} has no action `{name}`",
            help=f"did you mean `{near}`?" if near else f"known: {', '.join(known)}",
        )

    def _misfit(self, name: str, param: Bound) -> InputError:
        sort, values = param.sort, list[Value]()
        if isinstance(sort, EntitySort):
            values, of = list(self.cells.live[sort.kind]), f"a living {sort}"
        else:
            known = values_now(sort, self.cells.live)
            values, of = list(islice(known, LISTED + 1)), f"one of {sort}"
        listed = ", ".join(map(show, values[:LISTED])) + (", …" if len(values) > LISTED else "")
        return InputError(
            f"`{name}`: {param.name} is not {of}", help=f"there are: {listed or 'none'}"
        )

    # -- entities --------------------------------------------------------------------------------------

    def live(self, kind: type[Entity]) -> tuple[Entity, ...]:
        """The entities of a sort that are there, in the order in which they came."""
        return tuple(self.cells.live.get(kind, ()))

    def add(self, entity: Entity) -> None:
        """An entity comes, and all that is said of it is as it starts.

        Raises:
            InputError: it is there already, or the definition has no such entities.
        """
        if type(entity) not in self.cells.live:
            known = ", ".join(k.__name__ for k in self.cells.live)
            raise InputError(
                f"{self.program.definition.name} has no {type(entity).__name__}",
                help=f"its entities: {known or 'none'}",
            )
        members = self.cells.live[type(entity)]
        if entity in members:
            raise InputError(f"{entity} is there already", help="give each its own name")
        _refuse_disorder(type(entity), [*members, entity])
        self.program.add(self.cells, entity)

    def remove(self, entity: Entity) -> None:
        """An entity goes, with all that is said of it.

        Raises:
            InputError: it is not there, or something else still names it.
        """
        if entity not in self.cells.live.get(type(entity), ()):
            raise InputError(f"{entity} is not there", help="it went, or never came")
        _refuse_disorder(type(entity), [e for e in self.live(type(entity)) if e is not entity])
        for column in self.cells.named_by(entity):
            raise InputError(
                f"{entity} cannot go: `{column}` still names it",
                help="let steps of the machine end what it takes part in first",
            )
        self.cells.remove(entity)


def _living(
    program: Program, entities: Iterable[Entity], state: Mapping[str, Value]
) -> dict[type[Entity], list[Entity]]:
    live: dict[type[Entity], dict[Entity, None]] = {k: {} for k in program.definition.entities}
    found = [*entities]
    if program.scope is not None:
        found += [kind(i) for kind, size in program.scope.sizes.items() for i in range(size)]
    else:
        for name, value in state.items():
            found += program.naming.get(name, entities_named)(value)
    for entity in found:
        if type(entity) not in live:
            raise InputError(
                f"{program.definition.name} has no {type(entity).__name__}",
                help=f"its entities: {', '.join(k.__name__ for k in live) or 'none'}",
            )
        live[type(entity)][entity] = None
    for kind, members in live.items():
        for number in range(len(kind.member_names)):
            members[kind(number)] = None
        _refuse_disorder(kind, list(members))
    return {kind: list(members) for kind, members in live.items()}


def _refuse_disorder(kind: type[Entity], members: list[Entity]) -> None:
    """Members that stand in an order are its numbers: only the last comes or goes."""
    if kind.is_ordered and {e.index for e in members} != set(range(len(members))):
        raise InputError(
            f"the members of {kind.__name__} stand in an order: {', '.join(map(str, members))}",
            help=f"they are {kind.__name__}(0), {kind.__name__}(1), …: only the last can come or go",
        )


def _wrong_arguments(action: Action) -> InputError:
    wanted = ", ".join(p.name for p in action.params) or "no arguments"
    return InputError(f"`{action.name}`: wrong arguments", help=f"{action.name} takes {wanted}")
