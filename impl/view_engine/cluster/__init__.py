"""Several nodes: what each has of an index, queries over all of them, and the manager that moves partitions."""
