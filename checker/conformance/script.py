"""A suite written as a pytest file: the walks as text, the adapter and the definition by name.

__tracebackhide__ = True  # pytest shows a failure in the test and the implementation, not here

The file needs nothing but stagewright and the adapter; what each move must lead to is decided by the
definition when the tests run, so the file says by which definition it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagewright.checker.conformance.adapter import AdapterFactory
from stagewright.checker.conformance.divergence import Move, Walk
from stagewright.checker.conformance.oracle import Oracle, without_budgets
from stagewright.checker.conformance.play import run_walk
from stagewright.checker.conformance.suites import Suite
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Step

_REFUSED = "! "
_LONGEST_LINE = 80  # columns, before it is indented


@dataclass(frozen=True)
class Origin:
    """Where an exported file finds what it needs: names that `load` and the adapter's loader know."""

    machine: str
    adapter: str
    command: str  # that made the file


def exported(oracle: Oracle, suites: Sequence[Suite], origin: Origin) -> str:
    """The text of a pytest file with one test a walk."""
    if any(suite.unbudgeted for suite in suites):
        oracle = oracle.unbudgeted()
    definition, scope = oracle.source, oracle.scope
    sizes = {kind.__name__: size for kind, size in scope.sizes.items()}
    starts = [without_budgets(state) for state in oracle.initial_states()]
    lines = [
        f'"""Conformance tests of {oracle.name}, made by:',
        "",
        f"    {origin.command}",
        "",
        *(
            f"{s.name}: {s.covered:,} of {s.total:,} {s.of} in {len(s.walks):,} walks."
            for s in suites
        ),
        "A line is a step that must happen; with `!` it must be refused and change nothing.",
        '"""',
        "",
        "import pytest",
        "",
        "from stagewright.testing import ExportedTests",
        "",
        "TESTS = ExportedTests(",
        "    __file__,",
        f"    machine={origin.machine!r},",
        f"    profile={definition.profile!r},",
        f"    adapter={origin.adapter!r},",
        f"    fingerprint={definition.fingerprint()!r},",
        f"    sizes={sizes!r},",
        f"    budgets={dict(scope.budgets)!r},",
        ")",
        "",
        "# name: (number of the initial state, moves)",
        "WALKS = {",
    ]
    for suite in suites:
        for number, walk in enumerate(suite.walks):
            lines.append(
                f'    "{suite.name}-{number}": ({starts.index(without_budgets(walk.start))}, """'
            )
            lines += [f"        {line}" for line in _written(walk.moves)]
            lines.append('    """),')
    lines += [
        "}",
        "",
        "",
        '@pytest.mark.parametrize("walk", WALKS)',
        "def test_implementation_follows_its_definition(walk: str) -> None:",
        "    TESTS.run(*WALKS[walk])",
    ]
    return "\n".join(lines) + "\n"


class Script:
    """Runs walks written as text."""

    def __init__(
        self,
        definition: Definition,
        *,
        fingerprint: str,
        sizes: dict[str, int],
        budgets: dict[str, int | None],
    ) -> None:
        if definition.fingerprint() != fingerprint:
            raise InputError(
                f"{definition.name} has changed since these tests were made from it",
                help="make them again with `stagewright test --export`",
            )
        self.scope = scope_of(definition, sizes, budgets)
        self._oracle = Oracle(definition, self.scope)
        self._starts = self._oracle.initial_states()
        self._steps = {step.label: step for step in self._oracle.steps}

    def run(self, factory: AdapterFactory, start: int, text: str) -> None:
        """Drive an implementation along a walk.

        Raises:
            ConformanceError: it differs from its definition.
        """
        moves = tuple(self._moves(text))
        run_walk(self._oracle, factory, Walk(self._starts[start], moves))

    def _moves(self, text: str) -> Iterator[Move]:
        for line in text.split("\n"):
            for written in filter(None, map(str.strip, line.split(";"))):
                refused = written.startswith(_REFUSED)
                yield Move(self._step(written.removeprefix(_REFUSED)), refused)

    def _step(self, written: str) -> Step:
        if written not in self._steps:
            raise InputError(
                f"`{written}` is no step of {self._oracle.name}",
                help="the file was edited: make it again",
            )
        return self._steps[written]


def _written(moves: Sequence[Move]) -> Iterator[str]:
    """The moves, refused ones together on a line as far as they fit."""
    line = ""
    for move in moves:
        text = f"{_REFUSED if move.refused else ''}{move.step.label}"
        joins = move.refused and line.startswith(_REFUSED)
        if joins and len(line) + len(text) <= _LONGEST_LINE:
            line = f"{line}; {text}"
            continue
        if line:
            yield line
        line = text
    if line:
        yield line
