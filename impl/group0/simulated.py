"""A modelled group0: a log behind a network that delays, loses and repeats, and elections that cut requests off.

The log itself is never wrong, as Raft promises. What is modelled is what its users see of Raft's life: a
commit that nobody answers and that was applied, was not, or is applied later; nodes that learn late, each
at its own pace; a time without a leader; a coordinator that is deposed and does not know it yet. All of it
is a function of the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from stagewright.impl.group0.dice import Dice
from stagewright.impl.group0.port import (
    TAIL,
    Commit,
    Committed,
    Entry,
    Leadership,
    Learned,
    Outcome,
    Reading,
    Snapshot,
    Unknown,
    refusal_of,
)
from stagewright.impl.group0.state_ids import EMPTY, StateId


class Clock(Protocol):
    """Virtual time in milliseconds."""

    now: int

    def after(self, milliseconds: int, action: Callable[[], None]) -> None:
        """Do something so many milliseconds from now."""
        ...


@dataclass(frozen=True)
class Weather:
    """How often what happens (0 to 1), and times in milliseconds."""

    request_lost: float = 0.0
    answer_lost: float = 0.0
    late: float = 0.0  # a request arrives after its sender has given up
    repeated: float = 0.0  # a request arrives a second time, later
    cut_off: float = 0.5  # an election loses a request on its way, rather than delaying it
    delay: int = 4  # of a message, at most
    lag: int = 20  # of a node that learns an entry, at most, beside those of earlier entries
    patience: int = 200  # until a sender gives up
    election: int = 150  # without a leader


CALM = Weather()
STORM = Weather(request_lost=0.08, answer_lost=0.08, late=0.08, repeated=0.05, lag=200)


@dataclass
class _Flight:
    """A commit on its way."""

    request: Commit
    answer: Callable[[Outcome], None]
    cut: bool = False  # an election lost it
    answered: bool = False


@dataclass
class _Learner:
    learn: Callable[[Learned], None]
    sent: int  # position
    lagging: int = 0  # no entry arrives before this time
    gone: bool = False


@dataclass
class ModelledLog:
    """The log that all nodes of a simulation share."""

    clock: Clock
    dice: Dice
    weather: Weather = CALM
    entries: list[Entry] = field(default_factory=list)
    snapshot: Snapshot | None = None
    head: StateId = EMPTY
    term: int = 0
    elections: int = 0
    epoch: int = 0  # milliseconds from 1970 until the clock's zero

    def __post_init__(self) -> None:
        self._lease: tuple[Leadership, int, int] | None = None  # deadline, duration
        self._leaderless_until = 0
        self._flights: list[_Flight] = []
        self._learners: dict[str, list[_Learner]] = {}

    # -- commits -------------------------------------------------------------------------------------

    def commit(self, node: str, request: Commit, answer: Callable[[Outcome], None]) -> None:
        """Send a request; it gets one answer, which is Unknown if none comes in time."""
        weather, dice = self.weather, self.dice
        flight = _Flight(request, answer)
        self.clock.after(weather.patience, lambda: self._reply(flight, Unknown("no answer")))
        if dice.chance(weather.request_lost, "request lost", node):
            return
        self._flights.append(flight)
        way = self._way("request", node)
        if dice.chance(weather.late, "late", node):
            way += weather.patience + dice.between(0, weather.patience, "lateness", node)
        self.clock.after(way, lambda: self._arrive(node, flight))
        if dice.chance(weather.repeated, "repeated", node):
            again = way + dice.between(1, 2 * weather.patience, "repetition", node)
            self.clock.after(again, lambda: self._arrive(node, flight))

    def _arrive(self, node: str, flight: _Flight) -> None:
        if flight.cut:
            return
        if self.clock.now < self._leaderless_until:  # whoever holds it sends it to the next leader
            wait = self._leaderless_until - self.clock.now
            self.clock.after(wait + 1, lambda: self._arrive(node, flight))
            return
        if flight in self._flights:
            self._flights.remove(flight)
        outcome = self.append(flight.request)
        if not self.dice.chance(self.weather.answer_lost, "answer lost", node):
            way = self._way("answer", node)
            self.clock.after(way, lambda: self._reply(flight, outcome))

    @staticmethod
    def _reply(flight: _Flight, outcome: Outcome) -> None:
        if not flight.answered:
            flight.answered = True
            flight.answer(outcome)

    def append(self, request: Commit) -> Outcome:
        """What the log makes of a request at this moment."""
        refusal = self.refusal(request)
        if refusal is not None:
            return refusal
        self.head = request.new
        self.entries.append(Entry(request.new, self.term, request.command))
        for node in list(self._learners):
            self._pass_on(node)
        return Committed(request.new)

    def refusal(self, request: Commit) -> Outcome | None:
        """The answer to a request that cannot be appended at this moment; None if it can."""
        there = self.at(request.new.position)
        now = (self.epoch + self.clock.now) * 1000
        at_place = None if there is None else there.id.id
        return refusal_of(request, self.head, self.term, at_place, self.first, now)

    def at(self, position: int) -> Entry | None:
        """The entry at a position, if the log still has it."""
        index = position - self.first
        return self.entries[index] if 0 <= index < len(self.entries) else None

    @property
    def first(self) -> int:
        """The first position that the log still has, or will have."""
        return self.head.position - len(self.entries) + 1

    # -- elections of the log's own leader -----------------------------------------------------------

    def elect(self) -> None:
        """The log loses its leader: what is on its way is lost or late, and nothing is answered for a while."""
        self.elections += 1
        self._leaderless_until = self.clock.now + self.dice.between(
            1, self.weather.election, "election"
        )
        for flight in self._flights:
            flight.cut = self.dice.chance(self.weather.cut_off, "cut off")
        self._flights = [f for f in self._flights if not f.cut]

    @property
    def answers(self) -> bool:
        """Whether the log has a leader now."""
        return self.clock.now >= self._leaderless_until

    # -- learning ------------------------------------------------------------------------------------

    def ask_head(
        self, node: str, answer: Callable[[StateId | None], None], for_client: bool = False
    ) -> None:
        """A linearizable read of the head; None if the log does not answer.

        What clients read has throws of its own: one read more leaves the times of all else as they are.
        """
        who = f"{node} for a client" if for_client else node

        def look() -> None:
            head = self.head if self.answers else None
            self.clock.after(self._way("answer", who), lambda: answer(head))

        self.clock.after(self._way("request", who), look)

    def read(self, after: int) -> Reading:
        """The log after a position, as it is now."""
        snapshot = None
        if after + 1 < self.first:
            snapshot = self.snapshot
            assert snapshot is not None
            after = snapshot.id.position
        found = tuple(self.entries[max(0, after + 1 - self.first) :])
        return Reading(snapshot, found, self.head)

    def subscribe(
        self, node: str, after: int, learn: Callable[[Learned], None]
    ) -> Callable[[], None]:
        """Tell a node everything after a position, in order and late; the result ends that."""
        learner = _Learner(learn, after)
        self._learners.setdefault(node, []).append(learner)
        self._pass_on(node)

        def end() -> None:
            learner.gone = True
            self._learners[node].remove(learner)

        return end

    def _pass_on(self, node: str) -> None:
        for learner in self._learners[node]:
            reading = self.read(learner.sent)
            found: list[Learned] = [] if reading.snapshot is None else [reading.snapshot]
            for item in (*found, *reading.entries):
                learner.sent = item.id.position
                way = self.dice.between(0, self.weather.lag, "lag", node)
                learner.lagging = max(learner.lagging, self.clock.now + way)
                self._deliver(learner, item)

    def _deliver(self, learner: _Learner, item: Learned) -> None:
        def arrive() -> None:
            if not learner.gone:
                learner.learn(item)

        self.clock.after(learner.lagging - self.clock.now, arrive)

    def compact(self, snapshot: Snapshot, tail: int = TAIL) -> None:
        """Keep a snapshot, and of the entries before it the last ones."""
        assert snapshot.id.position <= self.head.position
        if self.snapshot is None or snapshot.id.position > self.snapshot.id.position:
            self.snapshot = snapshot
            last = snapshot.id.position - tail
            self.entries = [e for e in self.entries if e.id.position > last]

    # -- who leads -----------------------------------------------------------------------------------

    @property
    def leader(self) -> Leadership | None:
        """Who leads now, if anybody does."""
        if self._lease is None or self._lease[1] < self.clock.now:
            return None
        return self._lease[0]

    def campaign(self, node: str, milliseconds: int) -> Leadership | None:
        """Lead in a new term, if nobody leads now."""
        if self.leader is not None:
            return None
        self.term += 1
        leadership = Leadership(node, self.term)
        self._lease = (leadership, self.clock.now + milliseconds, milliseconds)
        return leadership

    def keep(self, leadership: Leadership) -> bool:
        """Lead for as long again from now; False if that is over."""
        if self.leader != leadership:
            return False
        assert self._lease is not None
        duration = self._lease[2]
        self._lease = (leadership, self.clock.now + duration, duration)
        return True

    def resign(self, leadership: Leadership) -> None:
        """Lead no longer."""
        if self.leader == leadership:
            self._lease = None

    def _way(self, kind: str, node: str) -> int:
        return self.dice.between(1, self.weather.delay, kind, node)
