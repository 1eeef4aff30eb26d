"""Both sides of a connection show that they know the cluster's secret before anything else is said.

The side that was called sends a challenge; the caller answers it with a challenge of its own, which the
other side answers in turn. The secret itself is never sent. What follows is neither hidden nor signed: across
a network that others can write to, use a tunnel.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from stagewright.impl.processes.codec import Codec
from stagewright.impl.processes.errors import WireError

T = TypeVar("T")

SECONDS = 5.0  # that a stranger has
_NONCE = 32


@dataclass(frozen=True, slots=True)
class Challenge:
    """Who was called, and what the caller has to answer."""

    node: str
    nonce: bytes


@dataclass(frozen=True, slots=True)
class Hello:
    """Who calls: a node with its address, or a client without. `proof` answers the challenge."""

    name: str
    address: str
    nonce: bytes
    proof: bytes


@dataclass(frozen=True, slots=True)
class Welcome:
    """The other side knows the secret, too."""

    proof: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """It ends here; `help` says what would be right."""

    reason: str
    help: str = ""


@lru_cache(maxsize=1)
def _codec() -> Codec:
    return Codec((Challenge, Hello, Welcome, Refused))


class Called:
    """The side that was called."""

    def __init__(self, secret: bytes, node: str) -> None:
        self._secret = secret
        self._challenge = Challenge(node, secrets.token_bytes(_NONCE))
        self.hello: Hello | None = None  # of a caller that knows the secret

    def opening(self) -> bytes:
        """What it says first."""
        return _codec().encode(self._challenge)

    def answer(self, body: bytes) -> bytes:
        """The answer to a caller's hello.

        Raises:
            WireError: it is none, or its proof is wrong.
        """
        hello = _expected(body, Hello)
        wanted = _proof(self._secret, b"caller", self._challenge, hello)
        if not hmac.compare_digest(wanted, hello.proof):
            raise WireError("the caller does not know the secret", help="use the cluster's own")
        self.hello = hello
        return _codec().encode(Welcome(_proof(self._secret, b"called", self._challenge, hello)))


class Calling:
    """The side that calls: a node with an address, or a client with an empty one."""

    def __init__(self, secret: bytes, name: str, address: str = "") -> None:
        self._secret = secret
        self._name = name
        self._address = address
        self._challenge: Challenge | None = None
        self._hello: Hello | None = None
        self.node = ""  # whom it called, once that is proved

    def answer(self, body: bytes) -> bytes | None:
        """What to say next; None when both sides know each other.

        Raises:
            WireError: the other side refuses, or does not know the secret.
        """
        if self._challenge is None or self._hello is None:
            self._challenge = _expected(body, Challenge)
            blank = Hello(self._name, self._address, secrets.token_bytes(_NONCE), b"")
            proof = _proof(self._secret, b"caller", self._challenge, blank)
            self._hello = Hello(blank.name, blank.address, blank.nonce, proof)
            return _codec().encode(self._hello)
        welcome = _expected(body, Welcome)
        wanted = _proof(self._secret, b"called", self._challenge, self._hello)
        if not hmac.compare_digest(wanted, welcome.proof):
            raise WireError("the other side does not know the secret", help="see who listens there")
        self.node = self._challenge.node
        return None


def refusal(reason: str, help: str) -> bytes:
    """What is sent to who is cut off."""
    return _codec().encode(Refused(reason, help))


def refused(body: bytes) -> Refused | None:
    """Why the other side has cut this one off, if that is what it says."""
    try:
        said = _codec().decode(body)
    except WireError:
        return None
    return said if isinstance(said, Refused) else None


def _expected(body: bytes, kind: type[T]) -> T:
    said = _codec().decode(body)
    if isinstance(said, Refused):
        raise WireError(f"refused: {said.reason}", help="use the cluster's own directory")
    if not isinstance(said, kind):
        raise WireError(
            f"a {type(said).__name__} where a {kind.__name__} was due",
            help="speak this program's protocol",
        )
    return said


def _proof(secret: bytes, side: bytes, challenge: Challenge, hello: Hello) -> bytes:
    """What only who knows the secret can say about this one conversation."""
    parts = (
        side,
        challenge.node.encode(),
        challenge.nonce,
        hello.name.encode(),
        hello.address.encode(),
        hello.nonce,
    )
    said = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.digest(secret, said, "sha256")
