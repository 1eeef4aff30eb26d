"""A run that goes on from earlier ones: what they have left, what is new, and what this run leaves."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from stagewright.spec.text.counting import counted
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.coverage.exercised import Exercised, Whose
from stagewright.traces.coverage.kept_coverage import added, load_coverage, save_coverage
from stagewright.traces.cross_entity.sweep import Swept
from stagewright.traces.cross_entity.system import Together
from stagewright.traces.events.event_block import Place, Stream
from stagewright.traces.explain.panel import Panel
from stagewright.traces.incremental.kept_records import Records, load_records, save_records
from stagewright.traces.incremental.new_files import NewInput, new_input
from stagewright.traces.incremental.reported_before import (
    Line,
    ReportOnce,
    load_reported,
    save_reported,
)
from stagewright.traces.incremental.state_dir import State, Watched, no_room, save_state
from stagewright.traces.inputs.discover import InputFile
from stagewright.traces.inputs.file_identity import FileRead
from stagewright.traces.inputs.split import KnownLog, Logs
from stagewright.traces.options import Options
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Part
from stagewright.traces.replay.exact_verdicts import Evaluated, MachineKey
from stagewright.traces.replay.related.classes import Related
from stagewright.traces.report.assemble import Read

_RECORD_FILES_MAX = 16  # files with records of logs; then they are made one
_SHOWN_MAX = 5

Exercises = dict[Whose, list[Exercised]]


class Continued:
    """A run over what is new in an input.

    Raises:
        InputError: the state does not fit the input or the options, or is damaged.
    """

    def __init__(
        self, state: State, files: Sequence[InputFile], options: Options, mapping: object
    ) -> None:
        state.fits_options(options_text(options))
        self.state = state
        self._options = options
        self.fresh: NewInput = new_input(files, state.files, len(state.parts), mapping)
        self._mapping = mapping
        self._report_once = ReportOnce(
            load_reported(state.path(state.reported)) if state.reported else frozenset()
        )
        self._folder: Path | None = None
        self._saved = False
        self._logs = Logs()
        self._exercised: Exercises = {}

    @property
    def parts(self) -> list[Part]:
        """What is to be read."""
        return self.fresh.parts

    @property
    def streams(self) -> set[Stream]:
        """How events of earlier runs name their machines; of no trace."""
        return {Stream("", *one.key) for one in self.state.machines}

    @property
    def carried(self) -> list[str]:
        """The files with rows of entities."""
        return [str(self.state.path(name)) for name in self.state.carried]

    @property
    def folder(self) -> Path:
        """Where this run writes what the next one needs."""
        if self._folder is None:
            self._folder = self.state.new_folder()
        return self._folder

    def known_logs(self) -> list[KnownLog]:
        """The logs that earlier runs have read, and those that this one reads, under the names of now."""
        files = {one.number: one for one in self.state.files} | self.fresh.read
        wanted = {part: one.number for one in files.values() for part in one.parts}
        of_file: dict[int, list[tuple[int, object]]] = {}
        for part, records in sorted(self._records.items()):
            if part in wanted:
                of_file.setdefault(wanted[part], []).extend((part, r) for r in records)
        return [
            KnownLog(one.number, one.path, one.form, of_file.get(one.number, []))
            for one in files.values()
            if formats.is_log(one.form)
        ]

    @property
    def _lines_again(self) -> int:
        passing = self.fresh.passing
        return sum(one.tally.lines for one in self._logs.read if one.part.number in passing)

    @cached_property
    def _records(self) -> Records:
        found: Records = {}
        for name in self.state.records:
            found |= load_records(self.state.path(name), self._mapping)
        return found

    def take_logs(self, logs: Logs) -> None:
        """What the logs of all runs mean together."""
        self._logs = logs

    def places(self) -> list[tuple[str, int]]:
        """The parts of earlier runs, under the names that their files have now."""
        now = {
            part: str(self.fresh.paths[number])
            for number, one in self.fresh.read.items()
            for part in one.parts
        }
        return [(now.get(n, path), first) for n, (path, first) in enumerate(self.state.parts)]

    def exercised(self, this_run: Mapping[Whose, list[Exercised]]) -> Exercises:
        """What all runs have exercised; that of logs is found anew in every run."""
        before: Exercises = {}
        if self.state.coverage:
            before = load_coverage(self.state.path(self.state.coverage))
        self._exercised = added(before, this_run)
        return self._exercised

    def leave_out_groups(self, swept: Sequence[Swept], properties: Sequence[Related]) -> None:
        """Take out of the groups that have broken a property those that an earlier run has reported."""
        self._report_once.leave_out_groups(swept, properties)

    def leave_out_reported(self, evaluated: Sequence[Evaluated], read: Read) -> None:
        """Take out of what was found in logs what an earlier run has reported."""
        of_part = {p: one.number for one in self.state.files for p in one.parts}
        of_part |= self.fresh.file_of

        def line_of(place: Place) -> Line:
            return of_part[place.source], read.places[place.source][1] + place.line

        self._report_once.leave_out(evaluated, line_of)

    def fits(self, panels: Mapping[MachineKey, Panel], watched: Together) -> None:
        """Refuse what is carried of entities if it was not evaluated as this run evaluates."""
        self.state.fits(_definitions(panels), watched.asked())

    def notes(
        self, *, bad_before: int, open_: int, uncompared: int, held: int, any_event: bool
    ) -> list[str]:
        """What is worth a note of a run that goes on from others."""
        back = self._report_once.taken_back
        known = len(self._records) and sum(map(len, self._records.values()))
        shown = ", ".join(map(str, back[:_SHOWN_MAX])) + (", …" if len(back) > _SHOWN_MAX else "")
        counts = (
            (open_, "trace", "traces", "without an end yet, which may go on"),
            (
                bad_before + self._report_once.known,
                "entity",
                "entities",
                "found bad in an earlier run",
            ),
            (
                self._report_once.known_groups,
                "group",
                "groups",
                "that broke a property in an earlier run",
            ),
            (
                len(back),
                "finding",
                "findings",
                f"taken back, now that more is known: {shown}",
            ),
            (
                self._lines_again,
                "line",
                "lines",
                "of last records that may go on, read again in the next run",
            ),
            (
                uncompared,
                "event",
                "events",
                "repeated from earlier runs, which cannot be compared with the originals",
            ),
            (held, "event", "events", "of earlier runs that waited for a missing one"),
            (
                known,
                "record",
                "records",
                "of logs from earlier runs, checked again with the new ones",
            ),
        )
        return [
            f"run {self.state.runs + 1} with this state",
            *(["there is no event yet"] if not any_event else []),
            *(
                f"{counted(count, one, several)} {what}"
                for count, one, several, what in counts
                if count
            ),
            *self.fresh.notes(),
        ]

    def left(
        self,
        read: Read,
        panels: Mapping[MachineKey, Panel],
        watched: Together,
        carried: Sequence[str],
    ) -> State:
        """What the next run needs.

        Raises:
            InputError: there is no room; or a file was replaced while it was read.
        """
        files = self.fresh.files_read(self.state.files, read.parts)
        of_traces = {key: panel for key, panel in panels.items() if not formats.is_log(key[2])}
        try:
            records = self._keep_records(files)
            coverage = self._keep_coverage()
            reported = self._keep_reported()
        except OSError as error:
            raise no_room(self.state.folder, error) from error
        return replace(
            self.state,
            runs=self.state.runs + 1,
            program=State(self.state.folder).program,
            options=options_text(self._options),
            definitions={**self.state.definitions, **_definitions(of_traces)},
            machines=tuple(
                Watched(*key, watched.asked().get(key, "")) for key in sorted(of_traces)
            ),
            files=tuple(files),
            parts=read.places,
            carried=tuple(self._name(Path(name)) for name in carried if name),
            records=records,
            coverage=coverage,
            reported=reported,
        )

    def save(self, left: State, verdicts: Mapping[TraceVerdict, int]) -> None:
        """Leave it."""
        save_state(left, verdicts)
        self._saved = True

    def clean_up(self) -> None:
        """Remove what this run has written, unless it has left it to the next one."""
        if self._folder is not None and not self._saved:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _keep_records(self, files: Sequence[FileRead]) -> tuple[str, ...]:
        kept = {part for one in files for part in one.parts}
        new = {part: found for part, found in self._logs.records.items() if part in kept and found}
        names = self.state.records
        if len(names) >= _RECORD_FILES_MAX or any(part not in kept for part in self._records):
            new |= {part: found for part, found in self._records.items() if part in kept}
            names = ()
        if not new:
            return names
        path = self.folder / "records.parquet"
        save_records(new, path)
        return (*names, self._name(path))

    def _keep_coverage(self) -> str:
        found = {
            whose: one for whose, one in self._exercised.items() if not formats.is_log(whose[0][2])
        }
        path = self.folder / "coverage.parquet"
        save_coverage(found, path)
        return self._name(path)

    def _keep_reported(self) -> str:
        if not self._report_once.reported:
            return ""
        path = self.folder / "reported.parquet"
        save_reported(self._report_once.reported, path)
        return self._name(path)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.state.folder))


def _definitions(panels: Mapping[MachineKey, Panel]) -> dict[str, str]:
    """By machine and profile: the definition that evaluates its traces, and at which scope."""
    return {
        f"{one.definition.name} {one.definition.profile}".strip(): (
            f"{one.definition.fingerprint()} ({one.scope})"
        )
        for key, panel in panels.items()
        for one in panel.members
        if not formats.is_log(key[2])
    }


def options_text(options: Options) -> str:
    """The options that have to be the same in all runs with a state."""
    hidden = options.hidden.actions
    systems = ", ".join(system.__name__ for system in options.together)
    words = [
        f"--profile {options.profile}" if options.profile else "",
        f"--profile {' --profile '.join(options.candidates)}" if options.candidates else "",
        f"--machine {options.machine}" if options.machine else "",
        f"--mapping {_digest(options.mapping)}" if options.mapping else "",
        *(f"--mapping {_digest(path)}" for path in options.mappings_beside),
        "--hidden-steps all" if hidden is None else "",
        f"--hidden-steps {','.join(sorted(hidden))}" if hidden else "",
        f"--together {systems}" if systems else "",
    ]
    return "; ".join(word for word in words if word)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
