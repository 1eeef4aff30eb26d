"""CDC generations as the logs and tables of a cluster tell of them, in the order in which they were committed.

Source: design document 003 (cdc), "Generations". ScyllaDB says "committed new CDC generation, ID: (…, …)", and keeps
`committed_cdc_generations` in `system.topology`.
"""

from __future__ import annotations

from stagewright.spec import Actor, Bool, FlagVar, Machine, action, flag, invariant, require

COORDINATOR = Actor("topology coordinator")


class LoggedGenerations(Machine):
    """The generations of one cluster; whichever coordinator commits them."""

    committed: FlagVar = flag()  # some generation
    disordered: FlagVar = flag()  # one is to operate before another one that was there

    @action(by=COORDINATOR)
    def commit(self) -> None:
        """A generation is committed whose timestamp is after those of all before it."""
        self.committed = True

    @action(by=COORDINATOR)
    def commit_earlier(self) -> None:
        """A generation is committed whose timestamp is not after that of one before it."""
        require(~self.committed, "no generation with a later timestamp was committed before")
        self.disordered = True

    @invariant
    def generations_follow_each_other(self) -> Bool:
        """003: a generation operates until T', "the following generation's timestamp"."""
        return self.disordered.implies(~self.committed)
