"""Bugs of design documents: whose file is whose, and when one is removed."""

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
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

DETAILS = "design document 004, details on index structures"


@known_bug("K1-name", DETAILS, breaks=DesignDocuments.equal_definitions_share_a_file)
class FilesAreNamedByDocument(DesignDocuments):
    """The signature was of the name of a design document, too: each had a file of its own."""

    def _names(
        self, file: Term[File], d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        del definition
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


@known_bug("K1-left", DETAILS, breaks=DesignDocuments.unused_files_are_removed)
class FilesAreLeftByACrash(DesignDocuments):
    """Files were removed with their group: after a crash nobody knew those that no definition names."""

    def _is_used(self, file: Term[File]) -> Bool:
        return super()._is_used(file) | ~self.groups.has(file)


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


@known_bug("K1-locked", DETAILS, breaks=DesignDocuments.definitions_change_under_queries)
class QueriesLockTheDefinition(DesignDocuments):
    """A design document could not be changed while a query read its index."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A client writes a design document when no query goes on."""
        require(self.reading.is_none(), "no query goes on")
        self.definition[d] = definition


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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
