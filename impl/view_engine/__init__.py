"""The view engine: incremental map/reduce indexes in append-only files, over partitions that come and go."""
