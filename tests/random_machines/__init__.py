"""Random machines: definitions built as trees, with everything that the language can say."""
