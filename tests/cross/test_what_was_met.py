"""The random machines of a run are many, and between them they use all of the language."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from tests.cross.conftest import MACHINES
from tests.random_machines.definitions import count_all

from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import NO_DEADLOCK, Fairness, PropertyKind
from stagewright.spec.nodes import (
    Apply,
    Bound,
    Column,
    Field,
    Literal,
    Op,
    Quantified,
    Quantity,
    Read,
    Select,
)
from stagewright.spec.sorts import (
    BagSort,
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
)
from stagewright.spec.verdict import Outcome

SORTS = (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
)
NODES = (Apply, Bound, Column, Field, Literal, Quantified, Read, Select)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("random machines")]


@pytest.mark.thorough
def test_enough_machines_of_all_kinds_were_met(all_met: Any) -> None:
    assert len(all_met.machines) == MACHINES
    counts: Counter[object] = Counter()
    for found in all_met.machines.values():
        counts.update(count_all(found.machine.definition))
    wanted: list[object] = [*Op, *Quantity, *NODES, *Fairness, *PropertyKind, "loop", "shared"]
    wanted += [(Op.IF, sort) for sort in SORTS] + [(Read, sort) for sort in SORTS]
    wanted += [(Select, sort) for sort in SORTS] + [(Read, BagSort)]
    wanted += [(Column, s) for s in (BoolSort, EnumSort, IntSort, OptionalSort, SetSort)]
    wanted += product(Quantity, (BoolSort, EntitySort, EnumSort, IntSort, RecordSort))
    assert [thing for thing in wanted if counts[thing] < 5] == []


@pytest.mark.thorough
def test_most_machines_are_small_but_do_something(all_met: Any) -> None:
    sizes = [len(found.states) for found in all_met.machines.values()]
    assert sum(2 <= size <= 200 for size in sizes) > 350
    assert sum(size > 20 for size in sizes) > 50


@pytest.mark.thorough
def test_promises_of_every_kind_hold_and_break(met: Any) -> None:
    """Counted while the backends were compared; says nothing when this test runs alone."""
    if not met.outcomes:
        pytest.skip("no verdicts were compared in this run")
    kinds = [*(kind.value for kind in PropertyKind), NO_DEADLOCK, IN_BOUNDS]
    rare = [
        (kind, outcome.name)
        for kind, outcome in product(kinds, (Outcome.HOLDS, Outcome.VIOLATED))
        if met.outcomes[kind, outcome] < 15
    ]
    assert rare == []
