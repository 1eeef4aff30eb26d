"""Promises as invariants and properties of TLA+, and what TLA+ cannot say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from stagewright.checker.tla.blocks import (
    WIDTH,
    Block,
    after,
    comment,
    followed,
    hanging,
    indented,
    parenthesised,
)
from stagewright.checker.tla.expressions import Binds, Formulas
from stagewright.checker.tla.standing import when_nothing_changes
from stagewright.checker.tla.vocabulary import Vocabulary
from stagewright.spec.definition import Property, PropertyKind
from stagewright.spec.nodes import TRUE, Node, variables_in

# `[][x \in S]_v` begins like the function `[x \in S |-> ...]`, as which TLC reads it.
_LIKE_A_FUNCTION = re.compile(r"\w+ \\in ")


@dataclass(frozen=True)
class Promise:
    """A promise's definition, and under which names the configuration lists it."""

    lines: Block
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    witnesses: tuple[tuple[str, bool], ...] = ()  # what TLC is to find violated; of steps?
    may_stand: bool = False  # it speaks of steps that change nothing
    live: bool = False  # it speaks of fair runs


def promise(prop: Property, names: Vocabulary, *, may_stand: bool) -> Promise:
    """One promise of a definition; `may_stand`: some step may change nothing."""
    name = names.properties[prop.name]
    about = comment(prop.doc)
    match prop.kind:
        case PropertyKind.INVARIANT:
            lines = (*about, *_defined(name, prop, prop.condition, names))
            return Promise(lines, invariants=(name,))
        case PropertyKind.STEP:
            return _of_steps(name, about, prop, names, may_stand=may_stand)
        case PropertyKind.REACHABLE:
            said = comment(
                "(From every reachable state this can still be reached: TLA+ cannot say so, and TLC does "
                "not decide it.)"
            )
            return Promise((*about, *said, *_defined(name, prop, prop.condition, names)))
        case PropertyKind.ACCEPTS | PropertyKind.RESTRICTED:
            raise AssertionError("is spelled out as an invariant, or a witness")
        case PropertyKind.SOMETIMES | PropertyKind.SOMETIMES_STEP:
            return _never(name, about, prop, names)
        case PropertyKind.LEADS_TO | PropertyKind.EVENTUALLY:
            return Promise((*about, *_leading(name, prop, names)), properties=(name,), live=True)
        case _:
            assert_never(prop.kind)


def _defined(name: str, prop: Property, condition: Node, names: Vocabulary) -> Block:
    return hanging(f"{name} ==", _for_all(prop, condition, names, WIDTH - 4), WIDTH)


def _for_all(prop: Property, condition: Node, names: Vocabulary, width: int) -> Block:
    """The condition, for all values of the property's parameters."""
    formulas = Formulas(names).within(*prop.params)
    block = about_states(formulas.block(condition, width - 2), condition, names)
    if not prop.params:
        return block
    return hanging(f"\\A {formulas.ranges(prop.params)} :", block, width)


def about_states(block: Block, condition: Node, names: Vocabulary) -> Block:
    """The condition as one about states, even if it mentions no variable.

    TLC 2.15 refuses an invariant that is a constant, and reports `P ~> TRUE` as violated.
    """
    if variables_in(condition):
        return block
    own = names.own
    return (*parenthesised(block), f"/\\ {own.variables} = {own.variables}")


def _of_steps(
    name: str, about: Block, prop: Property, names: Vocabulary, *, may_stand: bool
) -> Promise:
    every_step = _for_all(prop, prop.condition, names, WIDTH - 8)
    if _LIKE_A_FUNCTION.match(every_step[0]):
        every_step = parenthesised(every_step)
    step = followed(after("[][", every_step), f"]_{names.own.variables}")
    lines = (*about, *hanging(f"{name} ==", step, WIDTH))
    same = when_nothing_changes(prop.condition)
    if same == TRUE or not may_stand:
        return Promise(lines, properties=(name,))
    standing = names.standing[prop.name]
    said = comment(
        f"The same of a step that changes nothing, which {name} does not see: for TLA+ it is no step."
    )
    condition = _for_all(prop, same, names, WIDTH - 4)
    if not prop.params and Formulas(names).phrase(same)[1] is Binds.IMPLIES:
        condition = parenthesised(condition)  # `=>` right of another `=>` is no formula
    parts = (f"{standing} ==", *indented((f"{names.own.idle} =>", *indented(condition, 2)), 2))
    return Promise((*lines, *said, *parts), (standing,), (name,), may_stand=True)


def _never(name: str, about: Block, prop: Property, names: Vocabulary) -> Promise:
    """The condition, for some values of its parameters, and that it is never so."""
    never = names.never[prop.name]
    steps = prop.kind is PropertyKind.SOMETIMES_STEP
    formulas = Formulas(names).within(*prop.params)
    block = formulas.block(prop.condition, WIDTH - 6)
    if not steps:
        block = about_states(block, prop.condition, names)
    if prop.params:
        block = hanging(f"\\E {formulas.ranges(prop.params)} :", block, WIDTH - 4)
    text = f"{never} == [][~{name}]_{names.own.variables}" if steps else f"{never} == ~{name}"
    each = "; it shows one for some values of the parameters" if prop.params else ""
    said = comment(f"(Some run reaches it: TLC shows one as a violation of {never}{each}.)")
    lines = (*about, *said, *hanging(f"{name} ==", block, WIDTH), text)
    return Promise(lines, witnesses=((never, steps),))


def _leading(name: str, prop: Property, names: Vocabulary) -> Block:
    formulas = Formulas(names).within(*prop.params)
    sides = (prop.condition,) if prop.premise is None else (prop.premise, prop.condition)
    text = " ~> ".join(_side(formulas.text(n, Binds.ATOM), n, names) for n in sides)
    if prop.premise is None:
        text = f"<>{text}"
    if prop.params:
        text = f"\\A {formulas.ranges(prop.params)} : ({text})"
    return hanging(f"{name} ==", (text,), WIDTH)


def _side(text: str, condition: Node, names: Vocabulary) -> str:
    block = about_states((text,), condition, names)
    return text if len(block) == 1 else f"({' '.join(block)})"
