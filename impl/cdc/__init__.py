"""Change data capture on vnode tables: generations of streams, log rows, and a consumer that reads them.

Source: design document 003. `metadata` chooses the stream of a write, `rows` says how a change is stored,
`consumer` reads changes exactly once and in order. Nodes write log rows with the rows (`impl.node.clients.requests`).
"""
