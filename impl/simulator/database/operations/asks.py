"""How operators and consumers of a run ask nodes: each question has a number, by which its answer is known."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.node.messages import (
    GenerationsReply,
    Message,
    OperatorReply,
    OperatorRequest,
    ScanReply,
)
from stagewright.impl.simulator.database.world import World

ASK_MS = 400  # until a consumer gives a question up
AGAIN_MS = 150  # until an operator asks anew
OPERATION_MS = 60_000
UNFINISHED = "not yet"  # faults may hold it up for as long as they last


class Asks:
    """The questions of one run, whose time passes while an answer is awaited."""

    def __init__(self, world: World, catalog: Catalog) -> None:
        self._world = world
        self._catalog = catalog
        self._answers: dict[int, Message] = {}
        self._number = 0

    def number(self) -> int:
        """One that no other question has."""
        self._number += 1
        return self._number

    def hear(self, message: Message) -> None:
        """An answer arrives."""
        if isinstance(message, OperatorReply | GenerationsReply | ScanReply):
            self._answers[message.number] = message

    def until(self, condition: Callable[[], bool], milliseconds: int) -> bool:
        """Let time pass until a condition holds; False if it does not for so long."""
        events = self._world.events
        return events.run(condition, events.now + milliseconds)

    def serving(self) -> list[str]:
        """The nodes that clients know: those of the ring that run, and who is cut off from it."""
        nodes, hosts = self._catalog.view.nodes, self._world.hosts
        known = [n for n, m in nodes.items() if m.state.owns or n in self._world.isolated]
        return [n for n in known if hosts[n].node is not None]

    def say(self, request: Callable[[int], Message], through: str = "") -> OperatorReply | None:
        """Ask for something that is then committed, or refused; None: there is no answer in time.

        A node that it goes `through` gets it late if it is cut off: when it is back.
        """
        number, nodes = self.number(), self.serving()
        nodes = [n for n in nodes if n not in self._world.absent] or nodes
        nodes = [through] if through in self._world.hosts else nodes
        if through in self._world.parted:
            self._world.held.append(("operator", through, request(number)))
        elif nodes:
            self._world.send("operator", nodes[0], request(number))
        return self._reply(number)

    def order(self, request: OperatorRequest, not_through: str) -> OperatorReply | None:
        """Ask for a change of the topology through some node, but for one."""
        shunned = {not_through, *self._world.isolated, *self._world.absent}
        nodes = [n for n in self.serving() if n not in shunned]
        if not nodes:
            return None
        number, through = self.number(), self._one_of(nodes, "operator")
        self._world.send("operator", through, OperatorRequest(number, request.ask, request.node))
        return self._reply(number)

    def read(self, question: Callable[[int], Message]) -> Message | None:
        """Ask some node for what it has, as a consumer does."""
        nodes = self.serving()
        if not nodes:
            return None
        number = self.number()
        self._world.send("consumer", self._one_of(nodes, "consumer"), question(number))
        return self._answer(number, ASK_MS)

    def _one_of(self, nodes: list[str], kind: str) -> str:
        return nodes[self._world.dice.between(0, len(nodes) - 1, kind)]

    def _reply(self, number: int) -> OperatorReply | None:
        found = self._answer(number, 4 * AGAIN_MS)
        assert found is None or isinstance(found, OperatorReply)
        return found

    def _answer(self, number: int, milliseconds: int) -> Message | None:
        self.until(lambda: number in self._answers, milliseconds)
        return self._answers.pop(number, None)
