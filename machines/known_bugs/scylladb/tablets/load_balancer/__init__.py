"""Mistakes put back into the machine of `scylladb/tablets/load_balancer.py`, by what breaks."""
