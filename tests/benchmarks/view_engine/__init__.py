"""Benchmarks of the view engine beside its peers."""
