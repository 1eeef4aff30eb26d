"""The shell of a cluster of the database: rows, tables, tablets and views."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stagewright.commands.clusters.kinds import show
from stagewright.commands.clusters.shell_views import (
    COMMANDS as OF_VIEWS,
    ViewCommands,
    as_text as build_as_text,
    raw,
    text,
)
from stagewright.commands.clusters.unknown import unknown_command
from stagewright.impl.processes.supervisor import named
from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.cdc.consumer import Position
    from stagewright.impl.node.port import Timing
    from stagewright.impl.processes.client import Session

COMMANDS = f"""\
commands, one per line or separated by semicolons:
  put KEY VALUE        write a row
  get KEY              read it
  delete KEY           delete it
  scan [LIMIT]         all rows, in the order of their tokens
  consistency [one|quorum|all]   how many replicas must answer, from now on
  tables               list the tables, with their replicas and tablets
  create table NAME [tablets N] rf N [cdc [images] [ttl SECONDS]]   with N tablets (a power of two), or on the
                       token ring; then use it; with cdc, its changes are kept in a log (for ttl seconds; with 0
                       or without ttl, for ever), and with images also each row as it was before
  drop table NAME      drop it, with its log and its rows, whatever its tablets are doing; drop its views first
  truncate NAME        remove all the rows that it has by now, on every node; it has no views, and no log of changes
  cdc tail             print the changes of the table up to now, each once; the next call prints only newer ones
  use NAME             from now on put, get, delete and scan use this table (default: rows); get and scan also a view
  tablets              show where the table's tablets are
  repair NAME          let the replicas of its tablets exchange what they lack; `tablets` shows the progress
  alter NAME rf N      give its tablets more replicas, or fewer, one at a time; `tables` shows the new number at once
  split NAME, merge NAME   double, or halve, the number of its tablets
  move NAME TABLET from NODE[:SHARD] to NODE[:SHARD]   move a replica, possibly between shards of one node
  balancing on, balancing off   let the balancer even out loads or not (it may move back what you have moved)
{OF_VIEWS}  help, exit
"""


class RowShell:
    """Carries commands out, and prints what comes of them."""

    commands = COMMANDS

    def __init__(self, session: Session, timing: Timing, *, as_json: bool) -> None:
        self._session = session
        self._timing = timing
        self._show = _as_json if as_json else _as_text
        self._views = ViewCommands(session, self._say, named)
        self._base = ""  # of the view that is used
        self._positions: dict[str, Position] = {}  # of tables' changes that were printed

    def close(self) -> None:
        """Hang up."""
        self._session.close()

    def do(self, words: list[str]) -> None:
        """Carry a command out."""
        session = self._session
        match words:
            case ["put" | "delete" | "get" | "scan", *rest] if self._base:
                self._of_view(words[0], rest)
            case ["put", key, value]:
                stamp = session.put(raw(key), raw(value))
                self._say({"put": text(raw(key)), "timestamp": stamp})
            case ["delete", key]:
                stamp = session.put(raw(key), None)
                self._say({"delete": text(raw(key)), "timestamp": stamp})
            case ["get", key]:
                row = session.get(raw(key))
                self._say({"get": text(raw(key)), "value": None if row is None else text(row)})
            case ["scan"]:
                self._scan(None)
            case ["scan", limit] if limit.isdecimal():
                self._scan(int(limit))
            case ["consistency"]:
                self._say({"consistency": session.level.value})
            case ["consistency", "one" | "quorum" | "all" as level]:
                session.level = type(session.level)(level)
                self._say({"consistency": level})
            case ["use", name]:
                self._use(named(name))
            case ["tables"]:
                self._tables()
            case ["create", "table", name, *rest] if (wanted := _wanted(rest)) is not None:
                self._create(named(name), *wanted)
            case ["cdc", "tail"]:
                self._tail()
            case ["tablets"]:
                self._tablets()
            case ["help"]:
                print(COMMANDS)
            case _:
                self._change(words)

    def _of_view(self, verb: str, words: list[str]) -> None:
        """A command about rows, while a view is used."""
        match verb, words:
            case "put" | "delete", _:
                raise InputError(
                    f"{self._session.table} is a view: the database alone writes it",
                    help=f"write to its base table: use {self._base}",
                )
            case "get", [key]:
                self._views.show(self._session.get_view(raw(key)))
            case "scan", []:
                self._views.show(self._session.scan_view())
            case "scan", [limit] if limit.isdecimal():
                self._views.show(self._session.scan_view(int(limit)))
            case _:
                raise unknown_command([verb, *words], COMMANDS)

    def _change(self, words: list[str]) -> None:
        from stagewright.impl.node.messages.tables import Resize

        match words:
            case ["repair", name]:
                with self._of_tablets(name):
                    self._session.repair(named(name))
                self._say({"repair": named(name)})
            case ["split" | "merge" as verb, name]:
                with self._of_tablets(name):
                    self._session.resize(named(name), Resize(verb))
                self._say({verb: named(name)})
            case ["move", name, tablet, "from", source, "to", target] if tablet.isdecimal():
                path = _place(source), _place(target)
                with self._of_tablets(name, int(tablet)):
                    self._session.move(named(name), int(tablet), *path)
                self._say({"move": named(name), "of": int(tablet)})
            case ["drop", "table", name]:
                self._drop(named(name))
            case ["truncate", name]:
                self._truncate(named(name))
            case ["balancing", "on" | "off" as switch]:
                self._session.balance(switch == "on")
                self._say({"balancing": switch})
            case ["alter", name, "rf", replicas] if replicas.isdecimal():
                with self._of_tablets(name):
                    self._session.alter(named(name), int(replicas))
                self._say({"alter": named(name), "replicas": int(replicas)})
            case ["create", "view", _, "on", base, *_]:
                with self._of_tablets(base):
                    self._views.do(words)
            case _ if not self._views.do(words):
                raise unknown_command(words, COMMANDS)
            case _:
                pass

    def _scan(self, limit: int | None) -> None:
        count = 0
        for key, value in self._session.scan(limit):
            self._say({"key": text(key), "value": text(value)})
            count += 1
        self._say({"rows": count})

    def _known(self, table: str) -> None:
        known = self._session.tables()
        if table not in known:
            raise InputError(
                f"there is no table {table}", help=f"known: {', '.join(sorted(known))}"
            )

    @contextmanager
    def _of_tablets(self, name: str, tablet: int = 0) -> Iterator[None]:
        """What the cluster refuses is bad input if there is no such table, or it has no such tablet."""
        from stagewright.impl.processes.errors import ClusterError

        try:
            yield
        except ClusterError:
            self._refuse_unknown(named(name), tablet)
            raise

    def _refuse_unknown(self, table: str, tablet: int) -> None:
        self._known(table)
        tablets = [t.tablet for t in self._session.tablets().tablets if t.table == table]
        if not tablets:
            raise InputError(
                f"{table} has no tablets: it is on the token ring",
                help="`create table NAME tablets 8 rf 3` makes one that has",
            )
        if tablet not in tablets:
            problem = f"{table} has no tablet {tablet}"
            raise InputError(problem, help=f"its tablets: 0 to {max(tablets)}")

    def _use(self, table: str) -> None:
        self._known(table)
        self._session.table, self._base = table, self._views.base_of(table)
        self._say({"use": table})

    def _create(
        self, table: str, tablets: int, replicas: int, cdc: bool, images: bool, seconds: int
    ) -> None:
        kept = 1000 * seconds
        self._session.create(table, replicas, tablets, cdc=cdc, images=images, ttl=kept)
        self._session.table, self._base = table, ""
        self._say({"created": table, "tablets": tablets, "replicas": replicas})

    def _drop(self, table: str) -> None:
        self._known(table)
        self._session.drop_table(table)
        self._positions.pop(table, None)
        self._say({"dropped": table})

    def _truncate(self, table: str) -> None:
        self._known(table)
        self._session.truncate(table)
        self._say({"truncated": table})

    def _tail(self) -> None:
        """Print what was changed before now; it takes some seconds until nothing earlier can follow."""
        from stagewright.live.tail import NOT_BEFORE, age_in, as_json, changes_up_to, with_a_log

        session = with_a_log(self._session)
        show(f"reads the changes up to now, which takes {age_in(self._timing)}: {NOT_BEFORE}")
        known, until = self._positions.get(session.table), time.time_ns() // 1000
        for position, changes in changes_up_to(session, self._timing, known, until):
            for change in changes:
                self._say(as_json(change))
            if position is not None:
                self._positions[session.table] = position

    def _tables(self) -> None:
        counts = Counter(t.table for t in self._session.tablets().tablets)
        for table, replicas in sorted(self._session.tables().items()):
            self._say({"table": table, "tablets": counts[table], "replicas": replicas})

    def _tablets(self) -> None:
        for tablet in self._session.tablets().tablets:
            if tablet.table == self._session.table:
                self._say(asdict(tablet))

    def _say(self, what: dict[str, object]) -> None:
        print(self._show(what), flush=True)


def _wanted(words: list[str]) -> tuple[int, int, bool, bool, int] | None:
    """Tablets (0: by the token ring), replicas, whether changes are logged, with images, for how many seconds.

    None: it says something else.
    """
    seconds = 0
    match words:
        case [*before, "ttl", number] if "cdc" in before and number.isdecimal():
            words, seconds = before, int(number)
        case _:
            pass
    images = words[-2:] == ["cdc", "images"]
    cdc = images or words[-1:] == ["cdc"]
    match words[: len(words) - cdc - images]:
        case ["rf", replicas] if replicas.isdecimal():
            return 0, int(replicas), cdc, images, seconds
        case ["tablets", tablets, "rf", replicas] if tablets.isdecimal() and replicas.isdecimal():
            return int(tablets), int(replicas), cdc, images, seconds
        case _:
            return None


def _place(text: str) -> tuple[str, int]:
    """A node and a shard of it, `n1:0`; -1 where it names none."""
    node, colon, shard = text.partition(":")
    if not node or (colon and not shard.isdecimal()):
        raise InputError(f"{text!r} is no place", help="write NODE or NODE:SHARD, such as n1:0")
    return node, int(shard) if colon else -1


def _as_json(what: dict[str, object]) -> str:
    return json.dumps(what, ensure_ascii=False)


def _as_text(what: dict[str, object]) -> str:
    match what:
        case {"get": key, "value": None}:
            return f"{key} has no row"
        case {"get": _, "value": value}:
            return str(value)
        case {"key": key, "base key": base_key, "value": value}:
            return f"{key}\t{base_key}\t{value}"
        case {"view": _, "status": _}:
            return build_as_text(what)
        case {"timestamp": stamp, "stream": _, "key": key, "value": value}:
            before = what.get("before")
            was = f"\tbefore: {'no row' if before is None else before}" if "before" in what else ""
            return f"{stamp}\t{key}\t{'deleted' if value is None else value}{was}"
        case {"key": key, "value": value}:
            return f"{key}\t{value}"
        case {"rows": int(count)}:
            return counted(count, "row")
        case {"consistency": level}:
            return f"consistency {level}"
        case {"table": table, "replicas": int(replicas), "tablets": int(tablets)}:
            parts = f", {counted(tablets, 'tablet')}" if tablets else ""
            return f"{table}, {counted(replicas, 'replica')}{parts}"
        case {"tablet": number, "replicas": replicas, "following": following}:
            to = f" → {_places(following)}" if following else ""
            stage = f", {what['kind']}: {what['stage']}" if what["stage"] else ""
            asked = f", to be done: {what['asked']}" if what["asked"] else ""
            return f"{number}\t{_places(replicas)}{to}{stage}{asked}"
        case _:
            return "done"


def _places(replicas: Any) -> str:
    return " ".join(f"{host}:{shard}" for host, shard in replicas)
