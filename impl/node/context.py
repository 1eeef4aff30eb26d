"""What the parts of one node share: its tables, its rows, its part of group0, who is down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from uuid import UUID

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import Details
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import id_after
from stagewright.impl.group0.member import (
    Effect as MemberEffect,
    Ended,
    Member,
    Plan,
    Wake as MemberWake,
)
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import STARTING, HostInfo, OperatorReply
from stagewright.impl.node.port import Effect, Identity, RowWork, Send, Surroundings, Timing, Wake
from stagewright.impl.ring.partitioner import token_of
from stagewright.impl.storage.port import RowStore
from stagewright.impl.topology.release import Release

Then = Callable[[Ended], list[Effect]]


class Context:
    """One life of a node. What it keeps is in memory: a crash is the end of it."""

    def __init__(
        self,
        identity: Identity,
        release: Release,
        rows: RowStore,
        timing: Timing,
        around: Surroundings,
        defects: frozenset[Defect] = frozenset(),
        *,
        refuses: bool = True,
    ) -> None:
        """`refuses`: requests for which too few replicas are alive, as far as it knows; else they time out."""
        self.identity = identity
        self.name = identity.name
        self.release = release
        self.rules = release.topology
        self.rows = rows
        self.timing = timing
        self.around = around
        self.defects = defects
        self.catalog = Catalog()
        self.down: frozenset[str] = frozenset()  # as this node's failure detector sees it
        self.refuses = refuses
        self.listeners: list[Callable[[RowWork], None]] = []  # those who record it
        self.ready = False  # it has learned what was committed before it started
        self.loaded_from = 0  # microseconds; a wrong build knows no older CDC generation
        self._machine = int.from_bytes(blake2b(self.name.encode(), digest_size=6).digest(), "big")
        self._life = int(around.dice() * (1 << 14))
        self._last_id = UUID(int=0)
        self._number = int(around.dice() * (1 << 30)) << 20  # no reply to an earlier life counts
        self.member = Member(self.catalog, self._id_after, around.dice)
        self._ends: dict[int, Then] = {}

    @property
    def view(self) -> View:
        """The topology, as it is learned."""
        return self.catalog.view

    def has(self, defect: Defect) -> bool:
        """Whether the node is built with a mistake."""
        return defect in self.defects

    def number(self) -> int:
        """A number that no other request of this node has, in any of its lives."""
        self._number += 1
        return self._number

    def report(self, work: RowWork) -> None:
        """Report to those who record the node."""
        for listener in self.listeners:
            listener(work)

    # -- group0 --------------------------------------------------------------------------------------

    def propose(self, plan: Plan, then: Then, term: int | None = None) -> list[Effect]:
        """Commit what a plan makes; `then` is called with the end of it."""
        number, effects = self.member.propose(plan, term)
        self._ends[number] = then
        return self.group0(effects)

    def answered(self, client: str, number: int, plan: Plan) -> list[Effect]:
        """Commit what an operator wants, and say whether it is committed or why not."""
        if not self.ready:
            return [Send(client, OperatorReply(number, False, f"{self.name} {STARTING}"))]

        def then(ended: Ended) -> list[Effect]:
            error = ended.error
            reason, help = ("", "") if error is None else (error.problem, error.help)
            reply = OperatorReply(number, error is None, reason, ended.state.position, help)
            return [Send(client, reply)]

        return self.propose(plan, then)

    def read_barrier(self, then: Then, for_client: bool = False) -> list[Effect]:
        """Learn all that is committed by now, and go on with `then`."""
        number, effects = self.member.barrier(for_client)
        self._ends[number] = then
        return self.group0(effects)

    def group0(self, effects: Iterable[MemberEffect]) -> list[Effect]:
        """What the node's part of group0 causes."""
        found: list[Effect] = []
        for effect in effects:
            match effect:
                case Ended():
                    found += self._ends.pop(effect.number)(effect)
                case MemberWake(number, milliseconds):
                    found.append(Wake(milliseconds, ("group0", number)))
                case _:
                    found.append(effect)
        return found

    # -- ids and times -------------------------------------------------------------------------------

    def _id_after(self, previous: UUID) -> UUID:
        return id_after(previous, self.around.now(), self._machine, self._life)

    def new_id(self) -> str:
        """A time UUID."""
        self._last_id = self._id_after(self._last_id)
        return str(self._last_id)

    def details(self, **beside: object) -> Details:
        """What steps need beside their arguments."""
        return Details(self.new_id, self.time, **beside)  # type: ignore[arg-type]

    def time(self, later: int = 0) -> str:
        """Now, or so many milliseconds later, as a column has it."""
        seconds, micros = divmod(self.around.now() + later * 1000, 1_000_000)
        return f"{seconds}.{micros // 1000:03d}"


def tokens_for(host: HostInfo | str, count: int) -> tuple[int, ...]:
    """The tokens of a node, a function of its name."""
    name = host if isinstance(host, str) else host.name
    return tuple(token_of(f"{name}/{i}".encode()) for i in range(count))
