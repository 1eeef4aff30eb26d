"""The nearest known name to one that is not known: `errors` has it, for texts on every floor use it."""

from stagewright.spec.errors import did_you_mean, known_names, nearest

__all__ = ["did_you_mean", "known_names", "nearest"]
