"""Mistakes put back into the machine of `couchbase/indexes/index_compaction.py`, by what breaks."""
