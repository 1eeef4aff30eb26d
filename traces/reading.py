"""Reads the parts of all input files on Spark: blocks of events that stay there, and what became of each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.traces.blocks import Block, Stream, split
from stagewright.traces.inputs import InputFile
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Part, Tally

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

_SUMMARY = -1  # in place of a partition's number


@dataclass
class PartRead:
    """What was read of one part, beside its blocks."""

    part: Part
    tally: Tally
    streams: set[Stream] = field(default_factory=set)
    records: list[Any] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True)
class Reading:
    """All parts, read. `blocks` holds (partition, block); `offsets` the lines before each part in its file."""

    parts: list[PartRead]
    blocks: RDD[Any]
    offsets: list[int]


def split_files(files: Sequence[InputFile]) -> list[Part]:
    """The parts of all files, in order."""
    found: list[Part] = []
    for file in files:
        for start, stop in forms.reader(file.form).parts(file.path):
            found.append(Part(len(found), str(file.path), file.form, start, stop))
    return found


def read_parts(context: SparkContext, parts: Sequence[Part], partitions: int) -> Reading:
    """Read all parts, once.

    Raises:
        InputError: a file is damaged.
    """
    from pyspark import StorageLevel

    def read(some: Iterable[Part]) -> Iterator[tuple[int, Any]]:
        for part in some:
            yield from _read_part(part, partitions)

    everything = context.parallelize(list(parts), len(parts)).mapPartitions(read)
    everything = everything.persist(StorageLevel.MEMORY_AND_DISK)
    done: list[PartRead] = everything.filter(_is_summary).values().collect()
    done.sort(key=lambda p: p.part.number)
    if wrong := [p.error for p in done if p.error]:
        everything.unpersist()
        raise InputError("\n".join(wrong))
    offsets: list[int] = []
    before: dict[str, int] = {}
    for one in done:
        offsets.append(before.get(one.part.path, 0))
        before[one.part.path] = offsets[-1] + one.tally.lines
    return Reading(done, everything, offsets)


def blocks_only(blocks: RDD[Any]) -> RDD[Any]:
    """The (partition, block) pairs of what `read_parts` keeps."""
    return blocks.filter(_is_block)


def _is_summary(item: tuple[int, Any]) -> bool:
    return item[0] == _SUMMARY


def _is_block(item: tuple[int, Any]) -> bool:
    return item[0] != _SUMMARY


def _read_part(part: Part, partitions: int) -> Iterator[tuple[int, Block | PartRead]]:
    result = PartRead(part, Tally())
    try:
        if forms.form_named(part.form).log:
            result.records = forms.log_reader(part.form).extract(part, result.tally)
        else:
            for block in forms.event_reader(part.form).read(part, result.tally):
                result.streams |= {key.stream for key in block.keys}
                yield from split(block, partitions)
    except StagewrightError as error:
        result.error = str(error)
    yield _SUMMARY, result
