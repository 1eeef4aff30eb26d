"""How far the build of an index is, as a plain document: for shells, pages and programs."""

from __future__ import annotations

from collections.abc import Iterable

from stagewright.impl.indexes.messages import Build


def listed(builds: Iterable[Build]) -> list[Build]:
    """Those of indexes that are there, or that have failed: one that was dropped is forgotten once it is deleted."""
    return [b for b in builds if not (b.dropped and b.gone)]


def shown_build(build: Build) -> dict[str, object]:
    """How far an index is built; the estimate takes it that rows are read as fast as until now."""
    status = "NONE" if build.status is None else build.status.name.replace("_", "-").upper()
    dropped = status != "SUCCESS" and build.dropped
    if dropped or (status == "IN-PROGRESS" and build.gone):
        status = "DROPPED"  # before it was built, or had failed: the build does not go on
    done = 1.0 if status == "SUCCESS" else 0.0
    left: float | None = None
    if build.expected and status == "IN-PROGRESS":
        done = min(build.rows / build.expected, 1.0)
        left = round(build.elapsed * (1 - done) / done / 1000, 1) if done else None
    return {
        "index": build.name,
        "column": build.column,
        "unique": build.unique,
        "status": status,
        "deferred": build.waits and status == "IN-PROGRESS",
        "done": round(done, 3),
        "rows read": build.rows if build.expected or status == "IN-PROGRESS" else None,
        "seconds left": left,
        "error": "" if dropped else build.error,
        "dropped": build.dropped,
        "deleted": build.gone,
    }
