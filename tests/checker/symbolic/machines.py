"""Small machines whose proofs are known: each shows one thing that the solver can say."""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Bool,
    Entity,
    LeadsTo,
    Machine,
    States,
    Term,
    action,
    always_reachable,
    choose,
    constant,
    count,
    every,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    per,
    require,
    set_of,
    step_property,
)


class Node(Entity, scope=2):
    """A coordinator with a view of its own."""


class Stage(States):
    """The stages of a hand-over, and which copy they read and write."""

    rest = False, True, False
    write_both = False, True, True
    read_new = True, True, True
    use_new = True, False, True

    def __init__(self, reads_new: bool, writes_old: bool, writes_new: bool) -> None:
        self.reads_new = reads_new
        self.writes_old = writes_old
        self.writes_new = writes_new


class Handover(Machine):
    """A tablet moves from an old copy to a new one while coordinators lag behind."""

    stage = one_of(Stage, init=Stage.rest)
    learned = per(Node, one_of(Stage, init=Stage.rest))
    old_complete = flag(init=True)
    new_complete = flag()

    def everyone_knows(self) -> None:
        require(every(self.learned[n] == self.stage for n in Node), "everyone knows")

    @action
    def learn(self, n: Term[Node]) -> None:
        require(self.learned[n] != self.stage, "not known yet")
        self.learned[n] = self.stage

    @action
    def write(self, n: Term[Node]) -> None:
        writes_old = self.learned[n].column(lambda s: s.writes_old)
        writes_new = self.learned[n].column(lambda s: s.writes_new)
        self.old_complete = self.old_complete & writes_old
        self.new_complete = self.new_complete & writes_new

    @stage.step(Stage.rest, Stage.write_both)
    def start(self) -> None:
        self.everyone_knows()

    @stage.step(Stage.write_both, Stage.read_new)
    def stream(self) -> None:
        self.everyone_knows()
        self.new_complete = self.old_complete

    @stage.step(Stage.read_new, Stage.use_new)
    def finish(self) -> None:
        self.everyone_knows()

    @invariant
    def lag_is_at_most_one(self) -> Bool:
        """A coordinator is at the committed stage or at the one before."""
        return every(
            (self.learned[n] == self.stage)
            | ((self.learned[n] == Stage.rest) & (self.stage == Stage.write_both))
            | ((self.learned[n] == Stage.write_both) & (self.stage == Stage.read_new))
            | ((self.learned[n] == Stage.read_new) & (self.stage == Stage.use_new))
            for n in Node
        )

    @invariant
    def reads_are_complete(self, n: Term[Node]) -> Bool:
        """Whoever reads reads a copy with every acknowledged write."""
        reads_new: Bool = self.learned[n].column(lambda s: s.reads_new)
        return reads_new.implies(self.new_complete) & (~reads_new).implies(self.old_complete)


class HastyHandover(Handover):
    """The same with a step that forgets to wait for the coordinators."""

    @Handover.stage.step(Stage.write_both, Stage.read_new)
    def stream_at_once(self) -> None:
        self.new_complete = self.old_complete


class TwoRings(Machine):
    """A ring of three, and one of three more that nothing leads to: `never_five` is true, not inductive."""

    spot = number(0, 5, init=0)

    @action
    def around(self) -> None:
        require(self.spot < 2, "before the end")
        self.spot = self.spot + 1

    @action
    def home(self) -> None:
        require(self.spot == 2, "at the end")
        self.spot = self.spot - 2

    @action
    def around_elsewhere(self) -> None:
        require((self.spot >= 3) & (self.spot < 5), "elsewhere")
        self.spot = self.spot + 1

    @action
    def stay_elsewhere(self) -> None:
        require((self.spot >= 3) & (self.spot < 5), "elsewhere")
        self.spot = self.spot + 0

    @invariant
    def never_five(self) -> Bool:
        return self.spot != 5


class ShortRuns(Machine):
    """Every run ends after two steps; elsewhere, where no run comes, a step leads to 5."""

    spot = number(0, 5, init=0)

    @action
    def advance(self) -> None:
        require(self.spot < 2, "before the end")
        self.spot = self.spot + 1

    @action
    def advance_elsewhere(self) -> None:
        require((self.spot >= 3) & (self.spot < 5), "elsewhere")
        self.spot = self.spot + 1

    @action
    def stay_elsewhere(self) -> None:
        require(self.spot >= 3, "elsewhere")
        self.spot = self.spot + 0

    @invariant
    def never_five(self) -> Bool:
        return self.spot != 5


class TwoRingsStrengthened(TwoRings):
    """The same with the invariant that makes the proof go through."""

    @invariant
    def stays_home(self) -> Bool:
        return self.spot <= 2


class Exchange(Machine):
    """Each number may become what the other is: neither promise is 1-inductive by itself, both together are."""

    left = number(-2, 3, init=1)
    right = number(-2, 3, init=2)

    @action
    def copy_left(self) -> None:
        self.right = self.left

    @action
    def copy_right(self) -> None:
        self.left = self.right

    @invariant
    def left_is_positive(self) -> Bool:
        return self.left >= 1

    @invariant
    def right_is_positive(self) -> Bool:
        return self.right > 0


class Counting(Machine):
    """A number that one action lets grow without a bound: it leaves its range after three steps."""

    value = number(-1, 2, init=-1)

    @action
    def grow(self) -> None:
        self.value = self.value + 1

    @step_property
    def never_falls(self, after: Self) -> Bool:
        return self.value <= after.value


class Pacing(Machine):
    """Goes up and down one at a time, but for one leap from the top."""

    value = number(-2, 2, init=0)

    @action
    def up(self) -> None:
        require(self.value < 2, "below the top")
        self.value = self.value + 1

    @action
    def leap(self) -> None:
        require(self.value == 2, "at the top")
        self.value = self.value - 4

    @step_property
    def one_at_a_time(self, after: Self) -> Bool:
        return (after.value - self.value <= 1) & (self.value - after.value <= 1)

    @step_property
    def moves(self, after: Self) -> Bool:
        return after.value != self.value


class Steps(Machine):
    """Ends after two steps, in a state where nothing can happen; `limit` never changes."""

    done = per(Node, flag())
    limit = constant(number(2, 3))

    @action
    def finish(self, n: Term[Node]) -> None:
        require(~self.done[n], "not done")
        self.done[n] = True

    @invariant
    def no_more_than_the_limit(self) -> Bool:
        return count(self.done[n] for n in Node) <= self.limit

    @invariant
    def limit_stays(self) -> Bool:
        return self.limit >= 2

    @always_reachable
    def all_done(self) -> Bool:
        return every(self.done[n] for n in Node)

    @liveness
    def each_is_done(self, n: Term[Node]) -> LeadsTo:
        return leads_to(~self.done[n], self.done[n])


class Colour(States):
    """What a slot holds, and its weight."""

    red = 1
    blue = -2

    def __init__(self, weight: int) -> None:
        self.weight = weight


class Slot(Entity, scope=1):
    """What nodes own."""


class Mixture(Machine):
    """A little of everything the language has: sets, optionals, columns, negative numbers, symbolic keys."""

    owner = per(Slot, optional(Node))
    members = set_of(Node)
    colour = per(Node, one_of(Colour, init=Colour.red))
    balance = number(-2, 1, init=0)
    chosen = one_of(Node)

    @action
    def join(self, n: Term[Node]) -> None:
        require(~self.members.has(n), "not a member")
        self.members.add(n)

    @action
    def own(self, s: Term[Slot], n: Term[Node]) -> None:
        require(self.members.has(n) & (self.owner[s] != n), "a member that does not own")
        self.owner[s] = n
        self.chosen = n

    @action
    def disown(self, s: Term[Slot]) -> None:
        require(self.owner[s].is_some(), "owned")
        self.owner[s] = None
        self.members.discard(self.chosen)

    @action
    def paint(self, n: Term[Node], c: Term[Colour]) -> None:
        require(self.colour[n] != c, "another colour")
        self.colour[self.chosen] = c

    @action
    def weigh(self) -> None:
        weight = self.colour[self.chosen].number_column(lambda c: c.weight)
        require((self.balance + weight <= 1) & (self.balance + weight >= -2), "in balance")
        free = every(self.owner[s].is_none() for s in Slot)
        self.balance = choose(free, self.balance + weight, self.members.size() - 1)

    @invariant
    def owner_is_a_member(self, s: Term[Slot], n: Term[Node]) -> Bool:
        return (self.owner[s] == n).implies(self.members.has(n))

    @invariant
    def balance_is_above_its_least(self) -> Bool:
        return self.balance > -2
