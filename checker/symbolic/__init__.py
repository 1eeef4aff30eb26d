"""Decides promises with the solver Z3: bounded search, k-induction, and the conditions as SMT-LIB."""
