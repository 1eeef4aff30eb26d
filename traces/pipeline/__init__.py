"""The passes of a validation, in their order."""
