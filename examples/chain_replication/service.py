"""A chain of servers that replicate a log, and the adapter through which tests drive it."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

SERVERS = ("server0", "server1", "server2")


class Server:
    """Stores what it is sent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log: list[str] = []


class Master:
    """Knows who is alive, in the order of the chain."""

    def __init__(self) -> None:
        self.chain = [Server(name) for name in SERVERS]

    def is_head(self, name: str) -> bool:
        return self.chain[0].name == name

    def is_tail(self, name: str) -> bool:
        return self.chain[-1].name == name

    def after(self, name: str) -> Server | None:
        """The next server of the chain; None after the tail, and of a server that is not in it."""
        names = [server.name for server in self.chain]
        place = names.index(name) + 1 if name in names else len(names)
        return self.chain[place] if place < len(names) else None

    def notice_crash(self, name: str) -> bool:
        """Whether the server is taken out of the chain; the last one stays."""
        left = [server for server in self.chain if server.name != name]
        if not left or len(left) == len(self.chain):
            return False
        self.chain = left
        return True


class Adapter:
    """The definition's steps as calls."""

    def reset(self, initial: State) -> None:
        self.master = Master()
        self.servers = {server.name: server for server in self.master.chain}
        self.acknowledged = 0

    def do(self, step: Step) -> None:
        server = self.servers[str(step.arguments["s"])]
        match step.action:
            case "write":
                done = self.master.is_head(server.name)
                if done:
                    server.log.append(getattr(step.arguments["value"], "name", ""))
            case "hand_on":
                done = self._hand_on(server, str(step.arguments["t"]))
            case "acknowledge":
                done = self.master.is_tail(server.name) and self.acknowledged < len(server.log)
                self.acknowledged += done
            case _:
                done = self.master.notice_crash(server.name)
        if not done:
            raise RefusedEvent("it cannot happen now")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {"acknowledged": self.acknowledged}
        alive = {server.name for server in self.master.chain}
        for name, server in self.servers.items():
            seen[f"alive[{name}]"] = name in alive
            seen[f"log[{name}].length"] = len(server.log)
            seen |= {f"log[{name}][{i}]": value for i, value in enumerate(server.log)}
        return seen

    def _hand_on(self, server: Server, to: str) -> bool:
        following = self.master.after(server.name)
        if following is None or following.name != to or len(following.log) >= len(server.log):
            return False
        following.log.append(server.log[len(following.log)])
        return True
