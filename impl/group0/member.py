"""A node's part of group0, sans I/O: what it has learned, the commits it proposes, its read barriers.

A proposal is a plan: a function that makes the command from what the node has learned, or refuses. A race
that is lost is planned again on the new state; the same request is repeated while its outcome is unknown.
A refusal counts only when the node has learned all that was committed before it was asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from stagewright.impl.group0.commands import Command
from stagewright.impl.group0.port import (
    Commit,
    Committed,
    Conflict,
    Deposed,
    Entry,
    Forgotten,
    Group0Error,
    Learned,
    Outcome,
    Snapshot,
    Unknown,
)
from stagewright.impl.group0.state_ids import EMPTY, StateId
from stagewright.spec.errors import StagewrightError

ATTEMPTS = 30  # lost races, or unknown outcomes in a row, of one proposal
BACK_OFF = 200  # milliseconds at most

Plan = Callable[[], Command | None]
"""Makes the command from what is learned; None: there is nothing to do. Raises a StagewrightError to refuse."""


class Learner(Protocol):
    """What the log comes to."""

    def apply(self, entry: Entry) -> None:
        """Take the next entry."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot, in place of all that was there."""
        ...


class RaceLostError(Group0Error):
    """A commit lost the race against other commits again and again, and was given up."""

    code = "SW413"


class DeposedError(Group0Error):
    """A coordinator cannot commit any more: another one leads in a later term."""

    code = "SW414"


class CommitUnknownError(Group0Error):
    """Whether a commit counts could not be learned: group0 did not answer for too long."""

    code = "SW415"


@dataclass(frozen=True, slots=True)
class SendCommit:
    """Send a request to group0; the outcome goes to `answered`."""

    request: Commit


@dataclass(frozen=True, slots=True)
class AskHead:
    """Ask group0 for its head, maybe as a client waits for it; the answer, or None, goes to `head_is`."""

    number: int
    for_client: bool = False


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `wake` after so many milliseconds."""

    number: int
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A proposal or a barrier is over: the state that it led to, or why it did not."""

    number: int
    state: StateId
    error: StagewrightError | None = None


Effect = SendCommit | AskHead | Wake | Ended


@dataclass
class _Proposal:
    number: int
    plan: Plan
    term: int | None
    sent: Commit | None = None
    committed: StateId | None = None  # ends when the node has learned it
    fresh_from: StateId | None = None  # a head asked for since the proposal was made
    behind: int = 0  # plans again at this position
    races: int = 0
    unknown: int = 0


class Member:
    """One node's part. One of its proposals is under way at a time; the others wait for their turn.

    `ids` makes the id of a new state, later than the given one's; `jitter` a number from 0 to 1.
    """

    def __init__(
        self, learner: Learner, ids: Callable[[UUID], UUID], jitter: Callable[[], float]
    ) -> None:
        self.head = EMPTY
        self.term = 0  # of the last entry
        self._learner = learner
        self._ids = ids
        self._jitter = jitter
        self._last = 0
        self._proposals: deque[_Proposal] = deque()
        self._barriers: dict[int, StateId | None] = {}  # the head to be learned, once it is known
        self._for_clients: set[int] = set()  # of the barriers

    # -- what comes in -------------------------------------------------------------------------------

    def propose(self, plan: Plan, term: int | None = None) -> tuple[int, list[Effect]]:
        """Commit what a plan makes, in a term if one is given; the number under which it ends."""
        self._last += 1
        self._proposals.append(_Proposal(self._last, plan, term))
        return self._last, self._go_on() if len(self._proposals) == 1 else []

    def barrier(self, for_client: bool = False) -> tuple[int, list[Effect]]:
        """Learn all that is committed by now; the number under which that ends."""
        self._last += 1
        self._barriers[self._last] = None
        if for_client:
            self._for_clients.add(self._last)
        return self._last, [AskHead(self._last, for_client)]

    def learned(self, item: Learned) -> list[Effect]:
        """The next entry, or a snapshot ahead of what is learned; what is known already changes nothing."""
        if item.id.position <= self.head.position:
            return []
        if isinstance(item, Snapshot):
            self._learner.restore(item)
        else:
            assert item.id.position == self.head.position + 1, f"{item.id} after {self.head}"
            self._learner.apply(item)
        self.head, self.term = item.id, item.term
        effects: list[Effect] = []
        for number, wanted in list(self._barriers.items()):
            effects += self._reached(number, wanted)
        return effects + self._go_on()

    def answered(self, request: Commit, outcome: Outcome) -> list[Effect]:
        """The outcome of a request; of one that is over already it changes nothing."""
        if not self._proposals or self._proposals[0].sent is not request:
            return []
        proposal = self._proposals[0]
        match outcome:
            case Committed(state):
                proposal.committed = state
                return self._go_on()
            case Conflict(head):
                return self._lost(proposal, head)
            case Deposed(term):
                return self._end(
                    DeposedError(
                        f"the coordinator of term {request.term} was deposed: the term is {term}",
                        help="what it had in memory is lost; the new one continues from the tables",
                    )
                )
            case Forgotten():
                return self._end(_unknown(request, "the log no longer reaches back to it"))
            case Unknown(why):
                proposal.unknown += 1
                if proposal.unknown >= ATTEMPTS:
                    return self._end(_unknown(request, why))
                return [self._later(proposal)]

    def head_is(self, number: int, head: StateId | None) -> list[Effect]:
        """The answer to `AskHead`; None: group0 did not answer."""
        if number in self._barriers:
            if head is None:
                return [Wake(number, 1 + int(self._jitter() * BACK_OFF))]
            self._barriers[number] = head
            return self._reached(number, head)
        if not self._proposals or self._proposals[0].number != number:
            return []
        proposal = self._proposals[0]
        if head is None:
            return [self._later(proposal)]
        proposal.fresh_from, proposal.behind = head, head.position
        return self._go_on()

    def wake(self, number: int) -> list[Effect]:
        """The time that `Wake` asked for is over."""
        if number in self._barriers:
            known = self._barriers[number] is not None
            return [] if known else [AskHead(number, number in self._for_clients)]
        if not self._proposals or self._proposals[0].number != number:
            return []
        proposal = self._proposals[0]
        if proposal.sent is not None:
            return [] if proposal.committed else [SendCommit(proposal.sent)]
        return [AskHead(number)]

    # -- what goes on --------------------------------------------------------------------------------

    def _go_on(self) -> list[Effect]:
        """What the first proposal can do with what is learned now."""
        if not self._proposals:
            return []
        proposal = self._proposals[0]
        if proposal.sent is not None:
            return self._look(proposal, proposal.sent)
        if self.head.position < proposal.behind:
            return []
        try:
            command = proposal.plan()
        except StagewrightError as error:
            return [AskHead(proposal.number)] if self._is_stale(proposal) else self._end(error)
        if command is None:
            return [AskHead(proposal.number)] if self._is_stale(proposal) else self._end()
        proposal.sent = Commit(self.head, self._ids(self.head.id), command, proposal.term)
        return [SendCommit(proposal.sent)]

    @staticmethod
    def _is_stale(proposal: _Proposal) -> bool:
        return proposal.fresh_from is None

    def _look(self, proposal: _Proposal, sent: Commit) -> list[Effect]:
        """What the log itself says about a request on its way."""
        if self.head.position < sent.new.position:
            return []
        if proposal.committed or self.head == sent.new:
            return self._end(state=sent.new)
        if self.head.position == sent.new.position:
            return self._lost(proposal, self.head)
        return []  # a snapshot went past it: group0 will say

    def _lost(self, proposal: _Proposal, head: StateId) -> list[Effect]:
        proposal.races += 1
        proposal.sent, proposal.unknown = None, 0
        proposal.fresh_from, proposal.behind = head, max(head.position, self.head.position)
        if proposal.races >= ATTEMPTS:
            return self._end(
                RaceLostError(
                    f"a commit lost {proposal.races} races against others",
                    help="try again when fewer commits are under way",
                )
            )
        return self._go_on()

    def _end(
        self, error: StagewrightError | None = None, state: StateId | None = None
    ) -> list[Effect]:
        proposal = self._proposals.popleft()
        return [Ended(proposal.number, state or self.head, error), *self._go_on()]

    def _reached(self, number: int, wanted: StateId | None) -> list[Effect]:
        if wanted is None or self.head.position < wanted.position:
            return []
        del self._barriers[number]
        self._for_clients.discard(number)
        return [Ended(number, self.head)]

    def _later(self, proposal: _Proposal) -> Wake:
        return Wake(proposal.number, 1 + int(self._jitter() * BACK_OFF))


def _unknown(request: Commit, why: str) -> CommitUnknownError:
    return CommitUnknownError(
        f"whether `{request.command.description}` is committed is not known: {why}",
        help="look at the tables before you try again",
    )
