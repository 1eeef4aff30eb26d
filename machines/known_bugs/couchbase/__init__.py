"""Known bugs of Couchbase: its indexes, their files and partitions; requests that are refused have a folder of their own."""
