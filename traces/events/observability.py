"""How a trace was recorded: which steps left no event, where it starts, and whether its end is marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap


@dataclass(frozen=True)
class HiddenSteps:
    """The steps that may happen between two events without an event of their own.

    A step is hidden if its action is among `actions` (None: any action), unless it gives one of the leaves
    in `visible` a new value that is among those listed there (None: any new value).
    """

    actions: frozenset[str] | None = frozenset()
    visible: FrozenMap[str, frozenset[object] | None] = field(default_factory=lambda: FrozenMap({}))

    @property
    def exist(self) -> bool:
        """Whether any step at all may be hidden."""
        return self.actions is None or bool(self.actions)


NOTHING_HIDDEN = HiddenSteps()
ALL_HIDDEN = HiddenSteps(None)


def hidden_but(visible: Mapping[str, frozenset[object] | None]) -> HiddenSteps:
    """Every step is hidden, except one that changes a leaf of `visible` to a value listed there."""
    return HiddenSteps(None, FrozenMap(visible))


class Doubt(Enum):
    """What cannot be relied on since a part of what was recorded is left out."""

    NOTHING = "nothing"
    ENDS = "a trace that has no end marker may have gone on"
    ALL = "events may be missing anywhere, and nothing shows where"


@dataclass(frozen=True)
class Recording:
    """What is known of the recorder: by default it records every step, from the initial state to the end.

    `sizes`: how many of an entity one trace speaks of, where that is not the default of the definition: a log
    that follows one index of a table has one `Index`. `budgets`: of what the trace says nothing (0).
    `doubt`: what is not sure since a part was damaged.
    `numbered`: the entities whose members are numbered for each trace by itself, in place of their real names.
    """

    hidden: HiddenSteps = NOTHING_HIDDEN
    from_start: bool = True  # else the first event may find the entity in any reachable state
    end_marked: bool = True  # else a trace without an end marker is complete
    sizes: FrozenMap[str, int] = field(default_factory=lambda: FrozenMap({}))

    budgets: FrozenMap[str, int] = field(default_factory=lambda: FrozenMap({}))
    doubt: Doubt = Doubt.NOTHING
    numbered: frozenset[str] = frozenset()

    def scope(self, given: Scope) -> Scope:
        """The scope with the sizes and budgets that the traces have."""
        sizes = {kind: self.sizes.get(kind.__name__, n) for kind, n in given.sizes.items()}
        budgets = {name: self.budgets.get(name, n) for name, n in given.budgets.items()}
        return Scope(FrozenMap(sizes), FrozenMap(budgets))
