"""Symmetric sorts are found, and what breaks a symmetry is named with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.checker.symmetry.by_hand import MODELS, Compared, model_of
from tests.checker.symmetry.machines import Peer, Server

from stagewright.checker.symmetry.groups import symmetry_of
from stagewright.checker.symmetry.permutations.closure import Answer, closure_of
from stagewright.checker.symmetry.permutations.detection import SortVerdict, detect
from stagewright.spec.definition import Action, Definition, Property, PropertyKind, Requirement
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.nodes import BOOL, Apply, Literal, Node, Op, Read, Select
from stagewright.spec.sorts import EntitySort, OptionalSort

HERE = Path(__file__).resolve().parent / "machines.py"
PEER = EntitySort(Peer)
FIRST = Literal(Peer(0), PEER)


def verdicts(model: GroundModel, branches: int | None = None) -> dict[str, SortVerdict]:
    found = detect(model) if branches is None else detect(model, branches)
    return {verdict.kind.__name__: verdict for verdict in found.sorts}


def line_of(text: str) -> int:
    """The number of the first line of the machines' file with a text in it."""
    lines = HERE.read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


@pytest.mark.parametrize(
    ("name", "sorts"),
    [
        ("two_phase_commit.py", {"Manager": True}),
        ("tablet_barrier.py", {"Tablet": True, "Node": False}),
        ("Gossip", {"Peer": False}),
        ("Market", {"Peer": False, "Item": True}),
        ("Amount", {"Peer": True}),
        ("Hoping", {"Server": True}),
    ],
)
def test_sorts_whose_members_are_treated_alike_are_symmetric(
    name: str, sorts: dict[str, bool]
) -> None:
    symmetry = detect(model_of(name)).symmetry
    assert {g.kind.__name__: g.by_sorting for g in symmetry.groups} == sorts


def test_a_member_named_in_a_requirement_breaks_the_symmetry() -> None:
    server = verdicts(model_of("Pool"))["Server"]
    assert not server.symmetric
    assert (
        server.reason == "requirement `the primary is full` of `fail_over` names `Server.primary`"
    )
    assert server.where is not None
    assert server.where.line == line_of("# the distinguished one")
    assert str(HERE) in str(server)


def test_a_column_breaks_the_symmetry() -> None:
    rack = verdicts(model_of("Racks"))["Rack"]
    assert not rack.symmetric
    assert rack.reason == "requirement `it is within reach` of `fill` reads a column of Rack"
    assert rack.where is not None
    assert rack.where.line == line_of("rack.height")


def test_an_initial_value_that_names_a_member_breaks_the_symmetry() -> None:
    server = verdicts(model_of("Starting"))["Server"]
    assert not server.symmetric
    assert server.reason == "the initial value of `active` names `Server.primary`"
    assert server.where is not None
    assert server.where.line == line_of("init=Server.primary")


def test_an_initial_condition_that_names_a_member_breaks_the_symmetry() -> None:
    server = verdicts(model_of("Chosen"))["Server"]
    assert not server.symmetric
    assert server.reason == "a condition on the initial states names `Server.primary`"
    assert server.where is not None
    assert server.where.line == line_of("self.picked[Server.primary]")


def test_an_invariant_that_singles_one_out_breaks_the_symmetry() -> None:
    server = verdicts(model_of("Watching"))["Server"]
    assert not server.symmetric
    assert server.reason == "invariant `primary_is_up` names `Server.primary`"


def test_dijkstras_ring_is_not_symmetric() -> None:
    found = detect(model_of("ewd840.py", profile="three"))
    assert found.symmetry.groups == ()
    (node,) = found.sorts
    assert not node.symmetric
    assert node.reason == "a condition on the initial states reads a column of Node"
    assert node.where is not None
    assert node.where.file == str(MODELS / "ewd840.py")


def test_a_sort_with_one_member_has_nothing_to_permute() -> None:
    tablet = verdicts(model_of("tablet_barrier.py", sizes={"tablet": 1, "node": 2}))["Tablet"]
    assert (tablet.symmetric, tablet.reason) == (False, "there is only one")


def test_a_sort_with_too_many_permutations_to_try_is_refused() -> None:
    model = model_of("Market", sizes={"peer": 8, "item": 2})
    assert not (peer := verdicts(model)["Peer"]).symmetric
    assert peer.reason == "its 40,320 permutations are too many to be tried"
    assert [g.kind.__name__ for g in detect(model).symmetry.groups] == ["Item"]


def test_many_members_are_no_trouble_where_sorting_is_enough() -> None:
    assert detect(model_of("Amount", sizes={"peer": 30})).symmetry.groups[0].by_sorting


# -- trees that the language's own words refuse to make ---------------------------------------------


def changed(name: str, change: Callable[[Definition], Definition]) -> GroundModel:
    model = model_of(name)
    return ground(change(model.definition), model.scope)


def requiring(condition: Callable[[Action], Node], name: str) -> Callable[[Definition], Definition]:
    def change(definition: Definition) -> Definition:
        action = definition.action(name)
        more = Requirement("an added one", condition(action))
        harder = replace(action, requirements=(*action.requirements, more))
        actions = tuple(harder if a is action else a for a in definition.actions)
        return replace(definition, actions=actions)

    return change


def stock(member: Node) -> Node:
    sort = model_of("Amount").definition.variable("stock").sort
    number = model_of("Amount").cells[0].sort
    return Select(Read("stock", sort), member, number)


def test_an_entity_named_in_a_requirement_breaks_the_symmetry() -> None:
    model = changed("Amount", requiring(lambda a: Apply(Op.EQ, (a.params[0], FIRST), BOOL), "use"))
    peer = verdicts(model)["Peer"]
    assert not peer.symmetric
    assert peer.reason == "requirement `an added one` of `use` names `peer0`"
    assert peer.where == model.definition.action("use").where


def test_a_requirement_on_the_cell_of_one_entity_breaks_the_symmetry() -> None:
    one = Literal(1, model_of("Amount").cells[0].sort)
    model = changed("Amount", requiring(lambda _: Apply(Op.LE, (one, stock(FIRST)), BOOL), "use"))
    assert not verdicts(model)["Peer"].symmetric


def test_the_ground_form_reports_what_breaks_it() -> None:
    model = changed("Amount", requiring(lambda a: Apply(Op.EQ, (a.params[0], FIRST), BOOL), "use"))
    closure = closure_of(model, symmetry_of(model.cells, model.scope, [Peer]))
    assert closure.answer is Answer.BROKEN
    assert closure.why == (
        "swapping peer0 and peer1 changes what `use(peer0)` does: there is no such step"
    )


def test_an_effect_that_one_member_alone_has_breaks_the_symmetry() -> None:
    model = model_of("Hoping")
    symmetry = symmetry_of(model.cells, model.scope, [Server])
    assert closure_of(model, symmetry).answer is Answer.CLOSED
    step = next(s for s in model.steps if s.action.name == "stop")
    idle = replace(step, updates={})
    steps = tuple(idle if s is step else s for s in model.steps)
    closure = closure_of(replace(model, steps=steps), symmetry)
    assert closure.answer is Answer.BROKEN
    assert closure.why == (
        "swapping primary and first changes what `stop(primary)` does: its effect on up[first]"
    )


def test_initial_states_that_are_not_closed_break_the_symmetry() -> None:
    model = model_of("Starting")
    closure = closure_of(model, symmetry_of(model.cells, model.scope, [Server]))
    assert closure.answer is Answer.BROKEN
    assert closure.why == (
        "swapping primary and first does not map the initial states to themselves"
    )
    anyone = tuple((active, 0, 0, 0) for active in range(3))
    freed = replace(model, initial=anyone)
    assert (
        closure_of(freed, symmetry_of(model.cells, model.scope, [Server])).answer is Answer.CLOSED
    )


def test_an_order_of_entities_breaks_the_symmetry() -> None:
    before = requiring(lambda a: Apply(Op.LE, (a.params[0], a.params[0]), BOOL), "use")
    assert verdicts(changed("Amount", before))["Peer"].symmetric  # always true: harmless
    found = changed("Amount", requiring(lambda a: Apply(Op.LT, (FIRST, a.params[0]), BOOL), "use"))
    assert not verdicts(found)["Peer"].symmetric


def test_a_state_that_is_final_for_one_entity_only_breaks_the_symmetry() -> None:
    none = Literal(0, model_of("Amount").cells[0].sort)
    empty = Apply(Op.EQ, (stock(FIRST), none), BOOL)
    peer = verdicts(changed("Amount", lambda d: replace(d, final=empty)))["Peer"]
    assert not peer.symmetric
    assert peer.reason == "what is final names `peer0`"


def test_a_promise_whose_instances_are_broken_one_by_one_may_hold_together() -> None:
    def change(definition: Definition) -> Definition:
        none = Literal(0, model_of("Amount").cells[0].sort)
        parts = tuple(Apply(Op.EQ, (stock(Literal(Peer(i), PEER)), none), BOOL) for i in range(3))
        all_empty = Property("all_empty", PropertyKind.INVARIANT, (), Apply(Op.AND, parts, BOOL))
        return replace(definition, properties=(all_empty,))

    assert verdicts(changed("Amount", change))["Peer"].symmetric


def test_where_expressions_are_too_large_the_definition_decides() -> None:
    gossip, pool = model_of("Gossip"), model_of("Pool")
    symmetry = symmetry_of(gossip.cells, gossip.scope, [Peer])
    assert closure_of(gossip, symmetry, branches=5).answer is Answer.UNDECIDED
    assert verdicts(gossip, branches=5)["Peer"].symmetric
    assert not verdicts(pool, branches=5)["Server"].symmetric
    # Named one by one: harmless, but nobody has looked.
    assert verdicts(model_of("Hoping"))["Server"].symmetric
    assert not verdicts(model_of("Hoping"), branches=5)["Server"].symmetric


def test_none_is_no_member() -> None:
    compared = Compared(model_of("Gossip"))
    cells = [c for c in compared.model.cells if isinstance(c.sort, OptionalSort)]
    assert len(cells) == 4
    for cell in cells:
        action = compared.symmetry.actions[cell.index]
        assert (action.value, action.first) == (0, 1)
        images = [compared.symmetry.renamed(cell.index, c, ((1, 2, 0),)) for c in range(4)]
        assert images == [0, 2, 3, 1]


def test_members_without_a_name_are_symmetric_beside_one_that_has_one() -> None:
    model = model_of("Court", sizes={"courtier": 4})
    found = detect(model)
    assert [(g.kind.__name__, g.size) for g in found.symmetry.groups] == [("Courtier", 3)]
    compared = Compared(model)
    assert compared.reduced.states < compared.full.states
    assert compared.depths(compared.reduced) == compared.depths(compared.full)


def test_an_ordered_sort_is_not_symmetric() -> None:
    seat = verdicts(model_of("Table"))["Seat"]
    assert (seat.symmetric, seat.reason) == (False, "its members stand in an order")
