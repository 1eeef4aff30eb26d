"""What `check` and `prove` do beside one search: all machines, checkpoints, refinements, Spark."""
