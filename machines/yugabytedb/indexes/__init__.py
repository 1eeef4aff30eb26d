"""The permissions of an index, what servers write by them, and the rows that come of it (002)."""
