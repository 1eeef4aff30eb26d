"""What each backend makes of each construct of the language: one table, declared here, printed by `doctor`.

A new construct is one row here and one example machine in `tests/cross/constructs.py`; the tests run every
example through every backend, compare it with the reference interpreter, and expect a refusal where a row
says that a backend lacks the construct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Backend(Enum):
    """What a definition is given to; the value is its heading in the table."""

    NATIVE = "check, compiled"
    NUMPY = "check, NumPy"
    SYMMETRY = "symmetry"
    SOLVER = "prove (Z3)"
    TLA = "TLA+"
    ITF = "ITF"
    RUNTIME = "run"
    CONFORMANCE = "test"
    TRACES = "validate"
    WORDS = "show, docs"
    MUTATION = "mutate"


@dataclass(frozen=True)
class Construct:
    """Something that a definition can say; `lacks`: the backends that refuse it, and what they say."""

    name: str
    written: str
    lacks: Mapping[Backend, str] = field(default_factory=dict[Backend, str])


CONSTRUCTS = (
    Construct(
        "enums with columns",
        "`stage.column(lambda s: s.writes)`, `held.column(lambda h, w: h < w, wanted)`, `number_column`",
    ),
    Construct("optional values", "`optional(Node)`, `x.is_none()`, `for n in self.owner`"),
    Construct(
        "sets", "`set_of(Node)`, `s.has(x)`, `s | t`, `s & t`, `s - t`, `s <= t`, `s.size()`"
    ),
    Construct("maps and records", "`per(Node, record(Row))`, `self.rows[n].owner`"),
    Construct("quantifiers and counts", "`every(… for n in Node)`, `some(…)`, `count(…)`"),
    Construct("products, quotients, remainders", "`x * y`, `x // 2`, `x % n`"),
    Construct("the least and the greatest", "`least(a, b)`, `greatest(x[n] for n in Node)`"),
    Construct("sums over members", "`total(self.coins[n] for n in Node)`"),
    Construct("tables by number", "`per(number(0, 5), …)`, `t[(i + 1) % 6]`, `numbers(0, 5)`"),
    Construct("initial values by key", "`per(Node, one_of(Node), init=lambda n: n)`"),
    Construct("a default for none", "`self.owner.or_else(n)`"),
    Construct("sets of these members", "`SetOf.of(p, q)`, `self.up - SetOf.of(p)`"),
    Construct("sets as parameters", "`def allocate(self, c: Term[Client], s: SetOf[Resource])`"),
    Construct("loops over an enum", "`for s in Stage`, and `for s in each(Stage)` for all at once"),
    Construct(
        "ordered entities and rings",
        "`class Node(Entity, ring=True)`, `n.next`, `n < m`, `Node.first`, `n.is_last`",
    ),
    Construct("members with names", "`root = named()` in `class Node(Entity)`, `Node.root`"),
    Construct(
        "sets of records",
        "`set_of(Message)`, `s.add(Message(kind=…))`, `m: Message`, `for m in self.sent`",
    ),
    Construct("bags", "`bag(Message, at_most=2)`, `b.add(m)`, `b.remove(m)`, `b.count_of(m)`"),
    Construct(
        "queues",
        "`queue(Message, 3)`, `q.append(m)`, `q.head`, `q.tail`, `q[i]`, `q.length`, `q.lose(i)`",
    ),
)


def capability_table() -> str:
    """The table as Markdown: a row a construct, a column a backend; `yes`, or a number of the notes below it."""
    notes: list[str] = []
    head = ["construct", "as it is written", *(b.value for b in Backend)]
    rows = [
        [c.name, c.written, *(_cell(c, backend, notes) for backend in Backend)] for c in CONSTRUCTS
    ]
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    parts = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([*lines, *(["", *parts] if parts else [])]) + "\n"


def _cell(construct: Construct, backend: Backend, notes: list[str]) -> str:
    lacking = construct.lacks.get(backend)
    if lacking is None:
        return "yes"
    if lacking not in notes:
        notes.append(lacking)
    return f"no ({notes.index(lacking) + 1})"


def _row(cells: list[str]) -> str:
    escaped = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


PAGE = """\
# What each backend can do

Printed by `stagewright doctor --capabilities`. Every `yes` is tested: an example machine of each construct goes
through each backend and is compared with the reference interpreter (`tests/cross/test_capabilities.py`).

"""


def capability_page() -> str:
    """The page `docs/language/capabilities.md`."""
    return PAGE + capability_table()
