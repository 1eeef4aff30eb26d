"""Reads files with a reader and evaluates their events, as `validate` does, but without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stagewright.machines import SHIPPED
from stagewright.machines.recorded import OF_LOGS
from stagewright.spec.definition import Definition
from stagewright.spec.loading import load
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.events.event_block import block_of
from stagewright.traces.options import unbounded_scope
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.replay.exact_verdicts import Finding, evaluate

_CLASSES = {place.partition(":")[2]: name for name, place in SHIPPED.items()}
_CLASSES |= {place.partition(":")[2]: place for place in OF_LOGS}


def shipped(name: str, profile: str) -> Definition:
    """The shipped machine of a short name or of a class's name."""
    return load(_CLASSES.get(name, name), profile, SHIPPED)


@dataclass
class Read:
    """What became of the lines, and what they mean."""

    tallies: list[Tally]
    interpreted: Interpreted
    form: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """The events, in the order in which they were recorded."""
        return [event for _, event in self.interpreted.events]

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """The lines that were refused, and why."""
        return [one for tally in self.tallies for one in tally.reasons]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Lines, blank ones, others (those that tell events included) and refused ones."""
        return (
            sum(t.lines for t in self.tallies),
            sum(t.blank for t in self.tallies),
            sum(t.other for t in self.tallies),
            sum(t.unparsed for t in self.tallies),
        )

    @property
    def verdicts(self) -> dict[str, TraceVerdict]:
        """The verdict on each entity."""
        return {finding.key.entity: finding.verdict for finding in self.findings}


def read_log(form: str, paths: Sequence[Path], plan: object = None, profile: str = "") -> Read:
    """What a reader of logs makes of some files."""
    reader = formats.log_reader(form)
    files: list[list[tuple[int, object]]] = []
    tallies: list[Tally] = []
    for path in paths:
        records: list[tuple[int, object]] = []
        for start, stop in reader.parts(path):
            tally = Tally()
            part = Part(len(tallies), str(path), form, start, stop, mapping=plan)
            records += [(part.number, record) for record in reader.extract(part, tally)]
            tallies.append(tally)
        files.append(records)
    return Read(tallies, reader.interpret(files, profile), form)


def evaluated(read: Read, definition: Definition | None = None) -> Read:
    """The same with a finding for each entity, evaluated by the machine that the events name."""
    streams = {(e.machine, e.profile): e for e in read.events}
    automata = {}
    for machine, profile in streams:
        found = definition or shipped(machine, profile)
        recording = read.interpreted.recordings.get(machine) or formats.recording_of(
            read.form, machine
        )
        scope = recording.scope(unbounded_scope(found))
        automata[machine, profile, read.form] = automaton(found, scope, recording)
    block = block_of(read.events, definition=read.form)
    read.findings = evaluate([block], automata, every=True).findings
    return read
