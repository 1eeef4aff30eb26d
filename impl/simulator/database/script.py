"""What is done to a cluster, in words: `join n4; write 10000; decommission n1; replace n2 by n5`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from stagewright.impl.catalog.features import FEATURES
from stagewright.impl.ring.initial_tokens import parse_tokens, tokens_text
from stagewright.impl.views.maintenance.definition import ViewDefinition, definition_in
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

FORMS = {
    "join": "join NODE [lacking FEATURE] [tokens TOKEN,TOKEN… or of NODE]",
    "decommission": "decommission NODE",
    "replace": "replace NODE by NODE [lacking FEATURE]",
    "remove": "remove NODE",
    "rebuild": "rebuild NODE",
    "cleanup": "cleanup",
    "generation": "generation",
    "write": "write NUMBER",
    "kill": "kill NODE",
    "isolate": "isolate NODE",
    "partition": "partition NODE",
    "reconnect": "reconnect NODE",
    "suspend": "suspend NODE",
    "resume": "resume NODE",
    "restart": "restart NODE",
    "table": "table NAME tablets NUMBER rf NUMBER [through NODE]",
    "repair": "repair TABLE",
    "truncate": "truncate TABLE",
    "alter": "alter TABLE rf NUMBER",
    "split": "split TABLE",
    "merge": "merge TABLE",
    "move": "move TABLE NUMBER [from NODE[:SHARD] to NODE[:SHARD]]",
    "balancing": "balancing on|off",
    "ask": "ask decommission|remove|rebuild NODE|repair|split|merge TABLE",
    "abort": "abort NODE",
    "lock": "lock",
    "unlock": "unlock",
    "create": "create view NAME on TABLE by value [mod NUMBER] [where value < NUMBER] [through NODE]",
    "await": "await VIEW",
    "build": "build status",
    "drop": "drop view VIEW|table TABLE [through NODE]",
    "wait": "wait MILLISECONDS",
}
OF_TABLES = ("table", "truncate", "repair", "alter", "split", "merge", "move")
ASKED = ("decommission", "remove", "rebuild", "repair", "split", "merge")
OF_VIEWS = ("create", "build", "await", "drop")
MOST = 1_000_000
TABLETS = tuple(1 << bits for bits in range(11))  # powers of two
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
_PLACE = re.compile(rf"{_NAME.pattern}(:\d{{1,3}})?")


@dataclass(frozen=True)
class Operation:
    """One part of a script: its verb, its node, and the node that comes in its place or a number."""

    verb: str
    node: str = ""
    by: str = ""
    number: int = 0
    replicas: int = 0  # of a table
    comparison: str = ""  # of the values of rows that are in a view, with the bound
    bound: int = 0
    source: str = ""  # of a replica that moves: a node, maybe with a shard
    target: str = ""
    lacks: str = ""  # a feature of which a new node does not know
    tokens: tuple[int, ...] = ()  # that a new node asks for
    tokens_of: str = ""  # whose tokens it asks for
    through: str = ""  # the node that a statement is sent to first

    @property
    def of_table(self) -> bool:
        """Whether it is about a table of tablets."""
        asked = self.verb == "ask" and self.by in OF_TABLES
        return self.verb in OF_TABLES or asked or (self.verb, self.by) == ("drop", "table")

    @property
    def of_view(self) -> bool:
        """Whether it is about a view."""
        return self.verb in OF_VIEWS and not self.of_table

    def __str__(self) -> str:
        return f"{self._words()} through {self.through}" if self.through else self._words()

    def _words(self) -> str:
        if self.of_view:
            return self._of_view()
        if self.verb == "drop":
            return f"drop table {self.node}"
        words = [self.verb, self.node] if self.verb != "ask" else ["ask", self.by, self.node]
        if self.verb == "move":
            words += [str(self.number)]
            words += ["from", self.source, "to", self.target] if self.source else []
            return " ".join(words)
        if self.verb in ("ask", "balancing"):
            return " ".join(words)
        words += ["by", self.by] if self.by else []
        words += ["lacking", self.lacks] if self.lacks else []
        words += ["tokens", tokens_text(self.tokens)] if self.tokens else []
        words += ["tokens of", self.tokens_of] if self.tokens_of else []
        words += [str(self.number)] if self.verb in ("write", "wait") else []
        words += ["tablets", str(self.number)] if self.verb == "table" else []
        words += ["rf", str(self.replicas)] if self.verb in ("table", "alter") else []
        return " ".join(filter(None, words))

    def _of_view(self) -> str:
        if self.verb == "build":
            return "build status"
        if self.verb != "create":
            return f"{self.verb} view {self.node}" if self.verb == "drop" else f"await {self.node}"
        by = ViewDefinition(self.node, self.by, self.number, self.comparison, self.bound)
        return f"create view {self.node} on {self.by} {by}"


def parse_script(text: str) -> tuple[Operation, ...]:
    """The operations that a text lists, with semicolons between.

    Raises:
        InputError: one of them is none.
    """
    parts = [part.split() for part in text.split(";") if part.strip()]
    return tuple(_parse_statement(words) for words in parts)


def _parse_statement(words: list[str]) -> Operation:
    """An operation; a statement may say which node it is sent to first."""
    match words:
        case ["table" | "create" | "drop" as verb, *rest, "through", node] if _NAME.fullmatch(node):
            return replace(_parse([verb, *rest]), through=node)
        case _:
            return _parse(words)


def _parse(words: list[str]) -> Operation:
    verb, rest = words[0], words[1:]
    form = FORMS.get(verb)
    if form is None:
        raise InputError(
            f"--script: there is nothing called `{verb}`",
            help=f"{did_you_mean(verb, list(FORMS))}known: {'; '.join(FORMS.values())}",
        )
    if verb in ("join", "replace"):
        return _new(words)
    match rest:
        case [] if form == verb:
            return Operation(verb)
        case [node] if form == f"{verb} NODE" and _NAME.fullmatch(node):
            return Operation(verb, node)
        case [name, "tablets", number, "rf", replicas] if (
            verb == "table"
            and _NAME.fullmatch(name)
            and number.isdecimal()
            and int(number) in TABLETS
            and replicas.isdecimal()
            and 1 <= int(replicas) <= 9
        ):
            return Operation(verb, name, number=int(number), replicas=int(replicas))
        case [name, "rf", replicas] if (
            verb == "alter"
            and _NAME.fullmatch(name)
            and replicas.isdecimal()
            and 1 <= int(replicas) <= 9
        ):
            return Operation(verb, name, replicas=int(replicas))
        case ["view", name, "on", table, *rest] if (
            verb == "create"
            and _NAME.fullmatch(name)
            and (found := definition_in(rest)) is not None
        ):
            modulus, comparison, bound = found
            return Operation(verb, name, table, modulus, 0, comparison, bound)
        case ["status"] if verb == "build":
            return Operation(verb)
        case ["view" | "table" as kind, name] if verb == "drop" and _NAME.fullmatch(name):
            return Operation(verb, name, "table" if kind == "table" else "")
        case [what, node] if verb == "ask" and what in ASKED and _NAME.fullmatch(node):
            return Operation(verb, node, what)
        case ["on" | "off" as switch] if verb == "balancing":
            return Operation(verb, switch)
        case [name, number, *path] if (
            verb == "move" and _NAME.fullmatch(name) and number.isdecimal()
        ):
            return _move(words, name, int(number), path)
        case [name] if verb in (
            "await",
            "truncate",
            "repair",
            "split",
            "merge",
        ) and _NAME.fullmatch(name):
            return Operation(verb, name)
        case [number] if verb in ("write", "wait") and number.isdecimal() and int(number) <= MOST:
            return Operation(verb, number=int(number))
        case _:
            raise InputError(f"--script: `{' '.join(words)}`", help=f"write `{form}`")


def _new(words: list[str]) -> Operation:
    """A node that comes, maybe in the place of another, of a release that lacks a feature, or with tokens of its choice."""
    match words:
        case ["join", *rest, "tokens", "of", other]:
            made = replace(_new(["join", *rest]), tokens_of=other)
        case ["join", *rest, "tokens", tokens]:
            made = replace(_new(["join", *rest]), tokens=parse_tokens(tokens, "--script: "))
        case ["join", node]:
            made = Operation("join", node)
        case ["join", node, "lacking", feature]:
            made = Operation("join", node, lacks=feature)
        case ["replace", node, "by", by]:
            made = Operation("replace", node, by)
        case ["replace", node, "by", by, "lacking", feature]:
            made = Operation("replace", node, by, lacks=feature)
        case _:
            made = Operation(words[0])
    named = all(
        _NAME.fullmatch(name)
        for name in (made.node, made.by or made.node, made.tokens_of or made.node)
    )
    if not named or made.lacks not in ("", *FEATURES):
        known = f"; features: {', '.join(FEATURES)}" if made.lacks else ""
        raise InputError(f"--script: `{' '.join(words)}`", help=f"write `{FORMS[words[0]]}`{known}")
    return made


def _move(words: list[str], table: str, tablet: int, path: list[str]) -> Operation:
    match path:
        case []:
            return Operation("move", table, number=tablet)
        case ["from", source, "to", target] if _PLACE.fullmatch(source) and _PLACE.fullmatch(
            target
        ):
            return Operation("move", table, number=tablet, source=source, target=target)
        case _:
            raise InputError(f"--script: `{' '.join(words)}`", help=f"write `{FORMS['move']}`")
