"""Where a validation runs: in this process, or on Spark."""
