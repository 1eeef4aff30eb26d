"""Queries: parameters, and the rows or reductions of one snapshot."""
