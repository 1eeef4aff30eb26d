"""The set of visited states: buckets, quotients, tables."""
