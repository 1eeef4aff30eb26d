"""Which permutations leave a model as it is, and why others do not."""
