"""What operators ask of tables of tablets and of their views, by their ids, and the calls by which views are built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Resize(Enum):
    """`resize_type` of a table: its tablets are to be split in two, or merged two and two."""

    split = "split"
    merge = "merge"


@dataclass(frozen=True, slots=True)
class RepairTable:
    """Have the replicas of each tablet of a table exchange their rows until all have the newest ones."""

    number: int
    table: str


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Let a table of tablets have so many replicas; each tablet gains or loses one at a time."""

    number: int
    table: str
    replicas: int


@dataclass(frozen=True, slots=True)
class ResizeTable:
    """Have a table's tablets split, or merged: it has twice as many then, or half."""

    number: int
    table: str
    resize: Resize


@dataclass(frozen=True, slots=True)
class MoveTablet:
    """Have a replica of a tablet moved to another node, or shard; -1: the shard that suits.

    An operator's wish: the balancer's limits do not hold for it, and it may move something back.
    """

    number: int
    table: str
    tablet: int
    source: str
    target: str
    source_shard: int = -1
    target_shard: int = -1


@dataclass(frozen=True, slots=True)
class SetBalancing:
    """Let the balancer even loads out, or not. Nodes that leave are drained all the same."""

    number: int
    enabled: bool


@dataclass(frozen=True, slots=True)
class DropTable:
    """Drop a table that has no views, with its log, whatever its tablets do."""

    number: int
    table: str


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """Remove all rows of a table that are no later than a timestamp, as if all were deleted then; `NameReply` says when that is done."""

    number: int
    table: str
    timestamp: int


TableChange = (
    RepairTable | AlterTable | ResizeTable | MoveTablet | SetBalancing | DropTable | TruncateTable
)
"""What changes the rows of tables and tablets, which the coordinator reads."""


@dataclass(frozen=True, slots=True)
class CreateView:
    """Make a view of a table of tablets, by the value of its rows or by its remainder of `modulus`.

    With a `comparison` (<, <=, =, >=, >) rows are in it whose value compares so with `bound`.
    """

    number: int
    view: str
    table: str
    modulus: int = 0
    comparison: str = ""
    bound: int = 0


@dataclass(frozen=True, slots=True)
class DropView:
    """Drop a view, built or not."""

    number: int
    view: str


@dataclass(frozen=True, slots=True)
class ViewsRequest:
    """Ask how far views are built."""

    number: int


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """A view, how far it is built, and for how long that has gone on.

    `status`: CREATED (it waits for its turn), STARTED or SUCCESS. `tasks` of `places` (the replicas of its base
    table's tablets) are left; of those that the node that answers works on, `worked` is done, 1.0 for each.
    `age_ms`: since the oldest of its tasks that are left was created, by the clock of the node that answers.
    """

    view: str
    base: str
    definition: str
    status: str
    tasks: int = 0
    places: int = 0
    worked: float = 0.0
    age_ms: int = 0


@dataclass(frozen=True, slots=True)
class ViewsReply:
    """All views that the node has learned of."""

    number: int
    views: tuple[ViewStatus, ...]


@dataclass(frozen=True, slots=True)
class WorkOnTasks:
    """work_on_view_building_tasks: the coordinator of a term has tasks of one tablet replica worked on."""

    number: int
    term: int
    shard: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkedOnTasks:
    """Those of them that are finished, or why none will be."""

    number: int
    finished: tuple[str, ...]
    problem: str = ""
