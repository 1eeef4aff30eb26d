"""RocksDB's SST files, read and written by compiled loops: rows in bulk without an object for each of them."""

FORMAT = 2  # of files: their indexes have whole keys and whole places
