"""Refinements: one machine seen as another, declared by a function that assigns the seen machine's variables.

    @refinement(from_start=False)
    def a_node(topology: TopologyControl, seen: TopologyNode, n: Term[Node]) -> None:
        seen.node_state = topology.node_state[n]

The body is traced as an action's is. Its first parameter is the concrete machine, the second the machine that it
is seen as; further ones pick one entity's view. `checker/refinement` decides over all reachable states that each
concrete step is a step of the seen machine, or changes nothing that is seen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast, get_type_hints

from stagewright.spec.declarations.actions import Member, MemberKind, local_names, member_of
from stagewright.spec.declarations.exercised import Choice, Scopes, named_choice, scopes
from stagewright.spec.declarations.mends import mend_in_body
from stagewright.spec.declarations.parameters import bounds_of
from stagewright.spec.define import define
from stagewright.spec.definition import Assignment, Definition, ExercisedAt
from stagewright.spec.derived.mentioned import entities_in
from stagewright.spec.errors import DefinitionError, StagewrightError
from stagewright.spec.machine import Machine, Many, Part, Root, members, profile_names
from stagewright.spec.nodes import Bound, Node, bounds_in, root_variable, variables_in
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.source import Source, here, of_function, of_traceback
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.symbolic import lift
from stagewright.spec.terms.terms import parameter
from stagewright.spec.terms.tracing import Alike, Tracing, current, tracing_of

F = TypeVar("F", bound=Callable[..., None])
ActionRef = Callable[..., None]
"""An action, as a class has it: `TabletMigration.read_new`."""
OneOf = ActionRef | None | tuple[ActionRef | None, ...]
Steps = OneOf | list[OneOf]
"""What a concrete action is: an action, one of several (a tuple), several in a row (a list), or no step (None)."""


@dataclass(frozen=True)
class SeenStep:
    """One of these actions of the seen machine; or, if it `may_stutter`, none."""

    actions: frozenset[str]
    may_stutter: bool


@dataclass(frozen=True)
class Mapped:
    """A refinement under one profile of the concrete machine: both definitions, and what is seen as terms.

    The nodes of the seen machine read its variables with `prefix` before their names.
    """

    refinement: Refinement
    concrete: Definition
    seen: Definition
    prefix: str
    params: tuple[Bound, ...]
    assignments: tuple[Assignment, ...]
    alike: tuple[Alike, ...]
    steps: Mapping[str, tuple[SeenStep, ...]]  # by concrete action: in a row
    anew: frozenset[str]  # concrete actions with which another entity may take the view's place
    # actions of the seen machine that the concrete one need not take
    beyond: frozenset[str] = frozenset()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Where it is decided if nobody says otherwise: at the scopes that it names, or the default one."""
        own = {b.name for b in self.concrete.budgets}
        return tuple(
            scope_of(
                self.concrete,
                dict(said.sizes),
                {name: n for name, n in said.budgets.items() if name in own},
            )
            for said in self.refinement.at
        ) or (scope_of(self.concrete),)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The variables of the seen machine of which nothing is said: some value must do."""
        given = {root_variable(a.place) for a in self.assignments}
        for pair in self.alike:
            given |= variables_in(pair.seen)
        return tuple(v.name for v in self.seen.variables if self.prefix + v.name not in given)


@dataclass(frozen=True, eq=False)
class Refinement:
    """A declared refinement; `mapped(profile)` traces it under a profile of the concrete machine."""

    name: str
    doc: str
    where: Source
    body: Callable[..., None]
    member: Member
    profiles: Mapping[str, str] | None
    steps: Mapping[ActionRef, Steps]
    anew: tuple[ActionRef, ...]
    from_start: bool  # False: the view may begin anywhere in a run of the seen machine
    at: tuple[ExercisedAt, ...] = ()
    exact: bool = False  # whatever the seen machine does, the concrete one does, too
    beyond: Mapping[str, tuple[ActionRef, ...]] = field(
        default_factory=dict[str, tuple[ActionRef, ...]]
    )
    seen_at: ExercisedAt | None = None

    @cached_property
    def machines(self) -> tuple[type[Machine], type[Machine]]:
        """The concrete machine and the one that it is seen as."""
        listed = list(inspect.signature(self.body).parameters)
        try:
            hints = get_type_hints(self.body, localns=dict(self.member.local_names))
        except Exception as error:  # noqa: BLE001 evaluating the user's annotations can raise anything
            raise self._wrong(
                f"its annotations cannot be resolved ({error})",
                "import the machines at run time, not only under TYPE_CHECKING",
            ) from None
        kinds = [hints.get(name) for name in listed[:2]]
        if len(kinds) < 2 or not all(isinstance(k, type) and issubclass(k, Machine) for k in kinds):
            raise self._wrong(
                "its first two parameters are not machines",
                f"write `def {self.name}(it: Concrete, seen: Abstract) -> None`, each a subclass of Machine",
            )
        concrete, seen = kinds
        return cast("type[Machine]", concrete), cast("type[Machine]", seen)

    @property
    def concrete(self) -> type[Machine]:
        return self.machines[0]

    @property
    def seen(self) -> type[Machine]:
        return self.machines[1]

    @cached_property
    def covered(self) -> Mapping[str, str]:
        """For each profile of the concrete machine that it speaks of, the one of the seen machine.

        Raises:
            DefinitionError: `profiles` names one that there is not, or no profile has a counterpart.
        """
        own, others = profile_names(self.concrete) or [""], profile_names(self.seen) or [""]
        if self.profiles is None:
            found = {p: p if p in others else "" for p in own if p in others or others == [""]}
            if not found:
                raise self._wrong(
                    f"no profile of {self.concrete.__name__} is called as one of {self.seen.__name__}",
                    f"write `profiles={{{own[-1]!r}: {others[-1]!r}}}`: for each profile of "
                    f"{self.concrete.__name__} the one that it is seen under",
                )
            return found
        for side, names, machine in (
            (self.profiles.keys(), own, self.concrete),
            (self.profiles.values(), others, self.seen),
        ):
            for name in side:
                if name not in names:
                    known = ", ".join(n for n in names if n) or "none at all"
                    raise self._wrong(
                        f"`profiles` names `{name}`, which {machine.__name__} does not have",
                        f"it has: {known}",
                    )
        if not self.profiles:
            raise self._wrong("`profiles` is empty", "leave it out, or name a profile")
        return {p: self.profiles[p] for p in own if p in self.profiles}

    def mapped(self, profile: str = "") -> Mapped:
        """The refinement under a profile of the concrete machine (by default the newest that it covers).

        Raises:
            DefinitionError: the mapping cannot mean what it says.
        """
        profile = profile or list(self.covered)[-1]
        if profile not in self.covered:
            raise self._wrong(
                f"it says nothing of {self.concrete.__name__} under `{profile}`",
                f"it covers: {', '.join(self.covered)}",
            )
        listed = list(inspect.signature(self.body).parameters)
        prefix = f"{listed[1]}."
        if isinstance(getattr(self.concrete, listed[1], None), Part | Many):
            raise self._wrong(
                f"{self.concrete.__name__} has a part `{listed[1]}`, too",
                "call the second parameter something else",
            )
        concrete = define(self.concrete, profile)
        seen = define(self.seen, self.covered[profile])
        tracing, bounds = self._traced(profile, prefix)
        self._check(tracing, bounds, prefix)
        return Mapped(
            self,
            concrete,
            seen,
            prefix,
            bounds,
            tuple(tracing.assignments),
            tuple(tracing.alike),
            self._steps(),
            frozenset(n for a in self.anew for n in self._concrete_names(a, "anew")),
            self._beyond(profile),
        )

    def _traced(self, profile: str, prefix: str) -> tuple[Tracing, tuple[Bound, ...]]:
        try:
            with tracing_of(self.what, effects=True) as tracing:
                tracing.maps = prefix
                bounds = tuple(bounds_of(self.member, tracing.serials))
                tracing.names += [b.name for b in bounds]
                concrete = self.concrete(profile, Root())
                seen = self.seen(self.covered[profile], Root(prefix=prefix))
                result = self.body(concrete, seen, *map(parameter, bounds))  # type: ignore[func-returns-value]
        except StagewrightError:
            raise
        except Exception as error:
            raise DefinitionError(
                f"{self.what} fails while it is traced: {type(error).__name__}: {error}",
                where=of_traceback(error.__traceback__, self.where.file) or self.where,
                help=mend_in_body(error),
            ) from error
        if result is not None:
            raise self._wrong("it returns a value", "assign the seen machine's variables instead")
        return tracing, bounds

    def _check(self, tracing: Tracing, bounds: tuple[Bound, ...], prefix: str) -> None:
        """The body says what is seen of the concrete machine, and nothing else."""
        if tracing.requirements:
            raise DefinitionError(
                f"{self.what} requires something",
                where=tracing.requirements[0].where or self.where,
                help="it holds in every state: what is known of a hidden variable is "
                "`alike(condition on the seen machine, condition on the concrete one)`",
            )
        if tracing.called:
            raise self._wrong(
                f"it calls the action `{min(tracing.called)}`",
                "name actions in `steps`: the body only says what each state looks like",
            )
        if not tracing.assignments and not tracing.alike:
            raise self._wrong(
                "it says nothing of the seen machine", "assign its variables, or write `alike(…)`"
            )
        self._check_entities(tracing, bounds)
        used: set[Bound] = set()
        for said in tracing.assignments:
            place = root_variable(said.place)
            if not place.startswith(prefix):
                raise DefinitionError(
                    f"`{place}` of {self.concrete.__name__} is assigned in {self.what}",
                    where=said.where or self.where,
                    help=f"only what is seen is assigned: `{prefix}variable = …`",
                )
            tracing.check_closed(said.value, {*bounds, *said.binders}, said.where or self.where)
            self._refuse_reads(said.value, prefix, said.where, seen=False)
            used |= bounds_in(said.value) | bounds_in(said.place)
        for pair in tracing.alike:
            for node, seen in ((pair.seen, True), (pair.concrete, False)):
                tracing.check_closed(node, {*bounds, *pair.binders}, pair.where)
                self._refuse_reads(node, prefix, pair.where, seen=seen)
                used |= bounds_in(node)
        for bound in bounds:
            if bound not in used:
                raise DefinitionError(
                    f"parameter `{bound.name}` of {self.what} is never used",
                    where=bound.where or self.where,
                    help="every value of it would show the same: use it, or remove it",
                )

    def _check_entities(self, tracing: Tracing, bounds: tuple[Bound, ...]) -> None:
        """What is looped over, or is a parameter, has members where the concrete machine has them."""
        nodes = [said.value for said in tracing.assignments]
        nodes += [pair.concrete for pair in tracing.alike]
        mentioned = entities_in((), (), (), [*nodes, *bounds])
        for kind in mentioned:
            if kind not in define(self.concrete, list(self.covered)[-1]).entities:
                raise self._wrong(
                    f"it speaks of {kind.__name__}, of which {self.concrete.__name__} has none",
                    "take an entity sort that the concrete machine has",
                )

    def _refuse_reads(self, node: Node, prefix: str, where: Source | None, *, seen: bool) -> None:
        for name in sorted(variables_in(node)):
            if name.startswith(prefix) is not seen:
                other = self.concrete if seen else self.seen
                raise DefinitionError(
                    f"`{name.removeprefix(prefix)}` of {other.__name__} is read in {self.what} where "
                    f"only {(self.seen if seen else self.concrete).__name__} may be",
                    where=where or self.where,
                    help="what is assigned, and the second condition of `alike`, is said of the concrete "
                    "machine; the first condition of `alike` of the seen one",
                )

    def _steps(self) -> Mapping[str, tuple[SeenStep, ...]]:
        found: dict[str, tuple[SeenStep, ...]] = {}
        for action, given in self.steps.items():
            row = cast("Sequence[OneOf]", given if isinstance(given, list) else [given])
            steps = tuple(self._seen_step(one) for one in row)
            if not steps:
                raise self._wrong(
                    "`steps` gives an empty list", "an action that is no step is `action: None`"
                )
            found |= dict.fromkeys(self._concrete_names(action, "steps"), steps)
        return found

    def _seen_step(self, given: OneOf) -> SeenStep:
        choices = (given,) if given is None or callable(given) else given
        names = {n for a in choices if a is not None for n in self._names(self.seen, a, "steps")}
        return SeenStep(frozenset(names), None in choices or not choices)

    def _beyond(self, profile: str) -> frozenset[str]:
        for name in self.beyond:
            if name not in self.covered:
                raise self._wrong(
                    f"`beyond` names `{name}`, under which nothing is declared",
                    f"it covers: {', '.join(self.covered)}",
                )
        actions = self.beyond.get(profile, ())
        return frozenset(n for a in actions for n in self._names(self.seen, a, "beyond"))

    def _concrete_names(self, action: ActionRef, where: str) -> tuple[str, ...]:
        return self._names(self.concrete, action, where)

    def _names(self, machine: type[Machine], action: ActionRef, where: str) -> tuple[str, ...]:
        """What an action is called in a machine: also one of its parts', in each of them."""
        found = tuple(action_names(machine, action))
        if not found:
            called = getattr(action, "__qualname__", repr(action))
            raise self._wrong(
                f"`{where}` names {called}, which is not an action of {machine.__name__}",
                f"write `{machine.__name__}.some_action`, without calling it",
            )
        return found

    @property
    def what(self) -> str:
        """The refinement as error texts name it."""
        return f"refinement `{self.name}`"

    def _wrong(self, problem: str, mend: str) -> DefinitionError:
        return DefinitionError(f"{self.what}: {problem}", where=self.where, help=mend)


def action_names(machine: type[Machine], action: ActionRef, prefix: str = "") -> list[str]:
    """The names under which an action belongs to a machine, or to the parts of a system."""
    member, found = member_of(action), list[str]()
    if member is None or member.kind is not MemberKind.ACTION:
        return found
    if getattr(machine, member.name, None) is action:
        found.append(prefix + member.name)
    for name, inner in members(machine).items():
        if isinstance(inner, Part | Many):
            below = cast("Part[Machine]", inner).machine
            found += action_names(below, action, f"{prefix}{name}.")
    return found


def alike(seen: Bool, concrete: Bool) -> None:
    """In a refinement's body: a condition on the seen machine that holds exactly where the other one does.

    For a variable of which only a part is known: `alike(seen.session == Known.open, it.view[n].session)`.
    """
    where = here()
    tracing = current("alike(...)")
    if not tracing.maps:
        raise DefinitionError(
            f"alike(...) in {tracing.what}",
            where=where,
            help="it belongs into a function decorated with @refinement",
        )
    from stagewright.spec.nodes import BOOL

    conditions = [
        lift(given, BOOL, f"the {which} condition of alike(...)")
        for given, which in ((seen, "first"), (concrete, "second"))
    ]
    if any(loop.condition is not None for loop in tracing.loops):
        raise DefinitionError(
            "alike(...) inside of a loop over a set",
            where=where,
            help="loop over the whole sort, and say in both conditions who is meant",
        )
    binders = tuple(loop.bound for loop in tracing.loops)
    tracing.alike.append(Alike(conditions[0], conditions[1], binders, where))


def refinement(
    *,
    profiles: Mapping[str, str] | None = None,
    steps: Mapping[ActionRef, Steps] | None = None,
    anew: tuple[ActionRef, ...] = (),
    from_start: bool = True,
    at: tuple[Choice, ...] = (),
    seen_at: Choice | None = None,
) -> Callable[[Callable[..., None]], Refinement]:
    """Declare that a machine is seen as another one, by a function that assigns the seen machine's variables.

    What it does not assign is hidden: some value must do. A concrete step is a step of the seen machine, or
    changes nothing that is seen.

    Args:
        profiles: for each profile of the concrete machine the one of the seen machine; by default those of
            one name, or the only one.
        steps: what a concrete action is, where that is not just one step or none: an action of the seen
            machine, a tuple (one of), a list (in a row, at once), None (no step). If the action has an
            argument of the sort of one of the body's parameters, only the view of that one is meant.
        anew: concrete actions with which another entity may take the view's place: it may start again.
        from_start: False if the view may begin anywhere in a run of the seen machine, as a log's does.
        at: the scopes at which it is decided, each by what differs from the default one: `({writes: 0},)`.
        seen_at: how many of its own entities the seen machine has, and how often a budget is spent, where that
            is not without bound: less than it could do, so that it is searched sooner.
    """
    names, sized = local_names(), scopes(seen_at or {})
    made = _declared(names, scopes(*at), profiles, steps, anew, from_start=from_start)
    return lambda body: replace(made(body), seen_at=named_choice(sized.choices[0], sized.where))


def projection(
    *,
    beyond: Mapping[str, tuple[ActionRef, ...]] | None = None,
    profiles: Mapping[str, str] | None = None,
    steps: Mapping[ActionRef, Steps] | None = None,
    anew: tuple[ActionRef, ...] = (),
    from_start: bool = True,
    at: tuple[Choice, ...] = (),
) -> Callable[[Callable[..., None]], Refinement]:
    """Declare a refinement that is exact: whatever the seen machine does, the concrete one does somewhere, too.

    So the seen machine's steps are the quotient of the concrete machine's, those at all of the scopes of `at`
    together. `beyond` names, by profile of the concrete machine, actions of the seen one that it need not take:
    what it does not describe. An action that is named needlessly, all of whose steps are taken, is refused.
    """
    names = local_names()
    made = _declared(names, scopes(*at), profiles, steps, anew, from_start=from_start)
    return lambda body: replace(made(body), exact=True, beyond=beyond or {})


def _declared(
    names: Mapping[str, object],
    at: Scopes,
    profiles: Mapping[str, str] | None,
    steps: Mapping[ActionRef, Steps] | None,
    anew: tuple[ActionRef, ...],
    *,
    from_start: bool,
) -> Callable[[Callable[..., None]], Refinement]:
    def decorate(body: Callable[..., None]) -> Refinement:
        where = of_function(body)
        member = Member(MemberKind.REFINEMENT, body.__name__, body, where, names)
        return Refinement(
            body.__name__,
            inspect.cleandoc(body.__doc__ or ""),
            where,
            body,
            member,
            profiles,
            steps or {},
            anew,
            from_start,
            tuple(named_choice(choice, at.where) for choice in at.choices),
        )

    return decorate


def refinements_in(module: object) -> list[Refinement]:
    """The refinements that a module declares or imports, in their order."""
    found = [v for v in vars(module).values() if isinstance(v, Refinement)]
    return list(dict.fromkeys(found))
