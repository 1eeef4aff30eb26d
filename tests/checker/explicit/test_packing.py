"""A packed state is what its cells say, however the states were given."""

from enum import Enum, auto

import numpy as np
import pytest

from stagewright.checker.explicit.packing import layout_of
from stagewright.spec import Entity, Machine, Term, action, flag, number, one_of, per
from stagewright.spec.define import define
from stagewright.spec.initial import Independent
from stagewright.spec.lowering import ground
from stagewright.spec.scope import scope_of
from stagewright.spec.variables import ANY


class Host(Entity, scope=2):
    """A host."""


class Colour(Enum):
    """Three, of which two bits are needed."""

    RED = auto()
    GREEN = auto()
    BLUE = auto()


class Free(Machine):
    """Nearly all of it may start as it likes."""

    colour = per(Host, one_of(Colour))
    level = per(Host, number(-2, 2, init=ANY))
    wide = per(Host, per(Host, number(3, 1_000)))
    lit = flag(ANY)

    @action
    def change(self, h: Term[Host]) -> None:
        """Everything changes."""
        self.colour[h] = Colour.RED
        self.level[h] = 0
        self.wide[h][h] = 4
        self.lit = ~self.lit


@pytest.mark.parametrize("hosts", [1, 3])
def test_states_that_are_not_listed_are_packed_like_those_that_are(hosts: int) -> None:
    definition = define(Free)
    model = ground(definition, scope_of(definition, {"host": hosts}))
    layout = layout_of(model.cells)
    assert layout.words == (2 if hosts == 3 else 1)
    assert isinstance(model.initial, Independent)
    assert len(model.initial) == (3 * 5) ** hosts * 2
    packed, listed = layout.pack(model.initial), layout.pack(tuple(model.initial))
    assert np.array_equal(packed, listed)
    states = [layout.unpack(packed, column) for column in range(packed.shape[1])]
    assert states == list(model.initial)
