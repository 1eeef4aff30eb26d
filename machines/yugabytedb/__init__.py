"""YugabyteDB: how an index is created and backfilled while its table is written."""
