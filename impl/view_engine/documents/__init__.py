"""Where documents come from: partitions with sequence numbers, and streams of their changes."""
