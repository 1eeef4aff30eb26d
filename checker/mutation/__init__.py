"""Mutation of definitions: one thing in a machine is changed, and a promise must notice.

`mutants.py` lists the changes (`requirements`, `effects`, `columns`, `edges`), `original.py` searches the definition
itself once, `engine.py` lowers and compiles each mutant beside it, `difference.py` finds what changes no reachable
step, `promises.py` looks at what changes promises alone, `evaluation.py` searches until a promise breaks, `run.py` does
so in parallel and within a budget, `checkpoint.py` keeps what was found, `claims.py` says which reasons that the
definition gives are needed, `report.py` sets what survives against them. `known.py` finds historical bugs again.
"""
