"""An index of the view engine as its group process records it: updates, headers, cleanup, files, transfers."""

from __future__ import annotations

from stagewright.spec import Actor, Bool, FlagVar, Machine, action, flag, invariant, require

UPDATER = Actor("updater")
CLEANER = Actor("cleaner")
COMPACTOR = Actor("compactor")
GROUP = Actor("group process")


class RecordedIndex(Machine):
    """One index of a node. The parameters say what was so as something was written or answered."""

    updating: FlagVar = flag()
    cleaning: FlagVar = flag()
    copying: FlagVar = flag()  # a compactor copies a snapshot, and what is written since
    astray: FlagVar = flag()  # what is copied is of a history that was left since

    @action(by=GROUP)
    def open(self) -> None:
        """A process finds the index in its file, or begins it; what was under way is over."""
        self.updating = False
        self.cleaning = False
        self.copying = False

    # -- headers -------------------------------------------------------------------------------------------

    @action(by=GROUP)
    def write_header(self, listed: Bool, whole: Bool, waiting: Bool) -> None:
        """A header is committed.

        `listed`: it has a state for each partition that a tree has rows of; `whole`: of each partition the trees
        have a whole snapshot; `waiting`: all that is pending waits for a cleanup.
        """
        require(listed, "the header has a state for each partition with rows")
        require(whole, "the trees have whole snapshots of documents")
        require(waiting, "what is pending waits for a cleanup")

    # -- the updater ---------------------------------------------------------------------------------------

    @action(by=UPDATER)
    def start_update(self) -> None:
        """The updater starts."""
        require(~self.updating, "no updater runs")
        require(~self.cleaning, "no cleaner runs")
        self.updating = True

    @action(by=UPDATER)
    def write_documents(self, replaced: Bool) -> None:
        """Documents go into the trees; `replaced`: what the back index has of them goes, or is replaced."""
        require(self.updating, "the updater runs")
        require(replaced, "the rows that the documents had before are removed")

    @action(by=UPDATER)
    def go_back(self, old_enough: Bool, none_ahead: Bool) -> None:
        """Documents were lost; the index goes back.

        `old_enough`: to where it has none of these; `none_ahead`: and no partition gets what it does not have now.
        """
        require(self.updating, "the updater runs")
        require(old_enough, "nothing of what was lost is left")
        require(none_ahead, "no other partition is ahead of where it was")
        self.astray = self.copying

    @action(by=UPDATER)
    def end_update(self) -> None:
        """The updater ends."""
        require(self.updating, "the updater runs")
        self.updating = False

    # -- the cleaner ---------------------------------------------------------------------------------------

    @action(by=CLEANER)
    def start_cleanup(self) -> None:
        """The cleaner starts."""
        require(~self.updating & ~self.cleaning & ~self.copying, "the cleaner works alone")
        self.cleaning = True

    @action(by=CLEANER)
    def end_cleanup(self) -> None:
        """The cleaner ends."""
        require(self.cleaning, "the cleaner runs")
        self.cleaning = False

    # -- the compactor -------------------------------------------------------------------------------------

    @action(by=COMPACTOR)
    def start_copy(self) -> None:
        """The compactor has its snapshot."""
        require(~self.copying, "no compactor runs")
        self.copying = True
        self.astray = False

    @action(by=COMPACTOR)
    def switch_file(self, numbers: Bool, rows: Bool) -> None:
        """The new file is the index.

        `numbers`: it has the sequence numbers of the old one; `rows`: and as many rows of what is not in cleanup.
        """
        require(self.copying, "the compactor runs")
        require(~self.astray, "what is copied is of the present history")
        require(numbers, "the new file is as far as the old one")
        require(rows, "the new file has the rows of the old one")
        self.copying = False

    @action(by=COMPACTOR)
    def end_copy(self) -> None:
        """The compactor gives up."""
        require(self.copying, "the compactor runs")
        self.copying = False

    # -- queries and transfers -----------------------------------------------------------------------------

    @action(by=GROUP)
    def answer(self, current: Bool, once: Bool) -> None:
        """A snapshot is given to a query.

        `current`: it has all that stale=false asks for; `once`: no partition is answered by both indexes.
        """
        require(current, "the index has what was there when the query came")
        require(once, "one of the two indexes answers for a partition")

    @action(by=GROUP)
    def rest(self, settled: Bool) -> None:
        """The group process has nothing to do; `settled`: no step of a transfer is due."""
        require(settled, "no step of a transfer is due")

    @invariant
    def the_cleaner_works_alone(self) -> Bool:
        """Cleanup and updates never write at the same time."""
        return self.cleaning.implies(~self.updating)
