"""What is done to an indexed table, in words: `create table 40 rows; write 200; create unique index i on v; kill n1`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagewright.impl.indexes.schema import COLUMNS
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

FORMS = (
    "create [user-enforced] table N rows",
    "create [deferred] [unique] index NAME on COLUMN",
    "drop index NAME",
    "backfill",
    "put KEY COLUMN=NUMBER …",
    "delete KEY",
    "write NUMBER",
    "read NAME VALUE",
    "status NAME",
    "await NAME",
    "await job STEP",
    "kill SERVER",
    "restart SERVER",
    "fail over",
    "split [INDEX] TABLET",
    "await splits",
    "wait MILLISECONDS",
)
STEPS = tuple(step.name for step in Step)
MOST = 100_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")


@dataclass(frozen=True)
class Operation:
    """One part of a script."""

    verb: str
    name: str = ""
    column: str = ""
    number: int = 0
    unique: bool = False
    deferred: bool = False
    user_enforced: bool = False
    values: tuple[tuple[str, int], ...] = ()
    text: str = ""

    def __str__(self) -> str:
        return self.text


def is_of_indexes(text: str) -> bool:
    """Whether a script begins with a table, and so is one of this kind."""
    words = text.split(";", maxsplit=1)[0].split()[:3]
    return [w for w in words if w != "user-enforced"][:2] == ["create", "table"]


def parse_script(text: str) -> tuple[Operation, ...]:
    """The operations that a text lists, with semicolons between.

    Raises:
        InputError: one of them is none.
    """
    parts = [part.split() for part in text.split(";") if part.strip()]
    return tuple(_parse(words) for words in parts)


def _parse(words: list[str]) -> Operation:
    text = " ".join(words)
    match words:
        case ["create", *kinds, "table", rows, "rows"] if _is_number(rows) and kinds in (
            [],
            ["user-enforced"],
        ):
            return Operation("table", number=int(rows), user_enforced=bool(kinds), text=text)
        case ["create", *kinds, "index", name, "on", column] if {*kinds} <= {"unique", "deferred"}:
            _check(name, column, text)
            unique, deferred = "unique" in kinds, "deferred" in kinds
            return Operation("create", name, column, 0, unique, deferred, text=text)
        case ["drop", "index", name]:
            return Operation("drop", name, text=text)
        case ["backfill"]:
            return Operation("backfill", text=text)
        case ["put", key, *values] if _is_number(key) and values:
            return Operation("put", number=int(key), values=_values(values, text), text=text)
        case ["delete", key] if _is_number(key):
            return Operation("delete", number=int(key), text=text)
        case ["split", name, number] if _NAME.fullmatch(name) and _is_number(number):
            return Operation("split", name, number=int(number), text=text)
        case ["write" | "split" | "wait" as verb, number] if _is_number(number):
            return Operation(verb, number=int(number), text=text)
        case ["read", name, value] if _is_number(value):
            return Operation("read", name, number=int(value), text=text)
        case ["fail", "over"] | ["await", "splits"]:
            return Operation(text, text=text)
        case ["await", "job", step]:
            _check_step(step, text)
            return Operation("await job", step, text=text)
        case ["status" | "await" | "kill" | "restart" as verb, name] if _NAME.fullmatch(name):
            return Operation(verb, name, text=text)
        case ["merge", *_]:
            raise InputError(
                f"--script: `{text}`: the tablets of an indexed table do not merge",
                help="`split TABLET` makes two of one",
            )
        case _:
            first = [f.split()[0] for f in FORMS]
            hint = "" if words[0] in first else did_you_mean(words[0], first)
            known = [f for f in FORMS if f.split()[0] == words[0]] or FORMS
            raise InputError(f"--script: `{text}`", help=f"{hint}write {'; '.join(known)}")


def _is_number(text: str) -> bool:
    return text.isdecimal() and int(text) <= MOST


def _check(name: str, column: str, text: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(f"--script: `{text}`", help="a name has letters, digits and underscores")
    if column not in COLUMNS:
        raise InputError(
            f"--script: `{text}`: the table has no column {column}",
            help=f"its columns: {', '.join(COLUMNS)}",
        )


def _check_step(step: str, text: str) -> None:
    if step not in STEPS:
        raise InputError(
            f"--script: `{text}`: a job has no step {step}",
            help=f"{did_you_mean(step, STEPS)}its steps: {', '.join(STEPS)}",
        )


def _values(words: list[str], text: str) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for word in words:
        column, _, value = word.partition("=")
        if column not in COLUMNS or not _is_number(value):
            raise InputError(f"--script: `{text}`", help=f"write {FORMS[4]}, as in put 7 v=3 w=1")
        found.append((column, int(value)))
    return tuple(found)
