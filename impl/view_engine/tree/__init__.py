"""The copy-on-write B+tree: build, apply, purge, read, reduce and check."""
