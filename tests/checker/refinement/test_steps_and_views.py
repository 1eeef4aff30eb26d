"""What a concrete step is said to be, and views of one entity that come and go."""

from __future__ import annotations

from enum import Enum, auto

from tests.checker.refinement.jobs import (
    Job,
    Phase,
    Worker,
    decided,
    phase_of,
    steps,
)

from stagewright.spec import (
    ANY,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    Term,
    action,
    choose,
    constant,
    flag,
    number,
    one_of,
    per,
    refinement,
    require,
)
from stagewright.spec.verdict import Outcome

HOLDS, VIOLATED = Outcome.HOLDS, Outcome.VIOLATED


# -- what a step is said to be -----------------------------------------------------------------------------


class Both(Machine):
    """Starts and finishes at once."""

    phase: OneVar[Phase] = one_of(Phase, init=Phase.idle)

    @phase.step(Phase.idle, Phase.done)
    def do(self) -> None:
        """All of it."""


def test_several_steps_at_once_must_be_said() -> None:
    @refinement()
    def plain(both: Both, seen: Job) -> None:
        seen.phase = both.phase

    @refinement(steps={Both.do: [Job.start, Job.finish]})
    def said(both: Both, seen: Job) -> None:
        seen.phase = both.phase

    @refinement(steps={Both.do: [Job.finish, Job.start]})
    def backwards(both: Both, seen: Job) -> None:
        seen.phase = both.phase

    @refinement(steps={Both.do: (Job.start, None)})
    def one_of_two(both: Both, seen: Job) -> None:
        seen.phase = both.phase

    outcomes = [decided(one).outcome for one in (plain, said, backwards, one_of_two)]
    assert outcomes == [VIOLATED, HOLDS, VIOLATED, VIOLATED]


def test_a_step_that_is_said_to_be_none_changes_nothing() -> None:
    @refinement(steps={Worker.begin: None})
    def silent(worker: Worker, seen: Job) -> None:
        seen.phase = phase_of(worker)

    assert steps(decided(silent)) == ["begin"]


def test_a_step_that_is_said_to_be_one_is_one_though_nothing_shows() -> None:
    @refinement(steps={Worker.work: Job.start})
    def wrong(worker: Worker, seen: Job) -> None:
        seen.phase = phase_of(worker)

    assert steps(decided(wrong)) == ["begin", "work"]


# -- views of one entity -----------------------------------------------------------------------------------


class Node(Entity, scope=2):
    """One of several."""


class Nodes(Machine):
    """Each node has jobs, one after the other."""

    phase = per(Node, one_of(Phase, init=Phase.idle))

    @phase.step(Phase.idle, Phase.running)
    def start(self, n: Term[Node]) -> None:
        """It runs."""

    @phase.step(Phase.running, Phase.done)
    def finish(self, n: Term[Node]) -> None:
        """It is done."""

    @phase.step(Phase.done, Phase.idle)
    def renew(self, n: Term[Node]) -> None:
        """Its next job."""


@refinement(anew=(Nodes.renew,))
def a_job_of_a_node(nodes: Nodes, seen: Job, n: Term[Node]) -> None:
    """One job of one node."""
    seen.phase = nodes.phase[n]


def test_a_view_of_one_entity_begins_anew_where_that_is_said() -> None:
    @refinement()
    def one_job(nodes: Nodes, seen: Job, n: Term[Node]) -> None:
        seen.phase = nodes.phase[n]

    verdict = decided(one_job)
    assert steps(verdict) == ["start(node0)", "finish(node0)", "renew(node0)"]
    assert dict(verdict.arguments).keys() == {"n"}
    assert decided(a_job_of_a_node).outcome is HOLDS


def test_what_is_said_of_a_step_is_said_of_the_entity_that_it_is_about() -> None:
    @refinement(anew=(Nodes.renew,), steps={Nodes.start: Job.start, Nodes.finish: Job.finish})
    def named(nodes: Nodes, seen: Job, n: Term[Node]) -> None:
        seen.phase = nodes.phase[n]

    assert decided(named).outcome is HOLDS


def test_members_of_an_enum_are_told_apart() -> None:
    class Which(Enum):
        tame = auto()
        wild = auto()

    class Two(Machine):
        phase = per(Which, one_of(Phase, init=Phase.idle))

        @action
        def start(self, w: Term[Which]) -> None:
            require(self.phase[w] == Phase.idle, "it is idle")
            self.phase[w] = Phase.running

        @action
        def jump(self) -> None:
            self.phase[Which.wild] = Phase.done

    @refinement()
    def each(two: Two, seen: Job, w: Term[Which]) -> None:
        seen.phase = two.phase[w]

    verdict = decided(each)
    assert (verdict.outcome, steps(verdict)) == (VIOLATED, ["jump"])
    assert dict(verdict.arguments) == {"w": Which.wild}


def test_constants_of_the_seen_machine_are_mapped_too() -> None:
    class Bounded(Machine):
        most: NumberVar = constant(number(0, 3, init=ANY))
        rounds: NumberVar = number(0, 3)

        @action
        def more(self) -> None:
            require(self.rounds < self.most, "it is not over")
            self.rounds = self.rounds + 1

    @refinement()
    def enough(worker: Worker, seen: Bounded) -> None:
        seen.most = choose(worker.stopped, 3, choose(worker.started, 3, 3))
        seen.rounds = worker.rounds

    @refinement()
    def too_few(worker: Worker, seen: Bounded) -> None:
        seen.most = choose(worker.stopped, 2, choose(worker.started, 2, 2))
        seen.rounds = worker.rounds

    assert decided(enough).outcome is HOLDS
    assert steps(decided(too_few)) == ["begin", "work", "work", "work"]


class Server(Entity, scope=2):
    """Only the seen machine has them."""


class Announced(Machine):
    """Servers learn what is switched on."""

    on: FlagVar = flag()
    learned = per(Server, flag())

    @action
    def switch(self) -> None:
        """All at once."""
        require(~self.on, "it is off")
        self.on = True
        for s in Server:
            self.learned[s] = True


class Switch(Machine):
    """What is switched on, and nothing else."""

    on: FlagVar = flag()

    @action
    def switch(self) -> None:
        """It is switched on."""
        require(~self.on, "it is off")
        self.on = True


def test_an_entity_that_only_the_seen_machine_has_is_mapped() -> None:
    @refinement()
    def all_servers_know(it: Switch, seen: Announced) -> None:
        seen.on = it.on
        for s in Server:
            seen.learned[s] = it.on

    @refinement()
    def no_server_knows(it: Switch, seen: Announced) -> None:
        seen.on = it.on
        for s in Server:
            seen.learned[s] = False

    assert decided(all_servers_know).outcome is HOLDS
    assert decided(no_server_knows).outcome is VIOLATED
