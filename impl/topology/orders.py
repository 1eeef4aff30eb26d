"""Work that the topology coordinator has nodes do: asked for until it is answered, each job once at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Joined, JoinResponse, Order, OrderDone, Work
from stagewright.impl.node.port import Effect, Send, Wake

# what it is for: an action, the node it is about, the version it began under
Key = tuple[str, str, int]


@dataclass
class Job:
    """One piece of work of one or several nodes."""

    key: Key
    numbers: dict[int, str]  # of orders, with the nodes that have not answered
    session: str
    work: Work | None  # None: to join group0
    tablet: tuple[str, int] = ("", -1)  # its table and number
    problems: list[str] = field(default_factory=list[str])
    first: int = 0  # the first of its orders: no other job has it

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
        self._failed = set[Key]()  # jobs that are to be begun anew

    def begin(
        self,
        key: Key,
        work: Work | None,
        nodes: tuple[str, ...],
        tablet: tuple[str, int] = ("", -1),
        session: str | None = None,
    ) -> list[Effect]:
        """Have nodes do something; what failed before is asked for after a delay."""
        numbers: dict[int, str] = {}
        for name in nodes:
            self._last += 1
            numbers[self._last] = name
        session = self._node.view.session if session is None else session
        job = Job(key, numbers, session, work, tablet, first=min(numbers, default=0))
        self.jobs[key] = job
        if key in self._failed:
            self._failed.discard(key)
            return [self._wake(job, self._node.timing.retry)] if numbers else []
        return self._send(job)

    def forget(self, job: Job) -> None:
        """A job has failed and is to be begun anew."""
        del self.jobs[job.key]
        self._failed.add(job.key)

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
            effects.append(self._wake(job, 4 * self._node.timing.resend))
        return effects

    def _wake(self, job: Job, milliseconds: int) -> Wake:
        """A job that is begun anew has wakes of its own: those of the one before it come to nothing."""
        return Wake(milliseconds, ("coordinator", "job", self._term, job.first))

    def again(self, first: int) -> list[Effect]:
        """Ask those that have not answered once more; `first` is that of the job's orders."""
        job = next((j for j in self.jobs.values() if j.first == first), None)
        return [] if job is None else self._send(job)

    def done(self, sender: str, answer: OrderDone | Joined) -> bool:
        """A node has answered; whether a job is over with that."""
        if answer.term != self._term and not self._node.has(Defect.late_answers_count):
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
