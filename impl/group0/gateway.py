"""etcd's JSON gateway over asyncio streams: HTTP/1.1 with connections that are kept open, nothing else."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from stagewright.impl.group0.port import Group0Error

_LONGEST = 1 << 26  # bytes of a line
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

# gRPC's codes after which a request may have been carried out: cancelled, unknown, deadline, unavailable.
_INDEFINITE = {1, 2, 4, 14}


class LostError(Exception):
    """There is no proper answer: the request may have been carried out, or may yet be."""


class RefusedError(Exception):
    """etcd's own definite refusal."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} (code {code})")
        self.code = code


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def from_base64(text: str) -> str:
    return base64.b64decode(text).decode()


class Gateway:
    """Calls to one of several endpoints; after a failure, to the next.

    Raises:
        Group0Error: an endpoint is no `http://HOST:PORT`.
    """

    def __init__(self, endpoints: tuple[str, ...], patience: float = 3.0) -> None:
        self._endpoints = [_place(e) for e in endpoints]
        self._now = 0
        self._idle: list[_Connection] = []
        self.patience = patience

    def __len__(self) -> int:
        return len(self._endpoints)

    def turn(self) -> None:
        """Ask the next endpoint from now on."""
        self._now = (self._now + 1) % len(self._endpoints)
        self.close()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def call(self, path: str, body: Mapping[str, Any], patience: float | None = None) -> Any:
        """One request, one answer.

        Raises:
            LostError: it may have been carried out.
            RefusedError: it was not.
        """
        reader, writer = await self._connection()
        try:
            async with asyncio.timeout(patience or self.patience):
                writer.write(_request(path, body))
                status, headers = await _head(reader)
                if "content-length" in headers:
                    data = await reader.readexactly(int(headers["content-length"]))
                else:
                    data = b"".join([chunk async for chunk in _chunks(reader)])
            answer = json.loads(data)
        except (OSError, TimeoutError, EOFError, ValueError) as error:
            writer.close()
            self.turn()
            raise LostError(f"{type(error).__name__} {error}") from None
        except BaseException:
            writer.close()
            raise
        self._idle.append((reader, writer))
        if status == 200:
            return answer
        code, message = int(answer.get("code", 2)), str(answer.get("message", answer))
        if code in _INDEFINITE:
            self.turn()
            raise LostError(f"{message} (code {code})")
        raise RefusedError(code, message)

    async def stream(
        self, path: str, body: Mapping[str, Any], silence: float
    ) -> AsyncGenerator[Any, None]:
        """The answers of a streaming call, until the server ends it.

        Raises:
            LostError: also if nothing comes for so many seconds: a stopped member says nothing for ever.
        """
        reader, writer = await self._connection()
        try:
            writer.write(_request(path, body))
            async with asyncio.timeout(self.patience):
                await _head(reader)
            rest, chunks = b"", _chunks(reader)
            while (chunk := await _next(chunks, silence)) != b"":
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
        except (OSError, TimeoutError, EOFError, ValueError) as error:
            self.turn()
            raise LostError(f"{type(error).__name__} {error}") from None
        finally:
            writer.close()

    async def _connection(self) -> _Connection:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        host, port = self._endpoints[self._now]
        try:
            # Not `wait_for`: up to Python 3.11 that may lose a cancellation which comes as the connection is refused.
            async with asyncio.timeout(self.patience):
                return await asyncio.open_connection(host, port, limit=_LONGEST)
        except (OSError, TimeoutError) as error:
            self.turn()
            raise LostError(f"{host}:{port}: {type(error).__name__} {error}") from None


async def _next(chunks: AsyncIterator[bytes], silence: float) -> bytes:
    """The next chunk; nothing at the end."""
    async with asyncio.timeout(silence):
        return await anext(chunks, b"")


def _place(endpoint: str) -> tuple[str, int]:
    parts = urlsplit(endpoint)
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
        raise Group0Error(
            f"`{endpoint}` is no endpoint of etcd that can be used",
            help="write http://HOST:PORT; TLS is not supported",
        )
    return parts.hostname, parts.port or 2379


def _request(path: str, body: Mapping[str, Any]) -> bytes:
    data = json.dumps(body, separators=(",", ":")).encode()
    head = f"POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    return int(lines[0].split()[1]), {k.strip().lower(): v.strip() for k, _, v in pairs}


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers, which etcd 3.4 sends after an error
