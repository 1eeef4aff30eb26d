"""Ctrl-C is heard while the solver thinks."""

import os
import signal
import threading

import pytest

from stagewright.checker.symbolic.z3_terms import Answer, Clock, Solver, Terms


def pigeons(terms: Terms, count: int) -> list[object]:
    """That so many pigeons sit in one hole fewer, each alone: false, and slow to refute."""
    sits = [
        [terms.boolean(f"pigeon {p} in {hole}") for hole in range(count - 1)] for p in range(count)
    ]
    alone = [
        terms.not_(terms.and_([one[hole], other[hole]]))
        for hole in range(count - 1)
        for p, one in enumerate(sits)
        for other in sits[:p]
    ]
    return [*(terms.or_(holes) for holes in sits), *alone]


def test_an_interrupt_ends_a_query_and_leaves_the_handler_of_python() -> None:
    terms = Terms()
    solver = Solver(terms, Clock(60))
    solver.add(*pigeons(terms, 13))
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.check()
    timer.join()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_query_on_another_thread_is_answered() -> None:
    terms = Terms()
    solver = Solver(terms, Clock(60))
    solver.add(*pigeons(terms, 4))
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(solver.check()))
    thread.start()
    thread.join()
    assert answers == [Answer.UNSAT]
