"""Benchmarks of real nodes beside the stores that they use."""
