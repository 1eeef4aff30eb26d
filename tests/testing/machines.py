"""A lock whose guard a test can take away, and two implementations of it."""

LOCK = '''\
"""A lock that one client holds at a time."""

from stagewright.spec import (
    Bool, Entity, Machine, Term, action, always_reachable, budget, invariant, optional, require,
)


class Client(Entity, scope=2):
    """Wants the lock."""


class Lock(Machine):
    """At most one client holds it."""

    crashes = budget(1, doc="holders that forget to release")
    holder = optional(Client)
    served = optional(Client)

    @action
    def acquire(self, c: Term[Client]) -> None:
        """The lock is granted."""
        require(self.holder.is_none(), "the lock is free")
        self.holder = c
        self.served = c

    @action
    def release(self, c: Term[Client]) -> None:
        """The holder gives it back."""
        require(self.holder == c, "client holds the lock")
        self.holder = None
        self.served = None

    @action(spends=crashes)
    def crash(self, c: Term[Client]) -> None:
        """The holder forgets that it holds it."""
        require(self.holder == c, "client holds the lock")
        self.holder = HOLDER

    @invariant
    def the_holder_was_served(self) -> Bool:
        """Nobody holds the lock who was not served."""
        return self.holder.is_none() | self.served.is_some()

    @invariant
    def who_was_served_holds_it(self) -> Bool:
        """A client that was served holds the lock."""
        return self.served.is_none() | self.holder.is_some()

    @always_reachable
    def it_can_be_free(self) -> Bool:
        """The lock can be released."""
        return self.holder.is_none()
'''
RIGHT = LOCK.replace("HOLDER", "c")
WRONG = LOCK.replace("HOLDER", "None")

SERVICE = '''\
"""A lock service with its adapter."""

from stagewright.testing import RefusedEvent


class Adapter:
    def reset(self, initial):
        self.holder = None

    def do(self, step):
        client = str(step.arguments["c"])
        if step.action == "acquire":
            if self.holder is not None:
                raise RefusedEvent("held")
            self.holder = client
        elif self.holder != client:
            raise RefusedEvent("not the holder")
        elif step.action == "release":
            self.holder = None

    def observe(self):
        return {"holder": self.holder}


class Careless(Adapter):
    def do(self, step):
        if step.action == "acquire":
            self.holder = str(step.arguments["c"])
        else:
            super().do(step)
'''
