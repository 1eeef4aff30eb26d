"""Tablets: their transitions, replicas and requests, resize, repair and balance (design document 001)."""
