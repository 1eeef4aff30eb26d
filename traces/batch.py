"""Judges the events of many machines in one Spark job: `validate_events(spark, [(definition, scope, events)])`."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.trace import Event
from stagewright.traces.automaton import MAX_STATES, Automaton, automaton
from stagewright.traces.blocks import Block, Stream, block_of, split
from stagewright.traces.judge import Finding, Judged, MachineKey, judge
from stagewright.traces.recording import Recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def validate_events(
    spark: SparkSession,
    batch: Sequence[tuple[Definition, Scope, Sequence[Event]]],
    recording: Recording | None = None,
    *,
    max_states: int = MAX_STATES,
) -> list[list[Finding]]:
    """What was found about each entity, in the order of their keys, for each item of the batch.

    An item's events are judged under its definition at its scope, whatever machine they name.

    Raises:
        StagewrightError: a definition cannot be lowered at its scope.
    """
    automata: dict[MachineKey, Automaton] = {}
    blocks: list[Block] = []
    streams: dict[Stream, int] = {}
    for number, (definition, scope, events) in enumerate(batch):
        own = _own_key(number)
        automata[own] = automaton(definition, scope, recording, max_states=max_states)
        block = block_of(events)
        blocks.append(_rename(block, own, streams))
    found: list[list[Finding]] = [[] for _ in batch]
    originals = list(streams)
    for judged in _job(spark, blocks, automata):
        for finding in judged.findings:
            stream = finding.key.stream
            key = finding.key._replace(stream=originals[int(stream.trace)])
            found[int(stream.machine)].append(replace(finding, key=key))
    return [sorted(item, key=lambda f: f.key) for item in found]


def _own_key(number: int) -> MachineKey:
    """A machine of its own for each item: many may have the same name."""
    return str(number), "", ""


def _rename(block: Block, own: MachineKey, streams: dict[Stream, int]) -> Block:
    """The block under an item's own machine; the original streams are numbered in `streams`."""
    keys = tuple(
        k._replace(stream=Stream(str(streams.setdefault(k.stream, len(streams))), *own))
        for k in block.keys
    )
    return replace(block, keys=keys)


def _job(
    spark: SparkSession, blocks: Sequence[Block], automata: dict[MachineKey, Automaton]
) -> list[Judged]:
    context = spark.sparkContext
    partitions = context.defaultParallelism
    parts: list[list[Block]] = [[] for _ in range(partitions)]
    for block in blocks:
        for number, part in split(block, partitions):
            parts[number].append(part)
    # Each partition gets the automata that it needs, and no others.
    tasks = [
        pickle.dumps((part, {m: automata[m] for b in part for m in {k.stream[1:] for k in b.keys}}))
        for part in parts
    ]
    judged: list[Judged] = (
        context.parallelize(tasks, partitions).mapPartitions(_judge_tasks).collect()
    )
    return judged


def _judge_tasks(tasks: Iterable[bytes]) -> Iterable[Judged]:
    for task in tasks:
        blocks, automata = pickle.loads(task)
        yield judge(blocks, automata, every=True)
