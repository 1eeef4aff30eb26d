"""The log of a node in ScyllaDB's own form, from what the node did: what it was sent, and what it wanted done."""

from stagewright.impl.server_log.writer import ServerLog as ServerLog
