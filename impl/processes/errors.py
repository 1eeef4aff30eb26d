"""What can go wrong between processes."""

from __future__ import annotations

from stagewright.impl.node.messages import Level, Unavailable
from stagewright.spec.errors import StagewrightError


class WireError(StagewrightError):
    """A message to a node or a client is not in this program's protocol, or its sender does not know the secret."""

    code = "SW418"


class ClusterError(StagewrightError):
    """The cluster of a directory cannot do what is asked: there is none, or no node answers, or the cluster refuses."""

    code = "SW419"


class OperationFailedError(ClusterError):
    """The cluster refused, or could not do, what was asked of it; the message says why."""


class ReplicasUnavailableError(ClusterError):
    """Too few replicas are alive for a request's level, as a node said at once, which then did nothing.

    `in_doubt`: the request is a write, and was sent before to a node that did not say what became of it.
    """

    def __init__(self, short: Unavailable, *, writes: bool, in_doubt: bool = False) -> None:
        self.short = short
        self.in_doubt = writes and in_doubt
        told = "an earlier attempt may have written it" if in_doubt else "nothing was written"
        super().__init__(f"{short}; {told}" if writes else str(short), help=_help(short))


_LOWER = {Level.all: "quorum or one", Level.quorum: "one"}


def _help(short: Unavailable) -> str:
    lower = _LOWER.get(short.level, "") if short.alive else ""
    ask = f", or ask for a lower level (`consistency`: {lower})" if lower else ""
    if not short.down:
        return f"let nodes join (`stagewright cluster add`){ask}"
    return f"start who is down (`stagewright cluster start`){ask}"
