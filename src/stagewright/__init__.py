"""State machines of tablet databases: written once, then checked, proved, run and replayed."""

__version__ = "0.1.0"
