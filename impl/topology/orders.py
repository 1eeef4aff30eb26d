"""Work that the topology coordinator has nodes do: asked for until it is answered, each job once at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import Joined, JoinResponse, Order, OrderDone, Work
from stagewright.impl.node.port import Effect, Send, Wake

Key = tuple[
    str, str, int
]  # what it is for: an action, the node it is about, the version it began under


@dataclass
class Job:
    """One piece of work of one or several nodes."""

    key: Key
    numbers: dict[int, str]  # of orders, with the nodes that have not answered
    session: str
    work: Work | None  # None: to join group0
    tablet: tuple[str, int] = ("", -1)  # its table and number
    problems: list[str] = field(default_factory=list[str])

    @property
    def over(self) -> bool:
        """Whether all have answered."""
        return not self.numbers

    @property
    def succeeded(self) -> bool:
        """Whether all have done it."""
        return self.over and not self.problems


class Orders:
    """The jobs of one coordinator."""

    def __init__(self, node: Context, term: int) -> None:
        self._node = node
        self._term = term
        self._last = 0
        self.jobs: dict[Key, Job] = {}

    def begin(
        self,
        key: Key,
        work: Work | None,
        nodes: tuple[str, ...],
        tablet: tuple[str, int] = ("", -1),
        session: str | None = None,
    ) -> list[Effect]:
        """Have nodes do something."""
        numbers: dict[int, str] = {}
        for name in nodes:
            self._last += 1
            numbers[self._last] = name
        session = self._node.view.session if session is None else session
        job = Job(key, numbers, session, work, tablet)
        self.jobs[key] = job
        return self._send(job)

    def _send(self, job: Job) -> list[Effect]:
        effects: list[Effect] = []
        for number, name in job.numbers.items():
            if job.work is None:
                effects.append(Send(name, JoinResponse(self._term)))
            else:
                effects.append(
                    Send(name, Order(self._term, number, job.work, job.session, *job.tablet))
                )
        if job.numbers:
            reason = ("coordinator", "job", self._term, *job.key)
            effects.append(Wake(4 * self._node.timing.resend, reason))
        return effects

    def again(self, key: Key) -> list[Effect]:
        """Ask those that have not answered once more."""
        job = self.jobs.get(key)
        return [] if job is None else self._send(job)

    def done(self, sender: str, answer: OrderDone | Joined) -> bool:
        """A node has answered; whether a job is over with that."""
        if answer.term != self._term:
            return False
        for job in self.jobs.values():
            if isinstance(answer, Joined):
                mine = [k for k, n in job.numbers.items() if job.work is None and n == sender]
            else:
                mine = [k for k in job.numbers if k == answer.number and job.work is not None]
            for number in mine:
                del job.numbers[number]
                if isinstance(answer, OrderDone) and not answer.succeeded:
                    job.problems.append(f"{sender}: {answer.reason}")
                return job.over
        return False
