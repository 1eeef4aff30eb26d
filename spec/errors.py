"""Errors that name the place, what is wrong and the mend.

Every error that a user can cause is a `StagewrightError`: the command line prints its text and exits
with 2. Each class has a stable `code` of its own; `docs/errors/` has a page on each, which `stagewright explain` prints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

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
    """A definition cannot mean what it says; this is reported when it is loaded, never while it runs."""

    code = "SW100"


class SymbolicBoolError(DefinitionError, TypeError):
    """A symbolic value was used where Python itself needs True or False."""

    code = "SW101"


class NameTakenError(DefinitionError):
    """The name of a variable, a member, a profile or an action is unknown, or already taken."""

    code = "SW103"


class RequirementError(DefinitionError):
    """A requirement has no name, has the name of another one, or is not a condition."""

    code = "SW104"


class TracingError(DefinitionError):
    """A body fails with a Python error while it is traced, or does what no body can do."""

    code = "SW105"


class ParameterError(DefinitionError):
    """A parameter is not annotated with a sort, or is given what does not fit, or is never used."""

    code = "SW106"


class UnusedError(DefinitionError):
    """Something is declared and never used: a variable that no action assigns, a budget that no action spends."""

    code = "SW107"


class LoopError(DefinitionError):
    """A loop over a sort is used as an ordinary Python loop, or its variable is used outside it."""

    code = "SW108"


class VariableError(DefinitionError):
    """A variable, field or budget is declared in a way that means nothing."""

    code = "SW109"


class DecoratorError(DefinitionError):
    """A decorator is given an option that it does not know, or one that contradicts another."""

    code = "SW110"


class ResultError(DefinitionError):
    """A method returns what its decorator does not allow."""

    code = "SW111"


class ExpressionError(DefinitionError):
    """An operation is applied to operands that it cannot take."""

    code = "SW112"


class AssignmentError(DefinitionError):
    """A body assigns one place twice, or reads what it has assigned: effects happen at once."""

    code = "SW113"


class EntityError(DefinitionError):
    """An entity or an enum is declared, or its members used, in a way that means nothing."""

    code = "SW114"


class ReasonError(DefinitionError):
    """A reason, a known violation or a known bug does not fit the definition that it is about."""

    code = "SW115"


class UndecoratedError(DefinitionError):
    """A method could be an action or a property, and has no decorator: nothing would run or check it."""

    code = "SW116"


class AssignedTwiceError(DefinitionError):
    """At a scope, a step assigns one place twice: only one of the values can be meant."""

    code = "SW102"


class ScopeError(StagewrightError):
    """A scope, budget or profile does not fit the definition."""

    code = "SW200"


class InitialStatesError(ScopeError):
    """At a scope there is no initial state, or there are too many."""

    code = "SW201"


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


class UnknownNameError(InputError):
    """There is no machine, property, profile or command of that name."""

    code = "SW401"


_ALIKE = 0.5


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, in any case; None if none is much like it."""
    by_lower = {k.lower(): k for k in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=_ALIKE)
    return by_lower[found[0]] if found else None


_MOST_LISTED = 16


def known_names(name: str, known: Collection[str], listing: str) -> str:
    """The help for a name that is none of `known`: the nearest, and all of them or, if they are many, what lists them."""
    listed = f"known: {', '.join(known)}" if len(known) <= _MOST_LISTED else f"{listing} lists them"
    return did_you_mean(name, known) + listed


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean `tablet`? `` with a blank behind it; empty if nothing is much like it."""
    near = nearest(name, known)
    return f"did you mean `{near}`? " if near else ""
