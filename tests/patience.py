"""How long a test waits for other processes before it calls them stuck: much longer than a busy machine needs."""

PATIENCE = 240.0
"""Seconds. A loop that is compiled for the first time may alone take a minute where others work, too."""
