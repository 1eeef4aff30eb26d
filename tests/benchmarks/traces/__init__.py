"""Benchmarks of trace validation: generated traces of a shipped machine, and who replays them how fast."""
