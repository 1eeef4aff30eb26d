"""Group0 in etcd: all keys stand under one prefix.

    head                  the state id
    term                  the number of the present term
    leader                who leads, under a lease; absent: nobody
    log/POSITION          one command, never overwritten, so that etcd's own compaction loses none
    part/POSITION/ID/N    parts of a command that is longer than one request may be
    snapshot              what the log up to a state comes to, its text in parts
    content/POSITION/ID/N the parts of a snapshot

A commit is one transaction of two writes, however many mutations it carries: etcd's limit of 128 operations
does not bind, its limit of 1.5 MiB does (hence the parts, which nobody sees until the log names them).
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

from stagewright.impl.group0.commands import Command
from stagewright.impl.group0.gateway import (
    Gateway,
    LostError,
    RefusedError,
    from_base64,
    in_base64,
)
from stagewright.impl.group0.port import (
    TAIL,
    Commit,
    Committed,
    Deposed,
    Entry,
    Group0Error,
    Leadership,
    Learned,
    Outcome,
    Reading,
    Snapshot,
    UnavailableError,
    Unknown,
    refusal_of,
)
from stagewright.impl.group0.state_ids import EMPTY, StateId

_PART = 300_000  # characters in one request: 1.2 MB at most
_PAGE = 500  # entries in one answer
_SILENCE = 5.0  # seconds
_PAUSE = 0.1  # seconds until who watches looks again for a member that answers
_COMPACTED = 11  # gRPC's code OUT_OF_RANGE: the revision that was asked for is gone


class EtcdGroup0:
    """One node's access to a log in a cluster of etcd's members."""

    def __init__(self, gateway: Gateway, prefix: str = "/stagewright/group0/") -> None:
        self.gateway = gateway
        self.prefix = prefix
        self._term = 0  # as last seen

    # -- commits -------------------------------------------------------------------------------------

    async def commit(self, request: Commit) -> Outcome:
        try:
            while True:
                outcome = await self._commit(request)
                if not isinstance(outcome, Deposed) or request.term is not None:
                    return outcome
                self._term = outcome.term  # any term will do: try again in the present one
        except LostError as error:
            return Unknown(str(error))
        except RefusedError as error:
            raise _unusable(error) from None

    async def _commit(self, request: Commit) -> Outcome:
        new, expected = request.new, request.expected
        term = self._term if request.term is None else request.term
        place = f"log/{new.position:012d}"
        text = request.command.encoded()
        body: dict[str, Any] = {"id": str(new), "term": term, "command": text}
        if len(text) > _PART:
            body["command"] = None
            body["parts"] = await self._put_parts("part", new, text)
        present, until = time.time_ns() // 1000, request.command.until
        wanted = "" if expected == EMPTY else str(expected)
        if until is not None and present > until:
            wanted = "its time is over"  # no head is called so: only what there is is looked up
        answer = await self._transaction(
            [self._is("head", wanted), self._is_term(term)],
            [self._put("head", str(new)), self._put(place, json.dumps(body))],
            [self._get("head"), self._get("term"), self._get(place)],
        )
        if answer.get("succeeded"):
            return Committed(new)
        head, now, there = (_value(r["response_range"]) for r in answer["responses"])
        found = EMPTY if head is None else StateId.parse(head)
        at_place = None if there is None else StateId.parse(json.loads(there)["id"]).id
        forgotten = at_place is None and found.position >= new.position
        first = new.position + 1 if forgotten else 0
        outcome = refusal_of(request, found, int(now or 0), at_place, first, present)
        return Deposed(int(now or 0)) if outcome is None else outcome

    async def _put_parts(self, kind: str, new: StateId, text: str) -> int:
        parts = [text[i : i + _PART] for i in range(0, len(text), _PART)]
        for number, part in enumerate(parts):
            key = self.prefix + _part(kind, new, number)
            await self.gateway.call("kv/put", {"key": in_base64(key), "value": in_base64(part)})
        return len(parts)

    # -- reading -------------------------------------------------------------------------------------

    async def head(self) -> StateId:
        found = await self._ask("kv/range", self._get("head")["request_range"])
        value = _value(found)
        return EMPTY if value is None else StateId.parse(value)

    async def read(self, after: int = 0) -> Reading:
        return (await self._read(after))[0]

    async def _read(self, after: int) -> tuple[Reading, int]:
        """What the log says after a position, all of it as of one revision of etcd."""
        while True:
            try:
                return await self._read_at_once(after)
            except RefusedError as error:
                if error.code != _COMPACTED:
                    raise _unusable(error) from None

    async def _read_at_once(self, after: int) -> tuple[Reading, int]:
        head = await self._ask("kv/range", self._get("head")["request_range"])
        revision = int(head["header"]["revision"])
        text = _value(head, str(EMPTY))
        assert text is not None
        entries, snapshot = await self._entries(after, revision), None
        state = StateId.parse(text)
        if state.position > after and (not entries or entries[0].id.position != after + 1):
            snapshot = await self._snapshot(revision)
            entries = await self._entries(snapshot.id.position, revision)
        return Reading(snapshot, tuple(entries), state), revision

    async def _entries(self, after: int, revision: int) -> list[Entry]:
        entries: list[Entry] = []
        while True:
            first = f"{self.prefix}log/{after + 1:012d}"
            page = await self._ask(
                "kv/range",
                {
                    "key": in_base64(first),
                    "range_end": in_base64(self.prefix + "log0"),
                    "limit": _PAGE,
                    "revision": revision,
                },
            )
            for found in page.get("kvs", []):
                entries.append(await self._entry(from_base64(found["value"])))
                after = entries[-1].id.position
            if not page.get("more"):
                return entries

    async def _entry(self, text: str) -> Entry:
        body = json.loads(text)
        place = StateId.parse(body["id"])
        command = body["command"]
        if command is None:
            command = await self._joined("part", place, body["parts"])
        return Entry(place, body["term"], Command.decoded(command))

    async def _snapshot(self, revision: int) -> Snapshot:
        asked = {**self._get("snapshot")["request_range"], "revision": revision}
        text = _value(await self._ask("kv/range", asked))
        assert text is not None, "entries are only deleted after a snapshot"
        body = json.loads(text)
        place = StateId.parse(body["id"])
        return Snapshot(place, body["term"], await self._joined("content", place, body["parts"]))

    async def _joined(self, kind: str, place: StateId, parts: int) -> str:
        found: list[str] = []
        for number in range(parts):
            key = _part(kind, place, number)
            part = _value(await self._ask("kv/range", self._get(key)["request_range"]))
            if part is None:  # swept by a compaction since it was named
                raise RefusedError(_COMPACTED, f"{key} is gone")
            found.append(part)
        return "".join(found)

    async def watch(self, after: int = 0) -> AsyncIterator[Learned]:
        while True:
            try:
                reading, revision = await self._read(after)
                found: list[Learned] = [] if reading.snapshot is None else [reading.snapshot]
                for item in (*found, *reading.entries):
                    after = item.id.position
                    yield item
                async with aclosing(self._watched(revision + 1)) as entries:
                    async for entry in entries:
                        if entry.id.position == after + 1:
                            after = entry.id.position
                            yield entry
            except (LostError, RefusedError, UnavailableError):
                await asyncio.sleep(_PAUSE)  # and read again, elsewhere

    async def _watched(self, revision: int) -> AsyncGenerator[Entry, None]:
        """The entries of a watch until it ends: it is compacted away, or the member lost its leader."""
        request = {
            "key": in_base64(self.prefix + "log/"),
            "range_end": in_base64(self.prefix + "log0"),
            "start_revision": revision,
        }
        stream = self.gateway.stream("watch", {"create_request": request}, _SILENCE)
        async with aclosing(stream) as messages:
            async for message in messages:
                result = message.get("result", {})
                if "error" in message or result.get("canceled"):
                    return
                for event in result.get("events", []):
                    if event.get("type", "PUT") == "PUT":
                        yield await self._entry(from_base64(event["kv"]["value"]))

    async def compact(self, snapshot: Snapshot, tail: int = TAIL) -> None:
        held = _value(await self._ask("kv/range", self._get("snapshot")["request_range"]))
        if held is not None and StateId.parse(json.loads(held)["id"]).position >= (
            snapshot.id.position
        ):
            return
        try:
            parts = await self._put_parts("content", snapshot.id, snapshot.content)
            body = {"id": str(snapshot.id), "term": snapshot.term, "parts": parts}
            taken = await self._transaction(
                [self._is("snapshot", held or "")], [self._put("snapshot", json.dumps(body))], []
            )
            if not taken.get("succeeded"):
                return  # another one was faster
            position = snapshot.id.position
            last = position - tail
            await self._sweep("content", position - 1)
            await self._sweep("part", last)  # also those of commands that were refused
            revision = await self._sweep("log", last)
            compaction = {"revision": revision, "physical": True}
            await self.gateway.call("kv/compaction", compaction, patience=60)
        except LostError as error:
            raise UnavailableError(f"etcd: {error}", help="try again") from None
        except RefusedError as error:
            if error.code != _COMPACTED:
                raise _unusable(error) from None

    async def _sweep(self, kind: str, last: int) -> int:
        """Delete what stands at positions up to the last one; the revision after that."""
        first, end = f"{self.prefix}{kind}/", f"{self.prefix}{kind}/{max(last, 0) + 1:012d}"
        body = {"key": in_base64(first), "range_end": in_base64(end)}
        answer = await self.gateway.call("kv/deleterange", body)
        return int(answer["header"]["revision"])

    # -- who leads -----------------------------------------------------------------------------------

    async def campaign(self, node: str, seconds: float) -> Leadership | None:
        if await self.leader() is not None:
            return None
        found = _value(await self._ask("kv/range", self._get("term")["request_range"]))
        now = int(found or 0)
        try:
            granted = await self.gateway.call("lease/grant", {"TTL": max(1, math.ceil(seconds))})
            leadership = Leadership(node, now + 1, int(granted["ID"]))
            value = json.dumps([leadership.node, leadership.term, leadership.lease])
            answer = await self._transaction(
                [self._is("leader", ""), self._is_term(now)],
                [
                    self._put("leader", value, leadership.lease),
                    self._put("term", str(leadership.term)),
                ],
                [],
            )
            if not answer.get("succeeded"):
                await self.gateway.call("lease/revoke", {"ID": str(leadership.lease)})
                return None
        except LostError as error:  # if it leads, then only until the lease runs out
            raise UnavailableError(f"etcd: {error}", help="try again") from None
        except RefusedError as error:
            raise _unusable(error) from None
        return leadership

    async def keep(self, leadership: Leadership) -> bool:
        answer = await self._ask("lease/keepalive", {"ID": str(leadership.lease)})
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    async def resign(self, leadership: Leadership) -> None:
        with suppress(RefusedError):  # it has run out already
            await self._ask("lease/revoke", {"ID": str(leadership.lease)})

    async def leader(self) -> Leadership | None:
        value = _value(await self._ask("kv/range", self._get("leader")["request_range"]))
        return None if value is None else Leadership(*json.loads(value))

    async def close(self) -> None:
        self.gateway.close()

    # -- parts of requests ---------------------------------------------------------------------------

    async def _ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """A call that may be repeated: each endpoint is asked once, and once more."""
        why = ""
        for _ in range(len(self.gateway) + 1):
            try:
                return await self.gateway.call(path, body)
            except LostError as error:
                why = str(error)
        raise UnavailableError(f"no member of etcd answers: {why}", help="see its log")

    async def _transaction(
        self, compare: list[dict[str, str]], then: list[dict[str, Any]], other: list[dict[str, Any]]
    ) -> Any:
        body = {"compare": compare, "success": then, "failure": other}
        return await self.gateway.call("kv/txn", body)

    def _is(self, key: str, value: str) -> dict[str, str]:
        """The condition that a key has a value; with none, that it is absent."""
        name = in_base64(self.prefix + key)
        if not value:
            return {"key": name, "target": "VERSION", "result": "EQUAL", "version": "0"}
        return {"key": name, "target": "VALUE", "result": "EQUAL", "value": in_base64(value)}

    def _is_term(self, term: int) -> dict[str, str]:
        return self._is("term", str(term) if term else "")

    def _put(self, key: str, value: str, lease: int = 0) -> dict[str, Any]:
        name = in_base64(self.prefix + key)
        return {"request_put": {"key": name, "value": in_base64(value), "lease": str(lease)}}

    def _get(self, key: str) -> dict[str, Any]:
        return {"request_range": {"key": in_base64(self.prefix + key)}}


def _part(kind: str, place: StateId, number: int) -> str:
    return f"{kind}/{place.position:012d}/{place.id}/{number:04d}"


def _value(answer: Mapping[str, Any], default: str | None = None) -> str | None:
    found = answer.get("kvs")
    return from_base64(found[0]["value"]) if found else default


def _unusable(error: RefusedError) -> Group0Error:
    return Group0Error(f"etcd refuses: {error}", help="see its log, its quota and its disk")
