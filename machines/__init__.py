"""The definitions, one file a machine, and the systems composed of them."""
