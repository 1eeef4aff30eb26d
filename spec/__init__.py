"""The specification language: sorts, variables, expressions, actions, machines, properties."""
