"""Symmetry: search one state of every orbit under permutations of interchangeable members.

Two-phase commit with eight managers has 1,745,408 states but 1,461 orbits: which manager is which
does not matter. What is here finds that out from the definition, without a hint of its author.

1. *Detection* (`detection.py`). For every entity sort, and every enum that states are keyed by: is
   the ground model closed under permutations of its members? For two permutations that generate all
   others, initial states, steps, requirements, bounds, invariants, step properties and `final` are
   compared by meaning, as decision diagrams (`closure.py`, `diagrams.py`). Where expressions are too
   large for that, the definition's tree decides (`findings.py`), which also gives the reason in words
   and its place in the file. A sort is called symmetric only if that is proved.
2. *The action* (`groups.py`). A permutation moves cells and renames values that are members; none of
   an optional value stays fixed. `Symmetry` is plain data: what an engine needs to compile its own
   canonical form. `motion.py` applies it to single states, steps and arguments.
3. *The canonical form* (`canonical.py`). A true one: two states have the same if and only if they are
   of one orbit. Where members are fully described by their own cells, the components are sorted
   (`sorting.py`). Elsewhere members are put in the order of their signatures, which no permutation
   changes (`signatures.py`), and what ties is tried in all orders; the least packed state wins.
4. *Counting* (`orbits.py`). How many states each orbit stands for.
5. *The search* (`reduced.py`). `Reduced(engine, symmetry)` is an engine over canonical states. Depths,
   verdicts on invariants, step properties, bounds and deadlock are those of the full search; numbers of
   steps taken and of requirements that failed are per orbit. Goals that no permutation changes are
   decided on orbits, too (`goals.py`); other goals and leads-to promises are not.
6. *Runs* (`lifting.py`). A counterexample is a path of canonical states, made a run of the machine.

What an engine with a canonical form of its own has to keep to:

- It starts from the canonical forms of the initial states, and stores canonical forms only.
- Step properties compare a state with its successor as it is, before it is renamed.
- It computes the same function, bit by bit, if runs and numbers of states are to be the same at every
  limit: `canonical.py` says which, over the packed words of the engine's layout, and
  `signatures.terms_of` and `sorting.comparators` give what it is made of. Any other true canonical
  form (all permutations tried, the least taken) gives the same number of orbits and the same depths.
"""
