"""A mapping that cannot mean what it says is refused with its place, what is wrong, and the mend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from stagewright.spec import (
    ANY,
    Bool,
    DefinitionError,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    Profile,
    Refinement,
    Term,
    action,
    alike,
    constant,
    every,
    flag,
    invariant,
    number,
    part,
    per,
    profiles,
    refinement,
    require,
)


class Node(Entity):
    """What the concrete machine has."""


class Task(Entity):
    """What it does not have."""


class Low(Machine):
    """The concrete machine."""

    ready = per(Node, flag())
    count: NumberVar = number(0, 2)

    @action
    def get_ready(self, n: Term[Node]) -> None:
        """A node gets ready."""
        require(~self.ready[n], "it is not ready")
        self.ready[n] = True

    @action
    def add(self) -> None:
        """One more."""
        self.count = self.count + 1


class High(Machine):
    """What it is seen as."""

    on: FlagVar = flag()
    total: NumberVar = number(0, 2)
    most: NumberVar = constant(number(0, 2, init=ANY))

    @action
    def switch(self) -> None:
        """On."""
        self.on = True

    @action
    def add(self) -> None:
        """One more."""
        self.total = self.total + 1


def test_a_mapping_says_what_is_seen_and_what_is_hidden() -> None:
    @refinement(steps={Low.add: [High.add, (High.switch, None)]}, anew=(Low.get_ready,))
    def fine(low: Low, seen: High, n: Term[Node]) -> None:
        seen.on = low.ready[n]
        seen.most = 2

    mapped = fine.mapped()
    assert (mapped.concrete.name, mapped.seen.name) == ("Low", "High")
    assert mapped.hidden == ("total",)
    assert [b.name for b in mapped.params] == ["n"]
    assert [(s.actions, s.may_stutter) for s in mapped.steps["add"]] == [
        (frozenset({"add"}), False),
        (frozenset({"switch"}), True),
    ]
    assert mapped.anew == {"get_ready"}


def assigned_below(low: Low, seen: High) -> None:
    seen.on = every(low.ready[n] for n in Node)
    low.count = 1


def assigned_twice(low: Low, seen: High) -> None:
    seen.total = low.count
    seen.total = 1


def of_itself(low: Low, seen: High) -> None:
    seen.total = low.count
    seen.on = seen.total == 2


def of_another_sort(low: Low, seen: High) -> None:
    seen.on = low.count  # type: ignore[assignment]


def misspelt(low: Low, seen: High) -> None:
    seen.onn = low.count == 1  # type: ignore[attr-defined]


def with_a_requirement(low: Low, seen: High) -> None:
    require(low.count == 1, "it is one")
    seen.total = low.count


def with_an_action(low: Low, seen: High) -> None:
    seen.total = low.count
    low.add()


def of_nothing(low: Low, seen: High) -> None:
    pass


def with_a_value(low: Low, seen: High) -> Bool:
    seen.total = low.count
    return low.count == 1


def unused(low: Low, seen: High, n: Term[Node]) -> None:
    seen.total = low.count


def of_a_foreign_sort(low: Low, seen: High, t: Term[Task]) -> None:
    seen.on = (low.count == 1) & every(t == other for other in Task)


def alike_the_wrong_way(low: Low, seen: High) -> None:
    alike(low.count == 1, seen.total == 1)


def untyped(low, seen) -> None:  # type: ignore[no-untyped-def]
    seen.total = low.count


def failing(low: Low, seen: High) -> None:
    seen.total = {0: low.count}[1]


@pytest.mark.parametrize(
    ("body", "problem", "mend"),
    [
        (assigned_below, "`count` of Low is assigned", "`seen.variable = …`"),
        (assigned_twice, "`seen.total` is assigned twice", "only one value can be meant"),
        (of_itself, "`seen.total` is read after it was assigned", "read it first"),
        (of_another_sort, "a condition is needed here", "write True, False or a condition"),
        (misspelt, "High has no variable `onn`", "did you mean `on`?"),
        (with_a_requirement, "requires something", "`alike(condition on the seen machine"),
        (with_an_action, "it calls the action `add`", "name actions in `steps`"),
        (of_nothing, "it says nothing of the seen machine", "assign its variables"),
        (with_a_value, "it returns a value", "assign the seen machine's variables"),
        (unused, "parameter `n` of refinement `unused` is never used", "use it, or remove it"),
        (of_a_foreign_sort, "it speaks of Task, of which Low has none", "take an entity sort"),
        (
            alike_the_wrong_way,
            "`count` of Low is read",
            "the first condition of `alike` of the seen",
        ),
        (untyped, "its first two parameters are not machines", "each a subclass of Machine"),
        (failing, "fails while it is traced: KeyError", "runs once, with symbolic values"),
    ],
)
def test_a_wrong_mapping_is_refused(body: Callable[..., None], problem: str, mend: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        refinement()(body).mapped()
    text = str(caught.value)
    assert problem in text
    assert mend in text
    assert "test_refinement.py" in text


def said(**options: object) -> Refinement:
    def seen_so(low: Low, seen: High) -> None:
        seen.total = low.count

    return refinement(**options)(seen_so)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"steps": {High.add: High.add}}, "`steps` names High.add, which is not an action of Low"),
        ({"steps": {Low.add: Low.add}}, "`steps` names Low.add, which is not an action of High"),
        ({"steps": {Low.add: []}}, "`steps` gives an empty list"),
        ({"anew": (High.add,)}, "`anew` names High.add, which is not an action of Low"),
        ({"profiles": {"old": ""}}, "`profiles` names `old`, which Low does not have"),
        ({"profiles": {"": "new"}}, "`profiles` names `new`, which High does not have"),
        ({"profiles": {}}, "`profiles` is empty"),
    ],
)
def test_what_is_said_beside_the_mapping_is_checked(
    options: dict[str, object], problem: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        said(**options).mapped()
    assert problem in str(caught.value)


def test_alike_belongs_into_a_refinement() -> None:
    class Elsewhere(Machine):
        on: FlagVar = flag()

        @action
        def switch(self) -> None:
            self.on = True

        @invariant
        def odd(self) -> Bool:
            alike(self.on, self.on)
            return self.on

    from stagewright.spec.define import define

    with pytest.raises(DefinitionError, match=r"alike\(\.\.\.\) in invariant `odd`"):
        define(Elsewhere)


# -- profiles ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release(Profile):
    """A version."""

    steps: int = 1


class Old(Low):
    release = profiles(Release("one"), Release("two"))


class New(High):
    release = profiles(Release("two"), Release("three"))


def test_profiles_of_one_name_belong_together() -> None:
    @refinement()
    def by_name(low: Old, seen: New) -> None:
        seen.total = low.count

    assert by_name.covered == {"two": "two"}
    assert by_name.mapped("two").seen.profile == "two"
    with pytest.raises(DefinitionError, match="says nothing of Old under `one`"):
        by_name.mapped("one")


def test_profiles_are_named_where_their_names_differ() -> None:
    @refinement(profiles={"one": "two", "two": "three"})
    def named(low: Old, seen: New) -> None:
        seen.total = low.count

    @refinement()
    def to_one_without(low: Old, seen: High) -> None:
        seen.total = low.count

    @refinement()
    def nothing_fits(low: Low, seen: New) -> None:
        seen.total = low.count

    assert named.covered == {"one": "two", "two": "three"}
    assert to_one_without.covered == {"one": "", "two": ""}
    with pytest.raises(DefinitionError, match="write `profiles="):
        nothing_fits.mapped()


def test_an_action_of_a_part_is_named_by_the_parts_class() -> None:
    class System(Machine):
        low = part(Low)
        others: FlagVar = flag()

        @action
        def go(self) -> None:
            self.others = True

    @refinement(steps={Low.add: High.add})
    def of_a_part(system: System, seen: High) -> None:
        seen.total = system.low.count

    assert list(of_a_part.mapped().steps) == ["low.add"]
