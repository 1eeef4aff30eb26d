"""The models in SPIN's language, by hand, with sets as bit masks, which keeps SPIN's states small.

Each step is one `d_step` of one process, so that nothing but the model's own states is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.cases import Size


def promela(name: str, size: Size) -> str:
    """The text of a model."""
    match name, size:
        case "two_phase_commit", (managers,):
            return _two_phase_commit(managers)
        case "ewd840", (nodes,):
            return _ewd840(nodes)
        case "tablet_barrier", (tablets, nodes):
            return _tablet_barrier(tablets, nodes)
        case _:
            raise AssertionError(name)


def _process(variables: str, initial: str, steps: Iterator[tuple[str, str]], wrong: str) -> str:
    options = "\n".join(f"  :: d_step {{ ({guard}) -> {effect} }}" for guard, effect in steps)
    return (
        f"{variables}\n\nactive proctype model() {{\n{initial}\n  do\n{options}\n"
        f"  :: d_step {{ ({wrong}) -> assert(false) }}\n  od\n}}\n"
    )


def _two_phase_commit(managers: int) -> str:
    every = (1 << managers) - 1
    # A decision is a bit in each of two masks: 00 working, 01 prepared, 10 committed, 11 aborted.
    variables = (
        "bit deciding = 1; bit commit_sent; bit abort_sent;\n"
        f"unsigned high : {managers}; unsigned low : {managers};\n"
        f"unsigned heard : {managers}; unsigned sent : {managers};"
    )

    def steps() -> Iterator[tuple[str, str]]:
        yield f"deciding && heard == {every}", "deciding = 0; commit_sent = 1"
        yield "deciding", "deciding = 0; abort_sent = 1"
        for m in (1 << i for i in range(managers)):
            yield f"deciding && (sent & {m})", f"heard = heard | {m}"
            yield f"!((high | low) & {m})", f"low = low | {m}; sent = sent | {m}"
            yield f"!((high | low) & {m})", f"low = low | {m}; high = high | {m}"
            yield "commit_sent", f"high = high | {m}; low = low & {every & ~m}"
            yield "abort_sent", f"high = high | {m}; low = low | {m}"

    return _process(variables, "", steps(), "(high & low) && (high & ~low)")


def _ewd840(nodes: int) -> str:
    every = (1 << nodes) - 1
    variables = (
        f"unsigned busy : {nodes}; unsigned black : {nodes};\n"
        "unsigned token : 4; bit token_black = 1;"
    )
    bits = [f"{mask} = {mask} | {1 << i}" for mask in ("busy", "black") for i in range(nodes)]
    chosen = "; ".join(f"if :: {bit} :: skip fi" for bit in bits)
    places = " ".join(f":: token = {n}" for n in range(nodes))
    initial = f"  atomic {{ {chosen}; if {places} fi }};"

    def steps() -> Iterator[tuple[str, str]]:
        yield (
            "token == 0 && (token_black || (black & 1))",
            f"token = {nodes - 1}; token_black = 0; black = black & {every & ~1}",
        )
        for n in range(1, nodes):
            here = 1 << n
            whiten = f"black = black & {every & ~here}"
            yield (
                f"token == {n} && (!(busy & {here}) || (black & {here}) || token_black)",
                f"token = {n - 1}; token_black = token_black | ((black >> {n}) & 1); {whiten}",
            )
        for n in range(nodes):
            here = 1 << n
            for to in range(nodes):
                blackened = f"; black = black | {here}" if to > n else ""
                if to != n:
                    yield f"busy & {here}", f"busy = busy | {1 << to}{blackened}"
            yield f"busy & {here}", f"busy = busy & {every & ~here}"

    wrong = "token == 0 && !token_black && !(busy & 1) && !(black & 1) && busy"
    return _process(variables, initial, steps(), wrong)


def _tablet_barrier(tablets: int, nodes: int) -> str:
    every = (1 << nodes) - 1
    names = [f"s{t}" for t in range(tablets)]
    names += [f"l{n}_{t}" for n in range(nodes) for t in range(tablets)]
    variables = " ".join(f"unsigned {name} : 3;" for name in names)
    variables += f"\nunsigned up : {nodes} = {every};"

    def steps() -> Iterator[tuple[str, str]]:
        for t in range(tablets):
            learned = [f"(!(up & {1 << n}) || l{n}_{t} == s{t})" for n in range(nodes)]
            yield " && ".join([f"s{t} < 6", "up", *learned]), f"s{t}++"
            for n in range(nodes):
                yield f"(up & {1 << n}) && l{n}_{t} != s{t}", f"l{n}_{t} = s{t}"
        for n in range(nodes):
            forgotten = "; ".join(f"l{n}_{t} = 0" for t in range(tablets))
            relearned = "; ".join(f"l{n}_{t} = s{t}" for t in range(tablets))
            yield f"up & {1 << n}", f"up = up & {every & ~(1 << n)}; {forgotten}"
            yield f"!(up & {1 << n})", f"up = up | {1 << n}; {relearned}"

    behind = [
        f"((up & {1 << n}) && s{t} > l{n}_{t} + 1)" for n in range(nodes) for t in range(tablets)
    ]
    return _process(variables, "", steps(), " || ".join(behind))
