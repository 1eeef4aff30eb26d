"""The forms of input that can be read: the name of each, how its files are known, and the module that reads it.

A new reader is one module of the shape that `protocol` describes, and one row here; one of another package is an
entry point there (`packages`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from stagewright.traces.events.event_block import Block, Ints
from stagewright.traces.events.observability import Recording
from stagewright.traces.events.string_pool import Names
from stagewright.traces.readers import text_lines
from stagewright.traces.readers.form import Form
from stagewright.traces.readers.guarded import GuardedReader
from stagewright.traces.readers.packages import forms_of_packages
from stagewright.traces.readers.protocol import (
    EventReader,
    Hole,
    LogReader,
    Part,
    SkippingReader,
    Tally,
)
from stagewright.traces.readers.text_lines import ENDINGS, compression, last_line_end

PROBE_BYTES = 1 << 16
COMPRESSED = ENDINGS


_JSON = (".json", ".jsonl", ".ndjson")

# The first that fits is taken.
FORMS = (
    Form("parquet", "readers.generic.parquet", (".parquet",), r"\APAR1", skips=True),
    Form(
        "jsonl",
        "readers.generic.jsonl",
        (".jsonl", ".ndjson"),
        r'\A\s*\{[^\n]*"seq"\s*:',
        grows=True,
    ),
    Form(
        "scylla-tables",
        "databases.scylladb.tables.tables",
        (),
        r"(?m)^\s*\[json\]\s*$"
        r'|^\s*\{[^\n]*"(?:node_state|last_token|request_type|base_id|state_id)"\s*:'
        r"|\A[a-z0-9_,]*\b(?:node_state|last_token|request_type|base_id|state_id)\b[a-z0-9_,]*\s*$",
        log=True,
        releases="databases.scylladb.versions",
    ),
    Form(
        "scylla-log",
        "databases.scylladb.log.log",
        (),
        r"\[shard\s*\d[^\]\n]*\](?![.\"])",  # not a variable of a shard, `batch[shard0].done`
        log=True,
        grows=True,
        once=True,
        shared=(".jsonl", ".ndjson"),  # as collectors wrap it
        releases="databases.scylladb.versions",
    ),
    Form(
        "yugabyte-log",
        "databases.yugabytedb.yugabyte_log",
        (),
        r"(?:^|[\s:|])[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ [\w./-]+:\d+\] ",
        log=True,
        grows=True,
        once=True,
    ),
    Form(
        "couchbase-log",
        "databases.couchbase.couchbase_log",
        (),
        r"(?m)^\[\w+:[a-z]+,\d{4}-\d\d?-\d\d?T",
        log=True,
        grows=True,
        once=True,
    ),
    Form(
        "couchbase-master-events",
        "databases.couchbase.couchbase_events",
        (),
        r'\A\s*\{[^\n]*"(?:type"\s*:\s*"[a-z]\w*"[^\n]*"ts"\s*:\s*\d|ts"\s*:\s*\d[^\n]*"type"\s*:)',
        log=True,
        grows=True,
        once=True,
    ),
    Form(
        "otlp",
        "readers.generic.otlp",
        (),
        r'\A\s*\{\s*"resource(Logs|Spans|Metrics)"\s*:',
        log=True,
        grows=True,
        once=True,
        shared=_JSON,
    ),
    Form(
        "itf",
        "readers.generic.itf",
        (".itf.json",),
        r'\A\s*\{\s*"(#meta|params|vars|states|loop)"\s*:',
        log=True,
        apart=True,
        shared=(".json",),
    ),
    Form("mapped", "mapping.mapped", log=True, grows=True, by_mapping=True),
    # The same where each row is an event by itself.
    Form("mapped-numbered", "mapping.mapped_alone", grows=True, by_mapping=True),
)
_GENERAL_LOG = (".log", ".json", ".csv")  # endings of many forms: the content decides
# yb-master.host.user.log.INFO.20210910-180346.1234, yb-master.INFO, couchdb.log.3
_ROTATED_LOG = re.compile(r"\.log\.[\w.-]+$|\.(?:INFO|WARNING|ERROR|FATAL)$")


@cache
def by_name() -> Mapping[str, Form]:
    """Our forms, and after them those of other packages."""
    ours = {form.name: form for form in FORMS}
    return {**ours, **{form.name: form for form in forms_of_packages(frozenset(ours))}}


def choices() -> tuple[str, ...]:
    """The names of the forms that may be asked for."""
    return tuple(form.name for form in by_name().values() if not form.by_mapping)


def form_named(name: str) -> Form:
    """The form of a name."""
    return by_name()[name]


def is_form(name: str) -> bool:
    """Whether it is the name of a form: what others recorded has that in place of a definition's fingerprint."""
    return name in by_name()


def form_of(file_name: str, begin: bytes) -> Form | None:
    """The form of a file, by its name (without the ending of its compression) and its first bytes.

    Forms that share an ending are told apart by what is in a file; one that begins as its ending says is no log, though
    a line of a log lies in it.
    """
    forms = by_name().values()
    own = next((form for form in forms if form.endings and file_name.endswith(form.endings)), None)
    first = begin.lstrip().partition(b"\n")[0]
    for form in forms:
        if form.shared and file_name.endswith(form.shared) and form.looks_like(begin):
            if own is not None and own.looks_like(begin) and not form.looks_like(first):
                continue
            return form
    return own or next((form for form in forms if form.looks_like(begin)), None)


def is_of_traces(file_name: str) -> bool:
    """Whether a file in a directory is worth a look: its ending is that of some form, or of any log."""
    return (
        file_name == "log"
        or file_name.endswith(endings())
        or _ROTATED_LOG.search(file_name) is not None
    )


def endings() -> tuple[str, ...]:
    """The endings of files that are taken from a directory."""
    known = [e for form in by_name().values() for e in (*form.endings, *form.shared)]
    return tuple(dict.fromkeys([*known, *_GENERAL_LOG]))


def reader(form: str) -> EventReader | LogReader:
    """The module that reads a form."""
    found = form_named(form)
    module = found.imported(found.module)
    return cast("EventReader | LogReader", GuardedReader(form, module) if found.own else module)


def is_log(name: str) -> bool:
    """Whether it is the name of a form of logs: the definition of their events is called so."""
    return is_form(name) and form_named(name).log


def ends(form: str, path: Path) -> tuple[int, int] | None:
    """How far a file that may grow can be read: for good, and for now; None if only as a whole."""
    if not form_named(form).grows or compression(path):
        return None
    if (ends_of := getattr(reader(form), "ends", None)) is not None:
        found: tuple[int, int] | None = ends_of(path)
        return found
    end = last_line_end(path)
    return end, end


def event_reader(form: str) -> EventReader:
    """The reader of a form whose every line is an event by itself."""
    assert not form_named(form).log, form
    return cast("EventReader", reader(form))


def blocks(
    part: Part, tally: Tally, wanted: Callable[[Names], Ints] | None = None
) -> Iterator[Block]:
    """The events of a part; maybe without those near which no entity has a name that is wanted."""
    known = event_reader(part.form)
    if wanted is not None and form_named(part.form).skips:
        return cast("SkippingReader", known).read(part, tally, wanted)
    return known.read(part, tally)


def holes(part: Part, reason: str) -> tuple[Hole, ...]:
    """What of a part cannot be read; all of it where that is not known, for the given reason."""
    find: Callable[[Part], list[Hole]] = getattr(reader(part.form), "holes", text_lines.holes)
    found = () if part.holes else tuple(find(part))
    return found or (Hole(1, reason),)


def log_reader(form: str) -> LogReader:
    """The reader of a log."""
    assert form_named(form).log, form
    return cast("LogReader", reader(form))


def profile_named(form: str) -> Callable[[str, str], str] | None:
    """How a reader finds the profile of a machine that a release has; None if it knows no releases."""
    found: Callable[[str, str], str] | None = _of_releases(form, "profile_for")
    return found


def releases_of(form: str) -> Sequence[str] | None:
    """The releases that a reader knows, oldest first; None if it knows none."""
    found: Sequence[str] | None = _of_releases(form, "RELEASES")
    return found


def _of_releases(form: str, name: str) -> Any:
    known = by_name().get(form)
    if known is None or not known.releases:
        return None
    return getattr(known.imported(known.releases), name)


def recording_of(form: str, machine: str) -> Recording:
    """What a reader knows of how its events were recorded; all of it, if it says nothing."""
    of_machine = getattr(reader(form), "recording", None)
    found: Recording = Recording() if of_machine is None else of_machine(machine)
    return found
