"""What sets, optionals, records, maps, columns and numbers mean in actions."""

from __future__ import annotations

from typing import Annotated

from tests.spec.runs import Colour, Node, Stage, run

from stagewright.spec import (
    FlagVar,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    Record,
    SetVar,
    Term,
    Var,
    action,
    between,
    choose,
    count,
    flag,
    number,
    one_of,
    optional,
    per,
    record,
    require,
    set_of,
)


def test_sets() -> None:
    class Sets(Machine):
        left: SetVar[Colour] = set_of(Colour, init={Colour.red, Colour.green})
        right: SetVar[Colour] = set_of(Colour, init={Colour.green, Colour.blue})
        size: NumberVar = number(0, 3)

        @action
        def union(self) -> None:
            self.left = self.left | self.right

        @action
        def intersection(self) -> None:
            self.left = self.left & self.right

        @action
        def difference(self) -> None:
            self.left = self.left - {Colour.red}

        @action
        def move(self, colour: Term[Colour]) -> None:
            require(self.left.has(colour) & ~self.right.has(colour), "it is on the left only")
            self.left.discard(colour)
            self.right.add(colour)

        @action
        def put(self, colour: Term[Colour]) -> None:
            require(self.left != self.right, "they differ")
            self.right.put(colour, self.left.has(colour))

        @action
        def measure(self) -> None:
            require(~self.left.is_empty(), "something is left")
            self.size = self.left.size()

    both = {"right": "{blue, green}", "size": "0"}
    assert run(Sets).take("union") == {"left": "{blue, green, red}", **both}
    assert run(Sets).take("intersection") == {"left": "{green}", **both}
    assert run(Sets).take("difference") == {"left": "{green}", **both}
    assert run(Sets).take("measure")["size"] == "2"
    assert run(Sets).take("put(blue)")["right"] == "{green}"
    assert run(Sets).take("put(red)")["right"] == "{blue, green, red}"
    here = run(Sets)
    assert {s for s in here.steps if s.startswith("move")} == {"move(red)"}
    assert here.take("move(red)") == {"left": "{green}", "right": "{blue, green, red}", "size": "0"}


def test_a_set_compared_with_a_concrete_one() -> None:
    class Sets(Machine):
        left: SetVar[Colour] = set_of(Colour, init={Colour.red})
        told: FlagVar = flag()

        @action
        def equal(self) -> None:
            require(self.left == {Colour.red}, "it is red")
            self.told = True

        @action
        def within(self) -> None:
            require(self.left <= {Colour.red, Colour.blue}, "it is within")
            self.left = {Colour.blue}

    here = run(Sets)
    assert here.steps == {"equal", "within"}
    here.take("within")
    assert here.steps == {"within"}


def test_optionals_hold_a_member_or_none() -> None:
    class Leads(Machine):
        leader: OptionalVar[Node] = optional(Node)
        shade: OptionalVar[Colour] = optional(Colour, init=Colour.blue)
        last: OptionalVar[Node] = optional(Node)

        @action
        def lead(self, node: Term[Node]) -> None:
            require(self.leader != node, "another one")
            self.last = self.leader
            self.leader = node

        @action
        def stop(self) -> None:
            require(self.shade.any_of(Colour.blue, None), "it may stop")
            self.shade = choose(self.leader.is_some(), None, self.shade)
            self.leader = None

    here = run(Leads)
    assert here.take("lead(node1)") == {"leader": "node1", "shade": "blue", "last": "none"}
    assert here.steps == {"lead(node0)", "stop"}
    assert here.take("lead(node0)") == {"leader": "node0", "shade": "blue", "last": "node1"}
    assert here.take("stop") == {"leader": "none", "shade": "none", "last": "node1"}
    assert here.steps == {"lead(node0)", "lead(node1)", "stop"}


class Row(Record):
    present: FlagVar = flag()
    owner: OptionalVar[Node] = optional(Node)
    marks = per(Colour, flag())


def test_records_are_assigned_whole_and_by_field() -> None:
    class Rows(Machine):
        rows = per(Node, record(Row))
        spare: Var[Row, Row] = record(Row)

        @action
        def write(self, node: Term[Node]) -> None:
            self.rows[node].present = True
            self.rows[node].owner = node
            self.rows[node].marks[Colour.red] = True

        @action
        def keep(self, node: Term[Node]) -> None:
            require(self.rows[node] != self.spare, "it is another one")
            self.spare = self.rows[node]

    here = run(Rows)
    assert here.steps == {"write(node0)", "write(node1)"}
    here.take("write(node1)")
    assert here.steps == {"write(node0)", "write(node1)", "keep(node1)"}
    after = here.take("keep(node1)")
    assert {k: v for k, v in after.items() if k.startswith("spare")} == {
        "spare.present": "yes",
        "spare.owner": "node1",
        "spare.marks[red]": "yes",
        "spare.marks[green]": "no",
        "spare.marks[blue]": "no",
    }
    assert after["rows[node0].present"] == "no"


def test_a_whole_map_is_assigned_at_once() -> None:
    class Maps(Machine):
        old = per(Node, one_of(Stage, init=Stage.rest))
        new = per(Node, one_of(Stage, init=Stage.moving))

        @action
        def change(self, node: Term[Node]) -> None:
            self.new[node] = Stage.done

        @action
        def copy(self) -> None:
            require(self.old != self.new, "they differ")
            self.old = self.new

    here = run(Maps)
    here.take("change(node0)")
    after = here.take("copy")
    assert (after["old[node0]"], after["old[node1]"]) == ("done", "moving")
    assert "copy" not in here.steps


def test_columns_of_every_kind() -> None:
    class Columns(Machine):
        stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)
        busy: FlagVar = flag()
        rank: NumberVar = number(-1, 3)
        shade: OneVar[Colour] = one_of(Colour, init=Colour.blue)
        other: OptionalVar[Colour] = optional(Colour)
        shades: SetVar[Colour] = set_of(Colour)

        @action
        def read(self) -> None:
            self.busy = self.stage.column(lambda s: s.busy)
            self.rank = self.stage.number_column(lambda s: s.rank)
            self.shade = self.stage.column(lambda s: s.shade)
            self.other = self.stage.optional_column(lambda s: s.other)
            self.shades = self.stage.column(lambda s: s.shades)

        @action
        def change(self, to: Term[Stage]) -> None:
            self.stage = to

    here = run(Columns)
    expected = {
        "rest": ("no", "0", "red", "none", "{red}"),
        "moving": ("yes", "3", "green", "red", "{green, red}"),
        "done": ("no", "-1", "red", "blue", "{}"),
    }
    for stage, values in expected.items():
        here.take(f"change({stage})")
        assert tuple(here.take("read").values()) == (stage, *values)


def test_numbers_add_compare_and_are_counted() -> None:
    class Counts(Machine):
        up: SetVar[Node] = set_of(Node)
        low: NumberVar = number(-2, 2, init=-1)

        @action
        def start(self, node: Term[Node]) -> None:
            require(count(self.up.has(n) for n in Node) < 2, "room is left")
            self.up.add(node)
            self.low = self.low + 1

        @action
        def by(self, amount: Annotated[Number, between(-1, 1)]) -> None:
            require((self.low + amount >= -2) & (2 >= self.low + amount), "within bounds")  # noqa: SIM300 the reflected one
            self.low = self.low + amount

    here = run(Counts, nodes=3)
    here.take("start(node0)")
    here.take("start(node2)")
    assert here.steps == {"by(-1)", "by(0)", "by(1)"}
    here.take("by(1)")
    assert here.steps == {"by(-1)", "by(0)"}
