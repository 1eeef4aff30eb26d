"""What runs at the replicas of tablets that migrate: a stage's actions, and maintenance of their own.

The topology coordinator asks replicas to stream, to clean up and to repair; what it asked may still run, and
answers may still be on their way, when the stage has moved on or the coordinator is another.
"""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_migration import COORDINATOR, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_nodes import (
    NETWORK,
    Chunk,
    Node,
    Tablet,
    TabletNodes,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import (
    Bool,
    Fairness,
    Term,
    action,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    require,
    some,
)

WEAK = Fairness.WEAK


class TabletActions(TabletNodes):
    """Streaming, cleanup and repair on behalf of a stage, and compaction."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask_dead_node(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The coordinator starts the stage's action although a node that it needs is down."""
        require(self._needs(n, t) & self.down.has(n), "a node that the action needs is down")
        self.tablets[t].start_operation()
        self.copied[t] = False
        self.cleaned[t] = False

    @action(by=COORDINATOR, fair=WEAK)
    def fail_unanswered(self, t: Term[Tablet]) -> None:
        """The action fails because a node that it needs is down, or has been and knows nothing of it."""
        dead = some(self._needs(n, t) & self.down.has(n) for n in Node)
        require(dead | ~self._will_be_answered(t), "nobody can answer")
        self.tablets[t].fail_operation()

    @action(by=NETWORK, spends=TabletMigration.failures)
    def lose_answer(self, t: Term[Tablet]) -> None:
        """The answer of a running action is lost: the coordinator takes it for failed, but it goes on."""
        self.tablets[t].fail_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self, t: Term[Tablet], pending: Term[Node]) -> None:
        """The pending replica, having learned the stage, starts to stream, or joins what it started."""
        self.tablets[t].start_operation()
        require(self.tablets[t].stage == Stage.streaming, "stage is streaming")
        require(self._is_pending(pending, t), "the node is the pending replica")
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
        require(~(stays & has_leaving), "a migration streams from the leaving replica")
        require(self.chunk[t].target.is_none() & ~self.copied[t], "nothing is on the wire")
        self.chunk[t].target = target
        self.chunk[t].value = self.data[t][source]

    @action(fair=WEAK)
    def receive_chunk(self, t: Term[Tablet], target: Term[Node]) -> None:
        """The target stores a chunk of a session that is open as far as it has learned."""
        chunk = self.chunk[t]
        require(chunk.target == target, "a chunk is on its way to the node")
        ready = ~self.down.has(target) & self.storage[t].has(target)
        require(ready, "the node is up and has storage")
        if self.release.sessions:
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
        require(self.chunk[t].target.is_some(), "a chunk is on the wire")
        require(self.chunk[t].closed | self.streaming_at[t].is_none(), "its stream is over")
        self._take_off_the_wire(t)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """The pending replica answers that everything was copied."""
        require(self.copied[t], "all was copied")
        require(self.tablets[t].stage == Stage.streaming, "stage is streaming")
        self.tablets[t].finish_operation()
        self.streaming_at[t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica that is not to stay is asked to remove its rows."""
        require(self._to_be_cleaned(n, t), "the node's replica is to be cleaned up")
        require(~self.excluded.has(n), "the node is not excluded")
        self.tablets[t].start_operation()
        self.cleanup_at[t] = n
        self.cleaned[t] = False

    @action(fair=WEAK)
    def clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica, having learned the stage, checks that it is meant and removes its rows."""
        require(self.cleanup_at[t] == n, "cleanup was asked of the node")
        self._can_serve(n, t)
        require(self._to_be_cleaned(n, t), "the node's replica is to be cleaned up")
        self._waits_for_local_users(t, n)
        self._remove_rows(t, n)
        self.cleanup_at[t] = None
        self.cleaned[t] = True

    @action(fair=WEAK)
    def refuse_cleanup(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A stale request to clean up is refused: the stage has moved on."""
        require(self.cleanup_at[t] == n, "cleanup was asked of the node")
        require(~self._to_be_cleaned(n, t) | self.excluded.has(n), "it is stale")
        self.cleanup_at[t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def finish_cleanup(self, t: Term[Tablet]) -> None:
        """The replica answers that its rows are gone."""
        require(self.cleaned[t], "rows are gone")
        cleans = self.tablets[t].stage.any_of(Stage.cleanup, Stage.cleanup_target)
        require(cleans, "stage is a cleanup")
        self.cleaned[t] = False
        self.tablets[t].finish_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def run_repair(self, t: Term[Tablet]) -> None:
        """The replicas to read from are asked to repair; all are in step, as writes go to all of them."""
        require(
            self.tablets[t].stage.any_of(Stage.repair, Stage.rebuild_repair), "stage is a repair"
        )
        self.tablets[t].start_operation()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_repair_run(self, t: Term[Tablet]) -> None:
        """The replicas answer that they are repaired."""
        require(
            self.tablets[t].stage.any_of(Stage.repair, Stage.rebuild_repair), "stage is a repair"
        )
        self.tablets[t].finish_operation()

    # -- maintenance -----------------------------------------------------------------------------------

    @action(spends=TabletNodes.compactions)
    def begin_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A node starts to rewrite what its replica stores, as to split the tablet."""
        require(~self.down.has(n), "node is up")
        stores = self.storage[t].has(n) & (self.data[t][n] > 0)
        require(stores, "its replica stores something")
        require(self.compacting[t][n] == 0, "it does not compact yet")
        self.compacting[t][n] = self.data[t][n]

    @action(fair=WEAK)
    def end_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """What was rewritten takes its place."""
        newer = self.data[t][n] < self.compacting[t][n]
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
        self.chunk[t].target = None
        self.chunk[t].value = 0
        self.chunk[t].closed = False

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            ask_dead_node,
            "a node that the action needs is down",
            because="an action that is started in vain fails, and is tried again",
        ),
        equivalent_drop(
            ask_dead_node,
            "stage has an action",
            "no action yet",
            "barrier done before the target is cleaned up",
            because="a node is needed where the stage has an action",
        ),
        equivalent_loss(
            ask_dead_node,
            TabletMigration.operation,
            because="a node is needed where the stage has an action",
        ),
        equivalent_loss(
            ask_dead_node,
            TabletNodes.copied,
            TabletNodes.cleaned,
            because="a second migration, a crash and a lost answer tell: in the tests",
        ),
        equivalent_drop(
            fail_unanswered,
            "nobody can answer",
            because="an action that is taken for failed is tried again, or undone",
        ),
        equivalent_drop(
            ask_to_stream,
            "stage has an action",
            "no action yet",
            "barrier done before the target is cleaned up",
            because="the stage is streaming, which has an action and no barrier",
        ),
        equivalent_loss(
            ask_to_stream,
            TabletMigration.operation,
            because="the stage is streaming, which has an action and no barrier",
        ),
        equivalent_drop(
            ask_to_stream,
            "node is up",
            "node has read what is committed",
            because="what it streams before it knows the session is refused",
        ),
        equivalent_drop(
            send_chunk,
            "a migration streams from the leaving replica",
            because="where a tablet has one replica, that is the one that leaves",
        ),
        equivalent_drop(
            send_chunk, "nothing is on the wire", because="to send again loses what was sent before"
        ),
        equivalent_drop(
            receive_chunk,
            "the node is up and has storage",
            because="who knows an open session has storage",
        ),
        equivalent_drop(
            receive_chunk,
            "its session is open, as far as the node has learned",
            because="who was asked to stream has learned of the session",
        ),
        equivalent_drop(drop_chunk, "a chunk is on the wire", because="nothing is lost"),
        equivalent_loss(
            finish_streaming,
            TabletNodes.streaming_at,
            because="what is streamed after the session is refused",
        ),
        equivalent_drop(
            ask_to_clean_up,
            "the node's replica is to be cleaned up",
            because="a replica that is not meant refuses",
        ),
        equivalent_drop(
            ask_to_clean_up, "the node is not excluded", because="an excluded node does not answer"
        ),
        equivalent_drop(
            ask_to_clean_up,
            "stage has an action",
            "no action yet",
            "barrier done before the target is cleaned up",
            because="a stage in which a replica is to be cleaned up has an action",
        ),
        equivalent_loss(
            ask_to_clean_up,
            TabletMigration.operation,
            because="a stage in which a replica is to be cleaned up has an action",
        ),
        equivalent_drop(
            clean_up,
            "cleanup was asked of the node",
            because="a replica that is to be cleaned up may be so unasked",
        ),
        equivalent_drop(
            clean_up,
            "node is up",
            "node has read what is committed",
            because="a node is one stage behind at most, as it has passed the last barrier",
        ),
        equivalent_drop(
            clean_up,
            "the node's replica is to be cleaned up",
            because="one request is on its way at a time, and its stage ends with its answer",
        ),
        equivalent_loss(
            clean_up, TabletNodes.cleanup_at, because="to clean up what is clean changes nothing"
        ),
        equivalent_loss(refuse_cleanup, TabletNodes.cleanup_at, because="it will be refused again"),
        equivalent_drop(
            finish_cleanup,
            "stage is a cleanup",
            because="an answer is forgotten when the next stage's action is asked for",
        ),
        equivalent_loss(
            finish_cleanup,
            TabletNodes.cleaned,
            because="an answer is forgotten when the next stage's action is asked for",
        ),
        equivalent_drop(
            finish_cleanup, "action running", because="an answer that comes late is true still"
        ),
        equivalent_loss(
            finish_cleanup,
            TabletMigration.operation,
            because="an answer that comes late is true still",
        ),
        equivalent_drop(
            run_repair,
            "stage has an action",
            "no action yet",
            "barrier done before the target is cleaned up",
            because="the stages of a repair have an action, and wait for no barrier",
        ),
        equivalent_loss(
            run_repair,
            TabletMigration.operation,
            because="the stages of a repair have an action, and wait for no barrier",
        ),
        equivalent_drop(
            finish_repair_run, "action running", because="an answer that comes late is true still"
        ),
        equivalent_loss(
            finish_repair_run,
            TabletMigration.operation,
            because="an answer that comes late is true still",
        ),
        equivalent_drop(
            begin_compaction,
            "node is up",
            "its replica stores something",
            "it does not compact yet",
            because="compactions are of what is there, and change nothing of it",
        ),
        equivalent_loss(
            begin_compaction,
            TabletNodes.compacting,
            because="compactions are of what is there, and change nothing of it",
        ),
        equivalent_drop(
            end_compaction,
            "the node compacts",
            because="compactions are of what is there, and change nothing of it",
        ),
        equivalent_loss(
            end_compaction,
            TabletNodes.data,
            because="compactions are of what is there, and change nothing of it",
        ),
        equivalent_loss(
            _take_off_the_wire,
            Chunk.target,
            Chunk.value,
            Chunk.closed,
            because="what comes twice is stored twice; nobody looks at the rest",
        ),
    )
