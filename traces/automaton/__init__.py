"""A definition as the automaton of its observed events: subsets, products, unknown starts."""
