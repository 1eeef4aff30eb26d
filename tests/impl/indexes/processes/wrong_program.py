"""A process of a cluster that is built wrongly: `python wrong_program.py --defect NAME …`, else as the right one."""

from __future__ import annotations

import sys

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.processes.program import main

if __name__ == "__main__":
    _, defect, *words = sys.argv[1:]
    raise SystemExit(main(words, frozenset({Defect[defect]})))
