"""Clusters of real processes that are killed at random while clients write and indexes or views are built."""
