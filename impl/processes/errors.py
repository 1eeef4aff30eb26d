"""What can go wrong between processes."""

from __future__ import annotations

from stagewright.spec.errors import StagewrightError


class WireError(StagewrightError):
    """A message to a node or a client is not in this program's protocol, or its sender does not know the secret."""

    code = "SW418"


class ClusterError(StagewrightError):
    """The cluster of a directory cannot do what is asked: there is none, or no node answers, or the cluster refuses."""

    code = "SW419"


class OperationFailedError(ClusterError):
    """The cluster refused, or could not do, what was asked of it; the message says why."""
