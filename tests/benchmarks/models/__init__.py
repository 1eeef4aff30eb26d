"""The same models as the peers are given them, each written by hand in the peer's own language."""
