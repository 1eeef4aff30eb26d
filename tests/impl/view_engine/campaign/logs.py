"""What the logs of a run say, read and judged as `stagewright validate` does it with Couchbase's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.traces.readers.judged_log import judged

FORM = "couchbase-log"


class WrongLogError(AssertionError):
    """The text names the machines and entities, and has the records up to the first wrong one."""


def check_logs(logs: Mapping[str, Sequence[str]], folder: Path) -> int:
    """Raises WrongLogError; gives how many events the logs tell. Every line has to be understood."""
    paths: list[Path] = []
    for node, records in logs.items():
        if records:
            paths.append(folder / f"{node}.couchdb.log")
            paths[-1].write_text("".join(records))
    found = judged(FORM, paths)
    if found.reasons:
        raise WrongLogError(f"records that cannot be read: {found.reasons[:3]}")
    if found.wrong:
        machine, entity, part, line = found.wrong[0]
        text = paths[part].read_text().split("\n")
        raise WrongLogError(
            f"{machine}: no run explains {entity} at line {line}:\n"
            + "\n".join(text[max(0, line - 40) : line + 25])
        )
    return len(found.read.events)
