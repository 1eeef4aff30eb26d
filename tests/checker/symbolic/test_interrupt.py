"""Ctrl-C is heard while the solver thinks."""

import os
import signal
import threading

import pytest

from stagewright.checker.symbolic.interrupts import interruptible
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


def test_an_interrupt_ends_a_query_in_the_middle_of_a_proof() -> None:
    terms, clock = Terms(), Clock(60)
    before, wakes = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with interruptible(clock):
        solver = Solver(terms, clock)
        solver.add(*pigeons(terms, 13))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            solver.check()
    timer.join()
    assert clock.elapsed() < 30
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(wakes) == -1


class Freed:
    """Something that is freed at the moment at which the user interrupts, as a term may be."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_while_something_is_freed_is_not_forgotten() -> None:
    terms, clock = Terms(), Clock(60)
    with interruptible(clock):
        solver = Solver(terms, clock)
        Freed()
        with pytest.raises(KeyboardInterrupt):
            solver.check()


def test_a_second_interrupt_breaks_off_what_does_not_ask() -> None:
    with interruptible(Clock(60)):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
