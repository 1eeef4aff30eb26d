"""Evaluates the events of many machines in one Spark job: `validate_events(spark, [(definition, scope, events)])`."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.trace import Event
from stagewright.traces.automaton.nfa import MAX_STATES, Automaton, automaton
from stagewright.traces.events.event_block import Block, Stream, block_of
from stagewright.traces.events.observability import Recording
from stagewright.traces.replay.exact_verdicts import Evaluated, Finding, MachineKey, evaluate

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

    An item's events are evaluated under its definition at its scope, whatever machine they name.

    Raises:
        StagewrightError: a definition cannot be lowered at its scope.
    """
    automata: dict[MachineKey, Automaton] = {}
    blocks: list[Block] = []
    originals: list[tuple[Stream, ...]] = []
    for number, (definition, scope, events) in enumerate(batch):
        own = _own_key(number)
        automata[own] = automaton(definition, scope, recording, max_states=max_states)
        block = block_of(events)
        originals.append(block.streams)
        blocks.append(
            replace(block, streams=tuple(Stream(str(i), *own) for i in range(len(block.streams))))
        )
    found: list[list[Finding]] = [[] for _ in batch]
    for evaluated in _job(spark, blocks, automata):
        for finding in evaluated.findings:
            stream = finding.key.stream
            item = int(stream.machine)
            key = finding.key._replace(stream=originals[item][int(stream.trace)])
            found[item].append(replace(finding, key=key))
    return [sorted(item, key=lambda f: f.key) for item in found]


def _own_key(number: int) -> MachineKey:
    """A machine of its own for each item: many may have the same name."""
    return str(number), "", ""


def _job(
    spark: SparkSession, blocks: Sequence[Block], automata: dict[MachineKey, Automaton]
) -> list[Evaluated]:
    context = spark.sparkContext
    partitions = context.defaultParallelism
    # Each partition gets the automata that it needs, and no others.
    tasks = [
        pickle.dumps((part, {s[1:]: automata[s[1:]] for b in part for s in b.streams}))
        for part in (blocks[number::partitions] for number in range(partitions))
    ]
    evaluated: list[Evaluated] = (
        context.parallelize(tasks, partitions).mapPartitions(_evaluate_tasks).collect()
    )
    return evaluated


def _evaluate_tasks(tasks: Iterable[bytes]) -> Iterable[Evaluated]:
    for task in tasks:
        blocks, automata = pickle.loads(task)
        yield evaluate(blocks, automata, every=True)
