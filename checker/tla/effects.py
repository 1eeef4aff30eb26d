"""Assignments as the new values of variables: `learned' = [learned EXCEPT ![n] = stage]`.

All values are read in the old state, and no two assignments of a step share a place. So they may be
written one after the other, each on the result of those before: as the parts of one EXCEPT, where `@`
is the place's value so far, and as functions over all keys where a loop assigns all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from stagewright.checker.tla.blocks import Block, followed, hanging, indented
from stagewright.checker.tla.expressions import Binds, Formulas
from stagewright.checker.tla.names import words_in
from stagewright.checker.tla.sets import set_of_values
from stagewright.checker.tla.vocabulary import field_names
from stagewright.spec.definition import Assignment
from stagewright.spec.nodes import Bound, Field, Literal, Node, Read, Select, bounds_in
from stagewright.spec.sorts import MapSort, RecordSort, SetSort, Sort

_SO_FAR = "@"
_ENDLESS = 1_000_000  # columns: a list of conjuncts loses its meaning when it is put on one line


@dataclass(frozen=True)
class _Update:
    """A value for the place that `path` leads to: by keys, and by fields (as text)."""

    path: tuple[Node | str, ...]
    value: Node
    loops: tuple[Bound, ...]  # those that have no name yet
    formulas: Formulas

    @property
    def is_open(self) -> bool:
        """Whether the first step is a key that depends on a loop."""
        first = self.path[0]
        return not isinstance(first, str) and bool(bounds_in(first) & {*self.loops})

    @property
    def all_keys(self) -> Bound | None:
        """The loop whose variable is the first key, so that it stands for every key."""
        first = self.path[0]
        return first if isinstance(first, Bound) and first in self.loops else None

    def calling(self, loop: Bound, text: str) -> _Update:
        """The same where a text stands for the loop's variable."""
        loops = tuple(x for x in self.loops if x != loop)
        return replace(self, loops=loops, formulas=self.formulas.calling(loop, text))

    def settled(self) -> _Update:
        """With every loop over its only value: of several, all would assign one place."""
        here = self
        for loop in self.loops:
            values = set_of_values(loop.sort, here.formulas.names)
            name = here.formulas.fresh(loop.name)
            here = here.calling(loop, f"(CHOOSE {name} \\in {values} : TRUE)")
        return here

    @property
    def key(self) -> Node:
        """The first step, which is a key."""
        key = self.path[0]
        assert not isinstance(key, str)
        return key

    def unused(self, name: str, text: str) -> str:
        """A name like this that is free here and that a text does not mention."""
        formulas = self.formulas
        return formulas.names.local(name, words_in(text, *formulas.bound.values()))

    def met(self, key: str) -> tuple[str, _Update]:
        """Whether some round of the loops has that key, and the update as of that round."""
        own = [x for x in self.loops if x in bounds_in(self.key)]
        sets = [f"({set_of_values(x.sort, self.formulas.names)})" for x in own]
        taken = self.formulas.calling(Bound(key, own[0].sort, -1), key)
        one = taken.fresh("round")

        def in_round(text: str) -> _Update:
            here = replace(self, formulas=taken)
            for place, loop in enumerate(own, 1):
                here = here.calling(loop, text if len(own) == 1 else f"{text}[{place}]")
            return here

        rounds = " \\X ".join(sets)
        same = f"{in_round(one).formulas.text(self.key, Binds.SETS)} = {key}"
        chosen = f"(CHOOSE {one} \\in {rounds} : {same})"
        return f"\\E {one} \\in {rounds} : {same}", in_round(chosen)

    def below(self, steps: int) -> _Update:
        """The rest, after some steps of the path."""
        return replace(self, path=self.path[steps:])


def new_value(
    variable: str, sort: Sort, assignments: list[Assignment], formulas: Formulas, width: int
) -> Block:
    """What a variable becomes by the assignments to it and to its parts."""
    updates = [_Update(_path(a.place), a.value, a.binders, formulas) for a in assignments]
    return _changed(formulas.names.variables[variable], sort, updates, width)


def _path(place: Node) -> tuple[Node | str, ...]:
    match place:
        case Read():
            return ()
        case Select(base, key):
            return (*_path(base), key)
        case Field(base, name):
            assert isinstance(base.sort, RecordSort)
            return (*_path(base), field_names(base.sort)[name])
        case _:
            raise AssertionError(f"not a place: {place}")


def _changed(old: str, sort: Sort, updates: list[_Update], width: int) -> Block:
    """The value of the expression `old` after the updates."""
    if not updates[0].path:
        (whole,) = updates
        whole = whole.settled()
        return whole.formulas.operand(whole.value, width)
    changes: list[Callable[[str, int], Block]] = []
    if isinstance(sort, SetSort):
        if not any(u.is_open for u in updates):
            return _with_members(old, [u.settled() for u in updates], width)
        changes = [partial(_with_loop, sort, update) for update in updates]
    else:
        loops = _grouped_by_loop([u for u in updates if u.is_open])
        changes = [partial(_for_all_keys, _map(sort), group) for group in loops]
        parts = [u for u in updates if not u.is_open]
        changes += [partial(_except, sort, parts)] if parts else []
    *before, last = changes
    for change in before:
        old = " ".join(change(old, _ENDLESS))
    return last(old, width)


def _map(sort: Sort) -> MapSort:
    assert isinstance(sort, MapSort)
    return sort


def _grouped_by_loop(updates: list[_Update]) -> list[list[_Update]]:
    """Updates that loop over all keys by the same variable together, any others alone."""
    groups: dict[object, list[_Update]] = {}
    for number, update in enumerate(updates):
        loop = update.all_keys
        groups.setdefault(number if loop is None else loop, []).append(update)
    return list(groups.values())


def _for_all_keys(sort: MapSort, group: list[_Update], old: str, width: int) -> Block:
    """A function over all keys, whose values the group changes."""
    first = group[0]
    loop = first.all_keys
    key = first.unused("k" if loop is None else loop.name, old)
    head = f"[{key} \\in {set_of_values(sort.key, first.formulas.names)} |->"
    if loop is None:
        is_met, met = first.met(key)
        changed = " ".join(_changed(f"{old}[{key}]", sort.value, [met.below(1)], _ENDLESS))
        return (f"{head} IF {is_met} THEN {changed} ELSE {old}[{key}]]",)
    rest = [u.calling(loop, key).below(1) for u in group]
    inner = _changed(f"{old}[{key}]", sort.value, rest, width - 3)
    return followed(hanging(head, inner, width - 1), "]")


def _with_loop(sort: SetSort, update: _Update, old: str, width: int) -> Block:
    """The set after every member has joined or left, or those that the rounds of loops name."""
    members = set_of_values(sort.element, update.formulas.names)
    loop = update.all_keys
    if not update.is_open:
        return _with_members(old, [update.settled()], width)
    key = update.unused("k" if loop is None else loop.name, old)
    head = f"{{{key} \\in {members} :"
    if loop is None:
        is_met, met = update.met(key)
        met = met.settled()
        inside = met.formulas.text(met.value)
        return (f"{head} IF {is_met} THEN {inside} ELSE {key} \\in {_operand(old)}}}",)
    update = update.calling(loop, key).settled()
    if isinstance(update.value, Literal):
        return (members if update.value.value else "{}",)
    inner = update.formulas.block(update.value, width - 3)
    return followed(hanging(head, inner, width - 1), "}")


def _with_members(old: str, updates: list[_Update], width: int) -> Block:
    """The set after each of some members has joined or left."""
    block: Block = (old,)
    for update in updates:
        key = update.formulas.text(update.key)
        value = update.value
        if isinstance(value, Literal) and len(block) == 1:
            sign = "\\cup" if value.value else "\\"
            block = (f"{_operand(block[0])} {sign} {{{key}}}",)
            continue
        put = update.formulas.names.own.put
        text = f"{put}({block[0]}, {key}, {update.formulas.text(value)})"
        if len(block) == 1 and len(text) <= width:
            block = (text,)
            continue
        inside = update.formulas.block(value, width - 4)
        lines = (*followed(block, ","), f"{key},", *inside)
        block = (f"{put}(", *followed(indented(lines, 2), ")"))
    return block


def _operand(text: str) -> str:
    return f"({text})" if " " in text else text


def _except(sort: Sort, updates: list[_Update], old: str, width: int) -> Block:
    """The function or record with some of its parts changed."""
    # Changes of one set, or loops over one map, are written as one change.
    items: dict[str, tuple[Sort, list[_Update]]] = {}
    for update in updates:
        path, inner, steps = _reached(sort, update)
        items.setdefault(path, (inner, []))[1].append(update.below(steps))
    changes = [
        hanging(f"!{path} =", _changed(_SO_FAR, inner, rest, width - 4), width - 2)
        for path, (inner, rest) in items.items()
    ]
    flat = ", ".join(" ".join(change) for change in changes)
    if all(len(c) == 1 for c in changes) and len(old) + len(flat) + 10 <= width:
        return (f"[{old} EXCEPT {flat}]",)
    *most, last = changes
    lines = [line for change in most for line in followed(change, ",")]
    return (f"[{old} EXCEPT", *indented([*lines, *followed(last, "]")], 2))


def _reached(sort: Sort, update: _Update) -> tuple[str, Sort, int]:
    """How far a path goes by fields and plain keys: as EXCEPT writes it, where it ends, and its steps."""
    path, steps = "", 0
    here = update
    while here.path and not isinstance(sort, SetSort) and not here.is_open:
        first = here.path[0]
        if isinstance(first, str):
            assert isinstance(sort, RecordSort)
            named = field_names(sort)
            sort = next(s for n, s in sort.fields if named[n] == first)
            path += f".{first}"
        else:
            sort = _map(sort).value
            path += f"[{here.formulas.text(first)}]"
        here, steps = here.below(1), steps + 1
    return path, sort, steps
