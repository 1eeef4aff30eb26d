"""Tablets of a running cluster: where their replicas lie, and how they come to lie elsewhere."""
