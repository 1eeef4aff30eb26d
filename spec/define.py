"""Trace a machine class, once and with symbolic values, into a `Definition`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from stagewright.spec.declarations.actions import (
    Allowed,
    Member,
    MemberKind,
    member_of,
    returned_value,
)
from stagewright.spec.declarations.body_errors import body_failed, check_used, wrong_result
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.declarations.equivalents import equivalents_of
from stagewright.spec.declarations.exercised import exercised_at, named_choice
from stagewright.spec.declarations.fairness import SharedFairness, fair_of
from stagewright.spec.declarations.forgotten import check_assigned, check_decorated, check_spent
from stagewright.spec.declarations.parameters import bounds_of
from stagewright.spec.declarations.restrictions import Restricted, independent_of, with_restrictions
from stagewright.spec.declarations.unexercised import unexercised_in
from stagewright.spec.declarations.variables import Var
from stagewright.spec.declarations.violations import violations_in
from stagewright.spec.definition import (
    Action,
    AnyValue,
    Assumption,
    Budget,
    Constraint,
    Definition,
    Fair,
    NotAsked,
    Property,
    PropertyKind,
    Reason,
    Variable,
)
from stagewright.spec.derived.accepting import accepting
from stagewright.spec.derived.marks import refuse_steering
from stagewright.spec.derived.mentioned import entities_in
from stagewright.spec.errors import (
    DefinitionError,
    ScopeError,
    StagewrightError,
    TracingError,
    UnusedError,
    VariableError,
)
from stagewright.spec.machine import (
    Machine,
    Many,
    Part,
    Profile,
    Profiles,
    Root,
    alone_in,
    key_names,
    members,
    profile_names,
)
from stagewright.spec.nodes import (
    BOOL,
    FALSE,
    TRUE,
    Apply,
    Bound,
    Node,
    Op,
    Read,
    Select,
    bounds_in,
    conjunction,
    for_all,
)
from stagewright.spec.sorts import EntitySort, EnumSort, IntSort, MapSort, Sort
from stagewright.spec.source import Source, file_of, of_class
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.symbolic import lift
from stagewright.spec.terms.temporal import Eventually, LeadsTo, returned_node
from stagewright.spec.terms.terms import parameter
from stagewright.spec.terms.tracing import NotInProfileError, Tracing, tracing_of
from stagewright.spec.values import Value

_PROPERTY_KINDS = {
    MemberKind.INVARIANT: PropertyKind.INVARIANT,
    MemberKind.STEP_PROPERTY: PropertyKind.STEP,
    MemberKind.ALWAYS_REACHABLE: PropertyKind.REACHABLE,
    MemberKind.LIVENESS: PropertyKind.LEADS_TO,
    MemberKind.SOMETIMES: PropertyKind.SOMETIMES,
    MemberKind.ACCEPTS: PropertyKind.ACCEPTS,
}


def define(machine: type[Machine], profile: str = "") -> Definition:
    """The definition of a machine under one of its profiles (by default the newest).

    Raises:
        DefinitionError: the machine cannot mean what it says; names file, line and mend.
        ScopeError: there is no such profile.
    """
    names = profile_names(machine)
    if profile and not names:
        raise ScopeError(
            f"{machine.__name__} has no profiles, so none is named `{profile}`",
            help="leave the profile out",
        )
    if profile not in {"", *names}:
        Profiles(tuple(Profile(n) for n in names)).named(profile)
    chosen = profile or (names[-1] if names else "")
    definition = _trace(machine, chosen)
    check_assigned(definition, (_trace(machine, name) for name in names))
    check_spent(machine, definition, (_trace(machine, name) for name in names))
    return definition


def defined_afresh(machine: type[Machine], profile: str) -> Definition:
    """The same, traced once more: a table that its bodies read has changed meanwhile."""
    return _trace.__wrapped__(machine, profile)


@lru_cache(maxsize=256)
def _trace(machine: type[Machine], profile: str) -> Definition:
    trace = _Trace(profile)
    trace.machine_at(machine, Root(), ())
    actions = tuple(a for key, a in trace.actions.items() if key not in trace.driven)
    refuse_steering(trace.variables, actions)
    promised = with_restrictions(trace.properties, trace.restricted, trace.machines)
    asked = accepting(promised, trace.actions, actions)
    properties = asked.properties
    final = conjunction(trace.finals) if trace.finals else FALSE
    if trace.deadlock_allowed is not None:
        final = TRUE
    spent = {a.budget for a in actions}
    return Definition(
        name=machine.__name__,
        doc=inspect.cleandoc(machine.__doc__ or "") if machine.__doc__ else "",
        profile=profile,
        variables=tuple(trace.variables),
        budgets=tuple(b for b in trace.budgets if b.name in spent),
        initially=tuple(trace.initially),
        actions=actions,
        properties=properties,
        final=final,
        entities=entities_in(
            trace.variables,
            actions,
            properties,
            [*trace.initially, *(c.condition for c in trace.constraints), final],
        ),
        file=file_of(machine),
        exercised_at=exercised_at(machine),
        checked_alone=alone_in(machine),
        assumed_initially=tuple(trace.assumed),
        equivalents=tuple(
            said
            for part, prefix in trace.machines
            for said in equivalents_of(part, prefix, trace.names)
        ),
        unexercised=unexercised_in(machine, trace.machines),
        known_violations=violations_in([(m, p, *_versions(m, profile)) for m, p in trace.machines]),
        constraints=tuple(trace.constraints),
        deadlock_allowed=trace.deadlock_allowed,
        not_asked=(*trace.left_out, *asked.not_asked),
    )


def _versions(machine: type[Machine], profile: str) -> tuple[str, list[str]]:
    """The profile of a part under this one of the whole, and all that it has."""
    known = profile_names(machine)
    return profile if profile in known else "".join(known[-1:]), known


@dataclass(frozen=True)
class _Key:
    """The key of a family of machines, as its actions' first parameter."""

    bound: Bound


class _Trace:
    """Collects the variables, actions and properties of a machine and its parts."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.variables: list[Variable] = []
        self.budgets: list[Budget] = []
        self.budget_depths: dict[str, int] = {}  # 0: the system's own; 1: of a part; …
        self.actions: dict[str, Action] = {}
        self.driven: set[str] = set()
        self.properties: list[Property] = []
        self.initially: list[Node] = []
        self.finals: list[Node] = []
        self.assumed: list[Assumption] = []
        self.constraints: list[Constraint] = []
        self.deadlock_allowed: Reason | None = None
        self.names: dict[Var[Any, Any], list[str]] = {}
        self.machines: list[tuple[type[Machine], str]] = []  # itself and its parts, with prefixes
        self.left_out: list[NotAsked] = []
        self.restricted: list[tuple[str, Restricted]] = []  # of the part so prefixed

    def machine_at(self, machine: type[Machine], root: Root, keys: tuple[_Key, ...]) -> None:
        known = profile_names(machine)
        profile = self.profile if self.profile in known else ""
        check_decorated(machine, Machine)
        this = machine(profile, root)
        self.machines.append((machine, root.prefix))
        found = members(machine)
        if not any(isinstance(m, Var | Part | Many) for m in found.values()):
            raise UnusedError(
                f"{machine.__name__} has no variables",
                where=of_class(machine),
                help="declare at least one: `stage = one_of(Stage, init=Stage.none)`",
            )
        for name, member in found.items():
            match member:
                case Var():
                    self._variable(cast("Var[object, object]", member), root, keys)
                case BudgetName():
                    self._budget(
                        Budget(name, member.default, member.doc, member.of_faults), machine, root
                    )
                case Part():
                    inner = replace(root, prefix=f"{root.prefix}{name}.")
                    self._declared(member, inner.prefix)
                    self.machine_at(member.machine, inner, keys)
                case Many():
                    self._family(member, name, root, keys)
                case Allowed() if not root.prefix:
                    self.deadlock_allowed = member.reason
                case _:
                    pass
        marks = [m for member in found.values() if (m := member_of(member)) is not None]
        for marked in marks:
            self._member(marked, this, root, keys)
        for shared in (m for m in found.values() if isinstance(m, SharedFairness)):
            if shared.all_actions:
                self._all_fair(shared, root, keys)
            elif not any(shared in marked.fair for marked in marks):
                raise DefinitionError(
                    f"{shared!r} is never used",
                    where=shared.where,
                    help=f"name it at the actions that share it: `@action(fair={shared.name})`",
                )

    def _all_fair(self, shared: SharedFairness, root: Root, keys: tuple[_Key, ...]) -> None:
        """All actions of a machine and its parts share a fairness, but those that spend a budget."""
        fair = Fair(shared.strength, tuple(k.bound for k in keys), root.prefix + shared.name)
        for name, action in self.actions.items():
            if name.startswith(root.prefix) and not action.spends:
                self.actions[name] = replace(action, fair=(*action.fair, fair))

    def _budget(self, budget: Budget, machine: type[Machine], root: Root) -> None:
        """Budgets of one name are one budget, also those of several parts; a system's own word counts."""
        depth = root.prefix.count(".")
        names = [b.name for b in self.budgets]
        if budget.name not in names:
            self.budgets.append(budget)
            self.budget_depths[budget.name] = depth
            return
        place, known = names.index(budget.name), self.budget_depths[budget.name]
        if depth < known:
            self.budgets[place] = budget
            self.budget_depths[budget.name] = depth
        elif depth == known and budget.default != self.budgets[place].default:
            raise VariableError(
                f"budget `{budget.name}` is {self.budgets[place].default} in one part of the system "
                f"and {budget.default} in {machine.__name__}",
                where=of_class(machine),
                help="budgets of one name are one budget: give them one default, or two names, or "
                "declare it in the system, whose word counts",
            )

    def _declared(self, part: Part[Any] | Many[Any, Any], prefix: str) -> None:
        """What a system says of a part: what stays out, and what is restricted."""
        self.driven |= {prefix + name for name in part.without}
        self.restricted += [(prefix, said) for said in part.restricts]

    def _family(self, many: Many[Any, Any], name: str, root: Root, keys: tuple[_Key, ...]) -> None:
        # Serials from -1 downwards: the keys stand outside of every body's own numbering.
        label = key_names([*(key.bound.sort for key in keys), many.sort])[-1]
        bound = Bound(label, many.sort, -1 - len(keys))
        inner = replace(root, prefix=f"{root.prefix}{name}.", keys=(*root.keys, (bound, many.sort)))
        self._declared(many, inner.prefix)
        self.machine_at(many.machine, inner, (*keys, _Key(bound)))

    def _variable(self, var: Var[Any, Any], root: Root, keys: tuple[_Key, ...]) -> None:
        sort = var.sort
        for key in reversed(keys):
            assert isinstance(key.bound.sort, EnumSort | EntitySort)
            sort = MapSort(key.bound.sort, sort)
        name = root.prefix + var.name
        self.names.setdefault(var, []).append(name)
        marks = var.constant, var.doc, var.where, var.kept, var.actor
        initial: Value | AnyValue = var.initial
        if var.by_key is not None:
            initial = AnyValue.ANY
            self.initially.append(self._by_key(var, name, sort, keys))
        self.variables.append(Variable(name, sort, initial, *marks))

    def _by_key(self, var: Var[Any, Any], name: str, sort: Sort, keys: tuple[_Key, ...]) -> Node:
        """That the variable starts, at every key, as its `init` says."""
        assert var.by_key is not None
        what = f"the initial value of `{name}`"
        with tracing_of(what, effects=False) as tracing:
            place: Node = Read(name, sort, where=var.where)
            bounds = [key.bound for key in keys]
            for key in bounds:
                place = _below(place, key, var.where)
            own: list[Bound] = []
            while isinstance(place.sort, MapSort):
                letter = "i" if isinstance(place.sort.key, IntSort) else str(place.sort.key)[0]
                own.append(
                    Bound(
                        f"{letter.lower()}{len(own) or ''}", place.sort.key, next(tracing.serials)
                    )
                )
                place = _below(place, own[-1], var.where)
            try:
                value = var.by_key(*(parameter(b) for b in own))
            except StagewrightError:
                raise
            except Exception as error:
                raise TracingError(
                    f"{what} fails while it is traced: {type(error).__name__}: {error}",
                    where=var.where,
                    help=f"`init` is a function of {len(own)} keys, which are symbolic",
                ) from error
            node = lift(value, place.sort, what, var.where)
        tracing.check_closed(node, {*own}, var.where)
        condition = Apply(Op.EQ, (place, node), BOOL, var.where)
        return for_all((*bounds, *own), condition)

    def _member(self, member: Member, this: Machine, root: Root, keys: tuple[_Key, ...]) -> None:
        what = member.what
        params = tuple(k.bound for k in keys)
        try:
            with tracing_of(what, effects=member.kind is MemberKind.ACTION) as tracing:
                tracing.calling.append(root.prefix + member.name)
                after = _after(member, this)
                own = tuple(bounds_of(member, tracing.serials))
                tracing.names += [b.name for b in (*params, *own)]
                result = member.body(this, *after, *(parameter(b) for b in own))
        except (StagewrightError, NotInProfileError) as error:
            if isinstance(error, NotInProfileError):
                return
            raise
        except Exception as error:
            raise body_failed(what, error, member) from error
        name = root.prefix + member.name
        if member.kind is not MemberKind.ACTION and name in self.driven:
            self.left_out.append(NotAsked(name, member.kind.words, "the system leaves it out"))
            return
        if member.kind is MemberKind.INDEPENDENT and root.prefix:
            self.left_out.append(NotAsked(name, member.kind.words, "it is asked of the part alone"))
            return
        if member.kind is MemberKind.ACTION:
            if result is not None:
                raise returned_value(member.name, member.where)
            self._action(member, name, tracing, params, own, type(this))
            return
        if member.kind is MemberKind.INDEPENDENT:
            own_members = members(type(this))
            self.properties.append(independent_of(member, result, own_members, self.machines))
            return
        tracing.check_closed(returned_node(result), {*params, *own}, member.where)
        self._condition(member, name, result, (*params, *own), own, what)

    def _action(
        self,
        member: Member,
        name: str,
        tracing: Tracing,
        params: tuple[Bound, ...],
        own: tuple[Bound, ...],
        machine: type[Machine],
    ) -> None:
        if not tracing.requirements and not tracing.assignments:
            raise UnusedError(
                f"{member.what} requires nothing and assigns nothing",
                where=member.where,
                help="write `require(condition, name)` and assign variables: `self.x = …`",
            )
        used: set[Bound] = set()
        for requirement in tracing.requirements:
            tracing.check_closed(
                requirement.condition, {*params, *own}, requirement.where or member.where
            )
            used |= bounds_in(requirement.condition)
        for assignment in tracing.assignments:
            allowed = {*params, *own, *assignment.binders}
            for node in (assignment.place, assignment.value):
                tracing.check_closed(node, allowed, assignment.where or member.where)
                used |= bounds_in(node)
        check_used(own, used, member)
        self.driven |= tracing.called
        prefix = name.removesuffix(member.name)
        declared = members(machine).values()
        fair = fair_of(member.fair, member.what, member.where, declared, prefix, params, own)
        self.actions[name] = Action(
            name,
            (*params, *own),
            tuple(tracing.requirements),
            tuple(tracing.assignments),
            member.doc,
            fair,
            None if member.budget is None else member.budget.name,
            member.actor,
            member.where,
            tuple(tracing.joined),
        )

    def _condition(
        self,
        member: Member,
        name: str,
        result: object,
        params: tuple[Bound, ...],
        own: tuple[Bound, ...],
        what: str,
    ) -> None:
        premise: Node | None = None
        if member.kind is MemberKind.LIVENESS:
            match result:
                case LeadsTo():
                    premise, condition = result.premise.node, result.conclusion.node
                    used = bounds_in(premise) | bounds_in(condition)
                case Eventually():
                    condition = result.condition.node
                    used = bounds_in(condition)
                case _:
                    mend = (
                        "`return leads_to(premise, conclusion)` or `return eventually(condition)`"
                    )
                    raise wrong_result(what, result, mend, member)
        else:
            if not isinstance(result, Bool):
                raise wrong_result(what, result, "`return` a condition on the state", member)
            condition = result.node
            used = bounds_in(condition)
        if member.kind is not MemberKind.ACCEPTS:  # there its action may be what uses a parameter
            check_used(own, used, member)
        match member.kind:
            case MemberKind.INITIALLY:
                self.initially.append(for_all(params, condition))
                if member.because:
                    self.assumed.append(
                        Assumption(name, member.because, (), self.initially[-1], member.where)
                    )
            case MemberKind.CONSTRAINT:
                closed = for_all(params, condition)
                self.constraints.append(Constraint(name, closed, member.doc, member.where))
            case MemberKind.FINAL:
                self.finals.append(for_all(params, condition))
            case kind:
                by_result = kind is MemberKind.LIVENESS and premise is None
                steps = kind is MemberKind.SOMETIMES and member.of_steps
                prefix = name.removesuffix(member.name)
                self.properties.append(
                    Property(
                        name,
                        PropertyKind.EVENTUALLY
                        if by_result
                        else PropertyKind.SOMETIMES_STEP
                        if steps
                        else _PROPERTY_KINDS[kind],
                        params,
                        condition,
                        premise,
                        member.doc,
                        member.where,
                        prefix + member.accepted.name if member.accepted is not None else "",
                        None if member.at is None else named_choice(member.at, member.where),
                        member.role,
                        member.citation,
                    )
                )


def _below(place: Node, key: Bound, where: Source) -> Node:
    assert isinstance(place.sort, MapSort)
    return Select(place, key, place.sort.value, where)


def _after(member: Member, this: Machine) -> tuple[Machine, ...]:
    """The machine in the new state, which a step property takes as its first argument."""
    if not member.of_steps:
        return ()
    return (type(this)(this.profile_name_(), replace(this.root_(), new=True)),)
