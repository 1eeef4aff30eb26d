"""A definition without one of the assumptions that it declares."""

from __future__ import annotations

import difflib
from dataclasses import replace

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError


def without(definition: Definition, name: str) -> Definition:
    """The definition without one assumption: wherever it is assumed, whatever may happen.

    Raises:
        InputError: it assumes nothing of that name.
    """
    known = [a.name for a in definition.assumptions]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise InputError(
            f"{definition.name} declares no assumption named `{name}`",
            help=f"{hint}it declares: {', '.join(known) or 'none'}",
        )
    of_start = [a.condition for a in definition.assumed_initially if a.name == name]
    actions = tuple(
        replace(
            action,
            requirements=tuple(
                r for r in action.requirements if not (r.because and r.name == name)
            ),
        )
        for action in definition.actions
    )
    return replace(
        definition,
        actions=actions,
        initially=tuple(c for c in definition.initially if c not in of_start),
        assumed_initially=tuple(a for a in definition.assumed_initially if a.name != name),
    )
