"""The state of a machine in TLA+: constants, tables of enums, variables and bounds."""

from __future__ import annotations

from enum import Enum

from stagewright.checker.tla.blocks import WIDTH, Block, bullets, comment, folded, hanging, remark
from stagewright.checker.tla.sets import literal, set_of_records, set_of_values
from stagewright.checker.tla.vocabulary import Vocabulary, member_names
from stagewright.spec.definition import Definition, Variable


def constants(names: Vocabulary, mentioned: frozenset[str]) -> Block:
    """The entity sorts, their members that the module mentions, and what stands for none."""
    declared = [
        *(names.sizes.get(kind, name) for kind, name in names.entities.items()),
        *names.single_values(mentioned),
    ]
    if not declared:
        return ()
    numbers = [f"{names.entities[kind]} == 0..({size} - 1)" for kind, size in names.sizes.items()]
    return (f"CONSTANTS {', '.join(declared)}", "", *numbers, *([""] if numbers else []))


def put(names: Vocabulary) -> Block:
    """The operator for members that join or leave a set."""
    return (
        "\\* The set with a member in it, or without.",
        f"{names.own.put}(set, member, inside) ==",
        "  IF inside THEN set \\cup {member} ELSE set \\ {member}",
        "",
    )


def folds(names: Vocabulary, mentioned: frozenset[str]) -> Block:
    """The operators on numbers that the module mentions."""
    total, least, greatest = names.own.total, names.own.least, names.own.greatest
    lines: list[str] = []
    if total in mentioned:
        lines += [
            "\\* The sum of a function's values.",
            f"{total}(f) ==",
            "  LET sum[keys \\in SUBSET DOMAIN f] ==",
            "        IF keys = {} THEN 0",
            "        ELSE LET key == CHOOSE k \\in keys : TRUE",
            "             IN  f[key] + sum[keys \\ {key}]",
            "  IN  sum[DOMAIN f]",
            "",
        ]
    for name, sign in ((least, "<="), (greatest, ">=")):
        if name in mentioned:
            lines += [f"{name}(set) == CHOOSE i \\in set : \\A j \\in set : i {sign} j", ""]
    return tuple(lines)


def sequence_operators(names: Vocabulary, mentioned: frozenset[str]) -> list[str]:
    """What the module Sequences lacks, as far as it is needed."""
    own = names.own
    data = {
        own.sequences: (
            "\\* The sequences of at most so many elements.",
            f"{own.sequences}(set, most) == UNION {{[1..n -> set] : n \\in 0..most}}",
        ),
        own.elements: (
            "\\* What is in a sequence.",
            f"{own.elements}(seq) == {{seq[i] : i \\in 1..Len(seq)}}",
        ),
        own.item: (
            "\\* An element, or what stands for one that is not there.",
            f"{own.item}(seq, i, nothing) == IF i \\in 1..Len(seq) THEN seq[i] ELSE nothing",
        ),
        own.without: (
            "\\* The sequence without one of its elements.",
            f"{own.without}(seq, i) ==",
            "  IF i \\in 1..Len(seq) THEN SubSeq(seq, 1, i - 1) \\o SubSeq(seq, i + 1, Len(seq)) ELSE seq",
        ),
        own.inserted: (
            "\\* The sequence with one more element before one of them, or at its end.",
            f"{own.inserted}(seq, i, element) ==",
            "  IF i \\in 1..(Len(seq) + 1)",
            "  THEN SubSeq(seq, 1, i - 1) \\o <<element>> \\o SubSeq(seq, i, Len(seq))",
            "  ELSE seq",
        ),
    }
    return [line for name, lines in data.items() if name in mentioned for line in (*lines, "")]


def records(names: Vocabulary) -> list[Block]:
    """Every record of which there are sets or sequences: the set of its values."""
    return [
        folded(f"{name} == {set_of_records(names.record_sorts[kind], names)}", WIDTH)
        for kind, name in names.records.items()
    ]


def tables(names: Vocabulary) -> list[Block]:
    """Every enum with its members, and its columns."""
    found: list[Block] = []
    for kind, name in names.enums.items():
        members = [literal(m, names) for m in kind]
        found.append(_listed(f"{name} ==", "{", members, "}"))
        for (index, _, values), column in names.columns.items():
            if index is kind:
                fields = _fields(kind, [literal(v, names) for v in values])
                found.append(_listed(f"{column} ==", "[", fields, "]"))
    return found


def _fields(kind: type[Enum], values: list[str]) -> list[str]:
    fields = list(member_names(kind).values())
    longest = max(map(len, fields))
    return [f"{f.ljust(longest)} |-> {v}" for f, v in zip(fields, values, strict=True)]


def _listed(head: str, left: str, items: list[str], right: str) -> Block:
    flat = f"{head} {left}{', '.join(' '.join(i.split()) for i in items)}{right}"
    if len(flat) <= WIDTH:
        return (flat,)
    most, last = items[:-1], items[-1]
    return (f"{head} {left}", *(f"  {i}," for i in most), f"  {last}{right}")


def variables(definition: Definition, names: Vocabulary) -> list[Block]:
    """The variables, all of them together, and their bounds."""
    parts = [names.variables[v.name] for v in definition.variables]
    widest = max(map(len, parts)) + 1
    declared = [
        f"  {name + ('' if last else ','):<{widest}}{_said(v, name)}"
        for v, name, last in zip(
            definition.variables, parts, [*([False] * (len(parts) - 1)), True], strict=True
        )
    ]
    everything = _listed(f"{names.own.variables} ==", "<<", parts, ">>")
    in_bounds = [
        folded(f"{name} \\in {set_of_values(v.sort, names)}", WIDTH - 5)
        for v, name in zip(definition.variables, parts, strict=True)
    ]
    said = comment("Assigned values stay in bounds.")
    return [
        ("VARIABLES", *declared),
        everything,
        (*said, *hanging(f"{names.own.bounds} ==", bullets("/\\", in_bounds), 0)),
    ]


def _said(variable: Variable, name: str) -> str:
    """What there is to say of a variable beside its name."""
    plain = " ".join(variable.doc.split())
    original = variable.name if variable.name != name and not plain else ""
    parts = [part for part in (plain, original) if part and part != name.replace("_", " ")]
    parts += ["never changes"] if variable.constant else []
    return f"  {remark('; '.join(parts))}" if parts else ""
