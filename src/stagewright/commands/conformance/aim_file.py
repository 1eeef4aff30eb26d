"""Reads what production never did of a definition: the `coverage.json` that `validate --out DIR` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition
    from stagewright.spec.grounding.coverable import Thing

FILE = "coverage.json"
_AGAIN = "write it again: stagewright validate PATH… --out DIR"
_NEVER = "never"
_SEEN = ("certainly", "possibly", _NEVER)


@dataclass(frozen=True)
class Aim:
    """What is aimed at: the things of a definition that none of so many recorded events did."""

    path: Path
    events: int
    things: tuple[Thing, ...]


def read_aim(path: Path, definition: Definition) -> Aim:
    """What the file, or the one in the directory, says that production never did of the definition.

    Raises:
        InputError: it cannot be read, is damaged, or is about another definition.
    """
    path = path / FILE if path.is_dir() else path
    machines = _own(path, _machines(path), definition)
    seen: dict[Thing, bool] = {}
    for machine in machines:
        for thing, did in _things(path, machine):
            seen[thing] = seen.get(thing, False) or did
    _check(path, seen, definition)
    events = sum(_number(path, machine, "events") for machine in machines)
    return Aim(path, events, tuple(thing for thing, did in seen.items() if not did))


def _machines(path: Path) -> list[Mapping[str, object]]:
    from stagewright.traces.coverage.report import VERSION

    try:
        found: object = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", help=_AGAIN) from error
    except ValueError as error:  # no UTF-8, or no JSON
        _damaged(path, str(error))
    if not isinstance(found, dict) or "machines" not in found:
        _damaged(path, "it has no `machines`")
    document = cast("dict[str, object]", found)
    if document.get("version") != VERSION:
        raise InputError(
            f"{path} has version {document.get('version')!r}; this program reads version {VERSION}",
            help=_AGAIN,
        )
    return _rows(path, document, "machines")


def _own(
    path: Path, machines: Sequence[Mapping[str, object]], definition: Definition
) -> list[Mapping[str, object]]:
    """The entries about the definition; of several scopes there are several."""
    own = definition.fingerprint()
    found = [m for m in machines if _text(path, m, "fingerprint") == own]
    if found:
        return found
    named = [m for m in machines if _text(path, m, "machine") == definition.name]
    same = [m for m in named if _text(path, m, "profile") == definition.profile]
    what = f"{definition.name}{f' ({definition.profile})' if definition.profile else ''}"
    if same:
        raise InputError(
            f"{path} is about {what} as it was with the fingerprint {same[0]['fingerprint']}; it is {own} now",
            help="validate the traces by this version, or test that one",
        )
    if named:
        known = ", ".join(sorted({str(m["profile"]) for m in named}))
        raise InputError(
            f"{path} is not about {what}, but about the profiles {known}",
            help=f"test one of these: --profile {known.split(', ')[-1]}",
        )
    others = ", ".join(sorted({_text(path, m, "machine") for m in machines}))
    raise InputError(
        f"{path} is not about {what}, but about {others or 'no machine'}",
        help="validate traces of the machine that is tested",
    )


def _things(path: Path, machine: Mapping[str, object]) -> Iterator[tuple[Thing, bool]]:
    """Each thing, and whether it was ever done."""
    from stagewright.spec.grounding.coverable import ActionOf, Edge, Move, RequirementOf, ValueOf

    for kind, key, names in (
        (ValueOf, "values", ("place", "value")),
        (ActionOf, "actions", ("action",)),
        (Move, "moves", ("variable", "source", "target")),
        (Edge, "edges", ("variable", "source", "target", "action")),
        (RequirementOf, "requirements", ("action", "requirement")),
    ):
        for row in _rows(path, machine, key):
            words = [_text(path, row, name) for name in names]
            yield cast("Any", kind)(*words), _done(path, row)
            for part in _rows(path, row, "parts") if kind is RequirementOf else ():
                yield (
                    RequirementOf(words[0], words[1], _text(path, part, "part")),
                    _done(path, part),
                )


def _check(path: Path, things: Mapping[Thing, bool], definition: Definition) -> None:
    """Refuse names that the definition does not have; values depend on the scope that checked."""
    from stagewright.spec.grounding.coverable import ActionOf, Edge, Move, RequirementOf, parts_of

    actions = {action.name: action for action in definition.actions}
    requirements = {(a.name, r.name, "") for a in definition.actions for r in a.requirements}
    for action, of_action in parts_of(definition).items():
        requirements |= {(action, name, part) for name, ps in of_action.items() for part, _ in ps}
    variables = {variable.name for variable in definition.variables}
    for thing in things:
        known = True
        match thing:
            case ActionOf(action):
                known = action in actions
            case Edge(variable, _, _, action):
                known = action in actions and variable in variables
            case Move(variable):
                known = variable in variables
            case RequirementOf(action, requirement, part):
                known = (action, requirement, part) in requirements
            case _:
                pass
        if not known:
            _damaged(path, f"the definition has no {thing}")


def _done(path: Path, row: Mapping[str, object]) -> bool:
    seen = _text(path, row, "seen")
    if seen not in _SEEN:
        _damaged(path, f"`seen` is {seen!r}")
    return seen != _NEVER


def _rows(path: Path, holder: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    found = holder.get(name)
    if not isinstance(found, list):
        _damaged(path, f"`{name}` is not a list")
    rows = cast("list[object]", found)
    if not all(isinstance(row, dict) for row in rows):
        _damaged(path, f"`{name}` has what is no object")
    return cast("list[Mapping[str, object]]", rows)


def _text(path: Path, holder: Mapping[str, object], name: str) -> str:
    found = holder.get(name)
    if not isinstance(found, str):
        _damaged(path, f"`{name}` is not a text")
    return found


def _number(path: Path, holder: Mapping[str, object], name: str) -> int:
    found = holder.get(name)
    if not isinstance(found, int):
        _damaged(path, f"`{name}` is not a number")
    return found


def _damaged(path: Path, why: str) -> NoReturn:
    raise InputError(f"{path} is not a coverage of traces: {why}", help=_AGAIN)
