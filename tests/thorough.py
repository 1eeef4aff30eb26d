"""Whether this run looks for more than the suite's ten minutes allow: `./run test --thorough`."""

import os

VARIABLE = "STAGEWRIGHT_TESTS"  # set for all processes of a run, before they import tests
THOROUGH = (
    os.environ.get(VARIABLE) == "thorough" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)


def examples(most: int) -> int:
    """How many examples of a law are tried: `most` in a thorough run, else a third of them."""
    return most if THOROUGH else most // 3
