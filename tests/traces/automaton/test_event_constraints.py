"""What is none of a machine's symbols is refused, with what it could be."""

from tests.models.lease import LeaseTable

from stagewright.spec.define import define
from stagewright.traces.automaton.event_constraints import Alphabet, _listed
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.events.symbols import Symbol
from stagewright.traces.options import unbounded_scope


def test_a_value_that_cannot_be_is_reported_with_those_that_can() -> None:
    definition = define(LeaseTable)
    alphabet = Alphabet(automaton(definition, unbounded_scope(definition)))
    parameter = alphabet.constraint(Symbol("acquire", {"n": "node9"}, {}))
    assert (
        parameter == 'parameter `n` of `acquire` cannot be "node9", only "node0", "node1", "node2"'
    )
    epoch = alphabet.constraint(Symbol(None, {}, {"epoch": 1.0}))
    assert isinstance(epoch, str)
    assert epoch == "`epoch` cannot be 1.0, only whole numbers from 0 on"


def test_numbers_are_listed_in_their_order() -> None:
    assert _listed(["1", "10", "-1", "0", "-10", "2"]) == "-10, -1, 0, 1, 2, 10"


def test_a_name_that_is_unknown_is_reported_with_those_that_are_known() -> None:
    definition = define(LeaseTable)
    alphabet = Alphabet(automaton(definition, unbounded_scope(definition)))
    action = alphabet.constraint(Symbol("aquire", {}, {}))
    assert isinstance(action, str)
    assert action.startswith("LeaseTable has no action `aquire`, only ")
    assert "acquire" in action.partition("only")[2]
    parameter = alphabet.constraint(Symbol("acquire", {"node": "node0"}, {}))
    assert parameter == "action `acquire` has no parameter `node`, only n"


def test_what_has_parts_is_told_to_be_observed_by_them() -> None:
    definition = define(LeaseTable)
    alphabet = Alphabet(automaton(definition, unbounded_scope(definition)))
    whole = alphabet.constraint(Symbol(None, {}, {"held": {}}))
    assert isinstance(whole, str)
