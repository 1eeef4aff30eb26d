"""How many threads there can be: what cannot be had is found out before work is given to it."""

from __future__ import annotations

from threading import Event, Thread


def threads_granted(wanted: int) -> int:
    """How many of so many threads the system lets this process have at once; 1: only the one there is."""
    if wanted == 1:
        return 1
    done, threads = Event(), list[Thread]()
    try:
        for _ in range(wanted):
            thread = Thread(target=done.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError:  # a limit of threads, or of memory for their stacks
        pass
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return max(1, len(threads))
