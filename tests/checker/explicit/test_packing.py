"""A packed state is what its cells say, however the states were given."""

from enum import Enum, auto

import numpy as np
import pytest

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.explicit.packing import layout_of
from stagewright.spec import (
    Entity,
    Machine,
    NumberVar,
    Term,
    action,
    flag,
    number,
    one_of,
    per,
    require,
)
from stagewright.spec.declarations.variables import ANY
from stagewright.spec.define import define
from stagewright.spec.errors import ExpressionError
from stagewright.spec.grounding.initial import Independent
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import scope_of


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


class Wide(Machine):
    """A few of very many values."""

    level: NumberVar = number(0, 2**62 - 1, init=2**62 - 3)

    @action
    def rise(self) -> None:
        """A little more."""
        require(self.level < 2**62 - 1, "there is room")
        self.level = self.level + 1


class Wider(Wide):
    """Its sum is beyond what a processor adds."""

    @action
    def fall(self) -> None:
        """To nothing."""
        require(self.level + self.level + self.level > 5, "there is much")
        self.level = 0


engines = pytest.mark.parametrize("engine", [EngineKind.NUMPY, EngineKind.NATIVE])


@engines
def test_a_number_of_very_many_values_costs_no_more_than_another(engine: EngineKind) -> None:
    definition = define(Wide)
    report = check(definition, scope_of(definition), engine=engine)
    assert (report.states, report.exhausted) == (3, True)


def test_sums_that_64_bits_do_not_hold_are_refused() -> None:
    with pytest.raises(ExpressionError, match="which does not fit in 64 bits") as caught:
        define(Wider)
    assert caught.value.where is not None
    assert caught.value.where.function == "fall"
    assert "narrower bounds" in caught.value.help
