"""A definition as one `transitions` machine that any number of instances of any size share.

States are the members of the control variable, triggers the actions; sources and targets are read off
the definition. The model of a trigger is a step on its way, whose control state is read from the columns
of its instance: there is one account of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from enum import Enum
from functools import cached_property
from typing import Any

from stagewright.impl.runtime.columns import Cells, Column, Writes
from stagewright.impl.runtime.compiler import Compiler
from stagewright.impl.runtime.control import control_column, edges_of, moved_by
from stagewright.impl.runtime.layout import Layout
from stagewright.impl.runtime.present import Live
from stagewright.impl.runtime.shapes import fitting, naming
from stagewright.impl.runtime.steps import machine_of
from stagewright.spec.definition import Action, Definition
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DomainError
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import numbers_in
from stagewright.spec.nodes import root_variable
from stagewright.spec.scope import Scope, living, within_budgets
from stagewright.spec.sorts import IntSort, OptionalSort, RecordSort, SeqSort, SetSort
from stagewright.spec.values import show


class Program:
    """What all instances of a definition share; `control` names its control variable if not the obvious one.

    Without a scope an instance is of a living system: any number of entities, which come and go, and
    nothing that is `bounded(...)` for the sake of a check; numbers and budgets have no bounds either. With one, it does what a check at that scope does: its
    entities are there, budgets are spent, and a number outside of its bounds is a DomainError.

    Raises:
        InputError: there is no enum variable called `control`.
    """

    def __init__(
        self, definition: Definition, scope: Scope | None = None, *, control: str | None = None
    ) -> None:
        self.definition = definition
        self.scope = scope
        self.running = living(definition) if scope is None else within_budgets(definition, scope)
        self.variables = {v.name: v for v in self.running.variables}
        self.history = frozenset(v.name for v in definition.variables).difference(self.variables)
        self.compiler = Compiler(self.running)
        self.columns = self.compiler.columns
        self.layout = Layout(self.running, self.columns, self.compiler.indexed)
        self.fits = {v.name: fitting(v.sort) for v in self.running.variables}
        self.naming = {v.name: naming(v.sort) for v in self.running.variables}
        self.actions = {a.name: a for a in self.running.actions}
        self.written = {a.name: a for a in definition.actions}  # also those without a budget
        self.control = control_column(definition, self.columns, control)
        self.moved = {a.name: moved_by(a, self.control) for a in self.running.actions}
        self.edges = tuple(e for a in self.running.actions for e in edges_of(a, self.control))
        self.machine = machine_of(self.members, self.edges)
        self._bounded = frozenset(c.index for c in self.columns if scope and _has_bounds(c))

    @property
    def members(self) -> tuple[Enum, ...]:
        """The members of the control variable."""
        return () if self.control is None else self.control.sort.members  # type: ignore[union-attr]

    def cells(self, live: Live) -> Cells:
        """A state with these entities in which every variable is as it starts."""
        kinds = {kind: live.get(kind, ()) for kind in self.definition.entities}
        cells = Cells(self.layout, kinds)
        cells.put(self._beginning(cells))
        return cells

    def add(self, cells: Cells, entity: Entity) -> None:
        """An entity comes: everything of it is as it starts."""
        cells.add(entity)
        cells.put(self._beginning(cells, entity))

    def reset(self, cells: Cells, columns: Collection[Column]) -> None:
        """Let columns be as they start."""
        for column in columns:
            cells.reset(column)
        indices = {column.index for column in columns}
        began = self._beginning(cells)
        cells.put({where: value for where, value in began.items() if where[0] in indices})

    def _beginning(self, cells: Cells, entity: Entity | None = None) -> Writes:
        """What begins as a function of its key; of one entity only, if it is named."""
        writes: Writes = {}
        kind = None if entity is None else type(entity)
        for begin in self.compiler.beginnings.get(kind, ()):
            arguments = () if entity is None else (entity,)
            writes |= begin.effect(cells.held, cells.live, cells.buckets, *arguments)
        return writes

    @cached_property
    def unmet(self) -> Callable[[Cells], bool]:
        """Whether a state is none that the definition may start in."""
        conditions = [self.compiler.condition(c) for c in self.running.initially]

        def ask(cells: Cells) -> bool:
            return not all(c(cells.held, cells.live, cells.buckets) for c in conditions)

        return ask

    @cached_property
    def starts(self) -> GroundModel:
        """The initial states at the scope.

        Raises:
            ScopeError: there is none, or there are too many candidates.
        """
        assert self.scope is not None, "a program without a scope has no list of initial states"
        return ground(replace(self.running, actions=(), properties=()), self.scope, bounded=False)

    def check_bounds(self, action: Action, label: str, writes: Writes) -> None:
        """Refuse numbers outside of their variables' bounds, at a scope.

        Raises:
            DomainError: names the step, the place and its bounds.
        """
        if not self._bounded:
            return
        for (index, key, *member), value in writes.items():
            if index not in self._bounded:
                continue
            column = self.columns[index]
            for low, high, number in _numbers(column, key, member, value):
                if low <= number <= high:
                    continue
                where = [
                    a.where
                    for a in action.assignments
                    if root_variable(a.place) == column.variable.name
                ]
                at = "" if key is None else f"[{show(key) if not isinstance(key, tuple) else key}]"
                raise DomainError(
                    f"`{label}` assigns {number} to {column.name}{at}, outside of {low}..{high}",
                    where=where[0] if where else None,
                    help="add a requirement that keeps it within its bounds, or widen them",
                )


def _has_bounds(column: Column) -> bool:
    """Whether a column, a key or a member in it may have a number, or a length."""
    sorts = [column.sort, *column.keys]
    sorts += [column.sort.element] if isinstance(column.sort, SetSort | OptionalSort) else []
    fields = [f for s in sorts if isinstance(s, RecordSort) for _, f in s.fields]
    return any(isinstance(s, IntSort | SeqSort) for s in (*sorts, *fields))


def _numbers(
    column: Column, key: Any, member: list[Any], value: Any
) -> Iterator[tuple[int, int, int]]:
    """The numbers that a write brings into a column, with their bounds."""
    for sort, one in zip(column.keys, (key,) if len(column.keys) == 1 else key or (), strict=True):
        yield from numbers_in(sort, one)
    match column.sort:
        case SetSort(element):
            for one in member or value:
                yield from numbers_in(element, one)
        case OptionalSort(element):
            yield from numbers_in(element, value) if value is not None else ()
        case _:
            yield from numbers_in(column.sort, value)
