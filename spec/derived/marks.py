"""What is history steers nothing: no guard and no effect on another variable reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stagewright.spec.definition import Action, Kept, Variable
from stagewright.spec.errors import DefinitionError
from stagewright.spec.nodes import Node, root_variable, variables_in
from stagewright.spec.source import Source


def refuse_steering(variables: Iterable[Variable], actions: Iterable[Action]) -> None:
    """Refuse a definition in which something depends on a variable that is marked as history.

    Raises:
        DefinitionError: names the variable, and what reads it.
    """
    history = {v.name for v in variables if v.kept is Kept.HISTORY}
    if not history:
        return
    for action in actions:
        for node, what, where in _deciding(action, history):
            for name in sorted(variables_in(node) & history):
                raise DefinitionError(
                    f"`{name}` is history, but {what} of action `{action.name}` reads it",
                    where=where or action.where,
                    help="what runs has no such variable: let the action depend on another one, or "
                    "drop history(...) from its declaration",
                )


def _deciding(action: Action, history: set[str]) -> Iterator[tuple[Node, str, Source | None]]:
    """The expressions that decide whether an action happens, and what it does to other variables."""
    for guard in action.requirements:
        yield guard.condition, f"the requirement `{guard.name}`", guard.where
    for assignment in action.assignments:
        target = root_variable(assignment.place)
        if target not in history:
            for node in (assignment.place, assignment.value):
                yield node, f"the effect on `{target}`", assignment.where
