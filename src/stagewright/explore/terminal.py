"""The walk in a terminal: a numbered list of enabled steps, and a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stagewright.explore.explorer import Compared, Explorer, Look

HELP = (
    "number: take the step; b: back; r: refused steps; p: the path; s N: initial state N; q: quit"
)


def walk(
    explorer: Explorer, path: list[str], ask: Callable[[], str], out: Callable[[str], None]
) -> None:
    """Show where the walk is and do as told, until the answer is `q` or there is none."""
    look = explorer.look(path)
    out(HELP)
    _print(look, out)
    while True:
        try:
            answer = ask().strip()
        except EOFError:
            return
        if answer == "q":
            return
        new = _followed(explorer, look, answer, out)
        if new is not None:
            look = new
            _print(look, out)


def _followed(
    explorer: Explorer, look: Look, answer: str, out: Callable[[str], None]
) -> Look | None:
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(look.enabled):
        return explorer.look([*look.path, look.enabled[int(answer) - 1].label])
    match answer.split():
        case ["b"]:
            return explorer.look(look.path[:-1])
        case ["r"]:
            out("\n".join(_refused(look)) or "no step is refused")
        case ["p"]:
            out(";".join(look.path))
        case ["s", number] if (
            number.isascii() and number.isdigit() and int(number) < len(explorer.initial)
        ):
            return explorer.look([number])
        case [] | ["h" | "?"]:
            out(HELP)
        case _:
            steps = f"1 to {len(look.enabled)}" if look.enabled else "none"
            out(f"there is no `{answer}` here; steps: {steps}\n{HELP}")
    return None


def _print(look: Look, out: Callable[[str], None]) -> None:
    out("")
    many = len(look.path) - 1
    out(
        f"after {many} step{'' if many == 1 else 's'}"
        + (", a run may end here" if look.final else "")
    )
    for leaf in look.leaves:
        out(
            f"  {leaf.place} = {leaf.value}"
            + (f"   (was {leaf.old})" if leaf.old is not None else "")
        )
    for name in look.broken:
        out(f"  ✗ {name} does not hold")
    for number, step in enumerate(look.enabled, start=1):
        by = f"{step.actor}: " if step.actor else ""
        out(f"{number:>3}  {by}{step.title}   {'; '.join(step.changes)}")
    if not look.enabled:
        out("no step is enabled")
    for other in look.compared:
        out(
            f"under {other.profile}: {'; '.join(_other(other)) or 'the same state, the same steps'}"
        )


def _other(other: Compared) -> Iterator[str]:
    if other.stops:
        yield other.stops
    yield from other.differs
    yield from (f"enabled only there: {label}" for label in other.only_there)
    yield from (f"enabled only here: {label}" for label in other.only_here)


def _refused(look: Look) -> Iterator[str]:
    for step in look.refused:
        yield f"     {step.title}   not: {'; '.join(step.refused)}"
    if look.refused_more:
        yield f"     and {look.refused_more} more"
