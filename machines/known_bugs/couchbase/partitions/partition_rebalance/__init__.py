"""Mistakes put back into the machine of `couchbase/partitions/partition_rebalance.py`, by what breaks."""
