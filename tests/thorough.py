"""Whether this run looks for more than the suite's ten minutes allow: `./run test --thorough`."""

import os

VARIABLE = "STAGEWRIGHT_TESTS"  # set for all processes of a run, before they import tests
THOROUGH = (
    os.environ.get(VARIABLE) == "thorough" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)
