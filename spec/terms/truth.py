"""Point at the exact source expression that asked a symbolic value for its truth, and say the mend."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass

from stagewright.spec.errors import SymbolicBoolError
from stagewright.spec.source import Source, in_line, of_frame, span_of_frame, user_frame

MENDS = {
    "and": "write `(a) & (b)`; parenthesise both sides, `&` binds tighter than `==`",
    "or": "write `(a) | (b)`; parenthesise both sides, `|` binds tighter than `==`",
    "not": "write `~(a)`",
    "chained comparison": "write `(a <= b) & (b <= c)`",
    "in": "write `x.any_of(A, B)` for members, `set.has(x)` for a set of the state",
    "if": "a guard is `require(condition, name)`; a choice of value is `choose(condition, one, other)`; "
    "two behaviours are two actions",
    "if expression": "write `choose(condition, one, other)`",
    "while": "actions are atomic and loop-free: repeat the action instead",
    "assert": "state it as an @invariant, or as `require(condition, name)` if it is a guard",
    "match": "a choice of value is `choose(condition, one, other)`, or a column of the enum",
    "comprehension filter": "write `every(condition.implies(body) for n in …)`, "
    "`some(condition & body for n in …)` or `count(condition & body for n in …)`",
    "any": "write `some(…)`",
    "all": "write `every(…)`",
    "min": "write `least(…)`",
    "max": "write `greatest(…)`",
    "sorted": "members have no order that a definition could sort by: say with `every(…)` what is to hold",
    "truth test": "a symbolic value has no truth while a definition is traced: "
    "combine conditions with `&`, `|`, `~`",
}


_Span = tuple[int, int, int, int]  # line, column, end line, end column


@dataclass(frozen=True)
class _Construct:
    """Something in the source that asks a value for its truth.

    `asks`: the parts whose place Python may report while it asks. Releases differ: 3.11 often reports a
    whole statement where later ones report the tested expression.
    """

    name: str
    shown: ast.expr
    asks: tuple[ast.AST, ...]
    rank: int  # of several, the lowest is named; then the smallest


def truth_asked() -> SymbolicBoolError:
    """The error for a truth test made by the innermost frame outside of the library."""
    frame = user_frame()
    place = of_frame(frame)
    found = _construct_at(place.file, span_of_frame(frame))
    if found is None:
        return _error("truth test", place)
    part = found.shown
    end = part.end_col_offset if part.end_lineno == part.lineno else 0
    where = in_line(place.file, part.lineno, part.col_offset, end or 0, place.function)
    return _error(found.name, where)


def _error(name: str, where: Source) -> SymbolicBoolError:
    return SymbolicBoolError(
        f"`{name}` needs True or False, but this value is symbolic", where=where, help=MENDS[name]
    )


_LOOPING = {
    "sum": "total",
    "min": "least",
    "max": "greatest",
    "any": "some",
    "all": "every",
    "len": "count",
}


@dataclass(frozen=True)
class Misled:
    """A function of Python's own that a loop over a sort is given to, and the language's word for it."""

    name: str
    word: str
    where: Source


def builtin_around(loop: Source) -> Misled | None:
    """Python's own function that runs a loop over a sort, as in `sum(self.x[n] for n in Node)`; None if none does.

    `loop`: the place that Python executes when the loop begins. Releases differ: it is what is looped over, or
    the whole generator.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(loop.file)))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as given, *_]) if (
                name in _LOOPING
                and any(_stands_at(n, loop) for n in (given, *(g.iter for g in given.generators)))
            ):
                return Misled(name, _LOOPING[name], _place(node, loop))
            case _:
                pass
    return None


def _stands_at(node: ast.expr, place: Source) -> bool:
    found = _place(node, place)
    return (found.line, found.column) == (place.line, place.column)


def _place(node: ast.expr, near: Source) -> Source:
    end = node.end_col_offset if node.end_lineno == node.lineno else 0
    return in_line(near.file, node.lineno, node.col_offset, end or 0, near.function)


def _construct_at(file: str, span: _Span | None) -> _Construct | None:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None
    found = [
        construct
        for node in ast.walk(tree)
        for construct in _constructs(node)
        if any(_span(part) == span for part in construct.asks)
    ]
    return min(found, key=lambda c: (c.rank, _size(c.shown)), default=None)


def _span(node: ast.AST) -> _Span | None:
    # Columns of the tree and of code positions both count UTF-8 bytes.
    if not isinstance(node, ast.expr | ast.stmt | ast.pattern):
        return None
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _size(node: ast.expr) -> tuple[int, int]:
    lines = (node.end_lineno or 0) - node.lineno
    return lines, (node.end_col_offset or 0) - node.col_offset


def _tests(test: ast.expr) -> list[ast.expr]:
    """A tested expression and what is tested on the way to its own truth."""
    match test:
        case ast.BoolOp(values=values):
            return [test, *(t for v in values for t in _tests(v))]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [test, *_tests(operand)]
        case _:
            return [test]


def _constructs(node: ast.AST) -> Iterator[_Construct]:
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn(), *_]):
            yield _Construct("in", node, (node,), 0)
        case ast.Compare(ops=[_, _, *_]):
            yield _Construct("chained comparison", node, (node,), 0)
        case ast.Call(func=ast.Name(id="any" | "all" | "min" | "max" | "sorted" as name)):
            yield _Construct(name, node, (node,), 0)
        case ast.IfExp(test=test):
            yield _Construct("if expression", test, (node, *_tests(test)), 1)
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            yield _Construct(type(node).__name__.lower(), test, (node, *_tests(test)), 1)
        case ast.Match(subject=subject, cases=cases):
            patterns = [p for c in cases for p in ast.walk(c.pattern)]
            guards = [t for c in cases if c.guard for t in _tests(c.guard)]
            yield _Construct("match", subject, (*patterns, *guards), 1)
        case (
            ast.GeneratorExp(generators=loops)
            | ast.ListComp(generators=loops)
            | ast.SetComp(generators=loops)
            | ast.DictComp(generators=loops)
        ):
            for test in (test for loop in loops for test in loop.ifs):
                yield _Construct("comprehension filter", test, (node, *_tests(test)), 1)
        case ast.BoolOp(op=op):
            yield _Construct(
                "and" if isinstance(op, ast.And) else "or", node, tuple(_tests(node)), 2
            )
        case ast.UnaryOp(op=ast.Not()):
            yield _Construct("not", node, tuple(_tests(node)), 2)
        case _:
            pass
