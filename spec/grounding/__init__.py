"""A definition at one scope: domains, encodings, the ground form and its initial states."""
