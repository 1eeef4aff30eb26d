"""Many runs: `python -m tests.impl.view_engine.campaign FIRST COUNT`."""

from __future__ import annotations

import gc
import sys
import time
import traceback

from tests.impl.view_engine.campaign.runs import Counts, run


def main() -> int:
    """Prints what happened, and each seed that failed with why."""
    first, count = (int(text) for text in sys.argv[1:3])
    total, failed = Counts(), 0
    gc.freeze()  # what is imported stays: no need to look at it again and again
    gc.set_threshold(200_000)
    began = time.process_time()
    for seed in range(first, first + count):
        try:
            total.add(run(seed))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed += 1
            text = "".join(traceback.format_exception(error)[-6:]) if failed <= 3 else ""
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:1500]}\n{text}", flush=True)
    spent = time.process_time() - began
    print(f"{count} runs, {failed} failed, {spent / count * 1000:.0f} ms of CPU each; {total}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
