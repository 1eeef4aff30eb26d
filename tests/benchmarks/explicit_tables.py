"""What the standings of exhaustive checkers look like: ratios first, then the figures behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.benchmarks.cases import Case
from tests.benchmarks.contest import Contest, Standing
from tests.benchmarks.measuring.interleave import Outcome
from tests.benchmarks.tables import Table, ratio, whole

_MEBIBYTE = 1 << 20
_NOTHING = "\N{EN DASH}"
_LEAST_BYTES = 0.5  # a state, below which a ratio says nothing


def speed_table(contest: Contest) -> Table:
    """How many times as many distinct states a CPU second ours finds."""
    title = "Speed: distinct states a CPU second less start-up, Stagewright's ÷ the peer's"
    return _ratios(
        contest, title, _faster, "Sizes differ (below): larger tables miss the caches more."
    )


def memory_table(contest: Contest) -> Table:
    """How many times as many bytes a state a peer takes."""
    title = "Memory: bytes a distinct state less those at start, the peer's ÷ Stagewright's"
    return _ratios(contest, title, _smaller, "TLC takes the heap that its Java chooses.")


def _faster(ours: Standing, peer: Standing) -> float | None:
    return ours.speed / peer.speed if ours.speed and peer.speed else None


def _smaller(ours: Standing, peer: Standing) -> float | None:
    enough = min(ours.state_bytes, peer.state_bytes) >= _LEAST_BYTES
    return peer.state_bytes / ours.state_bytes if enough else None


def _ratios(
    contest: Contest,
    title: str,
    compare: Callable[[Standing, Standing], float | None],
    note: str,
) -> Table:
    peers = list(dict.fromkeys(s.peer.name for s in contest.standings if not s.peer.ours))
    rows: list[tuple[str, ...]] = []
    for ours in (s for s in contest.standings if s.peer.ours):
        beside = {s.peer.name: s for s in contest.standings if s.case is ours.case}
        cells = [ratio(compare(ours, beside[p])) if p in beside else _NOTHING for p in peers]
        rows.append((f"{ours.case.title}: {ours.peer.name}", *cells))
    return Table(title, ("", *peers), tuple(rows), note)


def figures_table(contest: Contest) -> Table:
    """Every contestant's medians."""
    heads: tuple[str, ...] = (
        "",
        "size",
        "distinct states",
        "states/CPU s",
        "CPU s",
        "of it start-up",
    )
    heads += ("whole process, states/CPU s", "peak MiB", "bytes/state", "compiling, s")
    return Table("Medians", heads, tuple(map(_figures, contest.standings)))


def _figures(standing: Standing) -> tuple[str, ...]:
    built = standing.work.job.build_seconds
    return (
        f"{standing.case.title}: {standing.peer.name}",
        standing.case.shown(standing.size),
        whole(standing.states),
        _NOTHING if standing.speed is None else whole(standing.speed),
        f"{standing.work.cpu:.2f}",
        f"{standing.start.cpu:.2f}",
        whole(standing.whole_speed),
        f"{standing.work.peak / _MEBIBYTE:.0f}",
        f"{standing.state_bytes:.1f}",
        f"{built:.1f}" if built else _NOTHING,
    )


def growth_table(contest: Contest) -> Table:
    """Cost by size: ours, and the reference's beside it."""
    rows: list[tuple[str, ...]] = []
    for ours in (s for s in contest.standings if s.peer.ours):
        same = [s for s in contest.standings if (s.case, s.size) == (ours.case, ours.size)]
        reference = next((s for s in same if not s.peer.ours), None)
        quotient = _faster(ours, reference) if reference else None
        rows.append(
            (
                f"{ours.case.title}, {ours.case.shown(ours.size)}",
                whole(ours.states),
                ratio(quotient),
                f"{ours.work.cpu:.2f}",
                _NOTHING if ours.speed is None else whole(ours.speed),
                f"{ours.work.peak / _MEBIBYTE:.0f}",
                f"{ours.state_bytes:.1f}",
                f"{reference.work.cpu:.2f}" if reference else _NOTHING,
                f"{reference.state_bytes:.1f}" if reference else _NOTHING,
            )
        )
    heads: tuple[str, ...] = (
        "",
        "distinct states",
        "speed ÷ C's",
        "CPU s",
        "states/CPU s",
        "peak MiB",
    )
    heads += ("bytes/state", "C: CPU s", "C: bytes/state")
    name = next((s.peer.name for s in contest.standings if s.peer.ours), "")
    return Table(f"How cost grows: {name}", heads, tuple(rows))


def workers_table(contest: Contest) -> Table:
    """One worker and two, by the clock."""
    rows: list[tuple[str, ...]] = []
    for one, two in zip(contest.standings[::2], contest.standings[1::2], strict=True):
        if one.case is not two.case:
            continue
        net = one.work.wall - one.start.wall, two.work.wall - two.start.wall
        rows.append(
            (
                f"{one.case.title}, {one.case.shown(one.size)}",
                ratio(net[0] / net[1] if min(net) > 0 else None),
                ratio(one.work.wall / two.work.wall),
                f"{one.work.wall:.2f}",
                f"{two.work.wall:.2f}",
                f"{one.work.cpu:.2f}",
                f"{two.work.cpu:.2f}",
            )
        )
    heads: tuple[str, ...] = (
        "",
        "speed-up less start-up",
        "of the whole process",
        "1 worker: wall s",
    )
    heads += ("2 workers: wall s", "1: CPU s", "2: CPU s")
    return Table("Two workers beside one", heads, tuple(rows))


def first_states_table(outcomes: Sequence[Outcome]) -> Table:
    """Time to the verdict on a shipped machine's first states, all promises asked for."""
    rows = [
        (found.job.name, f"{found.wall:.2f}", f"{found.cpu:.2f}", f"{found.seconds or 0:.2f}")
        for found in outcomes
    ]
    heads = ("", "wall s", "CPU s", "of it checking, wall s")
    return Table("The verdict on the first 1,000 states", heads, tuple(rows))


def orbits_table(case: Case, outcomes: Sequence[Outcome]) -> Table:
    """All states beside one of each orbit."""
    rows = [
        (
            found.job.name,
            whole(found.job.expected),
            f"{found.wall:.2f}",
            f"{found.cpu:.2f}",
            f"{found.peak / _MEBIBYTE:.0f}",
        )
        for found in outcomes
    ]
    heads = ("", "states or orbits", "wall s", "CPU s", "peak MiB")
    return Table(f"Symmetry: {case.title}", heads, tuple(rows))
