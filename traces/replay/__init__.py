"""The fast replay: events stay where they are read, and only what remains open travels."""
