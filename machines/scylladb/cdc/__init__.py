"""Change data capture: generations of streams, how they are published and map to tablets (003)."""
