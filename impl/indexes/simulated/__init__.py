"""Runs of indexed tables under a virtual clock: messages, crashes and clients by a seed, an oracle beside them."""
