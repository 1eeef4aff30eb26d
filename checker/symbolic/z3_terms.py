"""Z3 behind a small face: the only module of the project that imports it.

Terms are made with Z3's C calls, because at the sizes of this project the checks that z3's Python classes make
for each operator cost ten times more than building the term, and more than solving. Every `Terms` owns a
context, so that an answer does not depend on what the process proved before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

import z3

Term: TypeAlias = Any  # a z3.ExprRef; z3 ships no types

SOLVER = "QF_FD"  # finite domains: goes two to three times deeper than the default solver


class Answer(Enum):
    """What the solver said; UNKNOWN is never read as either of the others."""

    SAT = auto()
    UNSAT = auto()
    UNKNOWN = auto()


class OutOfTimeError(Exception):
    """The wall clock ran out during or before a query."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A bit-vector of `width` bits, read as two's complement when `signed`."""

    width: int
    signed: bool

    @staticmethod
    def of(low: int, high: int) -> Shape:
        """The smallest shape that holds every value of `low .. high`."""
        assert low <= high
        if low >= 0:
            return Shape(max(1, high.bit_length()), signed=False)
        return Shape(max((-low - 1).bit_length(), high.bit_length()) + 1, signed=True)


class Terms:
    """Makes terms in a context of its own."""

    def __init__(self) -> None:
        self.context = z3.Context()
        self._ref = self.context.ref()
        self.true = z3.BoolVal(True, self.context)
        self.false = z3.BoolVal(False, self.context)

    def boolean(self, name: str) -> Term:
        """A Boolean variable; the same name is the same variable."""
        return z3.Bool(name, self.context)

    def bits(self, name: str, shape: Shape) -> Term:
        """A bit-vector variable; the same name and shape are the same variable."""
        return z3.BitVec(name, shape.width, self.context)

    def number(self, value: int, shape: Shape) -> Term:
        """A constant of a shape that holds it."""
        return z3.BitVecVal(value, shape.width, self.context)

    def _bool(self, ast: Any) -> Term:
        return z3.BoolRef(ast, self.context)

    def _bits(self, ast: Any) -> Term:
        return z3.BitVecRef(ast, self.context)

    def not_(self, a: Term) -> Term:
        """Negation."""
        return self._bool(z3.Z3_mk_not(self._ref, a.ast))

    def and_(self, parts: Sequence[Term]) -> Term:
        """All of them; of none: true."""
        match len(parts):
            case 0:
                return self.true
            case 1:
                return parts[0]
            case n:
                return self._bool(z3.Z3_mk_and(self._ref, n, _array(parts)))

    def or_(self, parts: Sequence[Term]) -> Term:
        """Any of them; of none: false."""
        match len(parts):
            case 0:
                return self.false
            case 1:
                return parts[0]
            case n:
                return self._bool(z3.Z3_mk_or(self._ref, n, _array(parts)))

    def implies(self, a: Term, b: Term) -> Term:
        """If the one, then the other."""
        return self._bool(z3.Z3_mk_implies(self._ref, a.ast, b.ast))

    def equal(self, a: Term, b: Term) -> Term:
        """Two booleans, or two bit-vectors of one shape."""
        return self._bool(z3.Z3_mk_eq(self._ref, a.ast, b.ast))

    def choose(self, condition: Term, a: Term, b: Term) -> Term:
        """One of two bit-vectors of one shape."""
        return self._bits(z3.Z3_mk_ite(self._ref, condition.ast, a.ast, b.ast))

    def less(self, a: Term, b: Term, shape: Shape) -> Term:
        """Two bit-vectors of one shape, which says whether they are signed."""
        make = z3.Z3_mk_bvslt if shape.signed else z3.Z3_mk_bvult
        return self._bool(make(self._ref, a.ast, b.ast))

    def less_or_equal(self, a: Term, b: Term, shape: Shape) -> Term:
        """Two bit-vectors of one shape, which says whether they are signed."""
        make = z3.Z3_mk_bvsle if shape.signed else z3.Z3_mk_bvule
        return self._bool(make(self._ref, a.ast, b.ast))

    def add(self, a: Term, b: Term) -> Term:
        """The sum in the shape of both, which must be able to hold it."""
        return self._bits(z3.Z3_mk_bvadd(self._ref, a.ast, b.ast))

    def subtract(self, a: Term, b: Term) -> Term:
        """The difference in the shape of both, which must be able to hold it."""
        return self._bits(z3.Z3_mk_bvsub(self._ref, a.ast, b.ast))

    def multiply(self, a: Term, b: Term) -> Term:
        """The product in the shape of both, which must be able to hold it."""
        return self._bits(z3.Z3_mk_bvmul(self._ref, a.ast, b.ast))

    def divide(self, a: Term, b: Term, shape: Shape) -> Term:
        """The quotient by a positive number, rounded towards zero."""
        make = z3.Z3_mk_bvsdiv if shape.signed else z3.Z3_mk_bvudiv
        return self._bits(make(self._ref, a.ast, b.ast))

    def remainder(self, a: Term, b: Term, shape: Shape) -> Term:
        """The remainder by a positive number, never negative."""
        make = z3.Z3_mk_bvsmod if shape.signed else z3.Z3_mk_bvurem
        return self._bits(make(self._ref, a.ast, b.ast))

    def resize(self, a: Term, old: Shape, new: Shape) -> Term:
        """The same number in another shape, which must be able to hold it."""
        if new.width == old.width:
            return a
        if new.width < old.width:
            return self._bits(z3.Z3_mk_extract(self._ref, new.width - 1, 0, a.ast))
        make = z3.Z3_mk_sign_ext if old.signed else z3.Z3_mk_zero_ext
        return self._bits(make(self._ref, new.width - old.width, a.ast))

    def rename(self, a: Term, old: Sequence[Term], new: Sequence[Term]) -> Term:
        """The term with variables replaced, done by Z3: far cheaper than building it again."""
        if not old:
            return a
        ast = z3.Z3_substitute(self._ref, a.ast, len(old), _array(old), _array(new))
        return self._bool(ast)


def _array(parts: Sequence[Term]) -> Any:
    return (z3.Ast * len(parts))(*(p.ast for p in parts))


class Clock:
    """The limits that all queries of one proof share: seconds of wall time, and work per query.

    `rlimit` counts Z3's own units of work, so that a query gives up at the same point on every machine.
    `watched`: a Ctrl-C sets `interrupted` (see `interrupts.py`); otherwise it is left to Z3.
    """

    def __init__(self, seconds: float | None = None, rlimit: int | None = None) -> None:
        self.started = time.monotonic()
        self.seconds = seconds
        self.rlimit = rlimit
        self.watched = False
        self.interrupted = False
        self._asked: Any = None  # the solver whose answer is awaited

    def elapsed(self) -> float:
        """Seconds since the clock was started."""
        return time.monotonic() - self.started

    def left_ms(self) -> int | None:
        """Milliseconds left, None without a limit.

        Raises:
            OutOfTimeError: nothing is left.
        """
        if self.seconds is None:
            return None
        left = int((self.seconds - self.elapsed()) * 1000)
        if left <= 0:
            raise OutOfTimeError
        return left

    def check(self, solver: Any, assumptions: Sequence[Term]) -> Any:
        """Z3's answer, within what is left.

        Raises:
            OutOfTimeError: nothing is left.
            KeyboardInterrupt: the user interrupted.
        """
        if (left := self.left_ms()) is not None:
            solver.set("timeout", left)
        self._asked = solver
        self._stop_if_interrupted()
        result = solver.check(*assumptions)
        self._asked = None
        self._stop_if_interrupted()
        return result

    def _stop_if_interrupted(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt

    def give_up(self) -> None:
        """End the query that is running, if one is; from any thread."""
        if (solver := self._asked) is not None:
            solver.interrupt()


class Solver:
    """An incremental solver over the terms of one context."""

    def __init__(self, terms: Terms, clock: Clock) -> None:
        self._solver = z3.SolverFor(SOLVER, ctx=terms.context)
        self._clock = clock
        self._model: Any = None
        self._solver.set("ctrl_c", not clock.watched)
        if clock.rlimit is not None:
            self._solver.set("rlimit", clock.rlimit)

    def add(self, *formulas: Term) -> None:
        """Assert formulas from now on."""
        self._solver.add(*formulas)

    def push(self) -> None:
        """Open a level: `pop` forgets what was asserted since."""
        self._solver.push()

    def pop(self) -> None:
        """Forget what was asserted since the last `push`."""
        self._solver.pop()

    def check(self, assumptions: Sequence[Term] = ()) -> Answer:
        """Whether the formulas and assumptions have a model, which `value` then reads.

        Raises:
            OutOfTimeError: the clock ran out.
            KeyboardInterrupt: the user interrupted.
        """
        result = self._clock.check(self._solver, assumptions)
        self._model = self._solver.model() if result == z3.sat else None
        if result == z3.sat:
            return Answer.SAT
        if result == z3.unsat:
            return Answer.UNSAT
        if "keyboard" in self._solver.reason_unknown():
            raise KeyboardInterrupt
        self._clock.left_ms()
        return Answer.UNKNOWN

    def core(self) -> set[str]:
        """The names of the assumptions that the last UNSAT needed (not always the fewest)."""
        core: Any = self._solver.unsat_core()
        return {term.decl().name() for term in core}

    def value(self, term: Term, shape: Shape | None) -> int:
        """The number that the model gives a term; a boolean (no shape) is 0 or 1."""
        found = self._model.eval(term, model_completion=True)
        if shape is None:
            return int(z3.is_true(found))
        return int(found.as_signed_long() if shape.signed else found.as_long())


def smtlib(terms: Terms, formulas: Iterable[Term], status: str, comments: Iterable[str]) -> str:
    """A complete SMT-LIB 2 script in QF_BV; `status` is the answer that it should get."""
    solver = z3.Solver(ctx=terms.context)
    solver.add(*formulas)
    lines = [f"; {line}" for comment in comments for line in comment.splitlines()]
    lines += ["(set-logic QF_BV)", f"(set-info :status {status})"]
    body = [line for line in solver.sexpr().splitlines() if line.strip()]
    return "\n".join([*lines, *body, "(check-sat)", ""])
