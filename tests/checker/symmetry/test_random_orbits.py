"""On random machines: what is called symmetric is so, orbits are counted right, and verdicts are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, Phase, assume, given, settings
from tests.checker.symmetry.by_hand import (
    Compared,
    Ints,
    Renamed,
    all_permutations,
    orbits,
    unnamed,
)
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.thorough import examples

from stagewright.checker.symmetry.orbits import orbit_sizes
from stagewright.checker.symmetry.permutations.motion import moved
from stagewright.checker.tla.vocabulary import nodes_of
from stagewright.spec.definition import Action, Definition, Requirement
from stagewright.spec.entities import Entity
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.nodes import BOOL, Apply, Bound, Literal, Op
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EntitySort, entities_of

PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
MOST_STATES = 120


def grounded(machine: RandomMachine) -> Compared:
    try:
        model = ground(machine.definition, machine.scope)
    except ScopeError:
        assume(False)
        raise
    compared = Compared(model)
    assume(several_alike(machine.scope))
    return compared


def several_alike(scope: Scope) -> set[type[Entity]]:
    """The entities of which at least two members have neither an order nor a name."""
    return {kind for kind in scope.sizes if not kind.is_ordered and len(unnamed(kind, scope)) > 1}


def explored(machine: RandomMachine) -> Explored:
    try:
        return Explored(machine, MOST_STATES)
    except TooLargeError:
        assume(False)
        raise


@settings(max_examples=examples(60), suppress_health_check=PATIENT)
@given(machine=machines())
def test_every_entity_sort_is_symmetric_and_the_machine_does_the_same_to_renamed_states(
    machine: RandomMachine,
) -> None:
    compared = grounded(machine)
    wanted = several_alike(machine.scope) - of_lacking_elements(machine.definition)
    assert wanted <= {group.kind for group in compared.symmetry.groups}
    assert_closed(compared, explored(machine))


def assert_closed(compared: Compared, found: Explored) -> None:
    """The interpreter's whole graph, renamed by any permutation, is the graph again."""
    edges, initial = set(found.edges), set(found.initial)
    for permutation in all_permutations(compared.symmetry):
        rename = Renamed(compared.model.scope, compared.symmetry, permutation)
        assert {rename(state) for state in initial} == initial
        renamed = {
            (rename(s), replace(step, arguments=rename(step.arguments)), rename(t))
            for s, step, t in edges
        }
        assert renamed == edges
        for state in found.states:
            image = compared.model.encode(rename(state))
            assert moved(compared.symmetry, permutation, compared.model.encode(state)) == image


@settings(max_examples=examples(100), suppress_health_check=PATIENT)
@given(machine=machines())
def test_orbits_are_counted_right_and_violations_are_as_near(machine: RandomMachine) -> None:
    compared = grounded(machine)
    assume(compared.full.states <= MOST_STATES)
    states: list[Ints] = compared.states(compared.full)
    split = orbits(compared.model, compared.symmetry, set(states))
    packed = compared.engine.layout.pack(states)
    forms = dict(zip(states, map(tuple, compared.engine.canonical(packed).T.tolist()), strict=True))
    assert [len({forms[s] for s in orbit}) for orbit in split] == [1] * len(split)
    assert len(set(forms.values())) == len(split) == compared.reduced.states
    size_of = {state: len(orbit) for orbit in split for state in orbit}
    sizes = orbit_sizes(compared.engine.canonical, compared.reduced.words)
    assert sizes == [size_of[s] for s in compared.states(compared.reduced)]
    assert compared.depths(compared.reduced) == compared.depths(compared.full)
    assert compared.reduced.depth == compared.full.depth


def of_lacking_elements(definition: Definition) -> set[type[Entity]]:
    """The entities whose first member stands for the element that a sequence lacks."""
    items = (n for n in nodes_of(definition) if isinstance(n, Apply) and n.op is Op.ITEM)
    return {kind for item in items for kind in entities_of(item.sort)}


def singling_out(definition: Definition, scope: Scope) -> Iterator[Definition]:
    """The definition with one entity parameter of one action held to the first member."""
    for action in definition.actions:
        for param in action.params:
            if isinstance(param.sort, EntitySort) and param.sort.kind in several_alike(scope):
                held = _held(action, param, scope)
                actions = tuple(held if a is action else a for a in definition.actions)
                yield replace(definition, actions=actions)


def _held(action: Action, param: Bound, scope: Scope) -> Action:
    assert isinstance(param.sort, EntitySort)
    first = Literal(unnamed(param.sort.kind, scope)[0], param.sort)
    more = Requirement("the first only", Apply(Op.EQ, (param, first), BOOL))
    return replace(action, requirements=(*action.requirements, more))


@settings(max_examples=25, suppress_health_check=PATIENT, phases=[Phase.generate])
@given(machine=machines())
def test_what_is_called_symmetric_where_a_member_is_named_is_symmetric(
    machine: RandomMachine,
) -> None:
    assume(several_alike(machine.scope))
    for definition in singling_out(machine.definition, machine.scope):
        named = RandomMachine(definition, machine.scope)
        compared = grounded(named)
        assert_closed(compared, explored(named))
        assert refused_or_never_enabled(compared.model, compared)


def refused_or_never_enabled(model: GroundModel, compared: Compared) -> bool:
    """Whether some sort with more than one member is refused, or no step has the added requirement."""
    held = [s for s in model.steps if any(r.name == "the first only" for r in s.requirements)]
    many = several_alike(model.scope)
    symmetric = {group.kind for group in compared.symmetry.groups}
    return not many <= symmetric or not held or all_never(compared, [s.index for s in held])


def all_never(compared: Compared, steps: list[int]) -> bool:
    """Whether none of the ground steps ever happens."""
    return not compared.full.fired[steps].any()
