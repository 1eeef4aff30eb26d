"""The backfill of indexes: its job, tablets, chunks, RPCs and safe times (002)."""
