"""Runs of a whole cluster, repeatable from a seed, whose answers are compared with map/reduce over the documents."""
