"""What runs at the replicas of tablets that migrate: a stage's actions, and maintenance of their own.

The topology coordinator asks replicas to stream, to clean up and to repair; what it asked may still run, and
answers may still be on their way, when the stage has moved on or the coordinator is another.
"""

from __future__ import annotations

from stagewright.machines.tablet_migration import COORDINATOR, TabletMigration
from stagewright.machines.tablet_nodes import NETWORK, Node, Tablet, TabletNodes
from stagewright.machines.tablet_stages import Kind, Stage
from stagewright.spec import (
    Bool,
    Fairness,
    Term,
    action,
    choose,
    equivalent,
    require,
    some,
)

WEAK = Fairness.WEAK


class TabletActions(TabletNodes):
    """Streaming, cleanup and repair on behalf of a stage, and compaction."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask_dead_node(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The coordinator starts the stage's action although a node that it needs is down."""
        with equivalent("an action that is started in vain fails, and is tried again"):
            require(self._needs(n, t) & self.down.has(n), "a node that the action needs is down")
        with equivalent("a node is needed where the stage has an action"):
            self.tablets[t].start_operation()
        with equivalent("a second migration, a crash and a lost answer tell: in the tests"):
            self.copied[t] = False
            self.cleaned[t] = False

    @action(by=COORDINATOR, fair=WEAK)
    def fail_unanswered(self, t: Term[Tablet]) -> None:
        """The action fails because a node that it needs is down, or has been and knows nothing of it."""
        dead = some(self._needs(n, t) & self.down.has(n) for n in Node)
        with equivalent("an action that is taken for failed is tried again, or undone"):
            require(dead | ~self._will_be_answered(t), "nobody can answer")
        self.tablets[t].fail_operation()

    @action(by=NETWORK, spends=TabletMigration.failures)
    def lose_answer(self, t: Term[Tablet]) -> None:
        """The answer of a running action is lost: the coordinator takes it for failed, but it goes on."""
        self.tablets[t].fail_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self, t: Term[Tablet], pending: Term[Node]) -> None:
        """The pending replica, having learned the stage, starts to stream, or joins what it started."""
        with equivalent("the stage is streaming, which has an action and no barrier"):
            self.tablets[t].start_operation()
        require(self.tablets[t].stage == Stage.streaming, "stage is streaming")
        require(self._is_pending(pending, t), "the node is the pending replica")
        with equivalent("what it streams before it knows the session is refused"):
            self._can_serve(pending, t)
        self.copied[t] = self.copied[t] & (self.streaming_at[t] == pending)
        self.streaming_at[t] = pending

    @action(fair=WEAK)
    def send_chunk(self, t: Term[Tablet], source: Term[Node], target: Term[Node]) -> None:
        """A replica reads its rows and sends them to the one that streams."""
        require(self.streaming_at[t] == target, "the target streams")
        require(
            self.replicas[t].has(source) & ~self.down.has(source), "the source is a live replica"
        )
        stays = self.next[t].has(source)
        has_leaving = self.tablets[t].kind == Kind.migration
        with equivalent("where a tablet has one replica, that is the one that leaves"):
            require(~(stays & has_leaving), "a migration streams from the leaving replica")
        with equivalent("to send again loses what was sent before"):
            require(self.chunk[t].target.is_none() & ~self.copied[t], "nothing is on the wire")
        self.chunk[t].target = target
        self.chunk[t].value = self.data[t][source]

    @action(fair=WEAK)
    def receive_chunk(self, t: Term[Tablet], target: Term[Node]) -> None:
        """The target stores a chunk of a session that is open as far as it has learned."""
        chunk = self.chunk[t]
        require(chunk.target == target, "a chunk is on its way to the node")
        with equivalent("who knows an open session has storage"):
            ready = ~self.down.has(target) & self.storage[t].has(target)
            require(ready, "the node is up and has storage")
        if self.release.sessions:
            with equivalent("who was asked to stream has learned of the session"):
                is_open = self.view[target][t].session & ~chunk.closed
                require(is_open, "its session is open, as far as the node has learned")
        self.data[t][target] = choose(
            self.data[t][target] < chunk.value, chunk.value, self.data[t][target]
        )
        self.copied[t] = self.streaming_at[t] == target
        self._take_off_the_wire(t)

    @action(by=NETWORK, fair=WEAK)
    def drop_chunk(self, t: Term[Tablet]) -> None:
        """A chunk whose stream is over is refused or lost in the end."""
        with equivalent("nothing is lost"):
            require(self.chunk[t].target.is_some(), "a chunk is on the wire")
        require(self.chunk[t].closed | self.streaming_at[t].is_none(), "its stream is over")
        self._take_off_the_wire(t)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """The pending replica answers that everything was copied."""
        require(self.copied[t], "all was copied")
        require(self.tablets[t].stage == Stage.streaming, "stage is streaming")
        self.tablets[t].finish_operation()
        with equivalent("what is streamed after the session is refused"):
            self.streaming_at[t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica that is not to stay is asked to remove its rows."""
        with equivalent("a replica that is not meant refuses"):
            require(self._to_be_cleaned(n, t), "the node's replica is to be cleaned up")
        with equivalent("an excluded node does not answer"):
            require(~self.excluded.has(n), "the node is not excluded")
        with equivalent("a stage in which a replica is to be cleaned up has an action"):
            self.tablets[t].start_operation()
        self.cleanup_at[t] = n
        self.cleaned[t] = False

    @action(fair=WEAK)
    def clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica, having learned the stage, checks that it is meant and removes its rows."""
        with equivalent("a replica that is to be cleaned up may be so unasked"):
            require(self.cleanup_at[t] == n, "cleanup was asked of the node")
        with equivalent("a node is one stage behind at most, as it has passed the last barrier"):
            self._can_serve(n, t)
        with equivalent("one request is on its way at a time, and its stage ends with its answer"):
            require(self._to_be_cleaned(n, t), "the node's replica is to be cleaned up")
        self._waits_for_local_users(t, n)
        self._remove_rows(t, n)
        with equivalent("to clean up what is clean changes nothing"):
            self.cleanup_at[t] = None
        self.cleaned[t] = True

    @action(fair=WEAK)
    def refuse_cleanup(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A stale request to clean up is refused: the stage has moved on."""
        require(self.cleanup_at[t] == n, "cleanup was asked of the node")
        require(~self._to_be_cleaned(n, t) | self.excluded.has(n), "it is stale")
        with equivalent("it will be refused again"):
            self.cleanup_at[t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def finish_cleanup(self, t: Term[Tablet]) -> None:
        """The replica answers that its rows are gone."""
        require(self.cleaned[t], "rows are gone")
        with equivalent("an answer is forgotten when the next stage's action is asked for"):
            cleans = self.tablets[t].stage.any_of(Stage.cleanup, Stage.cleanup_target)
            require(cleans, "stage is a cleanup")
            self.cleaned[t] = False
        with equivalent("an answer that comes late is true still"):
            self.tablets[t].finish_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def run_repair(self, t: Term[Tablet]) -> None:
        """The replicas to read from are asked to repair; all are in step, as writes go to all of them."""
        require(
            self.tablets[t].stage.any_of(Stage.repair, Stage.rebuild_repair), "stage is a repair"
        )
        with equivalent("the stages of a repair have an action, and wait for no barrier"):
            self.tablets[t].start_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_repair_run(self, t: Term[Tablet]) -> None:
        """The replicas answer that they are repaired."""
        require(
            self.tablets[t].stage.any_of(Stage.repair, Stage.rebuild_repair), "stage is a repair"
        )
        with equivalent("an answer that comes late is true still"):
            self.tablets[t].finish_operation()

    # -- maintenance -----------------------------------------------------------------------------------

    @action(spends=TabletNodes.compactions)
    def begin_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A node starts to rewrite what its replica stores, as to split the tablet."""
        with equivalent("compactions are of what is there, and change nothing of it"):
            require(~self.down.has(n), "node is up")
            stores = self.storage[t].has(n) & (self.data[t][n] > 0)
            require(stores, "its replica stores something")
            require(self.compacting[t][n] == 0, "it does not compact yet")
            self.compacting[t][n] = self.data[t][n]

    @action(fair=WEAK)
    def end_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """What was rewritten takes its place."""
        newer = self.data[t][n] < self.compacting[t][n]
        with equivalent("compactions are of what is there, and change nothing of it"):
            require(self.compacting[t][n] > 0, "the node compacts")
            self.data[t][n] = choose(newer, self.compacting[t][n], self.data[t][n])
        self.compacting[t][n] = 0

    # -- what recurs -----------------------------------------------------------------------------------

    def _remove_rows(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica's rows go; its storage stays until the transition's last stage."""
        self.data[t][n] = 0

    def _waits_for_local_users(self, t: Term[Tablet], n: Term[Node]) -> None:
        require(self.compacting[t][n] == 0, "nothing on the node uses the replica")

    def _is_pending(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return self.next[t].has(n) & ~self.replicas[t].has(n)

    def _is_leaving(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return self.replicas[t].has(n) & ~self.next[t].has(n)

    def _to_be_cleaned(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        stage = self.tablets[t].stage
        leaves = (stage == Stage.cleanup) & self._is_leaving(n, t)
        return leaves | ((stage == Stage.cleanup_target) & self._is_pending(n, t))

    def _needs(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """The action of the tablet's stage cannot be done without node `n`."""
        tablet = self.tablets[t]
        streams = tablet.stage.any_of(Stage.streaming, Stage.rebuild_repair)
        source = choose(
            tablet.kind == Kind.migration, self._is_leaving(n, t), self.replicas[t].has(n)
        )
        return (streams & (source | self._is_pending(n, t))) | self._to_be_cleaned(n, t)

    def _will_be_answered(self, t: Term[Tablet]) -> Bool:
        stage = self.tablets[t].stage
        streams = (stage == Stage.streaming) & self.streaming_at[t].is_some()
        cleans = stage.any_of(Stage.cleanup, Stage.cleanup_target)
        cleans = cleans & (self.cleanup_at[t].is_some() | self.cleaned[t])
        return streams | cleans | stage.any_of(Stage.repair, Stage.rebuild_repair)

    def _can_serve(self, n: Term[Node], t: Term[Tablet]) -> None:
        require(~self.down.has(n), "node is up")
        require(self._current(n, t), "node has read what is committed")

    def _take_off_the_wire(self, t: Term[Tablet]) -> None:
        with equivalent("what comes twice is stored twice; nobody looks at the rest"):
            self.chunk[t].target = None
            self.chunk[t].value = 0
            self.chunk[t].closed = False
