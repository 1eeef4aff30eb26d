"""Suites with a bound: what no implementation with at most so many states can pass unless it is right.

A definition is seen as a Mealy machine (`mealy`): its inputs are events, its outputs refusals and what an adapter
observes. `separating` finds the events that tell its states apart, `words` the W and Wp suites from them.
"""
