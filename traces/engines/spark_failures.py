"""What a failed Spark job says, in a line, and what may be done about it."""

from __future__ import annotations

import re

from stagewright.spec.errors import InputError, StagewrightError

_RAISED = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception)\b: .*)$", re.MULTILINE)
_REFUSED = re.compile(r"^\s*(?:\w+\.)*InputError: (.*?)(?:\n\s*help: (.*))?$", re.MULTILINE)

# What Spark, Java or the system say, and what that means.
_KNOWN = (
    (
        "Python worker exited unexpectedly",
        "a task failed on Spark again and again: its Python process died",
        "if the system killed it for want of memory, run fewer tasks at once: --workers",
    ),
    (
        "No space left on device",
        "a task failed on Spark: there is no space left on the device",
        "free space where Spark and its tasks keep temporary files (spark.local.dir, TMPDIR), or name a larger disk",
    ),
    (
        "OutOfMemoryError",
        "the Java process of Spark has too little memory",
        "give it more with --driver-memory, or on a cluster with spark.driver.memory and spark.executor.memory",
    ),
    (
        "ExecutorLostFailure",
        "a task failed on Spark again and again: the executor that ran it was lost",
        "if its machine killed it for want of memory, set spark.executor.memoryOverhead",
    ),
    (
        "Answer from Java side is empty",
        "the Java process of Spark died",
        "if the system killed it for want of memory, take less with --driver-memory",
    ),
)


class TaskError(StagewrightError):
    """A task fails on Spark however often it is run."""

    code = "SW502"


def failure(error: Exception, *, help: str, memory: str = "") -> StagewrightError:
    """The error that says why a job failed; `help` is for what is not known, `memory` for workers that died."""
    text = str(error)
    if found := _REFUSED.search(text):
        return InputError(found[1], help=found[2] or "")
    for sign, problem, mend in _KNOWN:
        if sign in text:
            died = memory if memory and sign == _KNOWN[0][0] else mend
            raised = [line for line in _RAISED.findall(text) if sign in line]
            where = f": {raised[-1]}" if raised and "OSError" in raised[-1] else ""
            return TaskError(problem + where, help=died)
    raised = _RAISED.findall(text) or [text.strip().partition("\n")[0]]
    return TaskError(f"a task failed on Spark: {raised[-1]}", help=help)
