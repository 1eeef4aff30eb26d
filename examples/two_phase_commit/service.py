"""A coordinator and its managers in plain Python, and the adapter through which tests drive them."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

MANAGERS = ("manager0", "manager1", "manager2")


class Manager:
    """Takes part in one transaction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.decision = "WORKING"

    def prepare(self) -> str | None:
        """The message that says so; None if it is too late."""
        if self.decision != "WORKING":
            return None
        self.decision = "PREPARED"
        return f"{{kind: PREPARED, sender: {self.name}}}"

    def abort(self) -> bool:
        """Give up, as long as nothing was promised."""
        if self.decision != "WORKING":
            return False
        self.decision = "ABORTED"
        return True

    def hear(self, decision: str) -> None:
        """The coordinator has decided."""
        self.decision = decision


class Coordinator:
    """Commits once every manager is prepared."""

    def __init__(self) -> None:
        self.deciding = True
        self.prepared: set[str] = set()

    def hear_prepared(self, manager: str) -> None:
        if self.deciding:
            self.prepared.add(manager)

    def commit(self) -> str | None:
        """The message to all; None if it may not commit."""
        if not self.deciding or self.prepared != set(MANAGERS):
            return None
        self.deciding = False
        return "{kind: COMMIT, sender: none}"

    def abort(self) -> str | None:
        if not self.deciding:
            return None
        self.deciding = False
        return "{kind: ABORT, sender: none}"


class Adapter:
    """The definition's steps as calls; what was sent is the network's."""

    def reset(self, initial: State) -> None:
        self.managers = {name: Manager(name) for name in MANAGERS}
        self.coordinator = Coordinator()
        self.sent: set[str] = set()

    def do(self, step: Step) -> None:
        name = str(step.arguments.get("m", ""))
        match step.action:
            case "prepare":
                self._send(self.managers[name].prepare())
            case "choose_to_abort":
                if not self.managers[name].abort():
                    raise RefusedEvent("it has promised to go with the coordinator")
            case "hear_prepared":
                self._receive(f"{{kind: PREPARED, sender: {name}}}")
                if not self.coordinator.deciding:
                    raise RefusedEvent("it has decided")
                self.coordinator.hear_prepared(name)
            case "hear_commit":
                self._receive("{kind: COMMIT, sender: none}")
                self.managers[name].hear("COMMITTED")
            case "hear_abort":
                self._receive("{kind: ABORT, sender: none}")
                self.managers[name].hear("ABORTED")
            case "commit":
                self._send(self.coordinator.commit())
            case _:
                self._send(self.coordinator.abort())

    def observe(self) -> Mapping[str, object]:
        decisions = {f"decision[{m.name}]": m.decision for m in self.managers.values()}
        return {
            **decisions,
            "deciding": self.coordinator.deciding,
            "prepared": sorted(self.coordinator.prepared),
            "sent": sorted(self.sent),
        }

    def _send(self, message: str | None) -> None:
        if message is None:
            raise RefusedEvent("it may not say that now")
        self.sent.add(message)

    def _receive(self, message: str) -> None:
        if message not in self.sent:
            raise RefusedEvent("nobody has sent that")
