"""Known bugs of the topology control machine: its invariants, its operations on nodes, and whose turn it is."""
