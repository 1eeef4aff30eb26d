"""Benchmarks of the tablet load balancer beside a plain greedy one."""
