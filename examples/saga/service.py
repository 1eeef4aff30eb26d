"""A coordinator of a saga and the services that it calls, and the adapter through which tests drive them."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

SERVICES = ("service0", "service1", "service2")
SAGA = "saga-1"


class Service:
    """Does its part once for each key, and undoes it."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.effects = 0

    def execute(self, key: str) -> None:
        """Do it, unless a call with this key has done it."""
        if key not in self.keys:
            self.keys.add(key)
            self.effects += 1

    def undo(self, key: str) -> None:
        """Undo what the call with this key has done."""
        if key in self.keys:
            self.keys.remove(key)
            self.effects -= 1


class Coordinator:
    """Calls one service after the other; what it knows is in its log."""

    def __init__(self) -> None:
        self.phase = "running"
        self.log: dict[str, str] = dict.fromkeys(SERVICES, "open")

    def next(self) -> str | None:
        """Whom to call."""
        open_ones = [name for name in SERVICES if self.log[name] == "open"]
        return open_ones[0] if self.phase == "running" and open_ones else None

    def last_done(self) -> str | None:
        """Whose part to undo."""
        done = [name for name in SERVICES if self.log[name] == "done"]
        return done[-1] if self.phase == "undoing" and done else None

    def end(self, phase: str) -> bool:
        """Whether the saga is over now, in this way."""
        if phase == "succeeded":
            over = self.phase == "running" and self.next() is None
        else:
            over = self.phase == "undoing" and self.last_done() is None
        if over:
            self.phase = phase
        return over


class Adapter:
    """The definition's steps as calls; a repeated call has the key of the first."""

    def reset(self, initial: State) -> None:
        self.coordinator = Coordinator()
        self.services = {name: Service() for name in SERVICES}

    def do(self, step: Step) -> None:
        name = str(step.arguments.get("s", ""))
        if step.action in ("succeed", "fail"):
            done = self.coordinator.end("succeeded" if step.action == "succeed" else "failed")
        elif step.action == "undo":
            done = self.coordinator.last_done() == name
            if done:
                self.services[name].undo(f"{SAGA}/{name}")
                self.coordinator.log[name] = "undone"
        else:
            done = self.coordinator.next() == name and self._turn(step.action, name)
        if not done:
            raise RefusedEvent("its turn has not come, or is over")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {"phase": self.coordinator.phase}
        for name, service in self.services.items():
            seen[f"log[{name}]"] = self.coordinator.log[name]
            seen[f"effects[{name}]"] = service.effects
        return seen

    def _turn(self, action: str, name: str) -> bool:
        service = self.services[name]
        has_done_it = service.effects > 0
        if has_done_it != (action in ("execute_again", "note")):
            return False
        match action:
            case "note":
                self.coordinator.log[name] = "done"
            case "refuse":
                self.coordinator.phase = "undoing"
            case _:
                service.execute(f"{SAGA}/{name}")
        return True
