"""A seeded, deterministic world for the cluster: time, network, crashes, clients, and an oracle."""
