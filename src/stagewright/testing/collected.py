"""What `pytest --stagewright` collects: files, their machines, and a test for each property."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stagewright.checker.check import asks_for_deadlock, check
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.commands.checking.refined import Asked, Dependents, refinements_in_module
from stagewright.commands.console.machine_flags import numbers_from
from stagewright.spec.define import define
from stagewright.spec.definition import NO_DEADLOCK, Definition
from stagewright.spec.errors import StagewrightError
from stagewright.spec.loading import machines_in
from stagewright.spec.machine import Machine, profile_names
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report
from stagewright.testing.checks import PropertyError


class VacuousPropertyWarning(UserWarning):
    """A property holds, but what it speaks of never happened."""


class MachineFile(pytest.Module):
    """A Python file that may define machines; pytest imports it as it imports tests."""

    def collect(self) -> Iterator[pytest.Collector]:
        """The machines whose classes the file itself defines; names with an underscore are bases."""
        try:
            module: ModuleType = self.obj
        except StagewrightError as error:
            raise self.CollectError(str(error)) from None
        for name, machine in machines_in(module).items():
            if name.startswith("_"):
                continue
            for profile in self._profiles(machine):
                yield MachineAt.from_parent(
                    self,
                    name=f"{name}[{profile}]" if profile else name,
                    machine=machine,
                    module=module,
                    profile=profile,
                )

    def _profiles(self, machine: type[Machine]) -> Sequence[str]:
        known = list(profile_names(machine))
        if not known or self.config.getoption("--stagewright-all-profiles"):
            return known or [""]
        return known[-1:]


class MachineAt(pytest.Collector):
    """A machine under one profile: checked once, when the first of its tests runs."""

    def __init__(
        self, *, machine: type[Machine], module: ModuleType, profile: str, **of_node: Any
    ) -> None:
        super().__init__(**of_node)
        self._machine = machine
        self._module = module
        self._profile = profile

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each property, for what every machine promises, and for each refinement."""
        try:
            names = [p.name for p in self.definition.properties]
            refined = [m.refinement.name for m in self._asked.mapped]
            self.scope  # noqa: B018 - a wrong size is an error of the collection
        except StagewrightError as error:
            raise self.CollectError(str(error)) from None
        if asks_for_deadlock(self.definition, ()):
            names.append(NO_DEADLOCK)
        for name in [*names, IN_BOUNDS, *refined]:
            yield PropertyItem.from_parent(self, name=name)

    @cached_property
    def definition(self) -> Definition:
        """The definition under the profile."""
        return define(self._machine, self._profile)

    @cached_property
    def scope(self) -> Scope:
        """The default scope, with what the options say of entities and budgets that the machine has."""
        entities = {kind.__name__.lower() for kind in self.definition.entities}
        budgets = {budget.name for budget in self.definition.budgets}
        sizes = self._numbers("--stagewright-size", unbounded=False)
        spent = self._numbers("--stagewright-budget", unbounded=True)
        return scope_of(
            self.definition,
            {n: size for n, size in sizes.items() if n.lower() in entities and size is not None},
            {n: limit for n, limit in spent.items() if n in budgets},
        )

    @cached_property
    def verdicts(self) -> Mapping[str, PropertyVerdict]:
        """By name: what one search of all reachable states decides."""
        return {verdict.name: verdict for verdict in self._report.verdicts}

    @cached_property
    def _report(self) -> Report:
        return check(
            self.definition,
            self.scope,
            coverage=False,
            symmetry=True,
            refinements=self._asked.mapped,
        )

    @cached_property
    def _asked(self) -> Asked:
        return refinements_in_module(self._machine, self._module, self.definition, Dependents.NONE)

    def _numbers(self, flag: str, *, unbounded: bool) -> Mapping[str, int | None]:
        entries: list[str] = self.config.getoption(flag) or []
        return numbers_from(flag, entries, unbounded=unbounded)


class PropertyItem(pytest.Item):
    """One property of a machine."""

    def runtest(self) -> None:
        """Fail with the counterexample where the property does not hold."""
        at = self._machine
        verdict = at.verdicts[self.name]
        if verdict.outcome is not Outcome.HOLDS:
            raise PropertyError(at.definition, at.scope, verdict)
        if verdict.vacuous:
            warnings.warn(
                VacuousPropertyWarning(f"{self.name} of {at.definition.name}: {verdict.note}"),
                stacklevel=1,
            )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The counterexample alone: the lines of Stagewright that found it are of no interest."""
        if isinstance(excinfo.value, PropertyError | StagewrightError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the property is written, and its name with the machine's."""
        at = self._machine
        places = {p.name: p.where for p in at.definition.properties}
        where = places.get(self.name)
        title = f"{at.name}.{self.name}"
        if where is None:
            return self.path, None, title
        return Path(where.file), where.line - 1, title

    @property
    def _machine(self) -> MachineAt:
        assert isinstance(self.parent, MachineAt)
        return self.parent
