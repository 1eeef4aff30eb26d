"""Records that are sent, and the sets, bags and queues that hold them: what they mean, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import cast

import pytest

from stagewright.spec import (
    Bool,
    DefinitionError,
    DomainError,
    Entity,
    Machine,
    OneVar,
    QueueVar,
    Record,
    RecordSetVar,
    ScopeError,
    Term,
    action,
    bag,
    define,
    invariant,
    number,
    one_of,
    optional,
    queue,
    require,
    scope_of,
    set_of,
)
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.text.itf_values import from_json, to_json
from stagewright.spec.text.words import effect
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step


class Kind(Enum):
    ask = auto()
    answer = auto()


class Node(Entity, scope=2): ...


class Message(Record):
    kind = one_of(Kind)
    sender = one_of(Node)
    to = optional(Node)


class Wide(Record):
    key = number(0, 99)
    value = number(0, 99)


class Post(Machine):
    """Messages are sent, taken and repeated."""

    channel: QueueVar[Message, Message] = queue(Message, 2)
    sent: RecordSetVar[Message] = set_of(Message)
    at: OneVar[Node] = one_of(Node)

    @action
    def send(self, n: Term[Node]) -> None:
        message = Message(kind=Kind.ask, sender=n)
        self.channel.append(message)
        self.sent.add(message)

    @action
    def take(self, m: Message) -> None:
        require(~self.channel.is_empty(), "there is one")
        require(self.channel.head == m, "it is the first")
        self.channel.drop_head()
        self.at = m.sender

    @action
    def repeat(self) -> None:
        self.channel.duplicate(0)

    @invariant
    def known(self, m: Message) -> Bool:
        return self.sent.has(m) | ~self.channel.has(m)


DEFINITION = define(Post)
INTERPRETER = Interpreter(DEFINITION, scope_of(DEFINITION))


def message(sender: int) -> FrozenMap[str, object]:
    return FrozenMap({"kind": Kind.ask, "sender": Node(sender), "to": None})


def after(*steps: Step) -> State:
    state = next(INTERPRETER.initial_states())
    for step in steps:
        state = INTERPRETER.take(step, state)
    return state


def step(name: str, **arguments: object) -> Step:
    return Step(name, FrozenMap(arguments))  # type: ignore[arg-type]


def test_a_queue_gives_first_what_came_first() -> None:
    state = after(step("send", n=Node(1)), step("send", n=Node(0)))
    assert state["channel"] == (message(1), message(0))
    state = INTERPRETER.take(step("take", m=message(1)), state)
    assert (state["channel"], state["at"]) == ((message(0),), Node(1))
    assert state["sent"] == {message(0), message(1)}


def test_what_is_repeated_is_there_twice_and_nothing_is_not() -> None:
    assert after(step("send", n=Node(0)), step("repeat"))["channel"] == (message(0), message(0))
    assert after(step("repeat"))["channel"] == ()


def test_a_full_queue_takes_no_more() -> None:
    full = after(step("send", n=Node(0)), step("send", n=Node(1)))
    with pytest.raises(DomainError, match=r"`send\(node0\)` makes channel 3 long"):
        INTERPRETER.take(step("send", n=Node(0)), full)


def test_a_state_is_coded_and_read_back() -> None:
    model = ground(DEFINITION, scope_of(DEFINITION))
    state = after(step("send", n=Node(1)))
    cells = model.encode(state)
    assert model.decode(cells) == state
    beyond = [code for cell, code in zip(model.cells, cells, strict=True) if "[1]" in cell.name]
    assert beyond == [0] * 3
    for variable in DEFINITION.variables:
        document = to_json(state[variable.name], variable.sort)
        assert from_json(document, variable.sort, variable.name) == state[variable.name]


def test_effects_are_said_in_words() -> None:
    document = [
        effect(a)
        for name in ("send", "take", "repeat")
        for a in DEFINITION.action(name).assignments
    ]
    assert document == [
        "Message(kind: ask, sender: n, to: none) is appended to channel",
        "Message(kind: ask, sender: n, to: none) joins sent",
        "the head of channel is dropped",
        "at becomes m.sender",
        "the head of channel is duplicated",
    ]


def test_a_record_with_too_many_values_is_refused_with_what_makes_it_large() -> None:
    class Large(Machine):
        sent: RecordSetVar[Wide] = set_of(Wide)

        @action
        def send(self) -> None:
            self.sent.add(Wide(key=1, value=2))

    definition = define(Large)
    with pytest.raises(ScopeError, match="Wide has 10,000 values at this scope"):
        ground(definition, scope_of(definition))


class Inner(Record):
    nodes = set_of(Node)


@pytest.mark.parametrize(
    ("declare", "problem", "help"),
    [
        (lambda: set_of(Inner), "the field `nodes` is set of Node", "a flag for each"),
        (lambda: queue(optional(Node), 2), "cannot stand in a queue", "put it into a Record"),
        (lambda: queue(Message, 0), "has no room for elements", "from 1 to"),
        (lambda: bag(Message, at_most=0), "has no room for members", "from 1 to"),
        (
            lambda: queue(cast("type[Node]", int), 2),
            "neither an enum with members nor an entity",
            "number(low, high)",
        ),
    ],
)
def test_what_cannot_be_held_is_refused(
    declare: Callable[[], object], problem: str, help: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        declare()
    assert problem in refused.value.problem
    assert help in refused.value.help


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (lambda m: Message(kind=Kind.ask), "given no `sender`"),
        (lambda m: Message(kind=Kind.ask, sender=m.at, frm=1), "Message has no field `frm`"),
        (lambda m: Message(kind=m.at, sender=m.at), "`kind` of Message is of sort Node"),
        (lambda m: setattr(m.channel.head, "kind", Kind.ask), "no part of the state"),
        (lambda m: m.channel.append(3), "the element is 3, but Message is needed"),
    ],
)
def test_records_that_are_made_wrongly_are_refused(
    body: Callable[[Post], object], problem: str
) -> None:
    class Wrong(Post):
        @action
        def wrong(self) -> None:
            body(self)
            self.sent.add(Message(kind=Kind.ask, sender=self.at))

    with pytest.raises(DefinitionError) as refused:
        define(Wrong)
    assert problem in refused.value.problem
