"""Known bugs of the topology: nodes, ranges, fences and group0."""
