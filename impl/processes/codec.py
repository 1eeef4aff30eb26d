"""Messages as bytes and back: MessagePack, the name of the message first, every field checked by its type."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, get_args

from stagewright.impl.node.messages import Message
from stagewright.impl.processes.errors import WireError
from stagewright.spec.errors import InputError

KINDS: tuple[type[Any], ...] = get_args(Message)


class Codec:
    """Encodes and decodes one kind of messages, whose classes are dataclasses of plain data.

    Raises:
        InputError: the package `msgspec` is missing.
    """

    def __init__(self, kinds: tuple[type[Any], ...] = KINDS) -> None:
        try:
            self._msgspec: Any = import_module("msgspec")
        except ImportError:
            raise InputError(
                "processes need the package `msgspec`", help="pip install 'stagewright[cluster]'"
            ) from None
        msgpack = self._msgspec.msgpack
        self._encode = msgpack.Encoder().encode
        raw: Any = self._msgspec.Raw
        self._outer = msgpack.Decoder(tuple[str, raw]).decode
        self._inner = {kind.__name__: msgpack.Decoder(kind).decode for kind in kinds}

    def encode(self, message: Any) -> bytes:
        """A message as bytes.

        Raises:
            WireError: a number in it has more than 64 bits.
        """
        try:
            encoded: bytes = self._encode((type(message).__name__, message))
        except OverflowError as error:
            raise WireError(f"{message}: {error}", help="send smaller numbers") from None
        return encoded

    def decode(self, body: bytes) -> Any:
        """The message that bytes stand for.

        Raises:
            WireError: none: they are of something else, or of another version.
        """
        try:
            name, fields = self._outer(body)
            inner = self._inner.get(name)
            if inner is not None:
                return inner(fields)
        except (self._msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
            raise WireError(f"no message: {error}", help="let all nodes run one version") from None
        raise WireError(f"there is no message {name[:40]!r}", help="let all nodes run one version")


@lru_cache(maxsize=1)
def codec() -> Codec:
    """The codec of what nodes, clients and operators say."""
    return Codec()
