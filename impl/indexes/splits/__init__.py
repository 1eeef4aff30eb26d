"""Tablets of the table and of indexes split: which tablet has a key, what one does that splits, and what the master does."""
