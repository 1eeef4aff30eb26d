"""Where data lies: tokens of keys, token rings of vnodes, tablet maps, and replicas by selector.

Which shard of a node owns a token, `machines.scylladb.cdc.cdc_streams.Sharding` says.
"""
