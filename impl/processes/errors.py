"""What can go wrong between processes."""

from __future__ import annotations

from stagewright.spec.errors import StagewrightError


class WireError(StagewrightError):
    """What arrives at a node, or at a client, is not what this program speaks, or its sender does not know the secret."""

    code = "SW418"


class ClusterError(StagewrightError):
    """The cluster of a directory cannot do what is asked: there is none, or no node answers, or the cluster refuses."""

    code = "SW419"


class OperationFailedError(ClusterError):
    """The cluster refused, or could not do, what was asked of it; the message says why."""
