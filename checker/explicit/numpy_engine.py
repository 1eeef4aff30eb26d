"""The NumPy engine: generates, once per model, Python source that expands whole batches of states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.edges import graph_of
from stagewright.checker.explicit.emit import Code, Scope
from stagewright.checker.explicit.engine import (
    Expansion,
    StateConditions,
    StepConditions,
    requirement_keys,
)
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.packing import Layout, Words, layout_for
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundOp, GroundStep

_TYPES: Mapping[str, Any] = {
    "np": np,
    "B": np.bool_,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "U64": np.uint64,
}
_BATCH = 1 << 15  # states: a column of bytes then stays in the cache
_BATCH_BYTES = 1 << 28
_SMALLEST_BATCH = 1 << 10


@dataclass
class NumpyEngine:
    """An `Engine` whose generated functions work on columns of a batch."""

    model: GroundModel
    layout: Layout
    batch: int
    source: str  # of the expansion, for people who look for a fault
    _expand: Callable[[Words], _Expanded]

    def expand(self, states: Words) -> Expansion:
        """All steps enabled in each of the states, ordered by step."""
        parts, overflows, false_counts = self._expand(states)
        rows = [rows for _, rows, _ in parts]
        steps = np.repeat(
            np.array([index for index, _, _ in parts], dtype=np.int32), [r.size for r in rows]
        )
        successors = np.empty((self.layout.words, steps.size), dtype=np.uint64)
        if parts:
            for word in range(self.layout.words):
                np.concatenate([words[word] for _, _, words in parts], out=successors[word])
        bad = [rows for _, rows in overflows]
        return Expansion(
            successors,
            np.concatenate(rows) if rows else _no_rows(),
            steps,
            np.concatenate(bad) if bad else _no_rows(),
            np.repeat(
                np.array([index for index, _ in overflows], dtype=np.int32), [r.size for r in bad]
            ),
            np.array(false_counts, dtype=np.int64),
        )

    def graph(self, states: Words, expanded: int) -> Graph:
        """The edges of the first so many of all states."""
        return graph_of(self, states, expanded)

    def state_conditions(self, nodes: Sequence[GroundNode]) -> StateConditions:
        """Compile the conditions into one function of the packed states."""
        function = _conditions(self.layout, nodes, steps=False)

        def evaluate(states: Words) -> tuple[Bools, ...]:
            return cast("tuple[Bools, ...]", function(states, states))

        return evaluate

    def step_conditions(self, nodes: Sequence[GroundNode]) -> StepConditions:
        """Compile the conditions into one function of old and new packed states."""
        return cast("StepConditions", _conditions(self.layout, nodes, steps=True))


_Part = tuple[int, NDArray[np.int64], tuple[NDArray[np.uint64], ...]]
_Expanded = tuple[list[_Part], list[tuple[int, NDArray[np.int64]]], list[int]]


def numpy_engine(model: GroundModel) -> NumpyEngine:
    """Generate and compile the engine of a model."""
    layout = layout_for(model)
    code = Code(layout)
    _write_expansion(code, model)
    source = code.source()
    live = max(1, len(model.builder.nodes))
    batch = max(_SMALLEST_BATCH, min(_BATCH, _BATCH_BYTES // live))
    return NumpyEngine(model, layout, batch, source, _compiled(source, code, "expand"))


def _no_rows() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


def _compiled(source: str, code: Code, name: str) -> Callable[..., Any]:
    names = dict(_TYPES)
    for table, (values, dtype) in code.tables.items():
        names[table] = np.array(values, dtype=_TYPES[dtype])
    exec(compile(source, f"<generated {name}>", "exec"), names)  # noqa: S102 - our own text
    return cast("Callable[..., Any]", names[name])


def _conditions(layout: Layout, nodes: Sequence[GroundNode], *, steps: bool) -> Callable[..., Any]:
    """A function (old, new) -> one boolean array a node."""
    code = Code(layout)
    code.line("def conditions(old, new):", 0)
    words = [f"old[{i}]" for i in range(layout.words)]
    scope = Scope(code, words, [f"new[{i}]" for i in range(layout.words)] if steps else ())
    results = []
    for node in nodes:
        value = scope.value(node)
        constant = node.op is GroundOp.CONST
        results.append(f"np.full(old.shape[1], {value}, dtype=B)" if constant else value)
    code.line(f"return ({''.join(r + ', ' for r in results)})", 1)
    return _compiled(code.source(), code, "conditions")


def _write_expansion(code: Code, model: GroundModel) -> None:
    code.line("def expand(w):", 0)
    code.line("parts = []; overflows = []", 1)
    everywhere = Scope(code, [f"w[{i}]" for i in range(code.layout.words)])
    counts: dict[int, str] = {}
    false: dict[tuple[str, str], list[str]] = {key: [] for key in requirement_keys(model)}
    for step in model.steps:
        for requirement in step.requirements:
            key = (step.action.name, requirement.name)
            false[key].append(_false_count(everywhere, requirement.condition, counts))
        _write_step(everywhere, step)
    totals = ["+".join(parts) for parts in false.values()]
    code.line(f"return parts, overflows, [{', '.join(totals)}]", 1)


def _false_count(scope: Scope, node: GroundNode, counts: dict[int, str]) -> str:
    """The variable that counts in how many states of the batch a condition is false."""
    if node.id not in counts:
        name = f"n{len(counts)}"
        if node.op is GroundOp.CONST:
            scope.code.line(f"{name} = {'0' if node.value else 'w.shape[1]'}", 1)
        else:
            value = scope.value(node)
            scope.code.line(f"{name} = w.shape[1] - int(np.count_nonzero({value}))", 1)
        counts[node.id] = name
    return counts[node.id]


def _write_step(everywhere: Scope, step: GroundStep) -> None:
    code = everywhere.code
    guard = _guard(everywhere, step)
    if guard == "False":
        return
    if guard == "True":
        guard = everywhere.set("np.ones(w.shape[1], dtype=B)")
    if step.overflows.op is not GroundOp.CONST or step.overflows.value:
        bad = everywhere.set(f"{guard} & {everywhere.value(step.overflows)}")
        code.line(f"if {bad}.any(): overflows.append(({step.index}, np.flatnonzero({bad})))", 1)
        guard = everywhere.set(f"{guard} & ~{bad}")
    rows = everywhere.set(f"np.flatnonzero({guard})")
    code.line(f"if {rows}.size:", 1)
    words = [f"s{i}" for i in range(code.layout.words)]
    for i, word in enumerate(words):
        code.line(f"{word} = w[{i}][{rows}]", 2)
    enabled = Scope(code, words, outer=everywhere, rows=rows, indent=2)
    updated = [_updated(enabled, step, i) for i in range(code.layout.words)]
    code.line(f"parts.append(({step.index}, {rows}, ({''.join(u + ', ' for u in updated)})))", 2)


def _guard(scope: Scope, step: GroundStep) -> str:
    """The guard, from the requirements' values when it is nothing but their conjunction."""
    parts = [r.condition for r in step.requirements if r.condition.op is not GroundOp.CONST]
    if (
        step.guard.op is GroundOp.CONST
        or len(parts) < 2
        or _conjuncts(step.guard) != {i for p in parts for i in _conjuncts(p)}
    ):
        return scope.value(step.guard)
    return scope.set(" & ".join(dict.fromkeys(scope.value(p) for p in parts)))


def _conjuncts(node: GroundNode) -> set[int]:
    if node.op is GroundOp.CONST and node.value:
        return set()
    return {a.id for a in node.args} if node.op is GroundOp.AND else {node.id}


def _updated(scope: Scope, step: GroundStep, word: int) -> str:
    """The expression of one word of the successors."""
    layout = scope.code.layout
    kept, fixed, terms = (1 << 64) - 1, 0, []
    for index, node in step.updates.items():
        place, low = layout.places[index], layout.cells[index].low
        if place.word != word or not place.bits:
            continue
        kept &= ~(place.mask << place.shift)
        if node.op is GroundOp.CONST:
            fixed |= (node.value - low) << place.shift
            continue
        value = scope.value(node)
        raw = f"np.subtract({value}, {low}, dtype=I64)" if low else value
        terms.append(f"({raw}.astype(U64) << U64({place.shift}))")
    if kept == (1 << 64) - 1:
        return scope.words[word]
    if fixed:
        terms.insert(0, f"U64({fixed})")
    return " | ".join([f"{scope.words[word]} & U64({kept})", *terms])
