"""The control variable of a definition: the one whose members become the states of its runtime."""

from __future__ import annotations

from difflib import get_close_matches

from stagewright.spec.definition import Definition, Variable
from stagewright.spec.errors import InputError
from stagewright.spec.nodes import Literal, Read
from stagewright.spec.sorts import EnumSort
from stagewright.spec.values import show


def control_variable(definition: Definition, name: str | None = None) -> Variable | None:
    """The variable called `name`; without a name the enum variable that moves through most members.

    Among equals it is the one that most actions assign, then the one declared first. None if the
    definition has no enum variable.

    Raises:
        InputError: there is no enum variable of that name.
    """
    candidates = [
        v for v in definition.variables if isinstance(v.sort, EnumSort) and not v.constant
    ]
    if name is None:
        return max(candidates, key=lambda v: _movement(definition, v), default=None)
    for variable in candidates:
        if variable.name == name:
            return variable
    known = [v.name for v in candidates]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    raise InputError(
        f"{definition.name} has no enum variable `{name}` to be its control variable",
        help=f"{hint}known: {', '.join(known) or 'none'}",
    )


def _movement(definition: Definition, variable: Variable) -> tuple[int, int]:
    """How many members the actions give a variable, and how many actions assign it."""
    assert isinstance(variable.sort, EnumSort)
    reached: set[str] = set()
    assigning: set[str] = set()
    for action in definition.actions:
        for assignment in action.assignments:
            if isinstance(assignment.place, Read) and assignment.place.variable == variable.name:
                assigning.add(action.name)
                match assignment.value:
                    case Literal(member):
                        reached.add(show(member))
                    case _:
                        reached.update(m.name for m in variable.sort.members)
    return len(reached), len(assigning)
