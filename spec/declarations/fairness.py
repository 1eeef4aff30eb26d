"""Fairness that several actions share, and all that is assumed of a definition's actions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from stagewright.spec.definition import Action, Fair, Fairness
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DefinitionError
from stagewright.spec.nodes import Bound
from stagewright.spec.sorts import EntitySort, EnumSort
from stagewright.spec.source import Source, here


class SharedFairness:
    """A fairness of a machine; `fairness(...)` makes one, and actions name it: `@action(fair=turn)`."""

    def __init__(
        self,
        strength: Fairness,
        each: EntitySort | EnumSort | None,
        all_actions: bool,
        where: Source,
    ) -> None:
        self.strength = strength
        self.each = each
        self.all_actions = all_actions
        self.where = where
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"fairness `{self.name}`"


FairWord: TypeAlias = Fairness | SharedFairness | tuple[Fairness | SharedFairness, ...]
"""What `fair=` takes: one fairness, or several that all hold of the action."""


def fairness(
    strength: Fairness,
    *,
    each: type[Entity] | type[Enum] | None = None,
    all_actions: bool = False,
) -> SharedFairness:
    r"""One fairness for several actions, as in `turn = fairness(Fairness.WEAK)` and `@action(fair=turn)`.

    It is kept if any of them is taken, with any choice of their parameters: the coordinator does
    something. Of a single action it means: some choice of its parameters. In TLA+ it is
    `WF_vars(A \/ (\E x: B(x)))`, with `SF_vars` for `Fairness.STRONG`.

    Args:
        strength: `Fairness.WEAK` or `Fairness.STRONG`.
        each: each member of this entity or enum by itself, `\A n: WF_vars(A(n) \/ B(n))`: the member
            that an action takes as its first parameter of this sort.
        all_actions: all actions of the machine share it (and of its parts), but those that spend a
            budget: the whole next step is fair, `WF_vars(Next)`. No action names it.

    Raises:
        DefinitionError: it is no fairness, or the words contradict each other.
    """
    where = here()
    if strength not in (Fairness.WEAK, Fairness.STRONG):
        raise DefinitionError(
            f"fairness({strength}) assumes nothing",
            where=where,
            help="write `Fairness.WEAK` or `Fairness.STRONG`",
        )
    if each is not None and all_actions:
        raise DefinitionError(
            "fairness(...) of all actions cannot be that of each member",
            where=where,
            help="leave `each` out, or name the fairness at the actions that have such a parameter",
        )
    return SharedFairness(
        strength, None if each is None else _sort(each, where), all_actions, where
    )


def _sort(kind: object, where: Source) -> EntitySort | EnumSort:
    if isinstance(kind, type) and issubclass(kind, Entity):
        return EntitySort(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return EnumSort(kind)
    raise DefinitionError(
        "fairness(..., each=...) names no entity and no enum",
        where=where,
        help="write the class whose members get their turn each: `each=Node`",
    )


def fair_of(
    words: Sequence[Fairness | SharedFairness],
    action: str,
    where: Source,
    declared: Collection[object],
    prefix: str,
    family: tuple[Bound, ...],
    own: tuple[Bound, ...],
) -> tuple[Fair, ...]:
    """What `fair=` of one action means.

    Args:
        words: what it names.
        action: the action, as errors name it.
        where: its place.
        declared: the members of its machine.
        prefix: of the machine's names within a system.
        family: the keys of the `many(...)` that the machine lies in: each of its machines is fair by itself.
        own: the action's own parameters.
    """
    found: list[Fair] = []
    for word in words:
        if isinstance(word, Fairness):
            found.append(Fair(word, (*family, *own)))
            continue
        if not any(word is member for member in declared):
            raise DefinitionError(
                f"{action} names a fairness that its class does not declare",
                where=where,
                help="declare it there: `turn = fairness(Fairness.WEAK)`; each part of a system has its own",
            )
        if word.all_actions:
            raise DefinitionError(
                f"{action} names {word!r}, which is that of all actions",
                where=where,
                help="leave it out here: it holds of this action as it is",
            )
        keys = family
        if word.each is not None:
            of_sort = [bound for bound in own if bound.sort == word.each]
            if not of_sort:
                raise DefinitionError(
                    f"{action} shares {word!r}, which is that of each {word.each}, but takes none",
                    where=where,
                    help=f"give it a parameter: `x: Term[{word.each}]`; or name another fairness",
                )
            keys = (*family, of_sort[0])
        found.append(Fair(word.strength, keys, prefix + word.name))
    return tuple(found)


@dataclass(frozen=True)
class Assumption:
    """What is assumed of some actions together, for each choice of the keys.

    `members`: the actions, and the parameters of each that are its keys, in one order of sorts.
    """

    name: str  # of the shared fairness; or of the action, that it is assumed of alone
    strength: Fairness
    members: tuple[tuple[Action, tuple[Bound, ...]], ...]
    shared: bool

    @property
    def keys(self) -> tuple[Bound, ...]:
        """The keys, as the first of the actions calls them."""
        return self.members[0][1]


def assumptions(actions: Sequence[Action]) -> tuple[Assumption, ...]:
    """All that fairness assumes of the actions, in their order."""
    found: dict[tuple[str, str], list[tuple[Action, Fair]]] = {}
    for action in actions:
        for fair in action.fair:
            key = (fair.name, "" if fair.name else action.name)
            found.setdefault(key, []).append((action, fair))
    return tuple(
        Assumption(
            shared or alone,
            members[0][1].strength,
            tuple((action, fair.keys) for action, fair in members),
            shared=bool(shared),
        )
        for (shared, alone), members in found.items()
    )
