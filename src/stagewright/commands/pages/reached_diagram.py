"""A machine's state diagram with the edges that runs take, and what is said of where they were searched for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stagewright.checker.limits import Limits
from stagewright.checker.reached_edges import MOST_STATES, Reached, reached_edges
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.errors import ScopeError
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.text.state_diagram import Diagram, Edge, diagram_of

if TYPE_CHECKING:
    from typing import TextIO

    from stagewright.spec.definition import Definition


def reached_diagram(
    definition: Definition,
    variable: str = "",
    scope: Scope | None = None,
    *,
    states: int = MOST_STATES,
    progress: TextIO | None = None,
) -> Diagram:
    """The diagram of a variable, or of the main one, with the edges that some run takes at a scope.

    Without a scope: at the default one, and, marked as such, at the others that the definition names. Where
    the machine cannot be searched, the edges are those that the guards allow, and `basis` says so. `states`:
    how many are looked at, at each scope. `progress`: where to report it.

    Raises:
        InputError: there is no such enum variable.
        ScopeError: the definition cannot be searched at the scope asked for.
    """
    from stagewright.commands.console.progress import progress_on

    allowed = diagram_of(definition, variable)
    default = scope_of(definition)
    title = f"searching for the edges of {allowed.variable} at {scope or 'the default scope'}"
    with nullcontext() if progress is None else progress_on(progress, title) as show:
        look = partial(
            reached_edges,
            definition,
            allowed.variable,
            limits=Limits(states=states),
            progress=show,
        )
        try:
            first = look(scope or default)
        except ScopeError as error:
            if scope is not None:
                raise
            return _guards_only(allowed, error.problem)
        if not first.states:
            return _guards_only(allowed, first.stopped)
        found = [first]
        for other in exercising_scopes(definition) if scope is None else ():
            if other != default and _open(allowed, found):
                found.append(look(other))
    return _drawn(definition, allowed, found, is_default=first.scope == default)


def _open(allowed: Diagram, found: Sequence[Reached]) -> bool:
    """Whether another scope may show an edge that was not seen yet."""
    return bool(allowed.undrawn) or not _edges(found).issuperset(allowed.edges)


def _edges(found: Sequence[Reached]) -> set[Edge]:
    return {edge for one in found for edge in one.edges}


def _guards_only(allowed: Diagram, why: str) -> Diagram:
    return replace(allowed, notes=(f"those that runs take could not be searched for: {why}",))


def _drawn(
    definition: Definition, allowed: Diagram, found: Sequence[Reached], *, is_default: bool
) -> Diagram:
    first, seen = found[0], _edges(found)
    whole = not any(one.stopped for one in found)
    return replace(
        allowed,
        initial=first.initial,
        edges=_in_order(definition, allowed, seen),
        undrawn=(),
        basis=_basis(first, "the default scope" if is_default else str(first.scope)),
        notes=tuple(_notes(found, is_default=is_default)),
        elsewhere=frozenset(seen.difference(first.edges)),
        untaken=tuple(e for e in allowed.edges if e not in seen) if whole else (),
    )


def _in_order(definition: Definition, diagram: Diagram, edges: set[Edge]) -> tuple[Edge, ...]:
    """By action, then by the members that they leave and enter."""
    actions = {action.name: i for i, action in enumerate(definition.actions)}
    members = {member: i for i, member in enumerate(diagram.members)}
    return tuple(sorted(edges, key=lambda e: (actions[e[2]], members[e[0]], members[e[1]])))


def _basis(first: Reached, where: str) -> str:
    what = "orbits of states" if first.orbits else "states"
    if not first.stopped:
        return f"edges that runs take at {where}, in all of its {first.states:,} {what}"
    seen = f"edges seen in {first.states:,} {what}, up to depth {first.depth}, at {where}"
    return f"{seen}; there are more states, and perhaps more edges"


def _notes(found: Sequence[Reached], *, is_default: bool) -> list[str]:
    """The default scope, and how those scopes differ from it that showed more edges."""
    first = found[0]
    notes = [f"default scope: {first.scope}"] if is_default else []
    for i, other in enumerate(found):
        if not _edges(found[:i]).issuperset(other.edges) and i:
            cut = f", of which {other.states:,} states were looked at" if other.stopped else ""
            notes.append(f"other scope: {_difference(first.scope, other.scope)}{cut}")
    return notes


def _difference(one: Scope, other: Scope) -> str:
    sizes = [f"{k.__name__}={n}" for k, n in other.sizes.items() if one.sizes[k] != n]
    budgets = [
        f"{name}={'any' if n is None else n}"
        for name, n in other.budgets.items()
        if one.budgets[name] != n
    ]
    return ", ".join([*sizes, *budgets])
