"""Known bugs of YugabyteDB: indexes, and how they are built; backfill has a folder of its own."""
