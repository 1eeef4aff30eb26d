"""What other packages bring: objects that they name as entry points of a group."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, TypeVar

from stagewright.spec.errors import InputError


class Named(Protocol):
    """Something that is chosen by its name."""

    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=Named)


def plugins(group: str, kind: type[_Kind], taken: Collection[str]) -> tuple[_Kind, ...]:
    """The objects of a group that installed packages bring, in the order of their entry points.

    Raises:
        InputError: an entry point cannot be loaded, is not of the kind, or has a name that is taken.
    """
    found: dict[str, _Kind] = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        made = _loaded(point, kind)
        if made.name in taken or made.name in found:
            raise InputError(
                f"{_described(point)}: there is a `{made.name}` already",
                help=f"give the {kind.__name__} another name",
            )
        found[made.name] = made
    return tuple(found.values())


def _loaded(point: EntryPoint, kind: type[_Kind]) -> _Kind:
    try:
        made: object = point.load()
    except Exception as error:
        raise InputError(
            f"{_described(point)} cannot be loaded: {type(error).__name__}: {error}",
            help=f"mend or remove the package, or its entry point in [{point.group}]",
        ) from error
    if not isinstance(made, kind):
        raise InputError(
            f"{_described(point)} is a {type(made).__name__}, not of the kind {kind.__name__}",
            help=f"let it name a {kind.__module__}.{kind.__qualname__}",
        )
    return made


def _described(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"the entry point {point.name} = {point.value}{package}"
