"""Readers that other packages bring: each names its form as an entry point of the group `stagewright.readers`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache

from stagewright.plugins import plugins
from stagewright.traces.readers.form import Form

GROUP = "stagewright.readers"


@cache
def forms_of_packages(taken: Collection[str]) -> tuple[Form, ...]:
    """The forms of all packages that are installed, in the order of their names.

    Raises:
        InputError: an entry point cannot be loaded, is no `Form`, or has a name that is taken.
    """
    return tuple(replace(form, own=True) for form in plugins(GROUP, Form, taken))
