"""Partitions of a view index: their states, workers, queries, and rebalance (design document 004)."""
