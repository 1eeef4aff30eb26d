"""Ground models made by chance, with states of every width."""

import random

from stagewright.spec.definition import Action, Definition
from stagewright.spec.grounding.ground import (
    Builder,
    Cell,
    GroundModel,
    GroundNode,
    GroundRequirement,
    GroundStep,
)
from stagewright.spec.nodes import TRUE
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import BoolSort, IntSort
from stagewright.spec.values import FrozenMap

SIZES = (1, 2, 3, 5, 130, 300, 1 << 20, 1 << 40)
NARROW_SIZES = (1, 2, 3, 4, 5)


def model_of(
    cells: list[Cell], builder: Builder, steps: list[GroundStep], state: tuple[int, ...]
) -> GroundModel:
    actions = tuple(dict.fromkeys(step.action for step in steps))
    definition = Definition("Random", "", "", (), (), (), actions, (), TRUE, ())
    scope = Scope(FrozenMap({}), FrozenMap({}))
    return GroundModel(
        definition,
        scope,
        tuple(cells),
        (state,),
        tuple(steps),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        builder.true,
        builder,
    )


class Maker:
    """Makes a model by chance: from a seed, since drawing each node by itself is slow."""

    def __init__(self, seed: int, *, narrow: bool = False) -> None:
        """`narrow`: so few values that a search can end."""
        self.chance = random.Random(seed)
        self.sizes = NARROW_SIZES if narrow else SIZES
        self.cells = [self.cell(i) for i in range(self.chance.randint(1, 7))]
        self.builder = Builder((c.low, c.high, isinstance(c.sort, BoolSort)) for c in self.cells)

    def cell(self, index: int) -> Cell:
        if self.chance.random() < 0.5:
            return Cell(index, f"c{index}", f"c{index}", (), BoolSort(), 0, 2)
        size = self.chance.choice(self.sizes)
        low = self.chance.randint(-200, 5)
        sort = IntSort(low, low + size - 1)
        return Cell(index, f"c{index}", f"c{index}", (), sort, low, size)

    def some_cells(self) -> list[int]:
        every = range(len(self.cells))
        return self.chance.sample(every, self.chance.randint(0, len(self.cells)))

    def state(self) -> tuple[int, ...]:
        return tuple(self.chance.randint(c.low, c.high) for c in self.cells)

    def leaf(self, *, boolean: bool, new: bool) -> GroundNode:
        fitting = [c for c in self.cells if isinstance(c.sort, BoolSort) is boolean]
        if fitting and self.chance.randint(0, 3):
            chosen = self.chance.choice(fitting)
            return self.builder.cell(chosen.index, new=new and self.chance.random() < 0.5)
        value = self.chance.randint(0, 1) if boolean else self.chance.randint(-5, 300)
        return self.builder.const(value, boolean=boolean)

    def number(self, depth: int, *, new: bool = False) -> GroundNode:
        b, pick = self.builder, self.chance.randint(0, 7) if depth else 0
        match pick:
            case 1:
                return b.add(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 2:
                return b.sub(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 3:
                condition = self.condition(depth - 1, new=new)
                then, otherwise = self.number(depth - 1, new=new), self.number(depth - 1, new=new)
                return b.if_(condition, then, otherwise)
            case 4:
                values = (self.chance.randint(-9, 999), self.chance.randint(-9, 999))
                return b.table(values, self.condition(depth - 1, new=new), boolean=False)
            case 5:  # a flag is a number, too
                return b.add(self.condition(depth - 1, new=new), self.number(depth - 1, new=new))
            case 6:
                make = self.chance.choice((b.min_, b.max_))
                number = make(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
                return b.mul(number, b.const(self.chance.randint(-3, 3)))
            case 7:
                make = self.chance.choice((b.div, b.mod))
                return make(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case _:
                return self.leaf(boolean=False, new=new)

    def condition(self, depth: int, *, new: bool = False) -> GroundNode:
        b, pick = self.builder, self.chance.randint(0, 7) if depth else 0
        match pick:
            case 1:
                return b.not_(self.condition(depth - 1, new=new))
            case 2:
                return b.and_([self.condition(depth - 1, new=new) for _ in range(3)])
            case 3:
                return b.or_([self.condition(depth - 1, new=new) for _ in range(3)])
            case 4:
                return b.eq(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 5:
                return b.lt(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 6:
                return b.le(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 7:
                index = [c for c in self.cells if c.low >= 0 and c.size <= 5]
                if not index:
                    return self.leaf(boolean=True, new=new)
                cell = self.chance.choice(index)
                values = tuple(self.chance.randint(0, 1) for _ in range(cell.high + 1))
                return b.table(values, b.cell(cell.index), boolean=True)
            case _:
                return self.leaf(boolean=True, new=new)

    def step(self, index: int) -> GroundStep:
        b = self.builder
        needs = [self.condition(2) for _ in range(self.chance.randint(0, 3))]
        updates: dict[int, GroundNode] = {}
        overflows: list[GroundNode] = []
        for cell in self.some_cells():
            kept = self.cells[cell]
            node = self.condition(2) if isinstance(kept.sort, BoolSort) else self.number(2)
            updates[cell] = node
            if node.low < kept.low or node.high > kept.high:
                above, below = b.lt(b.const(kept.high), node), b.lt(node, b.const(kept.low))
                overflows.append(b.or_((above, below)))
        named = tuple(GroundRequirement(f"need {i}", n) for i, n in enumerate(needs))
        action = Action(f"act{self.chance.randint(0, 1)}", (), (), ())
        return GroundStep(index, action, (), named, b.and_(needs), updates, b.or_(overflows))
