"""The runtime at living sizes, beside plain `transitions` and beside the reference interpreter."""
