"""Numbers in sentences: `1 node`, `2 nodes`."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """The number with the noun in the form that it needs; `plural` is for nouns that do not just take an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
