"""How far the builds of a running cluster are: what each node knows of them, taken together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagewright.impl.node.messages.tables import ViewStatus
from stagewright.impl.views.building.progress import remaining_ms


@dataclass(frozen=True)
class Build:
    """A view and how far it is built: `done` from 0 to 1, `seconds_left` if that can be estimated.

    The estimate takes it that the rest goes as fast as what is done.
    """

    name: str
    base: str
    definition: str
    status: str
    done: float
    tasks: int  # that are left
    seconds_left: float | None
    places: int  # tasks in all

    @property
    def shown(self) -> dict[str, object]:
        """As a plain document, for shells, pages and programs."""
        left = self.seconds_left
        return {
            "view": self.name,
            "base": self.base,
            "definition": self.definition,
            "status": self.status,
            "done": round(self.done, 3),
            "tasks": self.places,
            "tasks left": self.tasks,
            "seconds left": None if left is None else round(left, 1),
        }


def builds(answers: Iterable[tuple[ViewStatus, ...]]) -> list[Build]:
    """What nodes say together; of a view on which they differ, what the one says that knows of fewest tasks."""
    known: dict[str, list[ViewStatus]] = {}
    for answer in answers:
        for status in answer:
            known.setdefault(status.view, []).append(status)
    return [_build(said) for _, said in sorted(known.items())]


def _build(said: list[ViewStatus]) -> Build:
    newest = min(said, key=lambda s: (s.tasks, s.status != "SUCCESS"))
    worked = min(float(newest.tasks), sum(s.worked for s in said))
    done = 1.0
    if newest.status != "SUCCESS" and newest.places:
        done = (newest.places - newest.tasks + worked) / newest.places
    left = None if newest.status == "CREATED" else remaining_ms(done, newest.age_ms)
    return Build(
        newest.view,
        newest.base,
        newest.definition,
        newest.status,
        done,
        newest.tasks,
        None if left is None else left / 1000,
        newest.places,
    )
