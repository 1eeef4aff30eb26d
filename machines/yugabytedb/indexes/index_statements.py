"""CREATE INDEX and DROP INDEX as the clients see them, who wait until a statement is done."""

from __future__ import annotations

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, WEAK, Server
from stagewright.machines.yugabytedb.indexes.index_permissions import (
    IndexPermissions,
    permission_number,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    Bool,
    FlagVar,
    LeadsTo,
    Term,
    action,
    equivalent_drop,
    equivalents,
    flag,
    invariant,
    leads_to,
    liveness,
    only_when,
    require,
)


class IndexStatements(IndexPermissions):
    """One index, and the clients that created and dropped it.

    `seed`: as of `IndexPermissions`.
    """

    told_ready: FlagVar = flag()  # CREATE INDEX was answered: done
    told_dropped: FlagVar = flag()  # DROP INDEX was answered: done

    @action(by=CLIENT, fair=WEAK)
    def answer_create(self) -> None:
        """The client that waits for its index is told that it is ready."""
        require(~self.told_ready, "it was not told")
        require(self.permission == Permission.read_write_and_delete, "the index was built")
        self._is_fully_applied()
        self.told_ready = True

    @action(by=CLIENT, fair=WEAK)
    def answer_drop(self) -> None:
        """The client that waits is told that its index is gone."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        require(~self.told_dropped, "it was not told")
        self._is_gone()
        self.told_dropped = True

    def _is_fully_applied(self) -> None:
        require(self.fully_applied.is_none(), "clients are served what is stored")

    def _is_gone(self) -> None:
        require(self.is_gone(), "the index is gone")

    # -- promises ------------------------------------------------------------------------------------

    @invariant
    def ready_means_that_every_server_reads(self, s: Term[Server]) -> Bool:
        """CREATE INDEX is done when every server has the final permission (yugabyte-db #6234)."""
        ready = self.told_ready & (self.permission == Permission.read_write_and_delete)
        return ready.implies(self.learned[s] == Permission.read_write_and_delete)

    @invariant
    def dropped_means_gone(self) -> Bool:
        """DROP INDEX is done when the index is deleted (yugabyte-db #16163)."""
        return self.told_dropped.implies(self.is_gone())

    @invariant
    def answers_come_late(self) -> Bool:
        """Lemma: nobody is told that an index is ready which was not published."""
        published = permission_number(self.permission) >= 6
        return self.told_ready.implies(published | self.is_gone())

    @liveness
    def drops_are_answered(self) -> LeadsTo:
        """A client that waits until its index is gone is told so."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        return leads_to(self.is_gone(), self.told_dropped)

    @liveness
    def clients_are_answered(self) -> LeadsTo:
        """A client that waits for its index is told that it is ready, unless it is dropped first."""
        ready = self.permission == Permission.read_write_and_delete
        return leads_to(ready, self.told_ready | ~self.permission.column(lambda p: p.kept))

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(answer_create, "it was not told", because="a second answer says the same"),
        equivalent_drop(answer_drop, "it was not told", because="a second answer says the same"),
    )
