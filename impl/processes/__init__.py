"""A cluster of real processes: a process a node, framed messages over TCP, rows and the log in real files.

A directory holds a cluster. `supervisor` starts and stops its nodes, `client` talks to them; `node` is the
program of one, which hosts a node of `impl/node` and carries its effects out.
"""
