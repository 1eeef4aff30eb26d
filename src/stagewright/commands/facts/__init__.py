"""A machine in words: the facts that `show` and the pages print, and where those of shipped machines are kept."""
