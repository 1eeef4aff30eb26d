"""Constants that a trace begins with: what it observes chooses among initial states that are too many to list."""

from collections.abc import Mapping

import pytest

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Machine,
    NumberVar,
    Term,
    action,
    constant,
    every,
    initially,
    number,
    one_of,
    per,
    require,
    set_of,
)
from stagewright.spec.define import define
from stagewright.spec.scope import scope_of
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.automaton.subset_automaton import DEAD, START, UNDECIDED, Determinised
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.events.symbols import Symbol


class Shard(Entity, scope=2):
    """Where a tablet is."""


class Tablet(Entity, scope=2):
    """A part of a table."""


class Placed(Machine):
    """Tablets lie on shards, up to so many are worked on at once."""

    shard = constant(per(Tablet, one_of(Shard, init=ANY)))
    most: NumberVar = constant(number(0, 2, init=ANY))
    busy = set_of(Shard)
    begun: NumberVar = number(0, 2)

    @action
    def begin(self, t: Term[Tablet], s: Term[Shard]) -> None:
        """A shard works on a tablet of its own."""
        require(self.shard[t] == s, "it is there")
        require(self.begun < self.most, "fewer than so many")
        self.busy.add(s)
        self.begun = self.begun + 1


class Balanced(Placed):
    """The same, with a condition on where tablets may lie."""

    @initially
    def not_all_on_one(self) -> Bool:
        """The first tablet's shard is not that of all others."""
        return ~every(self.shard[t] == self.shard[u] for t in Tablet for u in Tablet)


MANY = {"Tablet": 14, "Shard": 9}
PLACES = {f"shard[tablet{n}]": f"shard{n % 9}" for n in range(14)}
HIDDEN = Recording(HiddenSteps(frozenset({"begin"})))


def after(
    machine: type[Machine], *events: Mapping[str, object], recording: Recording | None = None
) -> tuple[Determinised, int]:
    definition = define(machine)
    source = automaton(definition, scope_of(definition, MANY), recording, max_states=5_000)
    running, number = Determinised(source), START
    for event in events:
        given: Mapping[str, object] = event.get("params", {})  # type: ignore[assignment]
        seen: Mapping[str, object] = event.get("observed", {})  # type: ignore[assignment]
        name = str(event["action"]) if "action" in event else None
        number = running.advance(number, Symbol(name, given, seen).text)
    return running, number


def begin(tablet: int, shard: int) -> dict[str, object]:
    return {"action": "begin", "params": {"t": f"tablet{tablet}", "s": f"shard{shard}"}}


@pytest.mark.parametrize("machine", [Placed, Balanced])
@pytest.mark.parametrize("most", [2, 7])
@pytest.mark.parametrize("recording", [None, HIDDEN])
def test_the_first_event_chooses_where_a_trace_begins(
    machine: type[Machine], most: int, recording: Recording | None
) -> None:
    first = {"observed": {**PLACES, "most": most}}
    steps = [begin(n, n) for n in range(most)]
    running, number = after(machine, first, *steps, recording=recording)
    assert running.is_live(number)
    assert after(machine, first, *steps, begin(0, 0))[1] == DEAD, "so many are worked on"
    assert after(machine, first, begin(0, 1))[1] == DEAD, "it is on another shard"


def test_what_is_not_observed_is_undecided() -> None:
    assert after(Placed, {"observed": {"most": 2}})[1] == UNDECIDED
    running, number = after(Placed, {"observed": dict([*PLACES.items()][1:])})
    assert running.is_live(number), "few are left"
    assert len(running.sets[number]) == 9 * 3


def test_no_trace_begins_where_no_run_does() -> None:
    alone = dict.fromkeys(PLACES, "shard3")
    assert after(Balanced, {"observed": {**alone, "most": 1}})[1] == DEAD
    assert after(Placed, {"observed": {**PLACES, "most": 1, "begun": 1}})[1] == DEAD
    assert after(Placed, {"observed": {**PLACES, "most": 1, "begun": 7}})[1] == DEAD
