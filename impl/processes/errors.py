"""What can go wrong between processes."""

from __future__ import annotations

from stagewright.spec.errors import StagewrightError


class WireError(StagewrightError):
    """What arrives is not what this program speaks, or comes from somebody who may not speak here."""

    code = "SW418"


class ClusterError(StagewrightError):
    """The cluster of a directory cannot do what is asked: there is none, or a node does not answer."""

    code = "SW419"
