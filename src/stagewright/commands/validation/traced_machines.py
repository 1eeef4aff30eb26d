"""Finds the definitions that traces name, and the profiles that may have recorded them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stagewright.commands.console.machine_flags import machine_from
from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.text.suggestions import nearest
from stagewright.spec.text.visible import one_line

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition


def machine_meant(machine: str | None) -> str:
    """The name of the one machine given; empty for none, and for a file with several, of which traces name theirs."""
    if machine is None or len(_of_file(machine)) > 1:
        return ""
    return machine_from(machine, "").name


def resolver(machine: str | None) -> Callable[[str, str], Definition]:
    """Finds the definition that events name: the one machine given, or a shipped one."""
    if machine is not None:
        several = _of_file(machine)
        if len(several) > 1:
            return lambda name, profile: machine_from(_named(machine, name, several), profile)
        given = machine_from(machine, "")

        def of_given(name: str, profile: str) -> Definition:
            if name not in ("", given.name, machine):
                raise InputError(
                    f"the traces are of the machine `{one_line(name)}`, not of `{given.name}`",
                    help="name that machine with --machine, or leave it to the traces",
                )
            return machine_from(machine, profile)

        return of_given
    return _shipped


def _of_file(machine: str) -> list[str]:
    """The names of the machines that a file defines, where none of them is named."""
    if not machine.endswith(".py"):
        return []
    from stagewright.spec.loading import machines_in, module_of

    return list(machines_in(module_of(machine)))


def _named(file: str, name: str, machines: Sequence[str]) -> str:
    """The one machine of a file that traces name, as MACHINE is written."""
    if name in machines:
        return f"{file}:{name}"
    if not name:
        return file  # refused, with the names that there are
    near = nearest(name, machines)
    raise InputError(
        f"the traces are of the machine `{one_line(name)}`, which {file} does not define",
        help=f"{f'did you mean `{near}`? ' if near else ''}it defines: {', '.join(machines)}",
    )


def _shipped(name: str, profile: str) -> Definition:
    from stagewright.machines import SHIPPED
    from stagewright.machines.recorded import (
        OF_CHANGES,
        OF_INDEXES,
        OF_LOGS,
        OF_NODES,
        OF_VIEW_ENGINE,
        OF_VIEWS,
    )

    classes = {place.partition(":")[2]: short for short, place in SHIPPED.items()}
    if name in SHIPPED:  # a mapping may use the short name
        return machine_from(name, profile)
    recordings = (OF_NODES, OF_VIEWS, OF_CHANGES, OF_VIEW_ENGINE, OF_INDEXES)
    places = [*(place for of in recordings for place in of.values()), *OF_LOGS]
    if recorded := [p for p in places if p.partition(":")[2] == name]:
        return machine_from(recorded[0], "")  # these have no profiles
    if name not in classes:
        what = (
            f"of the machine `{one_line(name)}`, which is not shipped"
            if name
            else "of no named machine"
        )
        near = nearest(name, [*classes, *SHIPPED])
        guess = f"did you mean `{near}`? else " if near else ""
        raise InputError(
            f"the traces are {what}",
            help=f"{guess}name its definition: --machine path/to/file.py:Class",
        )
    return machine_from(classes[name], profile)


def profiles_known(machine: str | None) -> Callable[[str], Sequence[str]]:
    """Finds the profiles, oldest first, of the machine that events name: of the one given, or of a shipped one."""

    def of(name: str) -> Sequence[str]:
        from stagewright.machines import SHIPPED
        from stagewright.spec.loading import find
        from stagewright.spec.machine import profile_names

        try:
            several = [] if machine is None else _of_file(machine)
            place = f"{machine}:{name}" if len(several) > 1 else machine
            return profile_names(find(place or _short(name), SHIPPED))
        except StagewrightError:
            return ()  # reported when its definition is looked for

    return of


def _short(name: str) -> str:
    """The name under which the machine of a class is shipped."""
    from stagewright.machines import SHIPPED

    classes = {place.partition(":")[2]: short for short, place in SHIPPED.items()}
    return classes.get(name, name)
