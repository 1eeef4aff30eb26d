"""A lock server and its clients in plain Python, and the adapter that is the network between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

CLIENTS = ("client0", "client1", "client2")


class Server:
    """Grants the lock to one client after the other."""

    def __init__(self) -> None:
        self.queue: deque[str] = deque()

    def hear_request(self, client: str) -> list[str]:
        """Whom to grant the lock."""
        self.queue.append(client)
        return [client] if len(self.queue) == 1 else []

    def hear_release(self, client: str) -> list[str]:
        """Whom to grant the lock; a release of who does not hold it changes nothing."""
        if not self.queue or self.queue[0] != client:
            return []
        self.queue.popleft()
        return [self.queue[0]] if self.queue else []


class Client:
    """Asks, holds, gives back."""

    def __init__(self) -> None:
        self.phase = "idle"


class Adapter:
    """The definition's steps as calls; messages under way are the network's."""

    def reset(self, initial: State) -> None:
        self.server = Server()
        self.clients = {name: Client() for name in CLIENTS}
        self.requests: set[str] = set()
        self.grants: set[str] = set()
        self.releases: set[str] = set()

    def do(self, step: Step) -> None:
        name = str(step.arguments["c"])
        client = self.clients[name]
        match step.action:
            case "ask":
                self._only_if(client.phase == "idle" and name not in self.releases)
                client.phase = "waiting"
                self.requests.add(name)
            case "grant" | "enqueue" as how:
                self._only_if(name in self.requests)
                self._only_if((how == "grant") == (not self.server.queue))
                self.requests.remove(name)
                self.grants.update(self.server.hear_request(name))
            case "hear_grant":
                self._only_if(name in self.grants)
                self.grants.remove(name)
                client.phase = "holding"
            case "release":
                self._only_if(client.phase == "holding")
                client.phase = "idle"
                self.releases.add(name)
            case _:
                self._release(name, str(step.arguments.get("following", "")))

    def observe(self) -> Mapping[str, object]:
        phases = {f"phase[{name}]": client.phase for name, client in self.clients.items()}
        return {
            **phases,
            "requests": sorted(self.requests),
            "grants": sorted(self.grants),
            "releases": sorted(self.releases),
        }

    def _release(self, name: str, following: str) -> None:
        self._only_if(name in self.releases)
        second = self.server.queue[1] if len(self.server.queue) > 1 else ""
        self._only_if(second == following)
        self.releases.remove(name)
        self.grants.update(self.server.hear_release(name))

    def _only_if(self, possible: bool) -> None:
        if not possible:
            raise RefusedEvent("it cannot happen now")
