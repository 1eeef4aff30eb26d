"""A small but real cluster: nodes with rows, a topology coordinator that the definition rules."""
