"""Commands: steps of one or several instances taken in order, as one; all of them, with one record, or none.

Each step is checked on what those before it left, not on the state before the command: two nodes that may
each leave while the other stays may not leave in one command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from stagewright.impl.runtime.steps import StepModel
from stagewright.spec.definition import Kept
from stagewright.spec.errors import InputError, RefusedError
from stagewright.spec.values import FrozenMap, Value, show
from stagewright.spec.verdict import Step

if TYPE_CHECKING:
    from stagewright.impl.runtime.instance import Instance


class Place(NamedTuple):
    """Where a value stands: a column as the definition names it, and its key.

    The key is None without maps above the column, one value under one map, a tuple under several. With
    a `member` the value says whether it is in the set there.
    """

    column: str
    key: Any = None
    member: Any = None


@dataclass(frozen=True)
class Taken:
    """One step of a command, with what it changed, and that part of it which is committed."""

    instance: Instance
    step: Step
    mutations: Mapping[Place, Value]
    committed: Mapping[Place, Value]


@dataclass(frozen=True)
class Record:
    """What a command did: its steps in their order."""

    steps: tuple[Taken, ...]


Log = Callable[[Record], None]
"""Takes the record of a command when its steps have counted; an exception undoes them all."""


def command(*steps: StepModel, log: Log | None = None) -> None:
    """Take steps in order, as one: `command(tablet.call("finish"), task.call("remove"), log=commit)`.

    Raises:
        RefusedError: a step is not enabled when its turn comes; names its instance and the requirements
            that are false. Whatever it or the log raises, all steps are undone.
        InputError: a step was tried already: each attempt is a `call` of its own.
    """
    done = 0
    try:
        for step in steps:
            _take(step)
            done += 1
        if log is not None:
            log(Record(tuple(map(taken, steps))))
    except BaseException:
        for step in reversed(steps[:done]):
            step.cells.put(step.undo)
        raise


def _take(step: StepModel) -> None:
    if step.asked:
        raise InputError(f"`{step.action}` was tried already", help="make a new `call(...)`")
    if not step.taken():
        raise refused(step)


def taken(step: StepModel) -> Taken:
    """A step that counts, with what it changed."""
    program = step.instance.program
    names = [p.name for p in program.actions[step.action].params]
    mutations: dict[Place, Value] = {}
    committed: dict[Place, Value] = {}
    for where, value in step.writes.items():
        if step.undo[where] == value:
            continue
        column = program.columns[where[0]]
        place = Place(column.name, *where[1:])
        mutations[place] = frozenset(value) if isinstance(value, set) else value
        if column.variable.kept is Kept.COMMITTED:
            committed[place] = mutations[place]
    arguments = FrozenMap(dict(zip(names, step.arguments, strict=True)))
    return Taken(step.instance, Step(step.action, arguments), mutations, committed)


def refused(step: StepModel) -> RefusedError:
    """The error that says why a step was refused."""
    instance = step.instance
    label = (
        f"{step.action}({', '.join(map(show, step.arguments))})" if step.arguments else step.action
    )
    control = instance.control
    variable = "" if instance.program.control is None else instance.program.control.name
    at = "" if control is None else f" (`{variable}` is `{show(control)}`)"
    name = f"{instance.name}: " if instance.name else ""
    return RefusedError(
        f"{name}`{label}` cannot happen now{at}; unmet: {'; '.join(step.failed)}",
        tuple(step.failed),
        help=instance.hint(),
    )
