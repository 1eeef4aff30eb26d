"""Tablets of the table split: which tablet has a key, what a tablet does that splits, and what the master does."""
