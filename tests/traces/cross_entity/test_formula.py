"""Counting classes, and no more of each than counts, says what looking at every entity says."""

from collections.abc import Mapping

from hypothesis import given, settings, strategies as st
from tests.thorough import examples

from stagewright.traces.replay.related.formula import (
    WHATEVER,
    Among,
    Atom,
    ClassOf,
    Const,
    Formula,
    Made,
    Make,
    Over,
    Same,
    evaluate,
    weight,
)

CLASSES = [ClassOf(f, (a, b)) for f in (0, 1) for a in (0, 1) for b in (0, 1, 2)]


def one_by_one(  # noqa: C901 - a case for each kind of formula
    formula: Formula,
    entities: Mapping[int, list[tuple[int, int]]],
    named: dict[int, tuple[int, int]],
) -> int:
    """The value by looking at every entity; these are named by family and index."""
    match formula:
        case Const(value):
            return value
        case Atom(entity, number):
            family, index = named[entity]
            return entities[family][index][number]
        case Same(one, other):
            return int(named[one] == named[other])
        case Among(over, entity, family, body):
            found = sum(
                bool(one_by_one(body, entities, {**named, entity: (family, i)}))
                for i in range(len(entities[family]))
            )
            if over is Over.COUNT:
                return found
            return int(found == len(entities[family]) if over is Over.EVERY else found > 0)
        case Made(how, args):
            a, *rest = [one_by_one(x, entities, named) for x in args]
            match how:
                case Make.NOT:
                    return int(not a)
                case Make.AND:
                    return int(all([a, *rest]))
                case Make.OR:
                    return int(any([a, *rest]))
                case Make.EQ:
                    return int(a == rest[0])
                case Make.LT:
                    return int(a < rest[0])
                case Make.LE:
                    return int(a <= rest[0])
                case Make.ADD:
                    return a + rest[0]
                case Make.SUB:
                    return a - rest[0]
                case Make.IF:
                    return rest[0] if a else rest[1]
                case Make.TABLE:
                    return formula.table[a]
    raise AssertionError(formula)


@st.composite
def conditions(draw: st.DrawFn, names: tuple[tuple[int, int], ...] = (), depth: int = 3) -> Formula:
    """A condition that may speak of some entities, given with their families."""
    kinds = ["quantified", "compared"] if depth else []
    if depth and names:
        kinds += ["junction", "junction"]
    if names:
        kinds += ["atom", "same"]
    match draw(st.sampled_from(kinds or ["const"])):
        case "atom":
            name, _ = draw(st.sampled_from(names))
            if draw(st.booleans()):
                return Atom(name, 0, 0, 1)
            return Made(Make.EQ, (Atom(name, 1, 0, 2), draw(numbers(names, 0))))
        case "same":
            (one, family), (other, of) = draw(st.sampled_from(names)), draw(st.sampled_from(names))
            return Same(one, other) if family == of else Const(0)
        case "junction":
            parts = draw(st.lists(conditions(names, depth - 1), min_size=2, max_size=3))
            made = Made(draw(st.sampled_from([Make.AND, Make.OR])), tuple(parts))
            return Made(Make.NOT, (made,)) if draw(st.booleans()) else made
        case "quantified":
            over = draw(st.sampled_from([Over.EVERY, Over.SOME]))
            return draw(among(over, names, depth - 1))
        case "compared":
            how = draw(st.sampled_from([Make.EQ, Make.LT, Make.LE]))
            pair = (draw(numbers(names, depth - 1)), draw(numbers(names, 0)))
            return Made(how, pair if draw(st.booleans()) else pair[::-1])
        case _:
            return Const(draw(st.integers(0, 1)))


@st.composite
def among(draw: st.DrawFn, over: Over, names: tuple[tuple[int, int], ...], depth: int) -> Formula:
    """A quantifier over a family."""
    family = draw(st.integers(0, 1))
    name = len(names)
    return Among(over, name, family, draw(conditions((*names, (name, family)), depth)))


@st.composite
def numbers(draw: st.DrawFn, names: tuple[tuple[int, int], ...], depth: int) -> Formula:
    """A number."""
    match draw(st.sampled_from(["const", "atom", "count", "sum", "chosen"])):
        case "atom" if names:
            return Atom(draw(st.sampled_from(names))[0], 1, 0, 2)
        case "count" if depth:
            return draw(among(Over.COUNT, names, depth - 1))
        case "sum" if depth:
            how = draw(st.sampled_from([Make.ADD, Make.SUB]))
            return Made(how, (draw(numbers(names, depth)), draw(numbers(names, depth - 1))))
        case "chosen" if depth:
            parts = draw(numbers(names, depth - 1)), draw(numbers(names, 0))
            return Made(Make.IF, (draw(conditions(names, depth - 1)), *parts))
        case _:
            return Const(draw(st.integers(0, 2)))


COUNTS = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 6), max_size=4)


@settings(max_examples=examples(100), deadline=None)
@given(conditions(), COUNTS)
def test_counts_of_classes_say_what_all_entities_say(
    formula: Formula, counts: dict[ClassOf, int]
) -> None:
    counts = {c: min(n, 3) for c, n in counts.items()}
    entities: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    for whose, times in counts.items():
        entities[whose.family] += [(whose.values[0], whose.values[1])] * times
    assert evaluate(formula, counts) == one_by_one(formula, entities, {})


@settings(max_examples=examples(150), deadline=None)
@given(conditions(), COUNTS)
def test_more_entities_of_a_class_than_the_weight_change_nothing(
    formula: Formula, counts: dict[ClassOf, int]
) -> None:
    most = weight(formula)
    assert most <= WHATEVER
    capped = {c: min(n, most) for c, n in counts.items()}
    assert evaluate(formula, counts) == evaluate(formula, capped)


def test_what_is_compared_with_a_number_weighs_as_much() -> None:
    pending = Among(Over.COUNT, 0, 0, Atom(0, 0, 0, 1))
    assert weight(Made(Make.LE, (pending, Const(1)))) == 2
    assert weight(Made(Make.LE, (pending, Among(Over.COUNT, 1, 0, Atom(1, 0, 0, 1))))) == WHATEVER
    one = Among(Over.EVERY, 0, 0, Among(Over.SOME, 1, 0, Same(0, 1)))
    assert weight(one) == 2
