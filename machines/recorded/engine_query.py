"""A query over the nodes of the view engine, as its coordinator and each node record it."""

from __future__ import annotations

from stagewright.spec import Actor, Bool, FlagVar, Machine, action, final, flag, require

COORDINATOR = Actor("node that coordinates the query")
NODE = Actor("node that answers")


class RecordedAnswer(Machine):
    """One answer, from the first node that is asked to its last row."""

    lacking: FlagVar = flag()  # a node did not answer, or its rows ended early
    ended: FlagVar = flag()

    @action(by=COORDINATOR)
    def ask(self, enough: Bool) -> None:
        """A node is asked; `enough`: for as many rows as all of the answer could be, from the first one on."""
        require(enough, "the node is asked for all rows that the answer may need")

    @action(by=COORDINATOR)
    def lack_node(self) -> None:
        """A node does not answer."""
        require(~self.ended, "the answer has not ended")
        self.lacking = True

    @action(by=COORDINATOR)
    def give_row(self, follows: Bool) -> None:
        """A row goes to the client; `follows`: in the order of the query, and each group once."""
        require(~self.ended, "the answer has not ended")
        require(follows, "the row follows the one before it")

    @action(by=COORDINATOR)
    def end(self, named: Bool) -> None:
        """The answer ends; `named`: the client learns which nodes' rows are missing."""
        require(~self.lacking | named, "nodes whose rows are missing are named")
        self.ended = True

    @final
    def answered(self) -> Bool:
        """The client has its answer."""
        return self.ended


class RecordedStream(Machine):
    """The rows that a node has open for one query."""

    opened: FlagVar = flag()
    sent: FlagVar = flag()  # some batch

    @action(by=NODE)
    def open(self, serves: Bool) -> None:
        """The node takes a snapshot; `serves`: it has each partition that is wanted from it."""
        require(serves, "the node serves each partition that is wanted")
        self.opened = True

    @action(by=NODE)
    def send_next(self, in_turn: Bool, wanted: Bool) -> None:
        """A batch of new rows goes out; `in_turn`: it is the one after the last; `wanted`: rows of what was asked."""
        require(self.opened, "the stream is open")
        require(in_turn, "the batch is the next one")
        require(wanted, "its rows are of partitions that were asked for")
        self.sent = True

    @action(by=NODE)
    def send_again(self, same: Bool) -> None:
        """The last batch is asked for again; `same`: it goes out as before."""
        require(self.sent, "a batch was sent")
        require(same, "the batch is the same")
