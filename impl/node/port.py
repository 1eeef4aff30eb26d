"""The seam between a node, which does no I/O, and its host, which does nothing else.

A host (the simulator, or a process with sockets and files) makes a node with its rows, and calls `start`. It
then calls the node for whatever happens, one call at a time, and carries out the effects that each call
returns in their order before the next call:

- A message arrived: `handle(sender, message)`. A sender is a node's name, or any other text for a client or
  an operator, by which `Send` finds the way back. Messages may be lost, late, doubled or out of order.
- `Send`: send it, try once, wait for nothing. A node sends to itself, too: never answer within the call.
- `Store`: give the batch to the node's `RowStore.write` at once. With a `number`, sync as soon as convenient
  (one sync for many batches will do), and then call `stored(number)`. Rows that the node reads, it reads from
  the same `RowStore`: a batch must be visible when the next call is made.
- `Drop`, `Supersede`, `Truncate`: give it to the method of `RowStore` of that name at once (`removals.remove`).
- `Wake`: call `wake(reason)` after so many milliseconds of this life of the node.
- `Learn`: watch group0 from the position after that of the node on, and call `learned(item)` for each
  snapshot and entry in their order. Comes once a life.
- `SendCommit`, `AskHead` (as of `impl.group0.member`): ask group0, and call `answered(request, outcome)` with
  that same request object, `head_is(number, head)`. What fails is `Unknown` or None.
- `Campaign`, `Keep`, `Resign`: the election of the topology coordinator. Call `campaigned` with what
  `Group0.campaign` returned, and `kept` with what `Group0.keep` did; None and False where group0 did not answer.
- `Compact`: give `Group0.compact` the snapshot.
- `Stop`: the node has left the cluster or may not join: end this life of it, carry out nothing more, and do
  not start it again.
- A peer stops or starts answering (a failure detector: connections, heartbeats): `seen(peer, up)`. All peers
  count as up in the beginning. It may be wrong or late, but must come right in the end.

A crash is the end of a life: drop the node object, everything outstanding with it, and later make a new node
from the same identity with the rows as they are on the disk, and `start` it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.group0 import Commit, Leadership, Learned, Outcome, Snapshot, StateId
from stagewright.impl.group0.member import AskHead, SendCommit
from stagewright.impl.node.messages import HostInfo, Message, Work
from stagewright.impl.storage.port import Put

Reason = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a node, or back to a client."""

    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Store:
    """Write rows; with a number that is not 0, call `stored` with it when they are synced."""

    batch: tuple[Put, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove the rows of low <= stored key < high of a family, with all their versions."""

    family: str
    low: bytes
    high: bytes | None


@dataclass(frozen=True, slots=True)
class Supersede:
    """Remove versions of rows of a family: of each key those before a time that are not the newest."""

    family: str
    before: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """Remove every version of a family that is no later than a time."""

    family: str
    until: int


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `wake` with the reason after so many milliseconds."""

    after_ms: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Learn:
    """Watch group0 after a position."""

    after: int


@dataclass(frozen=True, slots=True)
class Campaign:
    """Try to become the topology coordinator for so long."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Keep:
    """Stay it for as long again."""

    leadership: Leadership


@dataclass(frozen=True, slots=True)
class Resign:
    """Be it no longer; nothing is called."""

    leadership: Leadership


@dataclass(frozen=True, slots=True)
class Compact:
    """Let group0 forget what a snapshot stands for."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Stop:
    """This node is done for good."""

    reason: str


Effect = (
    Send
    | Store
    | Drop
    | Supersede
    | Truncate
    | Wake
    | Learn
    | SendCommit
    | AskHead
    | Campaign
    | Keep
    | Resign
    | Compact
    | Stop
)


@dataclass(frozen=True)
class Identity:
    """Who a node is and how it comes into the cluster; the same in all its lives.

    `founders`: the nodes that begin the cluster together, in the state normal; the first of them writes that
    down. Another one asks `contacts` to let it join, maybe in the place of a node that is dead.
    """

    host: HostInfo
    founders: tuple[HostInfo, ...] = ()
    contacts: tuple[str, ...] = ()
    replaces: str = ""

    @property
    def name(self) -> str:
        """The node's name, which no other node ever had."""
        return self.host.name


@dataclass(frozen=True)
class Timing:
    """Milliseconds."""

    request: int = 200  # until a client's request fails
    resend: int = 60  # until a message that was not answered is sent again
    lease: int = 400  # of the topology coordinator
    ring_delay: int = 500  # until nothing goes on any more that began before; more than a request
    retry: int = 100  # until something that failed is tried again
    leeway: int = 150  # by which a logged write's timestamp may be ahead (003: `generation_leeway`)
    horizon: int = 800  # by which it may be behind
    compact_after: int = 200  # entries of group0, not milliseconds
    chunk: int = 64  # rows that are streamed at once
    superseding: int = 150  # until a node looks what rows that were written have replaced
    view_call: int = 500  # until a call for view building tasks is taken for lost
    view_removal: int = 40  # until view building tasks that are finished are removed (000: 200 ms)

    @property
    def least_kept(self) -> int:
        """For how long a log keeps changes at least: a write may be so late, and is to be read then."""
        return 2 * (self.horizon + self.request)


@dataclass(frozen=True)
class Surroundings:
    """What a node cannot know by itself: microseconds since 1970 (or any epoch), numbers from 0 to 1."""

    now: Callable[[], int]
    dice: Callable[[], float]


class SansIoNode(Protocol):
    """One life of a node. `impl.node.node.DatabaseNode` is one."""

    @property
    def name(self) -> str:
        """The node's name."""
        ...

    def start(self) -> list[Effect]:
        """Begin; called once, first."""
        ...

    def handle(self, sender: str, message: Message) -> list[Effect]:
        """A message arrived."""
        ...

    def wake(self, reason: Reason) -> list[Effect]:
        """The time that a `Wake` asked for is over."""
        ...

    def stored(self, number: int) -> list[Effect]:
        """The batch of a `Store` is on the disk."""
        ...

    def learned(self, item: Learned) -> list[Effect]:
        """The next entry of group0, or a snapshot."""
        ...

    def answered(self, request: Commit, outcome: Outcome) -> list[Effect]:
        """What became of a commit."""
        ...

    def head_is(self, number: int, head: StateId | None) -> list[Effect]:
        """The head of group0, or None if it did not answer."""
        ...

    def campaigned(self, leadership: Leadership | None) -> list[Effect]:
        """What became of a campaign."""
        ...

    def kept(self, leadership: Leadership, kept: bool) -> list[Effect]:
        """Whether this node is still the topology coordinator."""
        ...

    def seen(self, peer: str, up: bool) -> list[Effect]:
        """The failure detector has changed its mind about a peer."""
        ...


# -- what a node reports to those who record it ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowWork:
    """Work on rows that a coordinator has asked for begins, or is done; a log would have lines of each.

    `fetched`: where it begins to fetch rows, the ranges (low, high] of tables, each with one of its sources.
    """

    work: Work
    begins: bool
    row: TabletRow | None = None  # the tablet that it is about
    fetched: tuple[tuple[str, tuple[int, int], str], ...] = ()
