"""What decides: explicit search, symbolic proof, liveness, mutation and conformance."""
