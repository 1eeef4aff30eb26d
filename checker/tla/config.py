"""The configuration with which TLC checks an exported module."""

from __future__ import annotations

from stagewright.checker.tla.blocks import indented
from stagewright.checker.tla.properties import Promise
from stagewright.checker.tla.vocabulary import Vocabulary


def configuration(
    names: Vocabulary,
    promises: list[Promise],
    mentioned: frozenset[str],
    *,
    ends_anywhere: bool,
) -> str:
    """The text of the `.cfg`: constants by the scope, and every promise that TLC can decide.

    `ends_anywhere`: no deadlock is looked for.
    """
    own = names.own
    constants = [
        f"{names.sizes[kind]} = {len(names.members[kind])}"
        if kind in names.sizes
        else f"{name} = {{{', '.join(names.members[kind])}}}"
        for kind, name in names.entities.items()
    ]
    constants += [f"{name} = {name}" for name in names.single_values(mentioned)]
    deadlock = () if ends_anywhere else (own.no_deadlock,)
    invariants = [own.bounds, *deadlock, *(i for p in promises for i in p.invariants)]
    sections = {
        "SPECIFICATION": [own.whole],
        "CONSTANTS": constants,
        "CONSTRAINTS": list(names.constraints.values()),
        "INVARIANTS": invariants,
        "PROPERTIES": [name for p in promises for name in p.properties],
    }
    lines = [
        f"\\* For {names.module}.tla. Run TLC with -deadlock",
        "\\* (newer versions also take it from here, as CHECK_DEADLOCK FALSE).",
    ]
    for keyword, entries in sections.items():
        if keyword == "PROPERTIES" and any(p.live for p in promises):
            lines += ["\\* Without properties that speak of fair runs TLC is many times faster."]
        lines += [keyword, *indented(entries, 2)] if entries else []
    witnesses = [w for p in promises for w in p.witnesses]
    if witnesses:
        lines += ["\\* To see a run that reaches what is sometimes so, take one of these in:"]
        lines += [f"\\* {'PROPERTY' if steps else 'INVARIANT'} {name}" for name, steps in witnesses]
    return "\n".join(lines) + "\n"
