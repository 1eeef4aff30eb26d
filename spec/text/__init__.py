"""Definitions and runs as text: words, state diagrams, suggestions, ITF."""
