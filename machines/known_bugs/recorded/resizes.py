"""Mistakes put back into `RecordedResize`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.recorded.resizes import RecordedResize
from stagewright.spec import Bool, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "001-698",
    "design document 001: a tablet in transition has a state of its own; a resize waits for its end",
    breaks=RecordedResize.resizes_wait_until_all_is_prepared,
)
class ResizesWaitForNoMove(RecordedResize):
    """A resize that all replicas were ready for was carried out while one of its tablets moved."""

    @action
    def finish(self, drained: Bool, kept: Bool) -> None:
        """There are new tablets instead, once nobody is awaited."""
        require(~self.withdrawn, "it was not decided otherwise")
        require(self.awaited == 0, "no replica holds it up")
        require(drained, "the barrier of the finalization has passed")
        require(kept, "the new tablets lie where the old ones do")
        self.early = self.early | (self.awaited > 0) | ~drained
        self.astray = self.astray | ~kept
        self.done = True


BUGS = known_bugs_in(globals())
