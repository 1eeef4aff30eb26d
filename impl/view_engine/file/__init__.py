"""The file of an index: blocks, checksummed chunks, headers, and the order of its keys."""
