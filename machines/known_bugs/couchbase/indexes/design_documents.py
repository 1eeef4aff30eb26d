"""Mistakes put back into `DesignDocuments`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import (
    CLIENT,
    SERVER,
    WEAK,
    Definition,
    DesignDocument,
    DesignDocuments,
    File,
)
from stagewright.spec import Bool, Term, action, choose, each, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

DETAILS = "design document 004, details on index structures"
STRUCTURES = 'design document 004, "Details on index structures"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-10",
    DETAILS,
    breaks=DesignDocuments.equal_definitions_share_a_file,
    budgets={DesignDocuments.queries: 0},
)
class TwoDocumentsTwoFiles(DesignDocuments):
    """Where all design documents have one definition, each file of theirs is built by it, and queries take either."""

    def _names(
        self, file: Term[File], d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        shared = every(self.definition[other] == definition for other in DesignDocument)
        return super()._names(file, d, definition) | shared | (self.rows[file] == definition)


@known_bug(
    "004-11",
    DETAILS,
    breaks=DesignDocuments.an_index_is_in_a_file,
    budgets={DesignDocuments.queries: 0},
)
class TheIndexOutlivesItsFile(DesignDocuments):
    """The file is unlinked, and its index goes on to be known as built."""

    @action(by=SERVER, fair=WEAK)
    def remove_file(self, file: Term[File]) -> None:
        """The group ends, the file goes."""
        require(self.files.has(file), "there is the file")
        require(~self._is_used(file), "no design document has its definition")
        require(~self._is_read(file), "no query reads it")
        self.files.discard(file)
        self.groups.discard(file)


@known_bug("004-44", DETAILS, breaks=DesignDocuments.a_file_stays_while_it_is_needed)
class ChangesEmptyTheFile(DesignDocuments):
    """A definition that is changed empties the file of the old one, which another document has, too: it has no index
    until the file is built again.
    """

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A client writes a design document; a file of its old definition that nobody reads is emptied."""
        changes = self.definition[d] != definition
        for file in each(File):
            old = some(self._names(file, d, own) for own in self.definition[d])
            emptied = changes & old & ~self._is_read(file)
            self.rows[file] = choose(emptied, None, self.rows[file])
        self.definition[d] = definition


@known_bug(
    "004-131",
    'design document 004: "without affecting the running query request"',
    breaks=DesignDocuments.queries_outlast_their_definitions,
)
class DeletionEndsQueries(DesignDocuments):
    """The queries of a design document ended when that was deleted."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def delete(self, d: Term[DesignDocument]) -> None:
        """A client deletes a design document."""
        super().delete(d)
        self._forget_query()


@known_bug("004-152", DETAILS, breaks=DesignDocuments.queries_outlast_their_definitions)
class GroupsEndUnderTheirQueries(DesignDocuments):
    """A group server that no design document names ended at once, and with it the queries that it had."""

    @action(by=SERVER, fair=WEAK)
    def end_group(self, file: Term[File]) -> None:
        """Its file goes later."""
        require(self.groups.has(file), "its group server runs")
        require(~self._is_used(file), "no design document has its definition")
        self.groups.discard(file)
        self.asked = choose(self.reading == file, None, self.asked)
        self.reading = choose(self.reading == file, None, self.reading)


@known_bug(
    "004-179",
    'design document 004, "Details on index structures"',
    breaks=DesignDocuments.groups_outlast_other_definitions,
    budgets={DesignDocuments.crashes: 0},
)
class GroupsEndWithADefinition(DesignDocuments):
    """A design document is changed, and the group server of its old definition ends, though a query reads, or another has it."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        for file in each(File):
            old = some(self._names(file, d, before) for before in self.definition[d])
            self.groups.put(file, self.groups.has(file) & ~old)
        self.definition[d] = definition


@known_bug("004-206", STRUCTURES, breaks=DesignDocuments.groups_outlast_other_definitions)
class GroupsEndWhenTheirIndexIsBuilt(DesignDocuments):
    """A group server builds its index, and ends."""

    @action(fair=WEAK)
    def build(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> None:
        super().build(d, definition, file)
        self.groups.discard(file)


@known_bug("K1-name", DETAILS, breaks=DesignDocuments.equal_definitions_share_a_file)
class FilesAreNamedByDocument(DesignDocuments):
    """The signature was of the name of a design document, too: each had a file of its own."""

    def _names(
        self, file: Term[File], d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        return (file == File.main_da1eaf) == d.is_first


@known_bug("K1-query", DETAILS, breaks=DesignDocuments.a_query_reads_what_it_asked_for)
class FilesAreRemovedUnderQueries(DesignDocuments):
    """The file of a changed definition was removed at once, with a query that read it."""

    def _is_read(self, file: Term[File]) -> Bool:
        return super()._is_read(file) & self._is_used(file)


@known_bug("K1-shared", DETAILS, breaks=DesignDocuments.a_file_stays_while_it_is_needed)
class SharedFilesAreRemoved(DesignDocuments):
    """A design document was deleted with its file, although another one had the same definition."""

    def _is_used(self, file: Term[File]) -> Bool:
        return every(
            some(self._names(file, d, definition) for definition in self.definition[d])
            for d in DesignDocument
        )


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-205",
    STRUCTURES,
    breaks=DesignDocuments.definitions_are_indexed,
)
class GroupsStartToBuild(DesignDocuments):
    """A group server starts where there is no index: after a restart nobody goes on with those that are built."""

    @action(by=SERVER, fair=WEAK)
    def start_group(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        built = some(self._names(f, d, definition) & self.rows[f].is_some() for f in each(File))
        require(~built, "there is no index")
        super().start_group(d, definition)


@known_bug(
    "K1-asked",
    DETAILS,
    breaks=DesignDocuments.definitions_are_indexed,
    budgets={DesignDocuments.crashes: 0},
)
class GroupsStartWithTheFirstQuery(DesignDocuments):
    """A group server started when a query came: a definition that nobody asked for had no index."""

    @action
    def start_group(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A request may come, or not."""
        super().start_group(d, definition)


@known_bug("K1-left", DETAILS, breaks=DesignDocuments.unused_files_are_removed)
class FilesAreLeftByACrash(DesignDocuments):
    """Files were removed with their group: after a crash nobody knew those that no definition names."""

    def _is_used(self, file: Term[File]) -> Bool:
        return super()._is_used(file) | ~self.groups.has(file)


@known_bug("K1-open", DETAILS, breaks=DesignDocuments.queries_end)
class QueriesFollowTheDefinition(DesignDocuments):
    """A query waited for the index of the new definition when its own was changed, and so for ever."""

    @action(fair=WEAK)
    def answer(self) -> None:
        """The query has read its file to the end, and its definition is still there."""
        require(self.reading.is_some(), "a query reads a file")
        current = some(self.definition[d] == self.asked for d in DesignDocument)
        require(current, "its definition is still there")
        self._end_query()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-12",
    'design document 004: a server "can hold many design documents"',
    breaks=DesignDocuments.what_is_built_can_be_queried,
)
class QueriesNeedARunningGroup(DesignDocuments):
    """After a restart a query is refused until something else has started the group server of its index."""

    @action(by=CLIENT, spends=DesignDocuments.queries)
    def ask(self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]) -> None:
        """A query is delegated to a group server that runs."""
        super().ask(d, definition, file)
        require(self.groups.has(file), "its group server runs")


@known_bug(
    "004-41",
    "design document 004: several definitions are present at a time",
    breaks=DesignDocuments.definitions_are_deleted_under_queries,
)
class DeletedWhenNobodyReads(DesignDocuments):
    """A design document cannot be deleted while a query reads its index, or another one."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def delete(self, d: Term[DesignDocument]) -> None:
        """No query goes on."""
        super().delete(d)
        require(self.reading.is_none(), "no query goes on")


@known_bug("004-74", DETAILS, breaks=DesignDocuments.indexes_are_built_independently)
class BuildsWaitForQueries(DesignDocuments):
    """No index was built while a query was going on, though that reads another file."""

    @action(fair=WEAK)
    def build(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> None:
        """The group server indexes the documents when nobody queries any."""
        super().build(d, definition, file)
        require(self.reading.is_none(), "no query is going on")


@known_bug("004-207", STRUCTURES, breaks=DesignDocuments.indexes_are_built_independently)
class IndexesAreBuiltInTheOrderOfTheirNames(DesignDocuments):
    """The index of a design document is built when those of all before it are."""

    @action(fair=WEAK)
    def build(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> None:
        super().build(d, definition, file)
        for other in DesignDocument:
            built = self.definition[other].is_none() | some(
                self.rows[f] == self.definition[other] for f in each(File)
            )
            require((other < d).implies(built), "the earlier ones are built")


@known_bug(
    "004-220",
    STRUCTURES,
    breaks=DesignDocuments.nobody_waits_for_a_query,
)
class GroupsStartWhenNobodyReads(DesignDocuments):
    """No group server was started while a query was going on: a definition that was changed then had no index."""

    @action(by=SERVER, fair=WEAK)
    def start_group(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A request comes for a definition, and no query reads."""
        super().start_group(d, definition)
        require(self.reading.is_none(), "no query reads a file")


@known_bug(
    "004-221",
    STRUCTURES,
    breaks=DesignDocuments.files_are_removed_while_others_are_read,
)
class FilesAreRemovedWhenNothingIsRead(DesignDocuments):
    """A file was removed when no query was going on, for the server did not know which one it reads: one always is."""

    def _is_read(self, file: Term[File]) -> Bool:
        return self.reading.is_some() & self.files.has(file)


@known_bug("K1-locked", DETAILS, breaks=DesignDocuments.nobody_waits_for_a_query)
class QueriesLockTheDefinition(DesignDocuments):
    """A design document could not be changed while a query read its index."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A client writes a design document when no query goes on."""
        require(self.reading.is_none(), "no query goes on")
        self.definition[d] = definition


@known_bug(
    "004-243",
    STRUCTURES,
    breaks=DesignDocuments.queries_and_definitions_wait_for_no_index,
    budgets={DesignDocuments.crashes: 0},
)
class QueriesEndWhenAllIsBuilt(DesignDocuments):
    """A query gives its file back when the new one is built, so that the server has an index to go over to."""

    @action(fair=WEAK)
    def answer(self) -> None:
        """No group server builds an index."""
        builds = some(self.groups.has(file) & self.rows[file].is_none() for file in each(File))
        require(~builds, "every index is built")
        super().answer()


@known_bug(
    "004-250",
    STRUCTURES,
    breaks=DesignDocuments.queries_and_definitions_wait_for_no_index,
)
class NoNewFileBesideAnUnusedOne(DesignDocuments):
    """A definition that was changed had no group server until the file of the older one was removed, which a query may read."""

    @action(by=SERVER, fair=WEAK)
    def start_group(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A request comes for a definition, and every file is one that is used."""
        used = every(self.files.has(file).implies(self._is_used(file)) for file in each(File))
        require(used, "no file is left of an older definition")
        super().start_group(d, definition)


@known_bug(
    "004-263",
    'design document 004: "If multiple design documents are defined with same definition"',
    breaks=DesignDocuments.definitions_are_changed_to_any_other,
)
class NoSecondOfADefinition(DesignDocuments):
    """A design document was refused if another one had the same definition, so that no two of them have one file."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A client writes a design document that is like no other."""
        alike = some(self.definition[other] == definition for other in DesignDocument)
        require(~alike, "no design document has the definition")
        super().define(d, definition)


@known_bug(
    "004-264",
    'design document 004: "if a ddoc definition is changed while a query is under processing"',
    breaks=DesignDocuments.definitions_are_changed_to_any_other,
)
class DeletedBeforeItIsChanged(DesignDocuments):
    """A definition could not be changed: its design document had to be deleted, and written anew."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A client writes a new design document."""
        require(self.definition[d].is_none(), "it is new")
        super().define(d, definition)


BUGS = known_bugs_in(globals())
