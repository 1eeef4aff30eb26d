"""A plain greedy balancer, as one writes it first: from the fullest shard to the emptiest, looked for anew."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.impl.tablets.balancer import HostState, Limits, LoadSketch, TabletName

Move = tuple[TabletName, int, int]


def plain_plan(sketch: LoadSketch, limits: Limits) -> list[Move]:
    """As many migrations as `plan` would look for, by the same rules, without any order of shards."""
    load, reads, writes = list(sketch.load), list(sketch.reads), list(sketch.writes)
    stays = [sketch.hosts[h].state is HostState.normal for h in sketch.host_of]
    planned: set[TabletName] = set()
    moves: list[Move] = []
    while True:
        found = next(_candidates(sketch, limits, load, reads, writes, stays, planned), None)
        if found is None:
            return moves
        tablet, source, target = found
        moves.append(found)
        planned.add(tablet)
        load[source], load[target] = load[source] - 1, load[target] + 1
        reads[source], writes[target] = reads[source] + 1, writes[target] + 1


def _candidates(
    sketch: LoadSketch,
    limits: Limits,
    load: list[int],
    reads: list[int],
    writes: list[int],
    stays: list[bool],
    planned: set[TabletName],
) -> Iterator[Move]:
    shards = range(len(load))
    sources = sorted(
        (s for s in shards if reads[s] < limits.reads), key=lambda s: (stays[s], -load[s])
    )
    targets = sorted(
        (s for s in shards if stays[s] and writes[s] < limits.writes), key=load.__getitem__
    )
    for source in sources:
        for target in targets:
            if stays[source] and load[target] + 1 >= load[source]:
                break
            for tablet in sketch.resting[source]:
                hosts = {sketch.host_of[p] for p in sketch.places[tablet] if p != source}
                if tablet not in planned and sketch.host_of[target] not in hosts:
                    yield tablet, source, target
