"""Readers that other packages bring: each names its form as an entry point of the group `stagewright.readers`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from stagewright.spec.errors import InputError
from stagewright.traces.readers.form import Form

GROUP = "stagewright.readers"


@cache
def forms_of_packages(taken: Collection[str]) -> tuple[Form, ...]:
    """The forms of all packages that are installed, in the order of their names.

    Raises:
        InputError: an entry point cannot be loaded, is no `Form`, or has a name that is taken.
    """
    found: dict[str, Form] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        form = _loaded(point)
        if form.name in taken or form.name in found:
            raise InputError(
                f"{_told(point)}: there is a form `{form.name}` already",
                help="give the form another name",
            )
        found[form.name] = replace(form, own=True)
    return tuple(found.values())


def _loaded(point: EntryPoint) -> Form:
    try:
        form: object = point.load()
    except Exception as error:
        raise InputError(
            f"{_told(point)} cannot be loaded: {type(error).__name__}: {error}",
            help=f"mend or remove the package, or its entry point in [{GROUP}]",
        ) from error
    if not isinstance(form, Form):
        raise InputError(
            f"{_told(point)} is a {type(form).__name__}, not a Form",
            help='let it name a stagewright.traces.readers.form.Form("name", "package.module", …)',
        )
    return form


def _told(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"the reader {point.name} = {point.value}{package}"
