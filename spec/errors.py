"""Errors that name the place, what is wrong and the mend.

Every error that a user can cause is a `StagewrightError`: the command line prints its text and exits
with 2. Each class has a stable `code`.
"""

from __future__ import annotations

from stagewright.spec.source import Source


class StagewrightError(Exception):
    """Base of all errors a user can cause: what is wrong, where, and what to do about it."""

    code = "SW000"

    def __init__(self, problem: str, *, help: str = "", where: Source | None = None) -> None:
        self.problem = problem
        self.help = help
        self.where = where
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [self.problem]
        if self.where is not None:
            lines.append(self.where.excerpt())
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class DefinitionError(StagewrightError):
    """A definition cannot mean what it says; raised while it is made, never while it runs."""

    code = "SW100"


class SymbolicBoolError(DefinitionError, TypeError):
    """A symbolic value was used where Python itself needs True or False."""

    code = "SW101"


class AssignedTwiceError(DefinitionError):
    """At a scope, a step assigns one place twice: only one of the values can be meant."""

    code = "SW102"


class ScopeError(StagewrightError):
    """A scope, budget or profile does not fit the definition."""

    code = "SW200"


class DomainError(StagewrightError):
    """An action assigned a number outside the bounds its variable was declared with."""

    code = "SW300"


class RefusedError(StagewrightError):
    """An action was attempted in a state in which one of its named requirements is false."""

    code = "SW310"

    def __init__(self, problem: str, requirements: tuple[str, ...], *, help: str = "") -> None:
        self.requirements = requirements
        super().__init__(problem, help=help)


class InputError(StagewrightError):
    """A file, flag or name given by the user cannot be used."""

    code = "SW400"
