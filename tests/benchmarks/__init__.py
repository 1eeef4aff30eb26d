"""How fast and how large the backends are, beside their peers on the same models in the same run."""
