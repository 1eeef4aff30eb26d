"""Point at the exact source expression that asked a symbolic value for its truth, and say the mend."""

from __future__ import annotations

import ast
import linecache
from types import FrameType

from stagewright.spec.errors import SymbolicBoolError
from stagewright.spec.source import Source, of_frame, user_frame

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
    "comprehension filter": "write `every(condition.implies(body) for n in …)`",
    "any/all/min/max/sorted": "write `some(…)`, `every(…)` or `count(…)`",
    "truth test": "a symbolic value has no truth while a definition is traced: "
    "combine conditions with `&`, `|`, `~`",
}


def truth_asked() -> SymbolicBoolError:
    """The error for a truth test made by the innermost frame outside of the library."""
    frame = user_frame()
    place = of_frame(frame)
    found = _construct_at(frame, place)
    if found is None:
        return _error("truth test", place)
    name, part = found
    end = part.end_col_offset if part.end_lineno == part.lineno else 0
    where = Source(place.file, part.lineno, part.col_offset, end or 0, place.function)
    return _error(name, where)


def _error(name: str, where: Source) -> SymbolicBoolError:
    return SymbolicBoolError(
        f"`{name}` needs True or False, but this value is symbolic", where=where, help=MENDS[name]
    )


def _construct_at(frame: FrameType, place: Source) -> tuple[str, ast.expr] | None:
    source = "".join(linecache.getlines(place.file))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    found: list[tuple[int, str, ast.expr]] = []
    for node in ast.walk(tree):
        hit = _construct(node)
        if hit is None:
            continue
        name, part = hit
        # 3.11 reports the whole statement, 3.12 and later report the tested expression: accept both.
        starts = [(part.lineno, part.col_offset)]
        if isinstance(node, ast.stmt | ast.expr):
            starts.append((node.lineno, node.col_offset))
        end = (part.end_lineno or part.lineno, part.end_col_offset or 0)
        if min(starts) <= (place.line, place.column) < end:
            size = (end[0] - part.lineno) * 1000 + end[1] - part.col_offset
            found.append((size, name, part))
    if not found:
        return None
    _, name, part = min(found, key=lambda item: item[0])
    return name, part


def _construct(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The construct's name and the part to underline, if `node` asks a value for its truth."""
    match node:
        case ast.BoolOp(op=op):
            return ("and" if isinstance(op, ast.And) else "or"), node
        case ast.UnaryOp(op=ast.Not()):
            return "not", node
        case ast.Compare(ops=[ast.In() | ast.NotIn(), *_]):
            return "in", node
        case ast.Compare(ops=[_, _, *_]):
            return "chained comparison", node
        case ast.IfExp(test=test):
            return "if expression", test
        case ast.If(test=test):
            return "if", test
        case ast.While(test=test):
            return "while", test
        case ast.Assert(test=test):
            return "assert", test
        case ast.Match(subject=subject):
            return "match", subject
        case (
            ast.GeneratorExp(generators=[*_, ast.comprehension(ifs=[test, *_])])
            | ast.ListComp(generators=[*_, ast.comprehension(ifs=[test, *_])])
            | ast.SetComp(generators=[*_, ast.comprehension(ifs=[test, *_])])
        ):
            return "comprehension filter", test
        case ast.Call(func=ast.Name(id="any" | "all" | "min" | "max" | "sorted")):
            return "any/all/min/max/sorted", node
        case _:
            return None
