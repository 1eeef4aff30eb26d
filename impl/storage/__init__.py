"""Rows with their versions: in memory with a modelled crash, or in RocksDB, behind one protocol (`port`)."""
