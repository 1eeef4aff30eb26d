"""Exhaustive breadth-first search over states packed into machine words."""
