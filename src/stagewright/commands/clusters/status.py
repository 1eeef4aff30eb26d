"""Shows how a running cluster is: its nodes, what they agree on, where tablets lie, what moves and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from rich.table import Table

    from stagewright.impl.node.messages import TabletsReply
    from stagewright.impl.processes.supervisor import NodeReport, Report

MOVES = 5  # the last ones that are shown


def shown(report: Report) -> Iterator[Table | str]:
    """What a console prints."""
    from rich.table import Table

    from stagewright.commands.clusters.shell_views import as_text as build_text

    table = Table(box=None, pad_edge=False)
    for title in ("node", "process", "state", "address", "tokens", "tablets", "asked for"):
        table.add_column(title)
    held = Counter(_holders(report.tablets))
    for node in report.nodes:
        table.add_row(*_cells(node, held[node.name]))
    yield table
    said = report.said
    if said is None:
        yield "no node answers"
        return
    counts = Counter(t.table for t in (report.tablets.tablets if report.tablets else ()))
    yield (
        f"coordinator {said.coordinator or 'not known'}, topology version {said.version} "
        f"(fence {said.fence_version}), {said.transition_state or 'no transition'}, "
        f"log at {said.position}; "
        + ", ".join(_of_table(name, n, counts[name]) for name, n in said.tables)
    )
    yield from (build_text(b.shown) for b in report.views)
    yield from _moves(report.tablets)


def _holders(reply: TabletsReply | None) -> Iterator[str]:
    for tablet in () if reply is None else reply.tablets:
        yield from (host for host, _ in tablet.replicas)


def _of_table(name: str, replicas: int, tablets: int) -> str:
    of = f" of {counted(tablets, 'tablet')}" if tablets else ""
    return f"{name} with {counted(replicas, 'replica')}{of}"


def _moves(reply: TabletsReply | None) -> Iterator[str]:
    """What moves now, and why the last ones that moved did."""
    if reply is None:
        return
    for tablet in reply.tablets:
        if tablet.stage:
            now, then = _places(tablet.replicas), _places(tablet.following)
            to = f" → {then}" if then else ""
            yield f"tablet {tablet.table}:{tablet.tablet} is in {tablet.stage}: {now}{to}"
    for move in reply.moves[-MOVES:]:
        yield f"moved: {move}"


def _places(replicas: tuple[tuple[str, int], ...]) -> str:
    return " ".join(f"{host}:{shard}" for host, shard in replicas)


def _cells(node: NodeReport, tablets: int) -> tuple[str, ...]:
    ended = "its directory is lost" if node.lost else "does not run"
    runs = ended if node.process is None else str(node.process)
    process = node.stopped or runs
    if node.said is None:
        return node.name, process, "-", "-", "-", "-", ""
    said = node.said
    asked = f"{said.request}: {said.outcome}" if said.request else ""
    asked += f" ({said.held_up})" if said.held_up else ""
    shown = str(tablets) if tablets else ""
    return node.name, process, said.state, said.address, str(said.tokens), shown, asked
