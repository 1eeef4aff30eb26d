"""An instance whose steps are committed before they count."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagewright.impl.runtime import Instance, Program, Record
from stagewright.impl.store.control_store import ControlStore
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

# What else to commit with a step (None: with the initial state) that leads to a state.
Attach = Callable[[Step | None, State], Mapping[str, object]]


def durable(
    store: ControlStore, program: Program, entity: str, *, attach: Attach | None = None
) -> Instance:
    """The instance of an entity as it was last committed, or new and committed now.

    Each of its steps is written to the store before it counts; if that fails, it does not happen. Steps
    that change volatile variables only are not written. A
    coordinator that is deposed while it holds the instance can take no step any more.

    Raises:
        StoreError: what is stored is not a state of the definition; later: the term is over.
    """
    state = store.load(entity)
    running = Instance(program, state, name=entity)
    if state is None:
        first = {} if attach is None else attach(None, running.state)
        store.commit(entity, None, running.state, first)
    term = store.term

    def commit(record: Record) -> None:
        store.check_term(term)
        for taken in record.steps:
            if not taken.committed:
                continue
            after = running.state
            more = {} if attach is None else attach(taken.step, after)
            store.commit(entity, taken.step.action, after, more)

    running.log = commit
    return running
