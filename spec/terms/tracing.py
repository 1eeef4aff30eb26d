"""What one run of an action or property body records, and the loops that are open while it runs.

A body is ordinary Python, executed once with symbolic values. Everything it says lands in the
`Tracing` of the context; outside of one, saying anything is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from stagewright.spec.definition import Assignment, Joined, Requirement
from stagewright.spec.errors import (
    AssignmentError,
    DefinitionError,
    LoopError,
    RequirementError,
    TracingError,
)
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Field,
    Literal,
    Node,
    Op,
    Read,
    Select,
    children,
    free_bounds,
    is_place,
    root_variable,
)
from stagewright.spec.sorts import MapSort, RecordSort, SeqSort, SetSort
from stagewright.spec.source import Source, here, methods_at_work, statements_at_work
from stagewright.spec.terms.truth import builtin_around


@dataclass(frozen=True)
class Binding:
    """One open loop over a sort; `condition` restricts it to the members of a set or an optional."""

    bound: Bound
    condition: Node | None


@dataclass(frozen=True)
class Alike:
    """Two conditions of a refinement that hold in the same states, for every value of the `binders`."""

    seen: Node
    concrete: Node
    binders: tuple[Bound, ...]
    where: Source


class NotInProfileError(Exception):
    """Ends the trace of a body that does not exist under the profile at hand."""


@dataclass
class Tracing:
    """The record of one body. `effects` says whether it may require and assign (an action)."""

    what: str  # "action `learn`", for error texts
    effects: bool
    requirements: list[Requirement] = field(default_factory=list[Requirement])
    assignments: list[Assignment] = field(default_factory=list[Assignment])
    loops: list[Binding] = field(default_factory=list[Binding])
    # The parts' actions that this body drives; and those whose bodies run, outermost first.
    called: set[str] = field(default_factory=set[str])
    joined: list[Joined] = field(default_factory=list[Joined])
    calling: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])  # of parameters and open loops
    # By the place in the file that reads: how many assignments there were when it did so first.
    reads: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])
    broken_loop: Source | None = None
    serials: Iterator[int] = field(default_factory=itertools.count)
    maps: str = ""  # of a refinement: how the names of the seen machine's variables begin
    alike: list[Alike] = field(default_factory=list[Alike])

    def require(
        self, condition: Node, name: str, where: Source, *, bound: bool = False, because: str = ""
    ) -> None:
        self._only_in_actions("require(...)", where)
        for binding in reversed(self.loops):
            condition = _quantified(binding, condition, where)
        if self._required(name, condition):
            return
        if any(r.name == name for r in self.requirements) and (part := self._joined_part):
            # Parts of a system know nothing of each other's names: two may name alike.
            name = f"{name} ({part})"
            if self._required(name, condition):
                return
        if any(r.name == name for r in self.requirements):
            raise RequirementError(
                f"{self.what} has two requirements named {name!r}",
                where=where,
                help="name each for what it says; names appear in counterexamples and in traces",
            )
        self.requirements.append(
            Requirement(
                name, condition, where, self._said_in(), self.part, self._join, bound, because
            )
        )

    def _required(self, name: str, condition: Node) -> bool:
        return any(r.name == name and r.condition == condition for r in self.requirements)

    @property
    def _joined_part(self) -> str:
        """The part of the system whose action joins the one being traced; empty for its own body."""
        return self.part.rstrip(".") if len(self.calling) > 1 else ""

    def assign(self, place: Node, value: Node, where: Source) -> None:
        self._only_in_actions("an assignment", where)
        if not is_place(place):
            raise AssignmentError(
                f"{self.what} assigns a part of a value that is no part of the state",
                where=where,
                help="parameters, members of a set and elements of a queue do not change: assign a "
                "variable, or put another record in its place",
            )
        looping = frozenset(b.bound for b in self.loops)
        for earlier in self.assignments:
            if _same_place(earlier.place, place, _loop_bounds(earlier) | looping):
                raise AssignmentError(
                    f"`{place_name(place)}` is assigned twice in {self.what}",
                    where=where,
                    help="effects happen at once, so only one value can be meant; "
                    "a choice of value is `choose(condition, one, other)`",
                )
        used = set(_bounds(place))
        for binding in self.loops:
            if binding.bound not in used:
                raise AssignmentError(
                    f"`{place_name(place)}` is assigned once for every {binding.bound.sort}",
                    where=where,
                    help="index it with the loop's variable, or assign it outside of the loop",
                )
            if binding.condition is not None:
                value = _conditional(binding.condition, value, place)
        binders = tuple(b.bound for b in self.loops)
        said = Assignment(place, value, binders, where, self._said_in(), self.part, self._join)
        self.assignments.append(said)

    @property
    def part(self) -> str:
        """The part of the system whose member runs, as its members' names begin; empty for the system's own."""
        return self.calling[-1][: self.calling[-1].rfind(".") + 1] if self.calling else ""

    @property
    def _join(self) -> str:
        """The action of a part that the body being traced has joined, if its body runs."""
        return self.calling[1] if len(self.calling) > 1 else ""

    def _said_in(self) -> tuple[str, ...]:
        """The actions and methods whose bodies run."""
        return (*self.calling, *methods_at_work())

    def check_read(self, node: Node) -> None:
        """Refuse to read a place that this body has assigned: reads see the old state."""
        if not self.effects or not is_place(node):
            return
        first = self.reads.setdefault(statements_at_work(), len(self.assignments))
        for number, earlier in enumerate(self.assignments):
            # What was first executed before the assignment is a later round of a loop over an enum:
            # its rounds are parallel, as those of a loop over an entity are.
            if number < first and _same_place(earlier.place, node, _loop_bounds(earlier)):
                raise AssignmentError(
                    f"`{place_name(node)}` is read after it was assigned in {self.what}",
                    where=node.where or here(),
                    help="reads see the state before the action: read it first, then assign"
                    + (
                        ""
                        if _is_scalar(node)
                        else "; what is kept of a set, map or record is its place"
                    ),
                )

    @contextmanager
    def joining(self, action: str, arguments: tuple[tuple[str, Node], ...]) -> Generator[None]:
        """Another action's body runs as a part of this one, with these arguments."""
        if action in self.calling:
            raise TracingError(
                f"action `{action}` calls itself",
                where=here(),
                help="an action is one atomic step: let the step happen again instead",
            )
        self.called.add(action)
        loops = tuple((binding.bound, binding.condition) for binding in self.loops)
        self.joined.append(Joined(action, arguments, loops))
        self.calling.append(action)
        try:
            yield
        finally:
            self.calling.pop()

    def check_closed(self, node: Node, allowed: set[Bound], where: Source) -> None:
        """Refuse a loop's variable outside of its loop."""
        for bound in free_bounds(node) - allowed:
            if (
                bound.where is not None
                and (misled := given_to_python(bound, bound.where)) is not None
            ):
                raise misled
            raise LoopError(
                f"`{bound.name}` of a loop over {bound.sort} is used outside of that loop",
                where=where,
                help="it stands for every member while the loop runs; "
                "to choose one member, make it a parameter of the action",
            )

    def _only_in_actions(self, construct: str, where: Source) -> None:
        if not self.effects:
            raise TracingError(
                f"{construct} in {self.what}, which only states a condition",
                where=where,
                help="guards and effects belong into an @action; return the condition instead",
            )


def given_to_python(bound: Bound, loop: Source) -> DefinitionError | None:
    """The error for a loop over a sort that one of Python's own functions runs; None if none does."""
    found = builtin_around(loop)
    if found is None:
        return None
    return LoopError(
        f"Python's own `{found.name}(...)` is given a loop over {bound.sort}, "
        "which stands for all members at once",
        where=found.where,
        help=f"write `{found.word}(… for {bound.name} in {bound.sort})`"
        + (" of numbers, `count(…)` of conditions" if found.name == "sum" else ""),
    )


_current: ContextVar[Tracing | None] = ContextVar("stagewright_tracing", default=None)
_quantifying: ContextVar[list[Binding] | None] = ContextVar("stagewright_quantifying", default=None)


def current(construct: str) -> Tracing:
    """The body being traced, or an error that says that `construct` makes sense only in one."""
    tracing = _current.get()
    if tracing is None:
        raise TracingError(
            f"{construct} outside of a machine's action or property",
            where=here(),
            help="write it in a method decorated with @action, @invariant, …",
        )
    return tracing


def maps() -> bool:
    """Whether the body being traced says what a machine is seen as: then constants are assigned, too."""
    tracing = _current.get()
    return tracing is not None and bool(tracing.maps)


def part_at_work() -> str:
    """The part of a system whose member is being traced; empty for the system's own, and outside of any."""
    tracing = _current.get()
    return "" if tracing is None else tracing.part


def member_at_work() -> str:
    """The action or property that is being traced, also while it joins another; empty outside of any."""
    tracing = _current.get()
    return tracing.calling[0] if tracing is not None and tracing.calling else ""


@contextmanager
def tracing_of(what: str, *, effects: bool) -> Generator[Tracing]:
    """Trace one body."""
    tracing = Tracing(what, effects)
    token = _current.set(tracing)
    quantifying = _quantifying.set(None)
    try:
        yield tracing
    finally:
        _quantifying.reset(quantifying)
        _current.reset(token)
    if tracing.loops and tracing.broken_loop is None:
        tracing.broken_loop = tracing.loops[0].bound.where
    if tracing.broken_loop is not None:
        raise LoopError(
            f"a loop over a sort in {what} ended early",
            where=tracing.broken_loop,
            help="such a loop stands for all members at once: no `break`, no `return` in it; "
            "to choose one member, make it a parameter of the action",
        )


def open_loops() -> list[Binding]:
    """The loops that a new one opens inside of: of the innermost quantifier, else of the action."""
    quantifying = _quantifying.get()
    return current("a loop over a sort").loops if quantifying is None else quantifying


@contextmanager
def quantifying() -> Generator[list[Binding]]:
    """Collect the loops of one `every(...)`, `some(...)` or `count(...)`."""
    current("a quantifier")
    bindings: list[Binding] = []
    token = _quantifying.set(bindings)
    try:
        yield bindings
    finally:
        _quantifying.reset(token)


def check_read(node: Node) -> None:
    """Refuse to read a place that the body being traced has assigned.

    Scalars are read where they are named: what was named before the assignment stays usable.
    """
    tracing = _current.get()
    if tracing is not None:
        tracing.check_read(node)


def _is_scalar(node: Node) -> bool:
    return not isinstance(node.sort, SetSort | MapSort | RecordSort | SeqSort)


def check_use(node: Node) -> None:
    """The same for sets, maps and records, which are read where an expression is made of them.

    Naming one may be the first half of assigning a part of it.
    """
    if not _is_scalar(node):
        check_read(node)


def in_quantifier() -> bool:
    return _quantifying.get() is not None


def _quantified(binding: Binding, body: Node, where: Source) -> Node:
    from stagewright.spec.nodes import Quantified, Quantity

    if binding.condition is not None:
        body = Apply(Op.OR, (Apply(Op.NOT, (binding.condition,), BOOL), body), BOOL, where)
    return Quantified(Quantity.EVERY, binding.bound, body, BOOL, where)


def _conditional(condition: Node, value: Node, place: Node) -> Node:
    assert not isinstance(place, Literal)
    old = place
    if isinstance(place, Select) and isinstance(place.base.sort, SetSort):
        old = Apply(Op.MEMBER, (place.key, place.base), BOOL)
    return Apply(Op.IF, (condition, value, old), place.sort)


def _bounds(node: Node) -> list[Bound]:
    own = [node] if isinstance(node, Bound) else []
    return own + [b for child in children(node) for b in _bounds(child)]


def _loop_bounds(assignment: Assignment) -> frozenset[Bound]:
    return frozenset(assignment.binders)


def _path(place: Node) -> list[Node | str]:
    match place:
        case Select(base, key):
            return [*_path(base), key]
        case Field(base, name):
            return [*_path(base), name]
        case _:
            return []


def _same_place(written: Node, other: Node, wild: frozenset[Bound]) -> bool:
    """Whether two places surely overlap: one contains the other, key by key (`wild` keys are all keys)."""
    if root_variable(written) != root_variable(other):
        return False
    pairs = zip(_path(written), _path(other), strict=False)
    return all(a == b or a in wild or b in wild for a, b in pairs)


def place_name(place: Node) -> str:
    """A place as the user wrote it, nearly: `learned[n]`."""
    match place:
        case Read(variable):
            return variable
        case Select(base, key):
            inner = (
                key.name if isinstance(key, Bound) else place_name(key) if is_place(key) else "…"
            )
            if isinstance(key, Literal):
                inner = getattr(key.value, "name", str(key.value))
            return f"{place_name(base)}[{inner}]"
        case Field(base, name):
            return f"{place_name(base)}.{name}"
        case _:
            return "…"
