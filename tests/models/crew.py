"""A coordinator that takes turns with itself, and workers that each get theirs: fairness that is shared."""

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Eventually,
    Fairness,
    LeadsTo,
    Machine,
    Term,
    action,
    eventually,
    every,
    fairness,
    final,
    flag,
    leads_to,
    liveness,
    one_of,
    per,
    require,
)


class Worker(Entity, scope=2):
    """Who works."""


class Job(Entity, scope=2):
    """What is to be done."""


class Task(Enum):
    """How far a job is."""

    new = auto()
    planned = auto()
    done = auto()


class Crew(Machine):
    """The coordinator plans jobs or looks at its list; each worker does some job or takes a rest."""

    turn = fairness(Fairness.WEAK)
    own = fairness(Fairness.WEAK, each=Worker)

    job = per(Job, one_of(Task, init=Task.new))
    tired = per(Worker, flag())
    looks = flag()

    @action(fair=turn)
    def plan(self, j: Term[Job]) -> None:
        """The coordinator plans a job."""
        require(self.job[j] == Task.new, "it is new")
        self.job[j] = Task.planned

    @action(fair=turn)
    def look(self) -> None:
        """The coordinator looks at its list, as long as something is new."""
        require(~every(self.job[j] != Task.new for j in Job), "something is new")
        self.looks = ~self.looks

    @action(fair=own)
    def work(self, w: Term[Worker], j: Term[Job]) -> None:
        """A worker does a job that is planned."""
        require(self.job[j] == Task.planned, "it is planned")
        require(~self.tired[w], "the worker is not tired")
        self.job[j] = Task.done
        self.tired[w] = True

    @action(fair=own)
    def rest(self, w: Term[Worker]) -> None:
        """A tired worker takes a rest."""
        require(self.tired[w], "the worker is tired")
        self.tired[w] = False

    @final
    def all_done(self) -> Bool:
        done = every(self.job[j] == Task.done for j in Job)
        return done & every(~self.tired[w] for w in Worker)

    @liveness
    def who_is_tired_rests(self, w: Term[Worker]) -> LeadsTo:
        """Each worker gets its turn, and can do nothing but rest."""
        return leads_to(self.tired[w], ~self.tired[w])

    @liveness
    def what_is_planned_is_done(self, j: Term[Job]) -> LeadsTo:
        """With two jobs, workers that get a turn do them all."""
        return leads_to(self.job[j] == Task.planned, self.job[j] == Task.done)

    @liveness
    def all_is_planned(self) -> Eventually:
        """Not so: the coordinator may look at its list for ever."""
        return eventually(every(self.job[j] != Task.new for j in Job))

    @liveness
    def the_coordinator_does_something(self) -> Eventually:
        """It plans or looks: so much is assumed."""
        return eventually(self.looks | ~every(self.job[j] == Task.new for j in Job))
