"""Mutation of definitions: one thing in a machine is changed, and a promise must notice."""
