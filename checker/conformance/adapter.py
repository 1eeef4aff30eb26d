"""What an implementation under test offers, so that it can be driven beside its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from stagewright.spec.errors import RefusedError, StagewrightError
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


class RefusedEvent(Exception):  # noqa: N818 - not an error of the implementation: it says no
    """The implementation refuses an event; its text may say why."""


REFUSALS = (RefusedEvent, RefusedError)
"""The exceptions by which `Adapter.do` says no; any other one is a failure of the implementation."""


@runtime_checkable
class Adapter(Protocol):
    """An implementation under test. It may also have `close()`, called when a run is over."""

    def reset(self, initial: State) -> None:
        """Be in this initial state, with nothing left over from an earlier run."""
        ...

    def do(self, step: Step) -> None:
        """Let the step happen.

        Raises:
            RefusedEvent, RefusedError: the implementation refuses it, and has not changed.
        """
        ...

    def observe(self) -> Mapping[str, object]:
        """What can be seen of the state: values by leaf (`stage`, `learned[node0]`), maybe not of all.

        Leaves are named as `spec.trace.observation` names them. A value may be one of the definition's
        own (an enum member, an entity, a frozenset) or its plain form (a name, a list of names).
        """
        ...


AdapterFactory = Callable[[], Adapter]
"""Makes the adapter for one run; it is reset before anything else."""


@runtime_checkable
class Closable(Protocol):
    """An adapter that has something to release."""

    def close(self) -> None:
        """Release it."""
        ...


class AdapterError(StagewrightError):
    """An adapter mentions something that the definition does not have."""

    code = "SW430"


def usable(made: object) -> Adapter:
    """What a factory made, if it is an adapter.

    Raises:
        AdapterError: it lacks some of an adapter's methods.
    """
    if isinstance(made, Adapter):
        return made
    missing = [
        name for name in ("reset", "do", "observe") if not callable(getattr(made, name, None))
    ]
    raise AdapterError(
        f"the factory made a {type(made).__name__}, which is not an adapter: it has no {', '.join(missing)}",
        help="an adapter has reset(initial), do(step) and observe()",
    )
