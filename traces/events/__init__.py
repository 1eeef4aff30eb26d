"""Events as columns: blocks of them, symbols, what is observed, how one is shown."""
