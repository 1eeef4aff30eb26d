"""The runtime at living sizes: how soon it is ready, steps a second, the slowest step, memory of instances.

The same recorded steps are taken by the runtime, through `transitions`, and by the reference interpreter; a
stock `transitions` machine with one condition and one callback a step says what the library itself costs.
CPU time of one process; each figure is the best of the repeats.
"""

from __future__ import annotations

import argparse
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

from tests.benchmarks.contest import Contest, Show
from tests.benchmarks.report import Report
from tests.benchmarks.runtime.cases import CASES, Case, recorded
from tests.benchmarks.tables import Table, ratio, whole
from transitions import Machine

from stagewright.impl.runtime import Instance, Program
from stagewright.spec.define import defined_afresh
from stagewright.spec.errors import DomainError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.machine import profile_names
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step

INSTANCES = 10_000
_INTERPRETED_SECONDS = 2.0
_PLAIN = 20_000


@dataclass(frozen=True)
class Figures:
    """What one case came to; times in CPU seconds."""

    case: str
    define: float
    compile: float
    instances: float
    steps: int
    speed: float
    slowest: float
    slowest_action: str
    interpreted: float  # steps a second

    @property
    def ready(self) -> float:
        """From the class to running instances."""
        return self.define + self.compile + self.instances


@dataclass(frozen=True)
class RuntimeReport(Report):
    """The tables, and the figures behind them."""

    figures: tuple[Figures, ...] = ()

    def record(self, facts: object, suite: str) -> dict[str, object]:
        """For the JSON."""
        assert isinstance(facts, dict)
        return {**super().record(facts, suite), "figures": [asdict(f) for f in self.figures]}


def configure(parser: argparse.ArgumentParser) -> None:
    """This suite knows no more arguments."""


def names() -> list[str]:
    """What --only can name."""
    return [case.name for case in CASES]


def run(args: argparse.Namespace, scratch: Path, show: Show) -> Report:
    """Measure what the arguments ask for."""
    repeats = args.repeats or (2 if args.quick else 5)
    plain = max(_plain_transitions() for _ in range(repeats))
    found: list[Figures] = []
    for case in CASES:
        if not args.only or case.name in args.only:
            show(f"{case.machine}, {case.size}")
            found.append(_measured(case, repeats))
    memory = [] if args.only else [_memory()]
    return RuntimeReport([_table(found, plain), *memory], Contest(), tuple(found))


def _measured(case: Case, repeats: int) -> Figures:
    begun = process_time()
    machine = case.definition()
    definition = defined_afresh(machine, (profile_names(machine) or [""])[-1])
    defined = process_time()
    program = Program(definition)
    compiled = process_time()
    case.started(program)
    ready = process_time()
    walk = recorded(case, program)
    best = min(_replayed(case, program, walk) for _ in range(repeats))
    slowest, action = _slowest(case, program, walk, repeats)
    return Figures(
        f"{case.machine}, {case.size}",
        defined - begun,
        compiled - defined,
        ready - compiled,
        len(walk),
        len(walk) / best,
        slowest,
        action,
        _interpreted(case, program, walk),
    )


def _replayed(case: Case, program: Program, walk: list[tuple[int, Step]]) -> float:
    running = case.started(program)
    calls = [(running[one], step.action, dict(step.arguments)) for one, step in walk]
    begun = process_time()
    for instance, action, arguments in calls:
        instance.fire(action, **arguments)
    return process_time() - begun


def _slowest(
    case: Case, program: Program, walk: list[tuple[int, Step]], repeats: int
) -> tuple[float, str]:
    """The step that takes longest also when it takes least: one delay of the system does not count."""
    least = [1e9] * len(walk)
    for _ in range(max(3, repeats)):
        running = case.started(program)
        for number, (one, step) in enumerate(walk):
            instance, action, arguments = running[one], step.action, dict(step.arguments)
            begun = process_time()
            instance.fire(action, **arguments)
            least[number] = min(least[number], process_time() - begun)
    worst = max(range(len(walk)), key=least.__getitem__)
    return least[worst], walk[worst][1].action


def _interpreted(case: Case, program: Program, walk: list[tuple[int, Step]]) -> float:
    """Steps a second of the reference interpreter, as far as it comes in a while."""
    running = case.started(program)
    sizes = {kind: len(running[0].live(kind)) for kind in program.definition.entities}
    budgets = {b.name: None for b in program.definition.budgets}
    interpreter = Interpreter(program.running, Scope(FrozenMap(sizes), FrozenMap(budgets)))
    states = [one.state for one in running]
    done, begun = 0, process_time()
    for one, step in walk:
        if process_time() - begun > _INTERPRETED_SECONDS:
            break
        try:
            states[one] = interpreter.take(step, states[one])
        except DomainError:
            break  # it knows the bounds of a check
        done += 1
    spent = process_time() - begun
    for one, step in walk[:done]:
        running[one].fire(step)
    assert [r.state for r in running] == states, "the runtime and the interpreter differ"
    return done / spent


class _Plain:
    """The model of a stock machine."""

    taken = 0
    ready = True

    def is_ready(self) -> bool:
        return self.ready

    def count(self) -> None:
        self.taken += 1


def _plain_transitions() -> float:
    """Steps a second of the library, used as its documentation does."""
    model = _Plain()
    machine = Machine(model, states=["a", "b", "c"], initial="a", auto_transitions=False)
    for source, target in (("a", "b"), ("b", "c"), ("c", "a")):
        machine.add_transition("go", source, target, conditions="is_ready", before="count")
    begun = process_time()
    for _ in range(_PLAIN):
        model.trigger("go")  # type: ignore[attr-defined]  # the library adds it
    return _PLAIN / (process_time() - begun)


def _memory() -> Table:
    """What instances of one program hold."""
    case = next(c for c in CASES if c.name == "migrations")
    program = Program(defined_afresh(case.definition(), ""))
    Instance(program)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    many = [Instance(program, name=str(i)) for i in range(INSTANCES)]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = (after - before) / 1e6
    row = (f"{len(many):,} instances of {case.machine}", f"{size:.1f} MB")
    return Table("memory", ("", "held"), (row,))


def _table(found: list[Figures], plain: float) -> Table:
    heads = (
        "machine",
        "ready",
        "steps/s",
        "beside plain transitions",
        "beside the interpreter",
        "slowest step",
        "which",
    )
    rows = tuple(
        (
            f.case,
            f"{f.ready:.2f} s",
            whole(f.speed),
            ratio(f.speed / plain),
            ratio(f.speed / f.interpreted),
            f"{f.slowest * 1e6:.0f} \N{MICRO SIGN}s",
            f.slowest_action,
        )
        for f in found
    )
    note = f"plain transitions, one condition and one callback a step: {whole(plain)} steps/s"
    return Table("the runtime at living sizes, through transitions, CPU time", heads, rows, note)
